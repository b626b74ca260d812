"""The history of edits: what it holds, how it looks to a model, what stays out and what goes."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.documents import history_edits
from redraft.lsp.documents.history import MAX_AGE_S, MAX_CHARACTERS, MAX_EDITS, SHOWN_EDITS
from redraft.lsp.documents.history_edits import PAUSE_S
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.model.edits.edit import LineChange as CommitHunk
from redraft.model.edits.hunks import apply_history, hunks_of, last_burst, merge_edits
from redraft.model.prompts.diffs import write_unified_diffs
from redraft.model.records import RecentEdit
from redraft.model.training.commit_edits import FileChange
from support.editors.predictor import ScriptedPredictor
from support.editors.workbench import URI, Workbench
from support.histories import CODE, hunks, in_progress, lines, places, rebuilt, snapshot


@pytest.fixture
def desk() -> Workbench:
    return Workbench(CODE)


def test_typing_a_word_is_one_edit_with_context(desk: Workbench) -> None:
    desk.type_at(10, 8, "_of_all")
    desk.pause()
    [edit] = desk.history.view().finished
    assert (edit.path, edit.line) == ("a.py", 7)
    assert edit.diff == (
        " value_7 = compute(7)\n value_8 = compute(8)\n value_9 = compute(9)\n"
        "-value_10 = compute(10)\n+value_10_of_all = compute(10)\n"
        " value_11 = compute(11)\n value_12 = compute(12)\n value_13 = compute(13)\n"
    )


def test_an_edit_in_progress_is_apart_until_its_end(desk: Workbench) -> None:
    desk.type_at(10, 0, "total_")
    assert desk.history.view().finished == ()
    assert "+total_value_10" in str(in_progress(desk.history)[0])
    desk.history.flush(URI)
    assert len(desk.history.view().finished) == 1
    assert in_progress(desk.history) == []


def test_typing_does_not_rewrite_the_history(desk: Workbench) -> None:
    desk.type_at(10, 0, "x")
    desk.pause()
    before = desk.diffs()
    for character in "abcdef":
        desk.type_at(30, 0, character)
        assert desk.diffs() == before


@pytest.mark.parametrize(("line", "edits"), [(18, 1), (19, 2)])
def test_edits_within_lines_and_a_second_merge(desk: Workbench, line: int, edits: int) -> None:
    desk.put(9, 0, 0, "x")
    desk.put(line, 0, 0, "y")
    desk.history.flush(URI)
    assert len({str(hunk) for hunk in hunks(desk.history)}) == 2
    assert len(desk.history._entries) == edits


def test_edits_a_pause_apart_are_two_unless_they_touch(desk: Workbench) -> None:
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


def test_an_edit_looks_as_in_training() -> None:
    old = CODE.split("\n")[:-1]
    new = [*old[:9], "def added():", *old[9:14], "changed = 1", *old[15:]]
    made = hunks_of(old, new)
    _, expected, _ = apply_history("a.py", old, FileChange("a.py", old, new, made).hunks, 2)
    desk = Workbench(CODE)
    desk.put(9, 0, 0, "def added():\n")
    desk.put(15, 0, 99, "changed = 1")
    desk.pause()
    assert desk.history.view().finished == tuple(map(last_burst, expected))


def test_only_the_last_edits_are_shown(desk: Workbench) -> None:
    for line in range(0, 60, 6):
        desk.put(line, 0, 0, f"#{line} ")
        desk.pause()
    assert len(desk.diffs()) == SHOWN_EDITS
    assert "+#54 " in desk.diffs()[-1]


def test_what_is_typed_and_deleted_leaves_no_trace(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
    for column in (3, 2, 1):
        desk.put(10, column - 1, column, "")
    desk.pause()
    assert desk.diffs() == []
    assert hunks(desk.history) == []


def test_undo_and_redo_collapse(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
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


def test_undoing_edit_after_edit_is_undoing_all_along(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
    desk.pause()
    desk.type_at(40, 0, "def")
    desk.pause()
    assert desk.put(40, 0, 3, "") == "undo"
    assert desk.put(10, 0, 3, "") == "undo"
    desk.pause()
    assert desk.diffs() == []
    assert rebuilt(desk) == lines(desk) == CODE.split("\n")


def test_going_back_to_a_state_on_the_way_is_undoing(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
    desk.pause()
    desk.type_at(10, 3, "def")
    desk.pause()
    assert desk.put(10, 3, 6, "") == "undo"
    desk.pause()
    [diff] = desk.diffs()
    assert "+abcvalue_10" in diff


@pytest.mark.parametrize("written", ["    ", "\t\t", "()", '""', "\n    "])
def test_one_key_back_to_an_earlier_text_is_no_undo(desk: Workbench, written: str) -> None:
    assert desk.put(10, 0, 0, written) == "edit"  # Tab, a bracket, or Enter
    end = Position(11, 4) if "\n" in written else Position(10, len(written))
    backspace = ContentChange("", Range(Position(10, 0), end))
    assert desk.change(backspace) == "edit"
    assert desk.put(10, 0, 0, written) == "edit"
    assert rebuilt(desk) == lines(desk)


def test_an_accepted_suggestion_is_its_own_marked_edit(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
    change = ContentChange("x = 1\n" * 30, Range(Position(11, 0), Position(11, 0)))
    assert desk.change(change, accepted=True) == "accepted"  # however long, no bulk change
    desk.type_at(11, 0, "y")
    desk.pause()
    assert [edit.accepted for edit in desk.history.view().finished] == [False, True, False]
    assert rebuilt(desk) == lines(desk)


def test_a_paste_stays_out_and_starts_a_new_snapshot(desk: Workbench) -> None:
    desk.type_at(10, 0, "abc")
    desk.pause(5)
    assert desk.put(30, 0, 0, "pasted = True\n" * 8) == "bulk"
    assert snapshot(desk.history) == lines(desk)
    assert len(desk.diffs()) == 1  # what was typed before is still known
    assert hunks(desk.history) == []


SPACES = [ContentChange(" ", Range(Position(n, 0), Position(n, 0))) for n in (50, 30, 10)]


@pytest.mark.parametrize("changes", [[ContentChange("another = 1\n" * 40)], SPACES])
def test_a_checkout_and_a_formatter_stay_out(desk: Workbench, changes: list[ContentChange]) -> None:
    assert desk.change(*changes) == "bulk"
    desk.pause()
    assert desk.diffs() == []
    assert rebuilt(desk) == lines(desk)


def test_an_agent_that_writes_line_by_line_stays_out(desk: Workbench) -> None:
    for number in range(20):
        desk.put(10 + number, 0, 0, f"generated_line_{number} = {number}\n")
        desk.clock.now += 0.05
    desk.pause(5)
    assert "generated_line_1 " not in "".join(desk.diffs())
    assert rebuilt(desk) == lines(desk)


def test_a_small_change_of_the_whole_text_is_an_edit(desk: Workbench) -> None:
    assert desk.change(ContentChange(CODE.replace("compute(7)", "measure(7)"))) == "edit"
    desk.pause()
    assert "+value_7 = measure(7)" in desk.diffs()[0]


def test_line_ends_alone_are_no_edit() -> None:
    desk = Workbench("a\r\nb\r\nc\r\n")
    assert desk.change(ContentChange("a\nb\nc\n")) == "nothing"
    desk.change(ContentChange("a\r\nb\r\nc\r\n"))
    desk.type_at(1, 1, "!\n")
    desk.pause()
    assert desk.diffs() == [" a\n-b\n+b!\n+\n c\n \n"]


OTHER = "file:///w/b.py"


def test_documents_share_one_history_in_order_of_time() -> None:
    desk = Workbench(CODE)
    desk.open(CODE, "b.py")
    desk.type_at(10, 0, "one ", URI)
    desk.type_at(10, 0, "two ", OTHER)
    desk.pause()
    desk.type_at(11, 0, "three ", URI)
    desk.pause()
    assert [edit.path for edit in desk.history.view().finished] == ["a.py", "b.py", "a.py"]
    assert rebuilt(desk, URI) == lines(desk, URI)
    assert rebuilt(desk, OTHER) == lines(desk, OTHER)


def test_edits_of_a_closed_document_are_still_known() -> None:
    desk = Workbench(CODE)
    desk.type_at(10, 0, "abc")
    desk.history.on_close(URI)
    assert len(desk.diffs()) == 1
    assert snapshot(desk.history) == []
    assert desk.change(ContentChange("x")) == "nothing"
    desk.open("x = 1\n")
    desk.put(0, 0, 0, "y")
    assert rebuilt(desk) == ["yx = 1", ""]


def test_what_was_just_done_is_where_it_is_by_now() -> None:
    desk = Workbench(CODE)
    desk.put(30, 0, 0, "abc")
    desk.pause()
    desk.put(10, 0, 0, "new line\n")
    newest, older = desk.history.view().changes(URI)
    assert (newest.first, newest.old, newest.new) == (10, (), ("new line",))
    assert lines(desk)[older.first] == "abcvalue_30 = compute(30)"
    desk.pause(61)
    assert desk.history.view().changes(URI) == []


def test_the_history_is_bounded_in_count_size_and_age() -> None:
    desk = Workbench(CODE)
    for number in range(3 * MAX_EDITS):
        desk.put(10 + 20 * (number % 2), 0, 0, f"{number} ")
        desk.pause()
    assert len(desk.history._entries) <= MAX_EDITS
    desk.history.flush(URI)
    assert rebuilt(desk) == lines(desk)
    for number in range(3 * MAX_EDITS):
        line = 10 + 20 * (number % 2)
        desk.change(
            ContentChange("x" * 5_000, Range(Position(line, 0), Position(line, 9))), accepted=True
        )
        desk.pause()
    desk.history.flush(URI)
    assert sum(edit.span.characters for edit in desk.history._entries) <= MAX_CHARACTERS
    assert rebuilt(desk) == lines(desk)
    desk.pause(MAX_AGE_S + 1)
    assert desk.history.view().finished == ()
    assert rebuilt(desk) == lines(desk)


def test_a_keystroke_touches_no_line_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(old: list[str], new: list[str]) -> list[CommitHunk]:
        seen.append(len(old) + len(new))
        return hunks_of(old, new)

    monkeypatch.setattr(history_edits, "hunks_of", counting)
    desk = Workbench("x = 1\n" * 10_000)
    desk.type_at(5_000, 5, " + 2 * 3")
    assert seen == []  # no difference is searched while typing
    desk.pause()
    desk.history.view()
    assert seen == [14]  # and then only in the line typed, with its context


pieces = st.sampled_from(["", "a", "\n", "b\n", "x\ny\nz", "\r\n", "c" * 60, "d\n" * 9])


happenings = st.one_of(
    st.tuples(st.just("change"), places, places, pieces),
    st.tuples(st.just("accept"), places, places, pieces),
    st.tuples(st.just("pause"), st.sampled_from([0.0, 0.4, 1.2, 2.0])),
    st.tuples(st.just("flush")),
    st.tuples(st.just("replace"), st.lists(pieces, max_size=4).map("\n".join)),
)


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(["", "a\nb\n", CODE[:300], "p\r\nq\r\n\r\n"]), st.lists(happenings, max_size=25)
)
def test_snapshot_and_history_give_the_text(text: str, steps: list[tuple[object, ...]]) -> None:
    desk = Workbench(text)
    desk.open(text, "b.py")
    for number, (kind, *rest) in enumerate(steps):
        uri = (URI, OTHER)[number % 5 == 4]
        if kind in ("change", "accept"):
            one, other, new = rest
            at = Range(Position(*min(one, other)), Position(*max(one, other)))  # type: ignore[call-overload]
            desk.change(ContentChange(str(new), at), uri=uri, accepted=kind == "accept")
        elif kind == "pause":
            desk.pause(rest[0])  # type: ignore[arg-type]
            desk.history.view()
        elif kind == "flush":
            desk.history.flush(uri)
        else:
            desk.change(ContentChange(str(rest[0])), uri=uri)
        for each in (URI, OTHER):
            assert rebuilt(desk, each) == lines(desk, each)


@settings(max_examples=100, deadline=None)
@given(st.lists(happenings, max_size=25), st.integers(0, 2**25))
def test_history_does_not_depend_on_readers(steps: list[tuple[object, ...]], read: int) -> None:
    silent, asked = Workbench("a\nb\nc\n"), Workbench("a\nb\nc\n")
    for number, (kind, *rest) in enumerate(steps):
        for desk in (silent, asked):
            if kind in ("change", "accept"):
                one, other, new = rest
                at = Range(Position(*min(one, other)), Position(*max(one, other)))  # type: ignore[call-overload]
                desk.change(ContentChange(str(new), at), accepted=kind == "accept")
            elif kind == "pause":
                desk.pause(rest[0])  # type: ignore[arg-type]
            elif kind == "replace":
                desk.change(ContentChange(str(rest[0])))
        if read >> number & 1:
            asked.history.view()
    one, two = silent.history.view(), asked.history.view()
    assert (one.finished, one.with_pending) == (two.finished, two.with_pending)
    assert one.documents == two.documents and one.changes(URI) == two.changes(URI)


def put(bench: Workbench, line: int, start: int, end: int, text: str) -> None:
    bench.put(line, start, end, text)
    bench.pause(PAUSE_S + 1)


def read(bench: Workbench, text: str) -> None:
    """Read the file as ``:e!`` does: close it and open it again."""
    bench.history.on_close(URI)
    bench.document = bench.open(text)


def changed(bench: Workbench) -> list[str]:
    """Return the changed lines of each edit."""
    return [
        "".join(each for each in diff.splitlines(True) if each[0] != " ") for diff in bench.diffs()
    ]


FIRST = "-value_3 = compute(3)\n+total_3 = compute(3)\n"
SECOND = "-value_30 = compute(30)\n+total_30 = compute(30)\n"
THIRD = "-value_50 = compute(50)\n+total_50 = compute(50)\n"


def edited() -> Workbench:
    desk = Workbench(CODE)
    for line in (3, 30, 50):
        put(desk, line, 0, 5, "total")
    assert changed(desk) == [FIRST, SECOND, THIRD]
    return desk


def test_reading_anew_forgets_what_was_not_saved() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 5, "total")
    saved = desk.document.text
    put(desk, 30, 0, 5, "total")
    put(desk, 50, 0, 5, "total")
    read(desk, saved)
    assert changed(desk) == [FIRST]


def test_reading_anew_forgets_an_edit_in_progress() -> None:
    desk = Workbench(CODE)
    desk.change(ContentChange("total", Range(Position(3, 0), Position(3, 5))))
    read(desk, CODE)
    assert changed(desk) == []


def test_reading_anew_unchanged_forgets_nothing() -> None:
    desk = edited()
    read(desk, desk.document.text)
    assert changed(desk) == [FIRST, SECOND, THIRD]


def test_reading_what_others_wrote_forgets_nothing() -> None:
    desk = edited()
    read(desk, CODE.replace("compute", "reckon"))
    assert changed(desk) == [FIRST, SECOND, THIRD]


def test_reverting_in_one_change_forgets_its_edits() -> None:
    desk = edited()
    assert desk.change(ContentChange(CODE)) == "undo"
    assert changed(desk) == []
    put(desk, 3, 0, 5, "total")
    assert changed(desk) == [FIRST]


def test_reverting_part_keeps_what_came_before() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 5, "total")
    between = desk.document.text
    put(desk, 30, 0, 5, "total")
    put(desk, 50, 0, 5, "total")
    assert desk.change(ContentChange(between)) == "undo"
    assert changed(desk) == [FIRST]


def test_a_word_deleted_and_rewritten_is_one_change() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 7, "")  # cw, and a while to think
    put(desk, 3, 0, 0, "total_3")
    assert changed(desk) == [FIRST]


def test_a_word_in_progress_joins_its_deletion() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 7, "")
    desk.change(ContentChange("tot", Range(Position(3, 0), Position(3, 0))))
    [edit] = desk.history.view().with_pending
    assert "-value_3 = compute(3)\n+tot = compute(3)\n" in edit.diff


def test_two_continuing_diffs_of_a_client_are_one() -> None:
    text = (
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def area(width, height):\n+def (width, height):\n     return width * height\n"
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def (width, height):\n+def area_of(width, height):\n     return width * height\n"
    )
    [edit] = write_unified_diffs(text)
    assert edit.diff == (
        "-def area(width, height):\n+def area_of(width, height):\n     return width * height\n"
    )


def test_what_a_second_diff_takes_back_is_no_change() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    assert merge_edits([one, RecentEdit("a.py", 4, "-b\n+a\n")]) == ()


def test_edits_of_other_places_and_people_stay_apart() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    for other in (
        RecentEdit("b.py", 4, "-b\n+c\n"),
        RecentEdit("a.py", 5, "-b\n+c\n"),
        RecentEdit("a.py", 4, "-b\n+c\n", accepted=True),
        RecentEdit("a.py", 4, "-x\n+c\n"),
    ):
        assert merge_edits([one, other]) == (one, other)


def opened(
    tmp_path: Path, saved: str, text: str, after_s: float = 0.0, name: str = "a.py"
) -> Session:
    """Return a session whose editor opened a file with unsaved edits after some time."""
    now = [1000.0]

    session = Session(ScriptedPredictor(), LspSettings(), lambda: now[0])
    now[0] += after_s
    file = tmp_path / name
    file.write_text(saved, encoding="utf-8")
    session.open(file.as_uri(), text, 0, "python")
    wait(session.workspace.readings(file.as_uri()))
    session._take_read()
    return session


def test_an_edit_made_before_the_server_is_known(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "))
    [edit] = session.workspace.history.view().finished
    assert FIRST in edit.diff
    assert edit.line == 0
    uri = (tmp_path / "a.py").as_uri()
    assert session.workspace.history.view().last_edit(uri) == (1000.0, 3)
    assert snapshot(session.workspace.history, uri) == CODE.split("\n")


def test_what_cannot_have_been_typed_is_no_edit(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value", "total"))
    assert session.workspace.history.view().finished == ()


def test_unsaved_edits_of_a_file_opened_later_are_none(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "), after_s=60)
    assert session.workspace.history.view().finished == ()


def test_a_secret_file_is_not_compared(tmp_path: Path) -> None:
    session = opened(tmp_path, "TOKEN=a\nPORT=1\n", "TOKEN=b\nPORT=1\n", name=".env")
    assert session.workspace.history.view().finished == ()
