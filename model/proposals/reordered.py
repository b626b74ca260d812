"""Arguments or parameters of a name changed places: those of its calls follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .arguments import closing_bracket, declares, without_receiver
from .example import Example, Found, readable
from .items import parted

_CALL = re.compile(r"([^\W\d]\w*)[!?]?\(")
_KEYWORD = re.compile(r"^\s*\w+\s*=(?!=)")
_MOST = 12  # arguments


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        for each in _orders(pair.old, pair.new):
            for at in readable(lines, first, last):
                made = _in_order(each, lines[at]) if lines[at] != pair.new else None
                if made is not None:
                    yield Found(at, at + 1, (made,), pair.age, 1 if each.kinds else 3, each.name)


def names_of(example: Example) -> set[str]:
    """What got other arguments in another order."""
    return {each.name for pair in example.pairs for each in _orders(pair.old, pair.new)}


@dataclass(frozen=True, slots=True)
class _Order:
    """A name whose arguments have another order."""

    name: str
    places: tuple[int, ...]  # where each stood before
    kinds: tuple[bool, ...]  # which were literals before; (): a definition, which has none


def _orders(old: str, new: str) -> Iterator[_Order]:
    for one, two in zip(_CALL.finditer(old), _CALL.finditer(new), strict=False):
        if one[1] != two[1]:
            return
        was, is_ = _arguments(old, one.end() - 1), _arguments(new, two.end() - 1)
        if was is None or is_ is None or was == is_ or sorted(was) != sorted(is_):
            continue
        kinds = () if declares(new) else tuple(map(_is_literal, was))
        if len({*was}) == len(was) and (not kinds or kinds != tuple(map(_is_literal, is_))):
            yield _Order(one[1], tuple(was.index(each) for each in is_), kinds)


def _arguments(line: str, opened: int) -> list[str] | None:
    """What stands in a bracket of the line, in order; None where it is not closed in it."""
    end = closing_bracket(line, opened)
    if end is None or not line[opened + 1 : end].strip():
        return None
    found = [line[slice(*part)].strip() for part in parted(line, opened + 1, end, ",")]
    return without_receiver(found) if len(found) <= _MOST else None


def _in_order(order: _Order, line: str) -> str | None:
    """``line`` with the arguments of its last call of the name in that order."""
    for call in reversed([*re.finditer(rf"(?<!\w){re.escape(order.name)}[!?]?\(", line)]):
        given = _arguments(line, call.end() - 1)
        end = closing_bracket(line, call.end() - 1)
        if given is None or end is None or len(given) != len(order.places):
            continue
        if any(_KEYWORD.match(each) or each.startswith(("*", "...")) for each in given):
            continue
        if order.kinds and tuple(map(_is_literal, given)) != order.kinds:
            continue
        made = ", ".join(given[place] for place in order.places)
        return line[: call.end()] + made + line[end:]
    return None


def _is_literal(text: str) -> bool:
    return (
        re.match(r"[\"'`\d-]|\w{1,2}[\"']|(?:true|false|null|nil|None|True|False)$", text)
        is not None
    )
