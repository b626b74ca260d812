"""``redraft stats`` as people call it, and the folder that it reads."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.recording.counts import (
    KEPT_DAYS,
    WAIT_ENDS_MS,
    CountsRow,
    StatisticsFolder,
    SuggestionCounts,
)
from redraft.lsp.recording.statistics_text import statistics_text
from redraft.model.records import Task
from redraft.server.commands import console
from redraft.server.commands.main import app
from support.editors.lsp import insert_texts, lsp_client
from typer.testing import CliRunner, Result

TODAY = date.today()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDRAFT_STATISTICS_DIR", str(tmp_path / "statistics"))
    monkeypatch.setattr(console.out, "_width", 200)
    return tmp_path / "statistics"


def stats(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["stats", *arguments])
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments: str) -> Any:
    return json.loads(stats("--json", *arguments).stdout)


def row(
    age_days: int = 0,
    language: str = "python",
    kind: Task = "infill",
    waits_ms: tuple[int, ...] = (100,),
    **counts: int,
) -> CountsRow:
    made = SuggestionCounts(**counts)
    for wait_ms in waits_ms:
        made.add_wait(wait_ms)
    return CountsRow((TODAY - timedelta(days=age_days)).isoformat(), language, kind, made)


def kept(*rows: CountsRow, session: str = "0a1b2c3d") -> None:
    StatisticsFolder().add(session, rows)


def shown_in_all() -> int:
    rows, problems = StatisticsFolder().read(KEPT_DAYS, TODAY)
    assert not problems
    return sum(row.counts.shown for row in rows)


# --- the command ---------------------------------------------------------------------------------


def test_table_and_plot_show_kinds_languages_and_days() -> None:
    kept(
        row(1, accepted=3, typed=1, ignored=4, rejected=2, saved=1_200),
        row(0, "rust", "next_edit", (250, 12_000), accepted=1, ignored=1, saved=30),
    )
    lines = stats().output.splitlines()
    table = {line.split("  ")[0]: line.split()[-8:] for line in lines[3:14] if line}
    assert lines[2].split() == [
        *("shown", "accepted", "typed", "ignored", "rejected", "saved", "p50", "p95"),
    ]
    first = ["10", "3", "1", "4", "2", "1,200", "100ms", "100ms"]
    second = ["2", "1", "0", "1", "0", "30", "300ms", ">10s"]
    assert table == {
        "all": ["12", "4", "1", "5", "2", "1,230", "300ms", ">10s"],
        "ghost text": first,
        "next edit": second,
        "python": first,
        "rust": second,
        (TODAY - timedelta(1)).isoformat(): first,
        TODAY.isoformat(): second,
    }
    plot = lines[lines.index("Accepted of those shown") + 1 :][:2]
    yesterday = (TODAY - timedelta(1)).isoformat()
    assert plot == [
        f"{yesterday} █████████·····················  30% of 10",
        f"{TODAY.isoformat()} ███████████████···············  50% of 2",
    ]


def test_the_table_fits_into_80_columns() -> None:
    some = row(language="javascriptreact", accepted=999, ignored=9_000, saved=9_999)
    assert max(map(len, statistics_text([some], 1, TODAY).splitlines())) <= 80


def test_json_has_a_row_for_each_day_language_and_kind() -> None:
    kept(row(accepted=1, saved=9), row(kind="next_edit", rejected=1), row(2, typed=1))
    found = as_json("--days", "2")
    assert found["wait_ends_ms"] == list(WAIT_ENDS_MS)
    assert [(each["kind"], each["shown"]) for each in found["rows"]] == [
        ("infill", 1),
        ("next_edit", 1),
    ]
    waits = [0] * 7 + [1] + [0] * (len(WAIT_ENDS_MS) - 7)
    assert found["rows"][0] == {
        "day": TODAY.isoformat(),
        "language": "python",
        "kind": "infill",
        "shown": 1,
        "accepted": 1,
        "typed": 0,
        "ignored": 0,
        "rejected": 0,
        "saved": 9,
        "waits": waits,
        "wait_p50_ms": 100,
        "wait_p95_ms": 100,
    }
    assert len(as_json()["rows"]) == 3


def test_counts_of_earlier_releases_are_read(folder: Path) -> None:
    counts = {"accepted": 3, "typed": 1, "ignored": 4, "rejected": 2, "deleted": 1, "saved": 7}
    counts["waits"] = [0] * len(WAIT_ENDS_MS) + [10]  # type: ignore[assignment]
    kinds = {"day": TODAY.isoformat(), "language": "python", "kind": "infill", "counts": counts}
    content = {"format": "redraftStatistics@1.0", "rows": [kinds]}
    folder.mkdir()
    (folder / f"{TODAY.isoformat()}-0a1b2c3d.json").write_text(json.dumps(content))
    kept(row(accepted=1))
    [found] = as_json()["rows"]
    assert (found["shown"], found["accepted"], found["saved"]) == (11, 4, 7)


def test_without_counts_it_says_where_they_would_be(folder: Path) -> None:
    told = stats().output
    assert "No suggestion was counted" in told and str(folder) in told
    assert not folder.exists()


def test_a_wrong_number_of_days_is_refused() -> None:
    result = CliRunner().invoke(app, ["stats", "--days", "91"])
    assert result.exit_code == 2 and "--days" in result.output


# --- several servers, and ages -------------------------------------------------------------------


def test_many_servers_write_at_once_without_loss() -> None:
    def serve(session: str) -> None:
        for _ in range(20):
            kept(row(accepted=1), row(kind="next_edit", ignored=1), session=session)

    threads = [threading.Thread(target=serve, args=(f"0000000{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shown_in_all() == 4 * 20 * 2


def test_counts_are_kept_90_days(folder: Path) -> None:
    kept(row(KEPT_DAYS - 1, accepted=1), row(KEPT_DAYS, accepted=1), row(400, accepted=1))
    StatisticsFolder().prune(TODAY)
    assert len(list(folder.iterdir())) == shown_in_all() == 1


def test_a_server_deletes_what_is_old_without_counts(folder: Path) -> None:
    kept(row(KEPT_DAYS, accepted=1))
    with lsp_client(settings={"statistics": False}) as client:
        client.initialize()
    assert list(folder.iterdir()) == []


# --- files that are of no use --------------------------------------------------------------------


def name_of(age_days: int = 0, session: str = "ffffffff") -> str:
    return f"{(TODAY - timedelta(days=age_days)).isoformat()}-{session}.json"


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return a function that changes a good file."""

    def write(path: Path) -> None:
        StatisticsFolder().add("ffffffff", [row(accepted=1)])
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return write


