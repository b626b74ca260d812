"""Suggestions while their document changes: what follows it, and what was rejected before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.lsp.suggestions.rejections import Rejections
from redraft.lsp.suggestions.suggestion import Suggestion

URI = "file:///w/a.py"
CODE = "def area(r, pi):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"


def edit(text: str, old: str, new: str) -> Suggestion:
    """Return the suggestion that the first ``old`` of ``text`` becomes ``new``."""
    at = text.index(old)
    return Suggestion("1", URI, "next_edit", text, 0, at, at + len(old), new, 0.9, "fake")


def rebased(suggestion: Suggestion, text: str) -> tuple[str, str] | None:
    """Return how the document got there, and what is left to insert."""
    found = suggestion.rebase(text)
    return (found[1], found[0].replacement) if found else None


def test_typing_part_of_an_edit_leaves_the_rest() -> None:
    made = edit(CODE, "area(2)", "area(2, 3.14)")
    assert rebased(made, CODE.replace("area(2)", "area(2,)")) == ("typed", " 3.14")
    assert rebased(made, CODE.replace("area(2)", "area(2;)")) is None


def test_deleting_what_an_edit_replaces_is_typing_it() -> None:
    made = edit(CODE, "area(2)", "volume(2)")
    assert rebased(made, CODE.replace("area(2)", "are(2)")) == ("typed", "volum")
    assert rebased(made, CODE.replace("area(2)", "rea(2)")) == ("typed", "volume")
    assert rebased(made, CODE.replace("area(2)", "volarea(2)")) == ("typed", "ume")


texts = st.lists(st.sampled_from(["a", "b", "ab", "", "x y"]), max_size=6).map("\n".join)


@given(texts, texts, texts, texts)
def test_a_followed_edit_makes_the_same_change(head: str, old: str, new: str, tail: str) -> None:
    text = f"{head}\n{old}\n{tail}"
    start = len(head) + 1
    made = Suggestion("1", URI, "next_edit", text, 0, start, start + len(old), new, 0.9, "fake")
    for changed, expected in (
        (f"top\n{text}", f"top\n{made.result}"),
        (f"{text}\nend", f"{made.result}\nend"),
    ):
        found = made.rebase(changed)
        if found is not None:
            assert found[0].text == changed
            assert found[0].result in (expected, made.result)


@given(texts, texts, texts, texts)
def test_every_form_of_an_edit_makes_one_text(head: str, old: str, new: str, tail: str) -> None:
    text = head + old + tail
    start = len(head)
    made = Suggestion("1", URI, "next_edit", text, 0, start, start + len(old), new, 0.9, "fake")
    assert made.least().result == made.result
    for first, last, lines in (made.edit.whole_lines(), made.edit.shape()):
        assert text[:first] + lines + text[last:] == made.result
    assert made.result[: made.landing].endswith(made.least().replacement)


def test_whole_lines_that_come_or_go_touch_no_other() -> None:
    text = "a\nb\nc\n"
    gone = edit(text, "b\n", "").edit.shape()
    assert gone == (2, 4, "")
    assert edit(text, "b\n", "b\nnew\n").edit.shape() == (4, 4, "new\n")
    assert edit(text, "b", "bb").edit.shape() == (2, 3, "bb")


def known(rejections: Rejections, suggestion: Suggestion) -> bool:
    return rejections.has_rejected(suggestion.uri, suggestion.edit)


def test_a_rejected_edit_is_known_wherever_it_moved() -> None:
    rejections, document = Rejections(), Document(URI, CODE)
    rejections.note(edit(CODE, "area(2)", "area(2, 3)"), 0.0)
    assert known(rejections, edit(CODE, "print(area(2))", "print(area(2,  3))"))
    assert not known(rejections, edit(CODE, "area(2)", "area(2, 4)"))
    moved = "# one\n# two\n# three\n# four\n" + CODE
    rejections.on_change(URI, document.apply([ContentChange(moved)], None))
    assert known(rejections, edit(moved, "area(2)", "area(2, 3)"))
    assert not known(rejections, edit(CODE, "area(2)", "area(2, 3)"))
