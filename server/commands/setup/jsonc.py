"""Edits of JSON with comments and trailing commas that leave all else as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from redraft.model.errors import EditorSetupError

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/|\A\ufeff", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


class _Member(NamedTuple):
    """Offsets of a member of an object."""

    start: int
    value: int
    end: int


def parse(text: str) -> dict[str, Any]:
    """Return the value of a text, {} if there is nothing but comments.

    Raises:
        EditorSetupError: it is not JSON with comments, or no object.
    """
    try:
        value = json.loads(_strict(text).strip() or "{}")
    except (ValueError, RecursionError) as error:
        raise EditorSetupError(f"it is not JSON with comments: {error}") from error
    if not isinstance(value, dict):
        raise EditorSetupError("its content is not an object")
    return value


def with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return a text with a value set, in place of an older one if there is one.

    Raises:
        EditorSetupError: the text is broken, or something on the path is no object.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    parse(text)
    if not _strict(text).strip():
        text = f"{text}{'' if not text or text.endswith(chr(10)) else end}{{}}{end}"
    plain = _strict(text)
    at = len(plain) - len(plain.lstrip())
    for depth, key in enumerate(path):
        if plain[at] != "{":
            raise EditorSetupError(f"{'.'.join(path[:depth])} is not an object")
        members = dict(_members(plain, at))
        if key not in members:
            for each in reversed(path[depth + 1 :]):
                value = {each: value}
            return _insert(text, at, depth, key, value, is_empty=not members, end=end)
        member = members[key]
        at = member.value
    return text[: member.value] + _shown(text, value, len(path), end) + text[member.end :]


def without(text: str, path: tuple[str, ...]) -> str:
    """Return a text without a member, which is there."""
    plain = _strict(text)
    at = len(plain) - len(plain.lstrip())
    for key in path:
        start, at, end = dict(_members(plain, at))[key]
    if comma := re.match(r"\s*,", text[end:]):
        end += comma.end()
    elif before := re.search(r",\s*\Z", text[:start]):
        text = text[: before.start()] + " " + text[before.start() + 1 :]
    line = text.rfind("\n", 0, start) + 1
    rest = re.match(r"[ \t]*\r?\n", text[end:])
    if rest and not text[line:start].strip():
        start, end = line, end + rest.end()
    return text[:start] + text[end:]


def _strict(text: str) -> str:
    """Return strict JSON of the same length: spaces in place of comments and trailing commas."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0])

    return _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))


def _members(plain: str, at: int) -> Iterator[tuple[str, _Member]]:
    """Yield the members of the object that begins at an offset of strict JSON."""
    decoder = json.JSONDecoder()
    while True:
        start = re.compile(r"[{,\s]*").match(plain, at).end()  # type: ignore[union-attr]
        if plain[start] == "}":
            return
        key, colon = decoder.raw_decode(plain, start)
        value = re.compile(r"[:\s]*").match(plain, colon).end()  # type: ignore[union-attr]
        _, at = decoder.raw_decode(plain, value)
        yield key, _Member(start, value, at)


def _insert(
    text: str, at: int, depth: int, key: str, value: Any, *, is_empty: bool, end: str
) -> str:
    """Return a text with a new first member of the object at ``at``."""
    unit = _unit(text)
    comment = re.compile(r"[ \t]*//[^\n]*(?<!\r)(?=\r?\n)").match(text, at + 1)
    at = comment.end() if comment else at + 1
    indent = end + unit * (depth + 1)
    member = f"{indent}{json.dumps(key)}: {_shown(text, value, depth + 1, end)}"
    alone = not text[at:].split("\n", 1)[0].strip()  # nothing else stands in this line
    after = "" if is_empty else ","
    if alone:
        return text[:at] + member + after + text[at:]
    after += end + unit * (depth if is_empty else depth + 1)
    return text[:at] + member + after + text[at:].lstrip(" \t")


def _shown(text: str, value: Any, depth: int, end: str) -> str:
    unit = _unit(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (end + unit * depth).join(lines)


def _unit(text: str) -> str:
    """Return one step of indentation."""
    found = re.search(r"^[ \t]+(?=\")", text, re.MULTILINE)
    return found[0] if found else "  "
