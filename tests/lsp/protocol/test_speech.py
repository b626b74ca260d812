"""Suggestions as sentences: ``redraft/describe``, for screen readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from redraft.lsp.protocol.speech import next_edit
from redraft.lsp.renames.code_file import CodeFile
from redraft.lsp.renames.whole_rename import FileRename, WholeRename
from redraft.lsp.suggestions.suggestion import Suggestion
from support.editors.lsp import URI, LspClient, lsp_client, opened

TEXT = "import os\ndef area(width):\n    return width * foo\n\nx = foo(1)\ny = foo(2)\nz = 3\n"

SENTENCES = [
    ("foo", "bar", "Lines 3, 5 and 6: replace `foo` by `bar`."),
    ("y = foo", "y = bar", "Line 6: replace `foo` by `bar`."),
    ("width)", "width, height)", "Line 2: insert `, height` after `area(width`."),
    ("import", "from x import", "Line 1: insert `from x` in front."),
    (" * foo", "", "Line 3: delete `* foo`."),
    ("x = foo(1)\n", "", "Line 5: delete `x = foo(1)`."),
    ("x = foo(1)\ny = foo(2)\n", "", "Lines 5 and 6: delete 2 lines: `x = foo(1)`, `y = foo(2)`."),
    ("z = 3\n", "z = 3\nq\n\nw\n", "After line 7: insert 3 lines: `q`, an empty line, `w`."),
    ("import os", "# top\nimport os", "Before line 1: insert `# top`."),
    ("    return", "        return", "Line 3: indent by 8 columns, not 4."),
    ("z = 3", "z =  3", "Line 7: change the spaces."),
    ("y = foo(2)", "print(a, b)", "Line 6: replace the line by `print(a, b)`."),
    ("\n\nx", "\ny = 1\nx", "Line 4: write `y = 1`."),
    (
        "(width):\n",
        "(width, height):\n    'doc'\n",
        "Line 2: replace by 2 lines: `def area(width, height):`, `'doc'`.",
    ),
    (
        "x = foo(1)\ny = foo(2)\nz = 3",
        "x = foo(7)\ny = foo(2)\nz = 4",
        "Line 5: replace `1` by `7`; line 7: replace `3` by `4`.",
    ),
    ("x = foo(1)", "x = bar(7)", "Line 5: replace `foo` by `bar` and replace `1` by `7`."),
]


@pytest.mark.parametrize(("old", "new", "says"), SENTENCES)
def test_an_edit_is_described_line_by_line(old: str, new: str, says: str) -> None:
    result = TEXT.replace(old, new)
    whole = Suggestion("1", URI, "next_edit", TEXT, 0, 0, len(TEXT), result, 0.9, "m")
    assert next_edit(whole) == says


def test_lines_are_a_range_and_another_file_its_name() -> None:
    text = "a = foo\nb = foo\nc = foo\n"
    result = text.replace("foo", "bar")
    whole = Suggestion("1", URI, "next_edit", text, 0, 0, len(text), result, 0.9, "m")
    assert next_edit(whole, "b.py") == "In b.py, lines 1 to 3: replace `foo` by `bar`."


@pytest.mark.parametrize(
    ("more", "count"), [(0, ""), (1, " 1 more place."), (3, " 3 more places.")]
)
def test_reason_and_count_of_places_follow_the_edit(more: int, count: str) -> None:
    made = Suggestion("1", URI, "next_edit", "a = foo\n", 0, 4, 7, "bar", 0.9, "m")
    says = "Line 1: replace `foo` by `bar`. Reason: `foo` is `bar` now."
    assert next_edit(replace(made, why="`foo` is `bar` now", more=more)) == says + count


def test_a_whole_rename_is_one_change_of_many_places() -> None:
    text = "def surface(r):\n    return r\n\nprint(area(2), area(3))\n"
    files = [
        FileRename(CodeFile(uri, "a.py", "python", text), ((37, 41, "surface"),) * count)
        for uri, count in ((URI, 2), ("file:///w/project/b.py", 1))
    ]
    rename = WholeRename("area", "surface", 4, tuple(files))
    mark = Suggestion("1", URI, "next_edit", text, 0, 4, 11, "surface", 0.9, "m", rename=rename)
    assert next_edit(mark) == "Line 1: rename `area` to `surface` in 3 places (2 files)."


def describe(client: LspClient, line: int, character: int, **fields: Any) -> dict[str, Any]:
    at = {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}
    described: dict[str, Any] = client.request("redraft/describe", {**at, **fields})["result"]
    return described


def test_ghost_text_is_described_as_far_as_untyped() -> None:
    with opened("return math.pi * r\n    # done") as client:
        client.complete(1, 4)
        says = "At the cursor: 2 lines: `return math.pi * r`, `# done`."
        assert describe(client, 1, 4) == {"id": "redraft-1", "text": says}
        client.insert(1, 4, "return math", 2)
        says = "At the cursor: 2 lines: `.pi * r`, `# done`."
        assert describe(client, 1, 15)["text"] == says
        assert describe(client, 0, 0)["id"] == "", "the cursor is elsewhere"


def test_an_edit_is_described_until_it_is_accepted() -> None:
    with lsp_client({"edit": ["area(2)", "area(2, 3.14)"]}) as client:
        client.initialize()
        client.open("def area(r):\n    return r\n\n\nprint(area(2))\n")
        client.insert(0, 10, ", pi", 2)
        [edit] = client.edits(0, 14, 2)
        says = "Line 5: insert `, 3.14` after `print(area(2`. Reason: `pi` was added to `area`."
        assert describe(client, 0, 14) == {"id": edit["command"]["arguments"][0], "text": says}
        client.command("redraft.accept", *edit["command"]["arguments"])
        assert describe(client, 0, 14)["id"] == ""


def test_an_edit_elsewhere_is_described_with_its_file() -> None:
    other = "file:///w/project/b.py"
    filler = "".join(f"value_{i} = compute({i})\n" for i in range(60))
    with lsp_client({"edit": ["area(2)", "area(2, 3.14)"]}) as client:
        client.initialize()
        client.open(f"def area(r):\n    return r\n\n{filler}")
        client.open("\n\nprint(area(2))\n", uri=other)
        client.insert(0, 10, ", pi", 2)
        asked = {"method": "redraft/nextEdit", "otherDocuments": True}
        [edit] = client.edits(0, 14, 2, **asked)
        assert edit["textDocument"]["uri"] == other
        assert describe(client, 0, 14)["text"].startswith("In b.py, line 3: insert `, 3.14`")


def test_an_unsure_suggestion_is_described_as_one() -> None:
    with opened({"text": "return 1", "confidence": 0.01}) as client:
        client.complete(1, 4)  # by a gesture
        assert describe(client, 1, 4)["text"] == "Unsure. At the cursor: `return 1`."


def test_without_a_suggestion_the_reasons_come_once() -> None:
    with opened("", settings={"disabled_languages": ["python"]}) as client:
        assert describe(client, 1, 4)["text"] == "Nothing is suggested here."
        client.complete(1, 4)
        client.edits(1, 4, 1)
        [first, *reasons] = describe(client, 1, 4)["text"].split(". ")
        assert (first, len(reasons)) == ("Nothing is suggested here", 1)
        assert reasons[0].startswith("No suggestions: ")


def test_reasons_of_an_older_text_are_not_read() -> None:
    with opened({"edit": ["nothing", "left"]}) as client:
        client.insert(0, 10, ", pi", 2)
        client.edits(0, 14, 2)
        assert "No next edit" in describe(client, 0, 14)["text"]
        client.insert(1, 4, "x", 3)
        assert describe(client, 1, 5)["text"] == "Nothing is suggested here."


def test_a_stale_version_is_refused() -> None:
    with opened("x") as client:
        document = {"uri": URI, "version": 7}
        params = {"textDocument": document, "position": {"line": 0, "character": 0}}
        assert client.request("redraft/describe", params)["error"]["code"] == -32801
