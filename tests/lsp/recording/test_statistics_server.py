"""Statistics of a real server: what it writes, and what its command answers."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from redraft.lsp.recording import statistics
from redraft.lsp.recording.counts import StatisticsFolder, SuggestionCounts, sum_counts
from support.editors.lsp import insert_texts, lsp_client
from support.editors.lsp_process import LspProcess


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDRAFT_STATISTICS_DIR", str(tmp_path / "statistics"))
    return tmp_path / "statistics"


def written_by_all(folder: Path) -> SuggestionCounts:
    rows, problems = StatisticsFolder(folder).read(2, date.today())
    assert not problems
    [counts] = sum_counts(rows, lambda _: "all").values()
    return counts


def test_a_server_counts_and_writes_by_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "WRITE_S", 0.01)
    with lsp_client("total") as client:
        client.initialize()
        client.open("x = \n")
        assert insert_texts(client.complete(0, 4)) == ["total"]
        client.insert(0, 4, "total", 2)
        while not list(folder.glob("*.json")):
            client.command("redraft.status")
    assert written_by_all(folder).accepted == 1


def test_late_partial_acceptance_counts_the_part(folder: Path) -> None:
    with lsp_client("foo bar baz") as client:
        client.initialize()
        client.open("x = \n")
        [item] = client.complete(0, 4)["result"]["items"]
        client.insert(0, 4, "zzz", 2)
        report = {"item": item, "acceptedLength": 4}
        client.notify("textDocument/didPartiallyAcceptCompletion", report)
        assert client.end() == 0
    counts = written_by_all(folder)
    assert (counts.accepted, counts.ignored, counts.saved) == (1, 0, 3)


def test_the_end_of_a_session_counts_what_was_shown(folder: Path) -> None:
    with lsp_client("total") as client:
        client.initialize()
        client.open("x = \n")
        client.complete(0, 4)
        assert client.end() == 0
    assert written_by_all(folder).ignored == 1


def test_a_killed_server_loses_nothing_written(
    lsp_process: Callable[..., LspProcess], folder: Path
) -> None:
    client = lsp_process("total")
    client.initialize()
    client.open("x = \n")
    client.complete(0, 4)
    client.insert(0, 4, "total", 2)
    told = client.command("redraft.statistics", 7)["result"]["text"]
    client.process.kill()
    client.wait()
    assert "python" in told
    assert written_by_all(folder).accepted == 1


def test_a_wrong_number_of_days_is_refused() -> None:
    with lsp_client() as client:
        client.initialize()
        for wrong in (0, 91, -3, "week"):
            error = client.command("redraft.statistics", wrong)["error"]
            told = f"redraft.statistics takes days from 1 to 90, got '{wrong}'"
            assert error["message"] == told


def test_an_editor_is_told_that_counting_is_off() -> None:
    with lsp_client() as client:
        client.initialize(initializationOptions={"statistics": False})
        told = client.command("redraft.statistics")["result"]["text"]
    assert told.startswith("Counting is switched off (setting statistics).\nNo suggestion")


def test_no_text_is_stored_and_others_cannot_read_it(folder: Path) -> None:
    """Neither code, suggestions, names of files and folders, nor a language that is none."""
    uri, other = "file:///w/project/plan_b.py", "file:///w/project/notes"
    with lsp_client("launch_date", "launch_date") as client:
        client.initialize(rootUri="file:///w/project")
        client.open("secret_price = \n", uri)
        client.open("secret_price = \n", other, languageId="Moon Base")
        for each in (uri, other):
            assert insert_texts(client.complete(0, 15, uri=each)) == ["launch_date"]
            client.insert(0, 15, "launch_date", 2, uri=each)
        client.command("redraft.statistics")
    [file] = folder.iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-[0-9a-f]{8}\.json", file.name)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    content = json.loads(file.read_text(encoding="utf-8"))
    assert set(words_in(content)) == {
        *("redraftStatistics@1.0", date.today().isoformat(), "python", "other", "infill"),
    }


def words_in(content: object) -> list[str]:
    """Return every value of some JSON that is no number."""
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        return [word for each in content for word in words_in(each)]
    return [] if isinstance(content, int) else [str(content)]
