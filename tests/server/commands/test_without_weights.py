"""Commands and the language server on a machine that cannot get weights."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from redraft.lsp.recording.recordings_folder import Recordings
from support.command import RUN
from support.editors.lsp import insert_texts
from support.editors.lsp_process import LspProcess

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")

CODE = "def area(w, h):\n    size = \n    return size\n"
NOWHERE = "http://127.0.0.1:9"  # the port of "discard": nothing listens there


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "REDRAFT_CACHE_DIR": str(tmp_path / "cache"),
        "REDRAFT_RUNTIME_DIR": str(tmp_path / "run"),
        "REDRAFT_RECORDINGS_DIR": str(tmp_path / "recordings"),
        "REDRAFT_IDLE_EXIT_S": "1",
        "HF_ENDPOINT": NOWHERE,
        "PIP_INDEX_URL": f"{NOWHERE}/simple",
        "PYTHONUTF8": "1",
    }


def redraft(*arguments: str) -> list[str]:
    return [sys.executable, "-c", RUN, *arguments]


@pytest.mark.usefixtures("spawn")
def test_a_completion_says_what_to_do(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "area.py").write_text(CODE, encoding="utf-8")
    done = subprocess.run(
        redraft("complete", f"{tmp_path / 'area.py'}:2:12"),
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Check the network" in done.stderr and "redraft model pull" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_model_it_says_what_to_do_and_serves(
    environment: dict[str, str], tmp_path: Path, spawn: type[subprocess.Popen[bytes]]
) -> None:
    Recordings(tmp_path / "recordings").turn_on()
    start = functools.partial(spawn, env=environment)
    client = LspProcess({}, tmp_path, start, redraft("lsp", "--stdio"))
    uri = (tmp_path / "project" / "area.py").as_uri()
    client.initialize(rootUri=(tmp_path / "project").as_uri())
    client.open(CODE, uri)
    told = client.status("redraft model pull")
    assert told["kind"] == "Error" and "Check the network" in told["message"]
    for version in (2, 3):
        client.insert(1, 11, "x", version, uri)
        assert insert_texts(client.complete(1, 12, uri=uri)) == []
    assert client.is_alive()
    assert client.end() == 0
    recorded = [
        json.loads(line)
        for file in (tmp_path / "recordings").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert sum(each["kind"] == "changed" for each in recorded) == 2, recorded
