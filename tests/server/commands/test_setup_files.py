"""``redraft setup``: edits of settings that leave everything else as it is."""

from __future__ import annotations

import json

import pytest
from redraft.model.errors import EditorSetupError
from redraft.server.commands.setup import jsonc
from redraft.server.commands.setup.marked_block import with_block, without_block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{\n}\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"x": 2}', '{\n  "a": {\n    "b": 1\n  },\n  "x": 2}'),
        ('{\n\t"x": 2,\n}', '{\n\t"a": {\n\t\t"b": 1\n\t},\n\t"x": 2,\n}'),
        ('{ // x\n  "x": 2\n}', '{ // x\n  "a": {\n    "b": 1\n  },\n  "x": 2\n}'),
        ('{ /* x\n*/ "x": 2}', '{\n  "a": {\n    "b": 1\n  },\n  /* x\n*/ "x": 2}'),
        ('{"a": {"b": [2, /* , */],},}', '{"a": {"b": 1,},}'),
        ('{"a": {"c": "// \\" }",},}', '{"a": {\n    "b": 1,\n    "c": "// \\" }",},}'),
        ('{\r\n    "x": 2\r\n}', '{\r\n    "a": {\r\n        "b": 1\r\n    },\r\n    "x": 2\r\n}'),
        ('\ufeff{"x": "}"}', '\ufeff{\n  "a": {\n    "b": 1\n  },\n  "x": "}"}'),
    ],
)
def test_a_value_is_set_and_all_else_stays(text: str, expected: str) -> None:
    changed = jsonc.with_value(text, ("a", "b"), 1)
    assert changed == expected
    assert jsonc.parse(changed)["a"]["b"] == 1


@pytest.mark.parametrize(
    "text",
    ['{"a": 1', '{"a" 1}', '{"a": 1,,}', "[1", '{"a": 1 "b": 2}', "[1]", '{"a": [1]}', "{'a': 1}"],
)
def test_broken_or_other_json_is_refused(text: str) -> None:
    with pytest.raises(EditorSetupError):
        jsonc.with_value(text, ("a", "b"), 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "a": 1,\n  // x\n  "x": 2\n}\n', '{\n  // x\n  "x": 2\n}\n'),
        ('{\n  "x": 2,\n  "a": 1\n}\n', '{\n  "x": 2 \n}\n'),
        ('{"x": 2, "a": 1, "y": 3}', '{"x": 2,  "y": 3}'),
        ('{"x": 2, // a\n"a": 1,}', '{"x": 2, // a\n}'),
        ('{"a": 1}', "{}"),
    ],
)
def test_a_value_is_taken_out_and_all_else_stays(text: str, expected: str) -> None:
    changed = jsonc.without(text, ("a",))
    assert changed == expected
    given = jsonc.parse(text)
    del given["a"]
    assert jsonc.parse(changed) == given


@pytest.mark.parametrize("text", ["", "x = 1", "x = 1\n", "x = 1\r\ny = 2\r\n", "\n\n"])
def test_a_block_comes_and_goes(text: str) -> None:
    once = with_block(text, "helix", "a = 1\n", "#")
    assert with_block(once, "helix", "a = 1\n", "#").count("a = 1") == 1
    assert ("\r\n" in once) == ("\r" in text)
    assert without_block(f"{once}z = 3\n").split() == f"{text} z = 3".split()


def test_a_block_without_its_end_is_refused() -> None:
    text = with_block("x\n", "emacs", "(a)\n", ";;").replace("<<<", "")
    with pytest.raises(EditorSetupError, match="take the block out by hand"):
        without_block(text)


def test_other_letters_are_written_as_they_are() -> None:
    changed = jsonc.with_value("{}", ("pfad",), "C:\\Größe\\x")
    assert "Größe" in changed
    assert json.loads(changed) == {"pfad": "C:\\Größe\\x"}
