"""Syntax trees: every language parses, offsets are exact, errors are counted, pieces are whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.text import syntax
from redraft.model.text.lines import WITHIN, is_comment
from redraft.model.text.syntax import LANGUAGES, Syntax, count_errors, language_of, parse
from redraft.model.training.middles import pieces

#: Per language: a text without errors, and something a person would write in one go within it.
SAMPLES = {
    "python": ("def f(a, b):\n    return g(a + b)\n", "a + b"),
    "typescript": ("function f(a: number): string {\n  return `${a + 1}`;\n}\n", "a + 1"),
    "typescriptreact": ("const f = () => <p id='x'>{g(1 + 2)}</p>;\n", "1 + 2"),
    "javascript": ("const f = (a) => {\n  return a.map(b);\n};\n", "return a.map(b);"),
    "javascriptreact": ("const f = () => <p id='x'>{g(1 + 2)}</p>;\n", "1 + 2"),
    "go": ("package a\n\nfunc f(x int) int {\n\treturn g(x, 1)\n}\n", "x, 1"),
    "rust": ("fn f(x: u8) -> u8 {\n    g(x, 1)\n}\n", "x, 1"),
    "java": ("class A {\n  int f(int x) {\n    return g(x, 1);\n  }\n}\n", "return g(x, 1);"),
    "c": ("int f(int x) {\n  return g(x, 1);\n}\n", "return g(x, 1);"),
    "cpp": ("class A {\n  int f(int x) { return g<int>(x, 1); }\n};\n", "x, 1"),
    "csharp": ("class A {\n  int F(int x) { return G(x, 1); }\n}\n", "x, 1"),
    "ruby": ("def f(x)\n  g(x, 1)\nend\n", "x, 1"),
    "php": ("<?php\nfunction f($x) {\n  return g($x, 1);\n}\n", "$x, 1"),
    "lua": ("local function f(x)\n  return g(x, 1)\nend\n", "return g(x, 1)"),
    "shellscript": ('f() {\n  echo "$1 done"\n}\n', 'echo "$1 done"'),
    "json": ('{"a": [1, 2], "b": "some text"}\n', "some text"),
    "jsonc": ('// said once\n{"a": "some text"}\n', "some text"),
    "html": ("<p class='a b'>text</p>\n", "a b"),
    "css": ("p {\n  color: red;\n}\n", "color: red;"),
    "kotlin": ("fun f(x: Int): Int {\n  return g(x, 1)\n}\n", "x, 1"),
}  # fmt: skip


def tree_of(text: str, language: str) -> Syntax:
    found = parse(text, language)
    assert found is not None
    return found


DEEP = [
    ("json", '{"a":\n', "}"),
    ("json", "[", "]"),
    ("javascript", "function f() {\n", "}"),
    ("javascript", "f(", ")"),
    ("python", "[", "]"),
    ("c", "{\n", "}"),
    ("html", "<div>\n", "</div>"),
]


@pytest.mark.parametrize(("language", "opens", "closes"), DEEP)
@pytest.mark.parametrize("closed", [False, True])
def test_a_text_nested_too_deeply_has_no_tree(
    language: str, opens: str, closes: str, closed: bool
) -> None:
    """Parsing it would stop all other requests for seconds."""
    for levels, has_tree in ((500, True), (syntax.MAX_DEPTH + 1, False), (40_000, False)):
        text = opens * levels + (closes * levels if closed else "")
        assert (parse(text, language) is not None) == has_tree


@pytest.mark.parametrize(
    ("language", "line"), [("javascript", "f([{}]);\n"), ("html", "<br><p>x</p>\n")]
)
def test_a_long_text_that_is_not_deep_has_a_tree(language: str, line: str) -> None:
    assert parse("}" * 5_000 + line * 5_000, language) is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_grammar_that_reads_it(language: str) -> None:
    text, wanted = SAMPLES[language]
    tree = tree_of(text, language)
    assert count_errors(tree) == 0
    assert wanted in [text[p.start : p.end] for p in pieces(tree, 0, len(text))]


@pytest.mark.parametrize("language", ["python", "go", "java", "typescript", "rust", "c"])
def test_what_cannot_be_read_is_counted(language: str) -> None:
    text, _ = SAMPLES[language]
    assert count_errors(tree_of(text.replace(")", "", 1), language)) > 0


def test_errors_are_counted_within_the_given_part() -> None:
    text = "x = (1\n\n\ndef f():\n    return 2\n"
    good = "y = 3\n" * 20
    tree = tree_of(good + "z = = 4\n" + good, "python")
    assert count_errors(tree) > 0
    assert count_errors(tree, 0, len(good) - 10) == 0
    assert count_errors(tree, len(good)) > 0
    assert count_errors(tree_of(text, "python"), 0, 8) > 0


def test_a_language_without_a_grammar_has_no_tree() -> None:
    assert parse("x", "cobol") is None
    assert language_of("notes.txt") is None


def test_a_grammar_that_is_not_installed_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(syntax._GRAMMARS, "ada", ("tree_sitter_not_installed", "language", ""))
    assert parse("x", "ada") is None
    monkeypatch.setitem(syntax._GRAMMARS, "pascal", ("tree_sitter_python", "no_such_function", ""))
    assert parse("x", "pascal") is None


def test_a_text_too_long_to_be_code_has_no_tree() -> None:
    assert parse("x" * (syntax.MAX_CHARS + 1), "python") is None


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/a.py", "python"),
        ("src\\A.TSX", "typescriptreact"),
        ("a.d.ts", "typescript"),
        ("include/a.h", "cpp"),
        ("build.gradle.kts", "kotlin"),
        ("Makefile", None),
    ],
)
def test_the_suffix_tells_the_language(path: str, language: str | None) -> None:
    assert language_of(path) == language


def test_offsets_are_characters_and_not_bytes() -> None:
    text = "s = 'größe 日本 🙂'\nt = f('é', 🙂)\nu = g(a, b)\n"
    tree = tree_of(text, "python")
    found = {text[p.start : p.end] for p in pieces(tree, 0, len(text))}
    assert {"größe 日本 🙂", "a, b", "g(a, b)"} <= found


@given(st.text(st.sampled_from("aé日🙂\ud800'\n =()"), max_size=40))
def test_bytes_and_characters_translate_exactly(text: str) -> None:
    tree = tree_of(text, "python")
    raw = text.encode("utf-8", "surrogatepass")
    for char in range(len(text) + 1):
        byte = tree.byte_of(char)
        assert raw[:byte].decode("utf-8", "surrogatepass") == text[:char]
        assert tree.char_of(byte) == char
    for piece in pieces(tree, 0, len(text)):
        assert 0 <= piece.start < piece.end <= len(text)


def test_pieces_begin_within_the_asked_part() -> None:
    text = "".join(f"value_{i} = call({i}, x)\n" for i in range(50))
    start = text.index("value_20")
    end = text.index("value_21")
    found = pieces(tree_of(text, "python"), start, end)
    assert {text[p.start : p.end] for p in found} >= {"value_20 = call(20, x)", "20, x"}
    assert all(start <= p.start < end for p in found)


def test_pieces_are_no_longer_than_asked() -> None:
    text = "x = f(" + ", ".join(f"name{i}" for i in range(100)) + ")\ny = g(a, b)\n"
    assert all(p.end - p.start <= 50 for p in pieces(tree_of(text, "python"), 0, len(text), 50))


def test_a_broken_statement_is_no_piece_but_others_are() -> None:
    text = "a = f(x, 1)\nb = = 2\nc = g(y, 2)\n"
    found = {text[p.start : p.end] for p in pieces(tree_of(text, "python"), 0, len(text))}
    assert {"a = f(x, 1)", "c = g(y, 2)"} <= found
    assert not any("= =" in piece for piece in found)


def test_deep_nesting_is_walked_without_recursion() -> None:
    text = "x = " + "(" * 3_000 + "a + 1" + ")" * 3_000 + "\n"
    tree = tree_of(text, "python")
    assert count_errors(tree) == 0
    assert "a + 1" in [text[p.start : p.end] for p in pieces(tree, 0, len(text))]


#: Of a language lines that are comments, and lines that look like one of another language.
LINES = {
    "python": (["# why", "    #: why"], ["// 2", "*rest, last = x", "--x", "%timeit f()"]),
    "ruby": (["# why"], ["*rest = x", "-- x"]),
    "shellscript": (["#!/bin/sh", "  # why"], ["--flag \\", "*.py) run ;;", "; x"]),
    "javascript": (
        ["// why", "/* why", " * why", " */"],
        ["#count = 0;", "--i;", ";[1].map(f)", "*items() {"],
    ),
    "typescript": (["// why", " * why"], ["#count = 0;"]),
    "rust": (["// why", "/// why", " * why"], ["#[derive(Debug)]", "*place = 1;"]),
    "go": (["// why"], ["*place = 1"]),
    "java": (["/** why", " * why"], ["--i;"]),
    "c": (["// why", "/* why"], ["#include <a.h>", "#define A 1", "*p = 1;", "--i;"]),
    "cpp": (["// why"], ["#pragma once", "#if A", "*p = 1;"]),
    "csharp": (["/// why"], ["#region A", "--i;"]),
    "kotlin": (["// why", " * why"], ["--i"]),
    "php": (["# why", "// why", " * why"], ["#[Pure]", "--$i;"]),
    "lua": (["-- why", "--[[ why"], ["#items", "// x"]),
    "sql": (["-- why", "/* why"], ["# x"]),
    "html": (["<!-- why -->"], ["// x", "# x"]),
    "css": (
        ["/* why */", " * why", " */", " ** why", "/* * { */"],
        ["#id { }", ".card { }", "--i: 1px;", "// why", "  * {", "*, p {", "* > p,", "* html p {"],
    ),
    "scss": (["// why", "/* why", " * why"], ["* {", "  * + * { top: 0 }"]),
    "json": ([], ["// x", "# x"]),
    "jsonc": (["// why"], ["# x"]),
    "latex": (["% why"], ["# x"]),
    "": (
        ["# why", "// why", "/* why", " * why", "-- why", "; why", "% why", "<!-- why"],
        ["#[derive(Debug)]", "#include <a.h>", "# define A", "*p = 1;", "x = 1  # why"],
    ),
}


@pytest.mark.parametrize("language", LINES)
def test_a_comment_is_what_the_language_takes_for_one(language: str) -> None:
    comments, code = LINES[language]
    assert [line for line in comments if not is_comment(line, language)] == []
    assert [line for line in code if is_comment(line, language)] == []


def test_every_parsed_language_has_its_own_comments() -> None:
    unknown = "-- <!-- % ;"
    assert all(is_comment(mark, "another") for mark in unknown.split())
    for language in LANGUAGES:
        assert sum(is_comment(mark, language) for mark in unknown.split()) <= 1, language
    assert "//" in WITHIN
