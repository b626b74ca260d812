"""The history of edits: what it holds, how it looks to a model, and what stays out of it."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.editor import history_hunks as hunks_module
from redraft.lsp.editor.documents import Change, Document
from redraft.lsp.editor.history import (
    MAX_AGE_S,
    MAX_CHARACTERS,
    MAX_EDITS,
    PAUSE_S,
    SHOWN_EDITS,
    Happening,
    History,
)
from redraft.lsp.editor.positions import Position, Range
from redraft.model.edits.hunks import Hunk as CommitHunk
from redraft.model.edits.hunks import apply_history, hunks_of, last_burst
from redraft.model.training.commits import Change as CommitChange
from unidiff import PatchedFile, PatchSet

URI = "file:///w/a.py"
OTHER = "file:///w/b.py"
CODE = "".join(f"value_{i} = compute({i})\n" for i in range(60))


class Desk:
    """Documents typed in, with a clock to turn."""

    def __init__(self, **texts: str) -> None:
        self.now = 1000.0
        self.history = History(lambda: self.now)
        self.documents: dict[str, Document] = {}
        for name, text in (texts or {"a": CODE}).items():
            self.open(f"file:///w/{name}.py", text)

    def open(self, uri: str, text: str) -> None:
        document = self.documents[uri] = Document(uri, text)
        self.history.opened(uri, uri.rsplit("/", 1)[-1], document.lines)

    def change(self, *changes: Change, uri: str = URI, accepted: bool = False) -> Happening:
        splices = self.documents[uri].apply(changes, None)
        return self.history.changed(uri, splices, accepted=accepted)

    def put(self, line: int, start: int, end: int, text: str, uri: str = URI) -> Happening:
        """``text`` in place of the characters [start, end) of a line, in one change."""
        return self.change(Change(text, Range(Position(line, start), Position(line, end))), uri=uri)

    def type(self, line: int, column: int, text: str, uri: str = URI) -> None:
        for character in text:
            self.put(line, column, column, character, uri)
            line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
            self.now += 0.1

    def delete_lines(self, first: int, last: int, uri: str = URI) -> Happening:
        return self.change(Change("", Range(Position(first, 0), Position(last, 0))), uri=uri)

    def pause(self, seconds: float = PAUSE_S + 0.1) -> None:
        self.now += seconds

    def diffs(self) -> list[str]:
        return [edit.diff for edit in self.history.edits()]

    def lines(self, uri: str = URI) -> list[str]:
        return list(self.documents[uri].lines)

    def rebuilt(self, uri: str = URI) -> list[str]:
        """The newest snapshot with everything since applied to it."""
        lines = list(self.history.snapshot(uri))
        for patch in [*self.history.patches(uri), *self.history.in_progress(uri)]:
            apply(patch, lines)
        return lines


def apply(patch: PatchedFile, lines: list[str]) -> None:
    [hunk] = patch
    assert hunk.is_valid()
    old = [str(line)[1:-1] for line in hunk.source_lines()]
    new = [str(line)[1:-1] for line in hunk.target_lines()]
    first = hunk.source_start - bool(old)
    assert lines[first : first + len(old)] == old
    lines[first : first + len(old)] = new


# --- one edit ------------------------------------------------------------------------------------


def test_typing_a_word_is_one_edit_with_three_lines_of_context() -> None:
    desk = Desk()
    desk.type(10, 8, "_of_all")
    desk.pause()
    [edit] = desk.history.edits()
    assert (edit.path, edit.line) == ("a.py", 7)
    assert edit.diff == (
        " value_7 = compute(7)\n value_8 = compute(8)\n value_9 = compute(9)\n"
        "-value_10 = compute(10)\n+value_10_of_all = compute(10)\n"
        " value_11 = compute(11)\n value_12 = compute(12)\n value_13 = compute(13)\n"
    )


def test_an_edit_in_progress_is_kept_apart_until_the_burst_ends() -> None:
    desk = Desk()
    desk.type(10, 0, "total_")
    assert desk.history.edits() == ()
    assert "+total_value_10" in str(desk.history.in_progress(URI)[0])
    desk.history.flush(URI)
    assert len(desk.history.edits()) == 1
    assert desk.history.in_progress(URI) == []


def test_typing_does_not_rewrite_the_history() -> None:
    desk = Desk()
    desk.type(10, 0, "x")
    desk.pause()
    before = desk.diffs()
    for character in "abcdef":
        desk.type(30, 0, character)
        assert desk.diffs() == before


@pytest.mark.parametrize(("line", "edits"), [(18, 1), (19, 2)])
def test_edits_within_eight_lines_and_a_second_are_one(line: int, edits: int) -> None:
    desk = Desk()
    desk.put(9, 0, 0, "x")
    desk.put(line, 0, 0, "y")
    desk.history.flush(URI)
    assert len({patch.path + str(patch) for patch in desk.history.patches(URI)}) == 2
    assert len(desk.history._edits) == edits


def test_edits_a_pause_apart_are_two_unless_they_touch() -> None:
    desk = Desk()
    desk.put(10, 0, 0, "x")
    desk.pause()
    desk.put(13, 0, 0, "y")
    desk.pause()
    assert len(desk.diffs()) == 2
    desk.put(13, 0, 0, "z")  # the same line again: the edit goes on
    desk.pause()
    assert len(desk.diffs()) == 2
    assert "+zyvalue_13" in desk.diffs()[-1]
    assert "+yvalue_13" not in "".join(desk.diffs())


def test_writing_on_after_a_pause_stays_one_edit() -> None:
    desk = Desk()
    desk.type(10, 0, "def f():\n")
    desk.pause(20)
    desk.type(11, 0, "    return 1\n")
    desk.pause()
    [diff] = desk.diffs()
    assert "+def f():\n+    return 1\n" in diff


def test_an_edit_looks_as_in_training() -> None:
    old = CODE.split("\n")[:-1]
    new = [*old[:9], "def added():", *old[9:14], "changed = 1", *old[15:]]
    hunks = hunks_of(old, new)
    _, expected, _ = apply_history("a.py", old, CommitChange("a.py", old, new, hunks).hunks, 2)
    desk = Desk()
    desk.put(9, 0, 0, "def added():\n")
    desk.put(15, 0, 99, "changed = 1")
    desk.pause()
    assert desk.history.edits() == tuple(map(last_burst, expected))


def test_a_long_edit_is_shown_as_it_ended() -> None:
    desk = Desk()
    for number in range(12):
        desk.type(10 + number, 0, f"line_{number}\n")
    desk.pause()
    [diff] = desk.diffs()
    assert diff.startswith(" line_1\n line_2\n line_3\n+line_4\n")
    assert desk.rebuilt() == desk.lines()


def test_hunks_are_unified_diffs_that_unidiff_reads() -> None:
    desk = Desk()
    desk.put(0, 0, 0, "first\n")
    desk.pause()
    desk.delete_lines(40, 42)
    desk.pause()
    desk.history.flush(URI)
    text = "".join(map(str, desk.history.patches(URI)))
    one, other = PatchSet(text)
    assert (one.path, one.added, one.removed) == ("a.py", 1, 0)
    assert (other.path, other.added, other.removed) == ("a.py", 0, 2)


def test_only_the_last_edits_are_shown() -> None:
    desk = Desk()
    for line in range(0, 60, 6):
        desk.put(line, 0, 0, f"#{line} ")
        desk.pause()
    assert len(desk.diffs()) == SHOWN_EDITS
    assert "+#54 " in desk.diffs()[-1]


# --- what takes itself back ----------------------------------------------------------------------


def test_what_is_typed_and_deleted_leaves_no_trace() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    for column in (3, 2, 1):
        desk.put(10, column - 1, column, "")
    desk.pause()
    assert desk.diffs() == []
    assert desk.history.patches(URI) == []


def test_undo_and_redo_collapse() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.pause()
    assert desk.put(10, 0, 3, "") == "undo"
    desk.pause()
    assert desk.diffs() == []
    assert desk.put(10, 0, 0, "abc") == "edit"  # nothing is left to redo: it could be typed
    desk.pause()
    assert len(desk.diffs()) == 1
    assert desk.put(10, 0, 3, "") == "undo"
    assert desk.put(10, 0, 0, "abc") == "undo"
    desk.pause()
    assert len(desk.diffs()) == 1


def test_undoing_edit_after_edit_is_undoing_all_along() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.pause()
    desk.type(40, 0, "def")
    desk.pause()
    assert desk.put(40, 0, 3, "") == "undo"
    assert desk.put(10, 0, 3, "") == "undo"
    desk.pause()
    assert desk.diffs() == []
    assert desk.rebuilt() == desk.lines() == CODE.split("\n")


def test_going_back_to_a_state_on_the_way_is_undoing() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.pause()
    desk.type(10, 3, "def")
    desk.pause()
    assert desk.put(10, 3, 6, "") == "undo"
    desk.pause()
    [diff] = desk.diffs()
    assert "+abcvalue_10" in diff


def test_deleting_one_character_is_typing() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    assert desk.put(10, 2, 3, "") == "edit"


def test_an_undo_is_over_with_the_next_edit() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.put(10, 0, 3, "")
    assert desk.history.happened(URI) == "undo"
    desk.put(10, 0, 0, "x")
    assert desk.history.happened(URI) == "edit"


# --- accepted ------------------------------------------------------------------------------------


def test_an_accepted_suggestion_is_an_edit_of_its_own_and_marked() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    change = Change("x = 1\n" * 30, Range(Position(11, 0), Position(11, 0)))
    assert desk.change(change, accepted=True) == "accepted"  # however long, no bulk change
    desk.type(11, 0, "y")
    desk.pause()
    assert [edit.accepted for edit in desk.history.edits()] == [False, True, False]
    assert desk.rebuilt() == desk.lines()


def test_an_acceptance_reported_late_is_marked() -> None:
    desk = Desk()
    desk.put(10, 0, 0, "abc")
    desk.history.mark_accepted(URI)
    desk.pause()
    assert [edit.accepted for edit in desk.history.edits()] == [True]
    desk.put(30, 0, 0, "abc")
    desk.pause()
    desk.history.edits()
    desk.history.mark_accepted(URI)
    assert [edit.accepted for edit in desk.history.edits()] == [True, True]


# --- what stays out ------------------------------------------------------------------------------


def test_a_paste_stays_out_and_starts_a_new_snapshot() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.pause(5)
    assert desk.put(30, 0, 0, "pasted = True\n" * 8) == "bulk"
    assert list(desk.history.snapshot(URI)) == desk.lines()
    assert len(desk.diffs()) == 1  # what was typed before is still known
    assert desk.history.patches(URI) == []


def test_a_checkout_stays_out() -> None:
    desk = Desk()
    assert desk.change(Change("another = 1\n" * 40)) == "bulk"
    desk.pause()
    assert desk.diffs() == []
    assert desk.rebuilt() == desk.lines()


def test_a_formatter_that_touches_many_places_stays_out() -> None:
    desk = Desk()
    places = [Change(" ", Range(Position(n, 0), Position(n, 0))) for n in (50, 30, 10)]
    assert desk.change(*places) == "bulk"
    desk.pause()
    assert desk.diffs() == []


def test_an_agent_that_writes_line_by_line_stays_out() -> None:
    desk = Desk()
    for number in range(20):
        desk.put(10 + number, 0, 0, f"generated_line_{number} = {number}\n")
        desk.now += 0.05
    desk.pause(5)
    assert "generated_line_1 " not in "".join(desk.diffs())
    assert desk.rebuilt() == desk.lines()


def test_a_small_change_of_the_whole_text_is_an_edit() -> None:
    desk = Desk()
    assert desk.change(Change(CODE.replace("compute(7)", "measure(7)"))) == "edit"
    desk.pause()
    assert "+value_7 = measure(7)" in desk.diffs()[0]


def test_a_line_of_data_stays_out() -> None:
    desk = Desk(a="x = '" + "y" * 20_000 + "'\n")
    assert desk.put(0, 10, 10, "z") == "bulk"
    assert desk.rebuilt() == desk.lines()


def test_line_ends_alone_are_no_edit() -> None:
    desk = Desk(a="a\r\nb\r\nc\r\n")
    assert desk.change(Change("a\nb\nc\n")) == "nothing"
    desk.change(Change("a\r\nb\r\nc\r\n"))
    desk.type(1, 1, "!\n")
    desk.pause()
    assert desk.diffs() == [" a\n-b\n+b!\n+\n c\n \n"]


# --- several documents ---------------------------------------------------------------------------


def test_documents_share_one_history_in_order_of_time() -> None:
    desk = Desk(a=CODE, b=CODE)
    desk.type(10, 0, "one ", URI)
    desk.type(10, 0, "two ", OTHER)
    desk.pause()
    desk.type(11, 0, "three ", URI)
    desk.pause()
    desk.history.edits()
    assert [edit.path for edit in desk.history.edits()] == ["a.py", "b.py", "a.py"]
    assert desk.rebuilt(URI) == desk.lines(URI)
    assert desk.rebuilt(OTHER) == desk.lines(OTHER)


def test_edits_of_a_closed_document_are_still_known() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.history.closed(URI)
    assert len(desk.diffs()) == 1
    assert desk.history.snapshot(URI) == ()
    assert desk.change(Change("x")) == "nothing"
    desk.open(URI, "x = 1\n")
    desk.put(0, 0, 0, "y")
    assert desk.rebuilt() == ["yx = 1", ""]


def test_a_renamed_file_takes_its_edits_along() -> None:
    desk = Desk()
    desk.type(10, 0, "abc")
    desk.history.renamed(URI, "file:///w/new.py", "new.py")
    assert [edit.path for edit in desk.history.edits()] == ["new.py"]


# --- what was just done --------------------------------------------------------------------------


def test_what_was_just_done_is_where_it_is_by_now() -> None:
    desk = Desk()
    desk.put(30, 0, 0, "abc")
    desk.pause()
    desk.put(10, 0, 0, "new line\n")
    newest, older = desk.history.just_done(URI)
    assert (newest.first, newest.old, newest.new) == (10, (), ("new line",))
    assert desk.lines()[older.first] == "abcvalue_30 = compute(30)"
    desk.pause(61)
    desk.history.edits()
    assert desk.history.just_done(URI) == []


# --- bounds --------------------------------------------------------------------------------------


def test_the_history_is_bounded_in_count_characters_and_age() -> None:
    desk = Desk()
    for number in range(3 * MAX_EDITS):
        desk.put(10 + 20 * (number % 2), 0, 0, f"{number} ")
        desk.pause()
    assert len(desk.history._edits) <= MAX_EDITS
    desk.history.flush(URI)
    assert desk.rebuilt() == desk.lines()
    for number in range(3 * MAX_EDITS):
        line = 10 + 20 * (number % 2)
        desk.change(Change("x" * 5_000, Range(Position(line, 0), Position(line, 9))), accepted=True)
        desk.pause()
    desk.history.flush(URI)
    assert sum(edit.span.characters for edit in desk.history._edits) <= MAX_CHARACTERS
    assert desk.rebuilt() == desk.lines()
    desk.pause(MAX_AGE_S + 1)
    assert desk.history.edits() == ()
    assert desk.rebuilt() == desk.lines()


def test_a_keystroke_touches_no_line_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(old: list[str], new: list[str]) -> list[CommitHunk]:
        seen.append(len(old) + len(new))
        return hunks_of(old, new)

    monkeypatch.setattr(hunks_module, "hunks_of", counting)
    desk = Desk(a="x = 1\n" * 10_000)
    desk.type(5_000, 5, " + 2 * 3")
    assert seen == []  # no difference is searched while typing
    desk.pause()
    desk.history.edits()
    assert seen == [14]  # and then only in the line typed, with its context


def test_a_large_document_costs_two_lists_of_its_lines() -> None:
    desk = Desk(a="x = 1\n" * 10_000)
    for line in range(0, 10_000, 100):
        desk.put(line, 5, 5, "0")
        desk.pause()
    document = desk.history._documents[URI]
    held = sys.getsizeof(document.lines) + sys.getsizeof(document.base)
    assert held < 300_000
    assert document.lines[77] is desk.documents[URI].lines[77]


# --- the invariant -------------------------------------------------------------------------------

places = st.tuples(st.integers(0, 14), st.integers(0, 4))
pieces = st.sampled_from(["", "a", "\n", "b\n", "x\ny\nz", "\r\n", "c" * 60, "d\n" * 9])
happenings = st.one_of(
    st.tuples(st.just("change"), places, places, pieces),
    st.tuples(st.just("accept"), places, places, pieces),
    st.tuples(st.just("pause"), st.sampled_from([0.0, 0.4, 1.2, 2.0])),
    st.tuples(st.just("flush")),
    st.tuples(st.just("replace"), st.lists(pieces, max_size=4).map("\n".join)),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["", "a\nb\n", CODE[:300], "p\r\nq\r\n\r\n"]), st.lists(happenings, max_size=25)
)
def test_the_snapshot_with_the_history_and_the_edit_in_progress_is_the_text(
    text: str, steps: list[tuple[object, ...]]
) -> None:
    desk = Desk(a=text, b=text)
    for number, (kind, *rest) in enumerate(steps):
        uri = (URI, OTHER)[number % 5 == 4]
        if kind in ("change", "accept"):
            one, other, new = rest
            at = Range(Position(*min(one, other)), Position(*max(one, other)))  # type: ignore[call-overload]
            desk.change(Change(str(new), at), uri=uri, accepted=kind == "accept")
        elif kind == "pause":
            desk.pause(rest[0])  # type: ignore[arg-type]
            desk.history.edits()
        elif kind == "flush":
            desk.history.flush(uri)
        else:
            desk.change(Change(str(rest[0])), uri=uri)
        for each in (URI, OTHER):
            assert desk.rebuilt(each) == desk.lines(each)


def test_a_thousand_random_keystrokes_keep_the_history_true() -> None:
    rng = random.Random(7)
    desk = Desk()
    line, column = 10, 0
    for _ in range(1000):
        if rng.random() < 0.05:
            line, column = rng.randrange(len(desk.lines())), 0
        if rng.random() < 0.2 and column:
            desk.put(line, column - 1, column, "")
            column -= 1
        else:
            character = rng.choice("abc \n")
            desk.put(line, column, column, character)
            line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
        desk.now += rng.choice((0.1, 0.1, 0.1, 1.5))
        if rng.random() < 0.1:
            desk.history.edits()
        assert desk.rebuilt() == desk.lines()