def to(path: str, value: object) -> Callable[[Path], None]:
    def change(content: Any) -> None:
        *outer, last = path.split(".")
        for name in outer:
            content = content[int(name) if name.isdigit() else name]
        content[last] = value

    return changed(change)


UNUSABLE: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda path: path.touch(),
    "half a file": lambda path: path.write_text('{"format": "redraftStat'),
    "binary": lambda path: path.write_bytes(os.urandom(500)),
    "deep": lambda path: path.write_text("[" * 100_000),
    "large": lambda path: path.write_text(" " * 1_000_001),
    "another format": to("format", "redraftStatistics@9.0"),
    "no rows": to("rows", None),
    "another day": to("rows.0.day", "2020-01-01"),
    "a control character": to("rows.0.language", "\x1b[2J"),
    "another kind": to("rows.0.kind", "chat"),
    "less than nothing": to("rows.0.counts.accepted", -1),
    "no number": to("rows.0.counts.saved", "9"),
    "a fraction": to("rows.0.counts.saved", 0.5),
    "a huge number": to("rows.0.counts.saved", 10**400),
    "too few waits": to("rows.0.counts.waits", [1]),
    "wrong waits": to("rows.0.counts.waits", ["a"] * (len(WAIT_ENDS_MS) + 1)),
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
@pytest.mark.parametrize("how", UNUSABLE)
def test_an_unusable_file_is_named_and_left_out(folder: Path, how: str) -> None:
    folder.mkdir()
    UNUSABLE[how](folder / name_of())
    kept(row(accepted=2))
    result = stats("--json")
    assert f"{folder / name_of()} is left out: " in result.stderr
    assert result.stderr.count("\n") == 1 and "\x1b" not in result.stderr
    assert [each["accepted"] for each in json.loads(result.stdout)["rows"]] == [2]
    with lsp_client() as client:
        client.initialize()
        told = client.command("redraft.statistics")["result"]["text"]
        assert f"{name_of()} is left out" in told and "ghost text" in told


def test_a_session_replaces_a_spoilt_file_of_its_name(folder: Path) -> None:
    kept(row(accepted=1))
    [path] = folder.iterdir()
    path.write_text("{")
    kept(row(accepted=1))
    assert shown_in_all() == 1


# --- deleting ------------------------------------------------------------------------------------


def test_forget_deletes_everything_and_nothing_else(folder: Path) -> None:
    kept(row(accepted=1), row(3, accepted=1))
    (folder / f"{name_of()}.tmp").write_text("{")  # of a server that was killed
    (folder / name_of(5)).write_text("spoilt")
    (folder / "notes.json").write_text("mine")
    (folder / f"{TODAY.isoformat()}-draft.json").write_text("mine")
    (folder / name_of(6)).mkdir()
    assert f"Deleted 4 files of {folder}." in stats("--forget").output
    assert shown_in_all() == 0
    assert {path.name for path in folder.iterdir()} == {
        *("notes.json", f"{TODAY.isoformat()}-draft.json", name_of(6), "forgotten"),
    }
    assert "Deleted 0 files" in stats("--forget").output


def test_forget_includes_what_is_not_written_yet(folder: Path) -> None:
    with lsp_client("total", "total", "total") as client:
        client.initialize()
        for number in range(3):
            uri = f"file:///w/project/{number}.py"
            client.open("x = \n", uri)
            assert insert_texts(client.complete(0, 4, uri=uri)) == ["total"]
            client.insert(0, 4, "total", 2, uri=uri)
            if number == 0:
                assert "ghost text" in client.command("redraft.statistics")["result"]["text"]
            if number == 1:
                client.command("redraft.status")  # by now it is counted, and not written
                stats("--forget")
                told = client.command("redraft.statistics")["result"]["text"]
                assert told.startswith("No suggestion was counted")
        client.command("redraft.status")
    assert shown_in_all() == 1


def test_a_late_correction_counts_nothing_below_zero() -> None:
    kept(row(accepted=-1, waits_ms=()), row(ignored=1, waits_ms=()))
    [found] = as_json()["rows"]
    assert (found["accepted"], found["ignored"], found["shown"]) == (0, 1, 1)


def test_what_cannot_be_deleted_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(row(accepted=1))
    [path] = folder.iterdir()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "unlink", refuse)
    result = CliRunner().invoke(app, ["stats", "--forget"])
    assert str(result.exception) == f"{path} cannot be deleted; delete it by hand"
