"""What is a comment, language by language."""

from __future__ import annotations

import pytest
from redraft.model.text.lines import WITHIN, is_comment
from redraft.model.text.syntax import LANGUAGES

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


def test_every_language_that_is_parsed_has_its_own_comments() -> None:
    unknown = "-- <!-- % ;"
    assert all(is_comment(mark, "another") for mark in unknown.split())
    for language in LANGUAGES:
        assert sum(is_comment(mark, language) for mark in unknown.split()) <= 1, language
    assert "//" in WITHIN
