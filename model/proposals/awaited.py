"""A function became asynchronous: its calls are awaited, and what awaits becomes asynchronous too.

Python, JavaScript, TypeScript and Rust.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..text.comments import is_comment
from ..text.names import whole_name
from .arguments import closing_bracket
from .code_lines import code_of, quoted_rows
from .example import Example, Found, readable
from .items import indent

LANGUAGES = frozenset(
    ("python", "javascript", "javascriptreact", "typescript", "typescriptreact", "rust")
)
_MADE = re.compile(
    r"\basync\s+(?:def|fn|function\*?)\s+(?P<one>\w+)|\basync\s+(?P<two>\w+)\s*\("
    r"|\b(?P<three>\w+)\s*[:=]\s*async\b"
)
#: A line that begins a function, and the place before which "async" comes.
_BEGINS = {
    "python": re.compile(r"^\s*()def\s+(?!__init__|__new__|__del__)\w+\s*\("),
    "rust": re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?()(?:unsafe\s+)?fn\s+\w+"),
    "script": re.compile(
        r"^\s*(?:export\s+(?:default\s+)?)?()function\b"
        r"|^\s*(?:(?:public|private|protected|static|override)\s+)*()"
        r"(?!constructor\b|if\b|for\b|while\b|switch\b|catch\b|function\b|get\s|set\s)"
        r"[\w$]+\s*\([^()]*\)\s*(?::\s*[^=]+)?\{\s*$"
    ),
}
_ANY_FUNCTION = re.compile(r"\b(?:def|fn|function|constructor)\b|=>\s*\{\s*$")
_RECEIVER = re.compile(r"(?:[\w$]+(?:\(\))?(?:\.|::|\?\.))+$")
#: What is never asynchronous.
_NEVER = re.compile(r"\b__init__\b|\bconstructor\s*\(|\b[gs]et\s+\w+\s*\(")
#: A word before a call that is part of no code: what reads so is prose, or a definition.
_PROSE = re.compile(
    r"\b(?!(?:return|yield|in|not|and|or|if|elif|else|while|raise|throw|case|assert|with|of|void"
    r"|typeof|match|let|mut|unless|go|defer)\b)[^\W\d]\w*\s+$"
)
#: Before a call that cannot be awaited, or whose promise is given on: in a decorator, in a function
#: that is written within the line, and in what starts or gathers tasks.
_NO_PLACE = re.compile(
    r"^\s*@|\blambda\b|(?<!async )(?:\([^()]*\)|\b[^\W\d]\w*)\s*=>[^{]*$|\|[^|]*\|[^|]*$"
    r"|\b(?:create_task|ensure_future|gather|run|spawn|wait_for|all|allSettled|race|any|block_on)"
    r"!?\s*\([^()]*(?:\([^()]*\)[^()]*)*$|\bnew\s+$"
)
#: Behind the brackets of what a class or an interface declares: its type, its body.
_TYPE, _BODY = re.compile(r"\s*:"), re.compile(r"\s*(?::[^={]*)?\{")
_REACH = 80  # lines above a call that its function may begin


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    if example.language not in LANGUAGES:
        return
    script = example.language not in ("python", "rust")
    names = [_made_async(pair.old, pair.new) for pair in example.pairs]
    quoted = quoted_rows(lines, example.language) if any(names) else ()
    for pair, name in zip(example.pairs, names, strict=True):
        if name is not None:
            for at in readable(lines, first, last):
                if name not in lines[at] or at in quoted:
                    continue
                made = _awaited(name, lines[at], example.language)
                within = _function_of(lines, at, example.language)
                if made is not None and (script or within is not None):
                    yield Found(at, at + 1, (made,), pair.age, 2 + _is_async(lines, within), name)
        elif _awaits(pair.new) and not _awaits(pair.old):
            for at in readable(lines, first, last):
                if lines[at] == pair.new:
                    yield from _made(lines, at, first, example.language, pair.age)


def is_wrong(old: str, new: str) -> bool:
    """Whether something would become asynchronous that cannot be."""
    if "await" in new and re.search(r"\b(?:def|function|fn)\s+await\b", new):
        return True
    grown = "async" in new and "async" not in old
    return grown and _NEVER.search(new) is not None


def _made_async(old: str, new: str) -> str | None:
    """The function that became asynchronous."""
    found = _MADE.search(new)
    if found is None or re.search(r"\basync\b", old):
        return None
    name = found["one"] or found["two"] or found["three"]
    return name if whole_name(name).search(old) else None


def _awaits(line: str) -> bool:
    return re.search(r"\bawait\b", line) is not None


def _awaited(name: str, line: str, language: str) -> str | None:
    """``line`` with its first call of the name awaited, where that is not."""
    if _ANY_FUNCTION.search(line) or _MADE.search(line) or is_comment(line, language):
        return None
    code, rust = code_of(line), language == "rust"
    for call in re.finditer(rf"(?<![\w$]){re.escape(name)}\(", code):
        end = closing_bracket(line, call.end() - 1)
        if _NO_PLACE.search(code[: call.start()]):
            continue
        if not rust and end is not None and _is_declared(code, call.start(), end + 1):
            continue
        if rust:
            if end is not None and not line.startswith(".await", end + 1):
                return f"{line[: end + 1]}.await{line[end + 1 :]}"
            continue
        receiver = _RECEIVER.search(line[: call.start()])
        start = receiver.start() if receiver is not None else call.start()
        if _PROSE.search(line[:start]):
            continue
        within = end is not None and re.match(r"\s*[.\[]", line[end + 1 :])
        if within and end is not None:
            return f"{line[:start]}(await {line[start : end + 1]}){line[end + 1 :]}"
        return f"{line[:start]}await {line[start:]}"
    return None


def _is_declared(code: str, start: int, end: int) -> bool:
    """Whether ``code[start:end]`` is no call, but the name and parameters of a method."""
    if re.search(r"[^\s{;]\s*$", code[:start]) and not re.search(r"\w\s+$", code[:start]):
        return False
    begins = re.search(r"(?:^|[{;])\s*$", code[:start]) is not None
    return _BODY.match(code, end) is not None or (begins and _TYPE.match(code, end) is not None)


def _made(lines: Sequence[str], at: int, first: int, language: str, age: int) -> Iterator[Found]:
    """The function around line ``at``, asynchronous."""
    row = _function_of(lines, at, language)
    if row is None or row < first or _is_async(lines, row):
        return
    kind = language if language in _BEGINS else "script"
    found = _BEGINS[kind].match(lines[row])
    if found is not None:
        place = next(
            found.start(group) for group, text in enumerate(found.groups(), 1) if text == ""
        )
        line = lines[row]
        yield Found(row, row + 1, (f"{line[:place]}async {line[place:]}",), age, 3)


def _function_of(lines: Sequence[str], at: int, language: str) -> int | None:
    """The line in which the function around line ``at`` begins."""
    depth = indent(lines[at])
    kind = _BEGINS[language if language in _BEGINS else "script"]
    for row in range(at - 1, max(-1, at - _REACH), -1):
        line = lines[row]
        if not line.strip() or indent(line) >= depth:
            continue
        depth = indent(line)
        if kind.match(line) or _ANY_FUNCTION.search(line) or re.search(r"\basync\b", line):
            return row
    return None


def _is_async(lines: Sequence[str], row: int | None) -> bool:
    return row is not None and re.search(r"\basync\b", lines[row]) is not None
