"""Edit histories of several documents, their bounds, and what holds of all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.editor import history_hunks as hunks_module
from redraft.lsp.editor.documents import ContentChange
from redraft.lsp.editor.history import MAX_AGE_S, MAX_CHARACTERS, MAX_EDITS
from redraft.lsp.editor.positions import Position, Range
from redraft.model.edits.edit import LineChange as CommitHunk
from redraft.model.edits.hunks import hunks_of
from support.histories import CODE, lines, places, rebuilt
from support.workbench import URI, Workbench

OTHER = "file:///w/b.py"


def test_documents_share_one_history_in_order_of_time() -> None:
    desk = Workbench(CODE)
    desk.open(CODE, "b.py")
    desk.type_at(10, 0, "one ", URI)
    desk.type_at(10, 0, "two ", OTHER)
    desk.pause()
    desk.type_at(11, 0, "three ", URI)
    desk.pause()
    desk.history.edits()
    assert [edit.path for edit in desk.history.edits()] == ["a.py", "b.py", "a.py"]
    assert rebuilt(desk, URI) == lines(desk, URI)
    assert rebuilt(desk, OTHER) == lines(desk, OTHER)


def test_edits_of_a_closed_document_are_still_known() -> None:
    desk = Workbench(CODE)
    desk.type_at(10, 0, "abc")
    desk.history.closed(URI)
    assert len(desk.diffs()) == 1
    assert desk.history.snapshot(URI) == ()
    assert desk.change(ContentChange("x")) == "nothing"
    desk.open("x = 1\n")
    desk.put(0, 0, 0, "y")
    assert rebuilt(desk) == ["yx = 1", ""]


def test_what_was_just_done_is_where_it_is_by_now() -> None:
    desk = Workbench(CODE)
    desk.put(30, 0, 0, "abc")
    desk.pause()
    desk.put(10, 0, 0, "new line\n")
    newest, older = desk.history.just_done(URI)
    assert (newest.first, newest.old, newest.new) == (10, (), ("new line",))
    assert lines(desk)[older.first] == "abcvalue_30 = compute(30)"
    desk.pause(61)
    desk.history.edits()
    assert desk.history.just_done(URI) == []


def test_the_history_is_bounded_in_count_characters_and_age() -> None:
    desk = Workbench(CODE)
    for number in range(3 * MAX_EDITS):
        desk.put(10 + 20 * (number % 2), 0, 0, f"{number} ")
        desk.pause()
    assert len(desk.history._edits) <= MAX_EDITS
    desk.history.flush(URI)
    assert rebuilt(desk) == lines(desk)
    for number in range(3 * MAX_EDITS):
        line = 10 + 20 * (number % 2)
        desk.change(
            ContentChange("x" * 5_000, Range(Position(line, 0), Position(line, 9))), accepted=True
        )
        desk.pause()
    desk.history.flush(URI)
    assert sum(edit.span.characters for edit in desk.history._edits) <= MAX_CHARACTERS
    assert rebuilt(desk) == lines(desk)
    desk.pause(MAX_AGE_S + 1)
    assert desk.history.edits() == ()
    assert rebuilt(desk) == lines(desk)


def test_a_keystroke_touches_no_line_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(old: list[str], new: list[str]) -> list[CommitHunk]:
        seen.append(len(old) + len(new))
        return hunks_of(old, new)

    monkeypatch.setattr(hunks_module, "hunks_of", counting)
    desk = Workbench("x = 1\n" * 10_000)
    desk.type_at(5_000, 5, " + 2 * 3")
    assert seen == []  # no difference is searched while typing
    desk.pause()
    desk.history.edits()
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
def test_the_snapshot_with_the_history_and_the_edit_in_progress_is_the_text(
    text: str, steps: list[tuple[object, ...]]
) -> None:
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
            desk.history.edits()
        elif kind == "flush":
            desk.history.flush(uri)
        else:
            desk.change(ContentChange(str(rest[0])), uri=uri)
        for each in (URI, OTHER):
            assert rebuilt(desk, each) == lines(desk, each)
