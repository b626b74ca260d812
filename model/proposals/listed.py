"""A list got an item: other lists that name its siblings get one too, the same way.

A variant gets its arm in each ``match``, a field its line in constructors and literals, a name its
place in a union or in the other of two parallel lists. The new item reads as that of its nearest
sibling does, with the name in its spelling there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..edits.edit_patterns import MOST_CHARS
from ..text.comments import is_comment
from .casing import spelt
from .example import NAME, PROSE, Added, Example, Found, Pair, readable, words
from .items import Item, entries_around, items_around, named_apart

#: New items at once, at most.
_MOST_NEW = 4
#: Lists that grew, and siblings on either side of what is new, at most.
_MOST_LISTS, _MOST_SIBLINGS = 12, 16
_ENDS = re.compile(r"[\s;,)\]}]*$")


@dataclass(frozen=True, slots=True)
class _Grown:
    """What a list got, and what stood in it."""

    new: tuple[str, ...]  # names
    above: tuple[str, ...]  # names of its siblings, the nearest first
    below: tuple[str, ...]
    age: int
    own: range  # lines of the list, where it stands in this document
    line: str = ""  # the list itself, where it stands within a line

    @property
    def siblings(self) -> tuple[str, ...]:
        return (*self.above, *self.below)


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    if example.language in PROSE:
        return
    for grown in islice(_grown(example, lines), _MOST_LISTS):
        table = {form: name for name in grown.siblings for form in spelt(name, name)[1]}
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, table))})(?!\w)")
        seen: set[int] = set()
        for row in readable(lines, first, last):
            line = lines[row]
            told = pattern.search(line)
            if told is None or row in grown.own or line == grown.line or row in seen:
                continue
            within = _entry(grown, table, line)
            if within is not None:
                yield Found(row, row + 1, (within[0],), grown.age, within[1], told[0])
                continue
            items = items_around(lines, row)
            seen |= {item.first for item in items}
            found = _item(grown, table, lines, items)
            if found is not None and first <= found.first and found.last <= last:
                yield replace(found, name=told[0])


def may_stand_in(example: Example, text: str) -> bool:
    """Whether a sibling of what a list got stands in a text at all; quickly."""
    if example.language in PROSE:
        return False
    grown = islice(_grown(example, ()), _MOST_LISTS)
    nearest = (one.siblings[0] for one in grown)
    return any(form in text for name in nearest for form in spelt(name, name)[1])


# --- what grew ---------------------------------------------------------------------------------


def _grown(example: Example, lines: Sequence[str]) -> Iterator[_Grown]:
    for added in (*example.added, *example.grown):
        one = _of_lines(added, lines, example.language)
        if one is not None:
            yield one
    for pair in example.pairs:
        one = _of_entries(pair, example.language)
        if one is not None:
            yield one


def _of_lines(added: Added, lines: Sequence[str], language: str) -> _Grown | None:
    here = _place(added, lines)
    text, at = (added.around, added.at) if here is None else (lines, here)
    if not added.lines or not added.lines[0].strip() or at >= len(text):
        return None
    if is_comment(added.lines[0], language) or any(len(line) > MOST_CHARS for line in added.lines):
        return None
    items = items_around(text, at, blank_ends=True)
    new = [item for item in items if at <= item.first < at + len(added.lines)]
    if not 1 <= len(new) <= _MOST_NEW or new[-1].last > at + len(added.lines):
        return None
    if new[0].first != at:
        return None
    above = [text[item.first] for item in reversed(items) if item.first < at]
    below = [text[item.first] for item in items if item.first > new[-1].first]
    own = range(0) if here is None else range(items[0].first, items[-1].last)
    return _told([text[item.first] for item in new], above, below, added.age, own, language)


def _place(added: Added, lines: Sequence[str]) -> int | None:
    """Where in the document the new lines stand."""
    count = len(added.lines)
    for at, line in enumerate(lines):
        if line == added.lines[0] and tuple(lines[at : at + count]) == added.lines:
            above, below = lines[max(0, at - 1) : at], lines[at + count : at + count + 1]
            if added.above in above or added.below in below:
                return at
    return None


def _of_entries(pair: Pair, language: str) -> _Grown | None:
    before, old, new, _ = pair.entry
    at = len(before) + len(new) - len(new.lstrip(" ,|"))
    if old.strip() or not re.search(r"[,|]", new) or at >= len(pair.new):
        return None
    entries = entries_around(pair.new, at)
    written = range(len(before), len(before) + len(new))
    mine = [entry for entry in entries if entry[0] in written or entry[1] - 1 in written]
    if not 1 <= len(mine) <= _MOST_NEW:
        return None
    text = {entry: pair.new[slice(*entry)] for entry in entries}
    above = [text[entry] for entry in reversed(entries) if entry < mine[0]]
    below = [text[entry] for entry in entries if entry > mine[-1]]
    told = _told([text[entry] for entry in mine], above, below, pair.age, range(0), language)
    return None if told is None else replace(told, line=pair.new)


def _told(
    new: Sequence[str],
    above: Sequence[str],
    below: Sequence[str],
    age: int,
    own: range,
    language: str,
) -> _Grown | None:
    """Names of items by which they are told apart."""
    above, below = above[:_MOST_SIBLINGS], below[:_MOST_SIBLINGS]
    apart = [named_apart(other, new[0], language) for other in (*above, *below)]
    names = Counter(pair[1] for pair in apart if pair is not None)
    if not names:
        return None
    name = names.most_common(1)[0][0]
    one = [pair[0] if pair is not None and pair[1] == name else "" for pair in apart]
    nearest = next(at for at, sibling in enumerate(one) if sibling)
    others = [named_apart((*above, *below)[nearest], each, language) for each in new[1:]]
    if None in others:
        return None
    kept = tuple(filter(None, one[: len(above)])), tuple(filter(None, one[len(above) :]))
    return _Grown((name, *(each[1] for each in others if each)), *kept, age, own)


# --- where it is listed too --------------------------------------------------------------------

_Table = dict[str, str]  # of each spelling of a sibling's name, that name


def _enough(grown: _Grown, named: Sequence[set[str]]) -> bool:
    """Whether different items name so many siblings that these are listed there."""
    alone = {name for names in named if len(names) == 1 for name in names}
    return len(alone) >= 2


def _named(table: _Table, text: str) -> set[str]:
    return {table[word] for word in words(text) if word in table}


def _stands(grown: _Grown, texts: Sequence[str]) -> bool:
    """Whether what is new is named there already."""
    forms = {form for name in grown.new for form in spelt(name, name)[1]}
    return any(word in forms for text in texts for word in words(text))


def _neighbour(grown: _Grown, named: Sequence[set[str]]) -> tuple[int, str, bool] | None:
    """Which item the new one comes beside, whom it names, and whether it comes behind it."""
    for names, behind in ((grown.above, True), (grown.below, False)):
        for name in names:
            places = [at for at, each in enumerate(named) if each == {name}]
            if places:
                return places[-1 if behind else 0], name, behind
    return None


def _evidence(before: tuple[str, set[str]] | None, text: str, name: str, count: int) -> int:
    """3 where the item before reads the same but for its name, else how many are listed, less 1."""
    if before is not None and len(before[1]) == 1:
        [other] = before[1]
        pattern, become = spelt(other, name, shortest=2)
        if pattern.sub(lambda found: become[found[0]], before[0]) == text:
            return 3
    return min(count, 3) - 1


def _entry(grown: _Grown, table: _Table, line: str) -> tuple[str, int] | None:
    """``line`` with the new entries, and the evidence for it."""
    for found in NAME.finditer(line):
        if found[0] not in table:
            continue
        entries = entries_around(line, found.start())
        texts = [line[slice(*entry)] for entry in entries]
        named = [_named(table, text) for text in texts]
        place = _neighbour(grown, named)
        if place is None or not _enough(grown, named) or len(entries) < 2:
            continue
        if _stands(grown, texts):
            return None
        at, name, behind = place
        before = (texts[at - 1], named[at - 1]) if at else None
        evidence = _evidence(before, texts[at], name, len(set().union(*named)))
        mark = line[entries[0][1] : entries[1][0]]
        made = [_again(texts[at], name, new) for new in grown.new]
        start, end = entries[at]
        if behind:
            return line[:end] + "".join(mark + each for each in made) + line[end:], evidence
        return line[:start] + "".join(each + mark for each in made) + line[start:], evidence
    return None


def _again(text: str, name: str, new: str) -> str:
    pattern, become = spelt(name, new)
    return pattern.sub(lambda found: become[found[0]], text)


def _item(
    grown: _Grown, table: _Table, lines: Sequence[str], items: Sequence[Item]
) -> Found | None:
    """The new items among ``items``."""
    named = [_named(table, lines[item.first]) for item in items]
    place = _neighbour(grown, named)
    if place is None or not _enough(grown, named):
        return None
    whole = [line for item in items for line in lines[item.first : item.last]]
    if _stands(grown, whole):
        return None
    at, name, behind = place
    texts = ["\n".join(lines[item.first : item.last]) for item in items]
    if len(words(texts[at])) > 80:
        return None
    before = (texts[at - 1], named[at - 1]) if at else None
    evidence = _evidence(before, texts[at], name, len(set().union(*named)))
    made = [_again(texts[at], name, new) for new in grown.new]
    item = items[at]
    apart = [""] if at and not lines[item.first - 1].strip() else []
    if not behind:
        block = [line for each in made for line in (*each.split("\n"), *apart)]
        return Found(item.first, item.first, tuple(block), grown.age, evidence)
    ends = _unlike_the_others(texts, at)
    if ends is not None:
        body, mark, tail = ends
        made = [_again(body, name, new) for new in grown.new]
        joined = f"{mark}\n".join([body, *made]) + tail
        return Found(item.first, item.last, tuple(joined.split("\n")), grown.age, evidence)
    if not _balanced(texts[at]):
        return None
    block = [line for each in made for line in (*apart, *each.split("\n"))]
    return Found(item.last, item.last, tuple(block), grown.age, evidence)


def _unlike_the_others(texts: Sequence[str], at: int) -> tuple[str, str, str] | None:
    """Where the last item ends otherwise than those before it: it without its end, the mark that
    the others end in, and its end."""
    if at == 0 or at + 1 != len(texts):
        return None
    mark = "," if texts[at - 1].rstrip().endswith(",") else ""
    text = texts[at].rstrip()
    if not mark or text.endswith(","):
        return None
    end = _ENDS.search(text)
    tail = end[0] if end is not None else ""
    while tail and not _balanced(text[: len(text) - len(tail)]):
        tail = tail[1:]
    return text[: len(text) - len(tail)], mark, tail


def _balanced(text: str) -> bool:
    return all(text.count(one) == text.count(two) for one, two in ("()", "[]", "{}"))
