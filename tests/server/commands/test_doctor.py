"""``redraft doctor``: what it finds, and what it advises."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from redraft.model.choice import ModelChoice
from redraft.model.runtime import machine
from redraft.model.weights.catalog import info
from redraft.server.commands import doctor
from redraft.server.commands.doctor import (
    cache_findings,
    choice_findings,
    examine,
    memory_problem,
    runtime_findings,
)
from redraft.server.settings import Settings
from support.command import call

pytestmark = pytest.mark.usefixtures("spawn")


def test_doctor_finds_this_installation_unchanged(tmp_path: Path) -> None:
    environment = {
        "REDRAFT_CACHE_DIR": str(tmp_path / "cache"),
        "REDRAFT_RUNTIME_DIR": str(tmp_path / "run"),
    }
    code, out, err = call("doctor", environment=environment)
    assert code == 0, out + err
    for subject in (
        "redraft",
        "onnxruntime",
        "runs on",
        "machine",
        "model",
        "cache",
        "engine",
        "server",
        "choice",
    ):
        assert subject in out
    assert "redraft model pull" in out
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("installed", "verdict"), [("0.26.0", "problem"), ("0.26.1", "ok")])
def test_doctor_names_a_tree_sitter_that_crashes(
    installed: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "version", lambda _: installed)
    monkeypatch.setenv("REDRAFT_PORT", "-1")  # ends the checks early
    found = {f.subject: f for f in asyncio.run(examine(warm_up=False))}["tree-sitter"]
    assert (found.verdict, installed in found.what) == (verdict, True)
    assert (verdict == "ok") == (not found.advice)


def test_doctor_explains_broken_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_PORT", "-1")
    problems = [f for f in asyncio.run(examine(warm_up=False)) if f.verdict == "problem"]
    assert [f.subject for f in problems] == ["settings"]
    assert problems[0].advice


@pytest.mark.parametrize(
    ("installed", "advice"),
    [
        ({}, "pip install '.[cpu]'"),
        ({"onnxruntime": "1.31", "onnxruntime-gpu": "1.31"}, "pip uninstall"),
        ({"onnxruntime": "1.29.3"}, "pip install -U"),
    ],
)
def test_doctor_explains_a_faulty_onnxruntime(
    installed: dict[str, str], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_installed_version", installed.get)
    [finding] = runtime_findings(Settings())
    assert finding.verdict == "problem"
    assert advice in finding.what


def test_doctor_says_where_models_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="the cpu or gpu extra installs it")
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    found = {f.subject: f for f in runtime_findings(Settings())}
    assert found["runs on"].verdict == "ok" and "CPU" in found["onnxruntime"].what


@pytest.mark.parametrize(("memory", "is_small"), [(3_400_000_000, False), (2_000_000_000, True)])
def test_doctor_names_a_machine_that_is_too_small(
    memory: int, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory_of", lambda provider: memory)
    problem = memory_problem(info("redraft-0.5b"), "int8")
    assert ("it takes 1.0 GB of memory, more than half of the 2.0 GB" in problem) == is_small


def test_doctor_says_which_model_runs_and_larger_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [named] = choice_findings(Settings(model="mine"))
    assert (named.verdict, named.what) == ("ok", "mine: named by the settings")
    found = ModelChoice("redraft-0.5b", "it is not here", "redraft-1.5b", "It costs 2 GB.")
    monkeypatch.setattr("redraft.model.load.which_model", lambda *_: found)
    [finding] = choice_findings(Settings())
    assert (finding.verdict, finding.what) == ("note", "redraft-0.5b runs. It costs 2 GB.")
    assert "redraft model pull redraft-1.5b" in finding.advice
    assert "redraft model decline redraft-1.5b" in finding.advice


@pytest.mark.skipif(
    sys.platform == "win32" or (hasattr(os, "getuid") and os.getuid() == 0),
    reason="root and Windows can write to read-only folders",
)
def test_a_read_only_cache_is_explained(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        for folder in (tmp_path, tmp_path / "new"):
            [finding] = cache_findings(folder, ready=False, needed=1_000_000_000)
            assert finding.verdict == "problem"
            assert "REDRAFT_CACHE_DIR" in finding.advice
    finally:
        tmp_path.chmod(0o700)


def test_doctor_says_what_the_cache_takes_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    (tmp_path / "ready" / "weights").write_bytes(b"x" * 20_000_000)
    os.link(tmp_path / "ready" / "weights", tmp_path / "again")  # takes nothing more
    [finding] = cache_findings(tmp_path, ready=True, needed=0)
    assert "holds 0.02 GB" in finding.what


def test_a_file_in_the_place_of_the_cache_is_explained(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    [finding] = cache_findings(tmp_path / "cache", ready=False, needed=1_000_000_000)
    assert finding.verdict == "problem"
