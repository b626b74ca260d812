"""``redraft soak``: how it counts, and half a minute of each mode against the real processes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from redraft.evals.soak.mirror import Mirror
from redraft.evals.soak.tally import Tally, slope_of
from redraft.lsp.editor.documents import ContentChange, Document
from redraft.lsp.editor.positions import Position, Range
from redraft.server.commands.main import app
from support.onnx_models import register
from support.tiny import tiny_config, tiny_tokenizer
from support.training_sources import write_sources
from typer.testing import CliRunner

# --- figures -----------------------------------------------------------------------------------


def samples(per_event: float, noise: float = 0.0) -> list[tuple[int, int]]:
    """Bytes over 20,000 events, after a beginning in which caches fill."""
    chance = random.Random(3)
    return [
        (n, int(1e8 + min(n, 2_000) * 5_000 + per_event * n + noise * (chance.random() - 0.5)))
        for n in range(0, 20_000, 50)
    ]


def test_growth_is_told_with_its_interval() -> None:
    found = slope_of(samples(per_event=500.0, noise=2e6))
    assert found is not None
    assert found.low < 5.0 < found.high  # MB per 10,000 events
    assert found.high - found.low < 1.5


def test_noise_is_no_growth() -> None:
    found = slope_of(samples(per_event=0.0, noise=4e6))
    assert found is not None and found.low <= 0


def test_few_samples_tell_no_growth() -> None:
    assert slope_of([(n, 10) for n in range(8)]) is None
    assert slope_of([(5, 10)] * 200) is None


def test_a_report_holds_what_was_counted() -> None:
    tally = Tally(lambda: 0.0, events=3, answers=2, lost=1, latency_ms=[1.0, 3.0])
    tally.counts["kills"] += 2
    tally.breaks("one thing")
    report = tally.report("chaos", 7, 1.25)
    assert (report.events, report.lost, report.latency_ms.p50) == (3, 1, 2.0)
    assert report.counts == {"kills": 2}
    assert report.broken == ("one thing",)


# --- the reference -----------------------------------------------------------------------------


def change(text: str, *places: int) -> dict[str, Any]:
    if not places:
        return {"text": text}
    first, second, third, fourth = places
    start, end = {"line": first, "character": second}, {"line": third, "character": fourth}
    return {"text": text, "range": {"start": start, "end": end}}


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("ab\ncd", [change("X", 0, 1, 1, 1)], "aXd"),
        ("a😀b", [change("X", 0, 3, 0, 3)], "a😀Xb"),
        ("a\r\nb", [change("X", 0, 9, 0, 9)], "aX\nb"),
        ("a\nb", [change("X", 7, 0, 9, 9)], "a\nbX"),
        ("a\nb", [change("new\r"), change("X", 1, 0, 1, 0)], "new\nX"),
        ("a\u2028b", [change("X", 0, 2, 0, 3)], "a\u2028X"),
        ("😀", [change("X", 0, 1, 0, 2)], "\ufffdX"),
    ],
)
def test_the_mirror_changes_as_the_protocol_says(
    before: str, changes: list[dict[str, Any]], after: str
) -> None:
    mirror = Mirror(before)
    mirror.apply(changes)
    assert mirror.seen() == after
    document = Document("file:///a", before)
    for each in changes:
        place = each.get("range")
        range_ = place and Range(*(Position(**place[at]) for at in ("start", "end")))
        document.apply([ContentChange(each["text"], range_)], None)
    assert document.text == after


# --- half a minute of each -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
    root = tmp_path_factory.mktemp("models")
    register(root, "tiny", tiny_config(head_dim=16), tiny_tokenizer())
    return root


def soaked(models: Path, folder: Path, mode: str, *options: str) -> dict[str, Any]:
    """The report of a run that held."""
    told = folder / "soak.json"
    commits, _ = write_sources(folder, 4)
    command = ["soak", mode, "--model", "tiny", "--source", str(commits), "--json", str(told)]
    environment = {"REDRAFT_MODELS": str(models), "REDRAFT_THREADS": "1"}
    ran = CliRunner().invoke(app, [*command, *options], env=environment)
    assert ran.exit_code == 0, f"{ran.output} {ran.exception!r}"
    [report] = json.loads(told.read_text())["soak"]
    assert (report["lost"], report["broken"]) == (0, [])
    assert report["answers"] > 0
    found: dict[str, Any] = report
    return found


def test_typing_for_a_while_loses_nothing(models: Path, tmp_path: Path) -> None:
    report = soaked(models, tmp_path, "typing", "--seconds", "15", "--events", "3000")
    assert report["events"] > 300
    assert report["errors"] == 0
    assert report["counts"]["HTTP requests"] > 0
    each = [report["counts"][f"{name}, MB at the end"] for name in ("language server", "engine")]
    assert min(each) > 10
    assert sum(each) == pytest.approx(report["memory_mb"][1], abs=0.1)


def test_what_is_fuzzed_is_answered_and_documents_stay_right(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    report = soaked(models, tmp_path, "fuzz", "--messages", "400")
    assert report["counts"]["documents compared"] > 20
    assert report["counts"]["HTTP 4xx"] > 0


def test_kills_lose_nothing_that_was_confirmed(models: Path, tmp_path: Path) -> None:
    report = soaked(models, tmp_path, "chaos", "--blows", "6", "--seconds", "25", "--seed", "3")
    blows = sum(n for name, n in report["counts"].items() if name.startswith("blows"))
    assert blows > 1


def test_in_a_flood_whoever_is_admitted_is_answered(models: Path, tmp_path: Path) -> None:
    report = soaked(
        models, tmp_path, "flood", "--clients", "1", "--clients", "60", "--seconds", "5"
    )
    assert report["counts"]["60 clients: sent away"] > 0
    assert report["counts"]["60 clients: admitted"] > 0


def test_a_mode_that_does_not_exist_is_named() -> None:
    ran = CliRunner().invoke(app, ["soak", "flod"])
    assert ran.exit_code == 2
    assert "typing, fuzz, chaos, flood" in " ".join(ran.output.split())
