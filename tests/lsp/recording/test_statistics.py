"""Statistics of suggestions: what a session counts, and when it writes that."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.editor_settings import update_settings
from redraft.lsp.recording.counts import StatisticsFolder, SuggestionCounts, day_of, sum_counts
from redraft.lsp.recording.statistics import WRITE_S, SessionStatistics
from redraft.lsp.suggestions.outcomes import SuggestionEnded
from support.editors.next_edits import edited, shown_edit
from support.editors.predictor import infill
from support.editors.workbench import URI, Workbench

BODY = "def f():\n    "


class Timers:
    """Timers that run when a test lets time pass."""

    def __init__(self, desk: Workbench) -> None:
        self._desk = desk
        self._waiting: dict[object, tuple[float, Callable[[], object]]] = {}

    def later(self, delay_s: float, callback: Callable[[], object]) -> Any:
        timer = _Timer(self._waiting)
        self._waiting[timer] = self._desk.clock.now + delay_s, callback
        return timer

    def let_pass(self, seconds: float) -> None:
        self._desk.clock.now += seconds
        for timer, (at_s, callback) in list(self._waiting.items()):
            if at_s <= self._desk.clock.now and self._waiting.pop(timer, None):
                callback()


class _Timer:
    def __init__(self, waiting: dict[object, Any]) -> None:
        self._waiting = waiting

    def cancel(self) -> None:
        self._waiting.pop(self, None)


class Counted:
    """A user at work whose suggestions are counted in a folder."""

    def __init__(self, folder: Path, desk: Workbench) -> None:
        self.desk, self.timers, self.kept = desk, Timers(desk), StatisticsFolder(folder)
        session = desk.session
        self.statistics = session.statistics = SessionStatistics(
            *(self.kept, session.workspace),
            wall_s=desk.clock,
            later=self.timers.later,
        )
        session.journal.subscribe(self.statistics.hear)
        self.statistics._begin_to_write = self.write  # type: ignore[method-assign]

    def write(self) -> None:
        asyncio.run(self.statistics.write())

    def by_kind(self) -> dict[str, SuggestionCounts]:
        """Return everything that is counted, written by now."""
        self.write()
        rows, problems = self.kept.read(90, date.fromtimestamp(self.desk.clock.now))
        assert not problems
        return sum_counts(rows, lambda row: f"{row.language} {row.kind}")

    def only(self) -> SuggestionCounts:
        [counts] = self.by_kind().values()
        return counts


def offered(folder: Path, ghost: str = "return x", text: str = BODY, **settings: Any) -> Counted:
    """Return a user to whom ghost text is shown."""
    counted = Counted(folder, Workbench(text, **settings))
    counted.desk.answer(ghost)
    return counted


def offered_edit(folder: Path) -> Counted:
    """Return a user to whom the argument of a call is shown as a next edit."""
    counted = Counted(folder, edited())
    shown_edit(counted.desk)
    return counted


# --- how a suggestion ends -----------------------------------------------------------------------


def by_key(desk: Workbench) -> None:
    desk.type("return x")


def by_a_report(desk: Workbench) -> None:
    desk.session.report_accepted("redraft-1")
    desk.type("return x")


def by_hand(desk: Workbench) -> None:
    for key in "return x":
        desk.type(key)


def by_hand_and_key(desk: Workbench) -> None:
    desk.type("r")
    desk.type("eturn x")


def by_word(desk: Workbench) -> None:
    desk.type("return ")
    desk.session.memory.outcomes.report_accepted_part("redraft-1")
    desk.clock.now += 1
    desk.type("y")


def rejected(desk: Workbench) -> None:
    desk.session.report_rejected("redraft-1")


def typed_over(desk: Workbench) -> None:
    desk.type("p")


def replaced(desk: Workbench) -> None:
    desk.cursor = 0
    ask = desk.ask(invoked=True)
    desk.settle(ask, infill(ask.request, "import os\n"))
    workspace = desk.session.workspace
    workspace.settings, _ = update_settings(
        workspace.settings, {"statistics": False}
    )  # it is still shown


@pytest.mark.parametrize(
    ("ends", "ending", "saved"),
    [
        (by_key, "accepted", 7),
        (by_a_report, "accepted", 7),
        (by_hand, "typed", 0),
        (by_hand_and_key, "accepted", 6),
        (by_word, "accepted", 6),
        (rejected, "rejected", 0),
        (typed_over, "ignored", 0),
        (replaced, "ignored", 0),
    ],
)
def test_each_suggestion_is_counted_once_by_its_end(
    tmp_path: Path, ends: Callable[[Workbench], None], ending: str, saved: int
) -> None:
    counted = offered(tmp_path)
    ends(counted.desk)
    counts = counted.only()
    assert (counts.shown, getattr(counts, ending), counts.saved) == (1, 1, saved)


def test_next_edits_are_counted_apart(tmp_path: Path) -> None:
    counted = offered_edit(tmp_path)
    counted.desk.session.report_accepted("redraft-1")
    assert list(counted.by_kind()) == ["python next_edit"]
    assert (counted.only().accepted, counted.only().saved) == (1, len(", 3") - 1)


def test_an_edit_that_is_typed_was_not_accepted(tmp_path: Path) -> None:
    counted = offered_edit(tmp_path)
    desk = counted.desk
    desk.cursor = desk.text.index("print(area(r") + len("print(area(r")
    for key in ", 3":
        desk.type(key)
    assert (counted.only().typed, counted.only().saved) == (1, 0)


def test_a_bracket_the_editor_closes_is_still_typed(tmp_path: Path) -> None:
    counted = offered(tmp_path, "f()")
    counted.desk.type("f")
    counted.desk.type("()")
    assert counted.only().typed == 1


@pytest.mark.parametrize("ghost", [":", "()"])
def test_a_report_tells_accepting_from_typing_keys(tmp_path: Path, ghost: str) -> None:
    counted = offered(tmp_path, ghost, "def f")
    counted.desk.type(ghost)
    counted.desk.session.report_accepted("redraft-1")
    assert (counted.only().typed, counted.only().accepted) == (0, 1)


def test_a_late_report_corrects_a_written_end_too(tmp_path: Path) -> None:
    counted = offered(tmp_path, "f(x)")
    counted.desk.type("f( x )")  # a formatter had its way with it
    assert counted.only().ignored == 1
    counted.desk.session.report_accepted("redraft-1")
    counts = counted.only()
    assert (counts.shown, counts.ignored, counts.accepted, counts.saved) == (1, 0, 1, 3)


def test_an_answer_that_was_never_shown_does_not_count(tmp_path: Path) -> None:
    counted = Counted(tmp_path, Workbench(BODY))
    ask = counted.desk.ask()
    counted.desk.type("x")
    counted.desk.settle(ask, infill(ask.request, "return"))
    assert counted.desk.outcomes == ["cancelled"]
    assert counted.by_kind() == {}


def test_the_wait_counts_from_question_to_answer(tmp_path: Path) -> None:
    counted = Counted(tmp_path, Workbench(BODY))
    for number, took_ms in enumerate((90.0, 90.0, 90.0, 1_900.0)):
        counted.desk.answer("return x", took_ms=took_ms)
        counted.desk.becomes(f"{BODY}x = {number}\n    ")
    counts = counted.only()
    assert (counts.p50_ms, counts.p95_ms) == (100, 2_000)
    assert sum(counts.waits) == counts.shown == 4


def test_the_setting_turns_it_off(tmp_path: Path) -> None:
    counted = offered(tmp_path, statistics=False)
    by_key(counted.desk)
    assert counted.by_kind() == {}
    assert list(tmp_path.iterdir()) == []


def test_a_language_of_an_odd_name_is_other(tmp_path: Path) -> None:
    counted = Counted(tmp_path, Workbench(None))
    desk = counted.desk
    desk.document = desk.session.open(URI, BODY, 1, "/home/me/secret plan")
    desk.text, desk.cursor = BODY, len(BODY)
    desk.answer("return x")
    by_key(desk)
    assert list(counted.by_kind()) == ["other infill"]


# --- writing -------------------------------------------------------------------------------------


def test_counts_are_written_after_a_minute(tmp_path: Path) -> None:
    counted = offered(tmp_path)
    by_hand(counted.desk)
    counted.timers.let_pass(WRITE_S - 1)
    assert list(tmp_path.iterdir()) == []
    counted.timers.let_pass(1)
    [file] = tmp_path.iterdir()
    assert json.loads(file.read_text())["rows"][0]["counts"]["typed"] == 1


def test_a_folder_that_cannot_be_written_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    counted = offered(tmp_path / "file")
    by_key(counted.desk)
    with caplog.at_level(logging.WARNING):
        counted.write()
        counted.timers.let_pass(WRITE_S)
        counted.desk.session.close(URI)
        counted.write()
    [record] = caplog.records
    assert f"statistics cannot be kept in {tmp_path / 'file'}" in record.getMessage()


def test_failed_write_keeps_counts(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.touch()
    counted = offered(folder)
    by_key(counted.desk)
    counted.timers.let_pass(WRITE_S)
    counted.desk.becomes(BODY)
    folder.unlink()
    counted.timers.let_pass(WRITE_S)
    [file] = folder.iterdir()
    assert json.loads(file.read_text())["rows"][0]["counts"]["accepted"] == 1
    assert counted.only().accepted == 1, "once"


def test_counts_made_while_others_are_written_are_kept(tmp_path: Path) -> None:
    counted = offered(tmp_path)
    suggestion = counted.desk.session.memory.outcomes.find_shown(URI)
    assert suggestion is not None
    by_key(counted.desk)
    store = counted.kept.add

    def add(session: str, rows: Any) -> None:
        counted.kept.add = store  # type: ignore[method-assign]
        store(session, rows)
        counted.statistics.count(SuggestionEnded(replace(suggestion, id="other"), "rejected"))

    counted.kept.add = add  # type: ignore[method-assign]
    counted.write()
    assert (counted.only().accepted, counted.only().rejected) == (1, 1)


def test_a_full_disk_counts_no_day_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = offered(tmp_path)
    by_key(counted.desk)
    counted.desk.clock.now += 24 * 3_600
    counted.desk.becomes(f"{BODY}x = 1\n    ")
    counted.desk.answer("return x")
    by_key(counted.desk)
    dump = json.dump

    def full(content: Any, *rest: Any, **how: Any) -> None:
        if content["rows"][0]["day"] != day_of(counted.desk.clock.now - 24 * 3_600):
            raise OSError(28, "No space left on device")
        dump(content, *rest, **how)

    with monkeypatch.context() as patched:
        patched.setattr(json, "dump", full)
        counted.write()
    assert counted.only().accepted == 2
