"""Line ends of what is written into a document: lines that stay keep theirs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.documents.line_ends import client_edit
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.lsp.documents.positions import Range
from redraft.model.edits.edit import Edit
from support.editors.lsp import lsp_client

URI = "file:///w/a.py"
MIXED = "def f(v):\n    x = v\r\n    y = 1\r\n    z = v + 2\n    return 0\n\n\n\n"


def accepted(source: str, edit: Edit) -> str:
    """Return the source of a document once a client has applied an edit of its text."""
    document = Document(URI, source)
    assert document.text == edit.text
    start, end, text = client_edit(document, *edit.shape())
    range_ = Range(document.position(start), document.position(end))
    document.apply([ContentChange(text, range_)], None)
    assert document.text == edit.result
    return document.source


def plain(source: str) -> str:
    return re.sub("\r\n?", "\n", source)


def rewrite(source: str, old: str, new: str) -> Edit:
    text = plain(source)
    at = text.index(old)
    return Edit(text, at, at + len(old), new)


#: The document; what becomes what; the document then.
CASES = {
    "a line between two that change": (
        MIXED,
        "x = v\n    y = 1\n    z = v",
        "x = value\n    y = 1\n    z = value",
        MIXED.replace("= v", "= value"),
    ),
    "a lone CR": (
        "a(1)\rb\nc(1)\nd\n",
        "a(1)\nb\nc(1)",
        "a(2)\nb\nc(2)",
        "a(2)\rb\nc(2)\nd\n",
    ),
    "a new line": ("a\r\nb\nc\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\n"),
    "a new line among CRLF": ("a\r\nb\r\nc\n", "b\n", "b\nx\n", "a\r\nb\r\nx\r\nc\n"),
    "a line more in a rewritten part": (
        "a\r\nb\r\nc\r\nd\n",
        "b\nc",
        "b\nx\nc2",
        "a\r\nb\r\nx\r\nc2\r\nd\n",
    ),
    "a line that goes": ("a\nb\r\nc\n", "b\n", "", "a\nc\n"),
    "the last line of a part goes": (
        "a(1)\r\nb\r\nc\nd\ne\nf\n",
        "a(1)\nb\nc\n",
        "a(2)\nb\n",
        "a(2)\r\nb\r\nd\ne\nf\n",
    ),
    "the last line": ("a\r\nb(1)", "b(1)", "b(2)\nc", "a\r\nb(2)\r\nc"),
    "a blank line behind a lone CR": ("a\rb\nc\n", "b\n", "\nb\n", "a\r\r\nb\nc\n"),
    "a line above a blank one": ("\na\rb\r", "", "x\n", "x\r\n\na\rb\r"),
}


@pytest.mark.parametrize("name", CASES)
def test_lines_that_stay_keep_their_ends(name: str) -> None:
    source, old, new, expected = CASES[name]
    assert accepted(source, rewrite(source, old, new)) == expected


LINES = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "    c"]), st.sampled_from(["\n", "\r\n", "\r"])),
    max_size=8,
)


@settings(max_examples=200)
@given(LINES, st.integers(0, 20), st.integers(0, 8), st.text("ab\n", max_size=6))
def test_no_edit_joins_or_splits_line_ends(
    lines: list[tuple[str, str]], start: int, size: int, new: str
) -> None:
    source = "".join(line + end for line, end in lines)
    text = Document(URI, source).text
    start = min(start, len(text))
    made = accepted(source, Edit(text, start, min(start + size, len(text)), new))
    assert plain(made) == Edit(text, start, min(start + size, len(text)), new).result


@settings(max_examples=200)
@given(LINES, st.integers(0, 20), st.text("ab\n", max_size=6))
def test_ghost_text_joins_no_line_ends(lines: list[tuple[str, str]], at: int, new: str) -> None:
    document = Document(URI, "".join(line + end for line, end in lines))
    text = document.text
    at = min(at, len(text))
    start, end, written = client_edit(document, at, at, new)
    range_ = Range(document.position(start), document.position(end))
    document.apply([ContentChange(written, range_)], None)
    assert document.text == text[:at] + new + text[at:]


def test_a_client_gets_the_ends_that_its_lines_have() -> None:
    old, new = "x = v\n    y = 1\n    z = v", "x = value\n    y = 1\n    z = value"
    with lsp_client({"edit": [old, new]}) as client:
        client.initialize()
        client.open(MIXED, version=0)
        client.insert(0, 7, "alue", 1)
        [edit] = client.edits(0, 11, 1)
        assert edit["text"] == "    x = value\r\n    y = 1\r\n    z = value + 2"
