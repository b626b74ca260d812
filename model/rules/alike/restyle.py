"""Change of style: what one edit made of an expression, made of others of its shape.

After ``x.unwrap()`` became ``x?``, ``y.unwrap()`` becomes ``y?``. The parts that stand in both, as
they are, may differ elsewhere; the rest must be the same and have a name.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ...records import RecentEdit
from ...text.names import places_of
from ...text.syntax import Syntax, descendants, language_of, parse, parse_cached
from ..rule_edits import RuleEdit, line_starts
from .newer_forms import find_newer_form
from .repeated_lines import ChangedLine, find_changed_lines, find_changed_nodes, locate_lines
from .shapes import (
    ANY,
    UNITS,
    Shape,
    content_of,
    find_fixed_leaves,
    is_called,
    is_part,
    is_target,
    leaves,
    parts_like,
    pieces_between,
)

#: Chance from which on a place is proposed.
LEAST_CHANCE = 0.6
#: Not fitted: of 40 places in which ``a["b"]`` could become ``a.b``, or back, 29 were changed alike
#: by training commits. Those that were left lay 13 to 121 lines away where that was looked at.
_KEY_CHANCE = 0.85
#: Of places with newer forms: in training commits 16 of 25 strings followed one that became a
#: template.
FORM_CHANCE = 0.65
_MOST_PLACES = 40
_MOST_LINES = 3  # changed lines that are carried on
_MOST_CHARS = 300_000
_HIGHEST = 24  # nodes between an anchor and its unit
_TELLING = 3  # letters
_COMMON = frozenset(("return", "const", "let", "var", "self", "this", "for", "and", "new", "await"))
#: What may stand in some functions only, and what the head of such a function has.
_RESTRICTED = {"await": "async ", "?": "", "yield": ""}
_FUNCTIONS = ("function", "lambda", "method", "closure", "func_literal")


@dataclass(frozen=True, slots=True)
class Style:
    """Shape of a piece of code, and what an edit made of it."""

    type: str  # of the node
    shape: Shape
    made: Shape
    old: Node
    new: Node
    text: str
    anchor: str  # text that all places have
    is_wide: bool  # the object of a called method may differ
    kinds: list[str]  # of its parts, in the order of their numbers
    fixed: float  # share of the old text that may not differ
    has_new_text: bool  # a string or a number that the old one lacks
    is_key: bool  # the key of a value became the name of its member, or the other way round
    has_new_name: bool  # one that the document has elsewhere nowhere


@dataclass(frozen=True, slots=True)
class StylePlace:
    """Place of a shape: ``text[start:end]`` of the present document becomes ``new``."""

    start: int
    end: int
    first: int  # 0-based rows, both included
    last: int
    new: str
    old: str
    is_same_kind: bool  # its parts are names, strings, calls, … as in the example
    is_near: bool  # in the function of the change
    is_akin: bool  # in one that has a parameter of the same name


_Likely = tuple[StylePlace, float]  # a place and its chance


def find_restyles(edits: Sequence[RecentEdit], path: str, text: str) -> Iterator[RuleEdit]:
    """Yield what the last changes of lines do at other places of a file, the newest change first.

    Args:
        edits: oldest first.
        text: of the file at ``path``, as it is now.
    """
    lines = locate_lines(find_changed_lines(edits, path), text)[::-1]
    language = language_of(path) or ""
    now = parse_cached(text, language) if lines and len(text) <= _MOST_CHARS else None
    if now is None:
        return
    rows, taken = text.split("\n"), {line.row for line in lines}
    known = list[tuple[ChangedLine, Syntax, list[Style]]]()
    for line in lines[:_MOST_LINES]:
        was = [*rows]
        was[line.row] = line.old
        before = parse_cached("\n".join(was), language)
        if before is not None:
            known.append((line, before, [*styles_of(before, now, line)]))
    for line, before, _ in known:
        yield from _in_newer_form(before, now, line, taken)
    alike = defaultdict[tuple[Shape, Shape], set[int]](set)  # rows that were changed so
    for line, _, styles in known:
        for style in styles:
            alike[style.shape, style.made].add(line.row)
    for line, before, styles in known:
        for style in styles:
            made = alike[style.shape, style.made]
            passed = range(min(made) + 1, max(made))  # 5 % of 140 places between two were changed
            found = places_of_style(style, before, now)
            likely = [
                (each, chance)
                for each in found
                if each.first not in passed
                and (chance := chance_of(style, each, len(found), line.row, len(made)))
                >= LEAST_CHANCE
                and taken.isdisjoint(range(each.first, each.last + 1))
                and _is_kept(each, style, now)
            ]
            yield from _edits(now, likely, taken)


def _in_newer_form(
    before: Syntax, now: Syntax, line: ChangedLine, taken: set[int]
) -> Iterator[RuleEdit]:
    """Yield what is written in a newer form after one was; its rows are taken then."""
    forms = {
        made[0]
        for old, new in _made_new(before, now, line)
        if (made := find_newer_form(before, old))
        and _unquoted(made[1]) == _unquoted(now.text_of(new))
    }
    found = list[_Likely]()
    for each in descendants(now.tree.root_node) if forms else ():
        form, text = find_newer_form(now, each) or ("", "")
        rows = each.start_point.row, each.end_point.row
        if form not in forms or _is_quoted(each, text) or taken.intersection(rows):
            continue
        start, end = now.span(each)
        if (found and start < found[-1][0].end) or taken.intersection((*rows,)):
            continue
        place = StylePlace(start, end, *rows, text, now.text[start:end], True, True, True)
        found.append((place, FORM_CHANCE))
    yield from _edits(now, found, taken)


def _edits(now: Syntax, places: Sequence[_Likely], taken: set[int]) -> Iterator[RuleEdit]:
    """Yield what changes places, one edit for those that share lines; its rows are taken then."""
    rows = now.text.split("\n") if places else []
    for some in _by_rows(places):
        first, last = some[0][0].first, some[-1][0].last
        taken.update(range(first, last + 1))
        chance = min(chance for _, chance in some)
        yield RuleEdit(first, last + 1, _written(now, rows, some), "restyle", chance)


def _unquoted(text: str) -> str:
    return re.sub("[\"'`]", "'", text)


def _by_rows(found: Sequence[_Likely]) -> list[list[_Likely]]:
    """Return places in groups that share lines."""
    groups = list[list[_Likely]]()
    for each in found:
        if groups and groups[-1][-1][0].last >= each[0].first:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _written(now: Syntax, rows: Sequence[str], places: Sequence[_Likely]) -> tuple[str, ...]:
    """Return the lines that hold places, changed."""
    start = line_starts(now.text)[places[0][0].first]
    text = "\n".join(rows[places[0][0].first : places[-1][0].last + 1])
    for each, _ in reversed(places):
        text = text[: each.start - start] + each.new + text[each.end - start :]
    return tuple(text.split("\n"))


def styles_of(before: Syntax, now: Syntax, line: ChangedLine) -> Iterator[Style]:
    """Yield what one changed line may do elsewhere, the smallest unit first.

    Args:
        before: the document before the line changed.
        now: the document as it is; the line has the same row in both.
    """
    for old, new in _made_new(before, now, line):
        if old.type not in UNITS or is_called(old) or old.has_error or new.has_error:
            continue
        narrow = _style(before, old, now, new, is_wide=False)
        wide = _style(before, old, now, new, is_wide=True)
        if narrow is not None:
            yield narrow
        if wide is not None and (narrow is None or wide.shape != narrow.shape):
            yield wide


def places_of_style(style: Style, before: Syntax, now: Syntax) -> list[StylePlace]:
    """Return the other places of a shape, from top to bottom; none if there are too many.

    Args:
        before: the document before its change, with as many lines as ``now``.
    """
    shift = len(now.text) - len(before.text)
    home = before.char_of(style.old.start_byte)
    found, end = list[StylePlace](), 0
    for at in places_of(style.anchor, before.text):
        if at < end:
            continue
        fit = _fit(style, before, at, len(style.anchor))
        if fit is None:
            continue
        node, parts = fit
        start, last = before.span(node)
        if start < end:
            return []  # a place within a place
        end = last
        if node == style.old:
            continue
        by = shift if start > home else 0
        rows = node.start_point.row, node.end_point.row
        if rows[0] <= style.old.start_point.row <= rows[1]:
            continue
        kinds = [_kind(parts[each]) for each in sorted({*style.shape.holes})]
        made, is_same = style.made.fill(parts), kinds == style.kinds
        own, here = _head(before, style.old), _head(before, node)
        is_near, is_akin = own[0] == here[0], bool(_parameters(own[1]) & _parameters(here[1]))
        text = before.text[start:last]
        found.append(
            StylePlace(start + by, last + by, *rows, made, text, is_same, is_near, is_akin)
        )
        if len(found) > _MOST_PLACES:
            return []
    return found


def _fit(style: Style, syntax: Syntax, at: int, length: int) -> tuple[Node, dict[int, str]] | None:
    """Return the node of the shape around an anchor, and its parts."""
    node = syntax.node_at(at, at + length)
    is_alone = _is_statement(style.old)
    for _ in range(_HIGHEST):
        if node is None:
            return None
        parts = parts_like(syntax, style.shape, node) if node.type == style.type else None
        if parts is not None:
            is_like = is_target(node) == is_target(style.old) and not is_called(node)
            fits = (
                is_like and _is_statement(node) == is_alone and parts.keys() >= {*style.made.holes}
            )
            is_free = (
                fits
                and not _is_quoted(node, style.made.fill(parts))
                and _may_stand(style, syntax, node)
            )
            return (node, parts) if is_free else None
        node = node.parent
    return None


def _is_kept(place: StylePlace, style: Style, now: Syntax) -> bool:
    """Return whether a place has the new shape with the same parts once it is changed."""
    text = now.text[: place.start] + place.new + now.text[place.end :]
    after = parse(text, now.language, now)
    if after is None:
        return False
    whole = place.start, place.start + len(place.new)
    for node, *span in after.around(*whole):
        parts = parts_like(after, style.made, node) if (*span,) == whole else None
        if parts is not None:
            return not node.has_error and style.made.fill(parts) == place.new
    return False


def _style(before: Syntax, old: Node, now: Syntax, new: Node, *, is_wide: bool) -> Style | None:
    texts = {now.text_of(each) for each in descendants(new) if each.is_named}
    holes = dict[str, int]()
    shape = _old_shape(before, old, old, texts, holes, is_wide=is_wide)
    contents = {
        content: ~number
        for text, number in holes.items()
        if (content := text[1:-1]) and text[0] in "\"'`"
    }
    made = _new_shape(now, new, {**contents, **holes})
    given = {*shape.holes}
    if not given or given != {each if each >= 0 else ~each for each in made.holes}:
        return None
    if any(not each.is_named for each in (old, new)) or shape.hole is not None:
        return None
    anchor = _anchor(before, shape, old)
    if not anchor:
        return None
    was = before.text_of(old)
    fixed = [*find_fixed_leaves(shape, old)]
    new_fixed = {now.text_of(each): each for each in find_fixed_leaves(made, new)}
    names = {each for each, leaf in new_fixed.items() if "identifier" in leaf.type}
    return Style(
        old.type,
        shape,
        made,
        old,
        new,
        was,
        anchor,
        is_wide,
        [_kind(each) for each in holes],
        sum(len(before.text_of(each)) for each in fixed) / len(was),
        any(each not in was and _LITERAL.search(leaf.type) for each, leaf in new_fixed.items()),
        {old.type, new.type} <= {*_MEMBERS}
        and old.type != new.type
        and _has_same(before, old, now, new),
        any(next(places_of(each, before.text), -1) < 0 for each in names),
    )


def _has_same(before: Syntax, old: Node, now: Syntax, new: Node) -> bool:
    """Return whether two accesses have the same object, and a key that names the member."""
    if not {old.type, new.type} <= {*_MEMBERS}:
        return False
    objects = before.text_of(old.children[0]), now.text_of(new.children[0])
    keys = [
        content_of(tree, each) or tree.text_of(each)
        for tree, node in ((before, old), (now, new))
        for each in node.named_children[1:]
    ]
    return objects[0] == objects[1] and len(keys) == 2 and keys[0] == keys[1]


_LITERAL = re.compile("string|number|integer|float|literal|true|false")


def _kind(text: str) -> str:
    """Return what a part is, about."""
    for kind, pattern in _KINDS:
        if pattern.fullmatch(text):
            return kind
    return "other"


_KINDS = (
    ("name", re.compile(r"[^\W\d]\w*")),
    ("member", re.compile(r"[^\W\d]\w*(?:(?:\.|::)\w+)+")),
    ("string", re.compile(r"\w?([\"'`]).*\1", re.DOTALL)),
    ("number", re.compile(r"-?[\d.]+\w?")),
    ("call", re.compile(r"[\w.:]+\(.*\)", re.DOTALL)),
)


def chance_of(style: Style, place: StylePlace, count: int, row: int, support: int = 1) -> float:
    """Return the chance that a place is changed alike.

    A logistic regression over 7,203 places that one changed line has in files of training commits,
    of which 40 % were changed alike by the commit. On repositories that it was not fitted to, 72 %
    of the 1,645 places above :data:`LEAST_CHANCE` were. After two changes of one shape 64 % of 737
    places were that have a chance of 0.3 to 0.5 after one.

    Args:
        count: of all places of the shape.
        row: of the changed line, 0-based.
        support: lines that were changed so.
    """
    if style.is_key and (place.is_near or place.is_akin):
        return _KEY_CHANCE if place.is_near else LEAST_CHANCE
    is_single = len({*style.shape.holes}) == 1
    log_odds = (
        -0.90
        - 0.33 * math.log(count)
        - 0.23 * math.log1p(abs(place.first - row))
        + 0.77 * (style.type == style.new.type)
        + 0.20 * (not is_single)
        + 0.61 * style.fixed
        - 0.68 * style.has_new_text
        + 0.62 * style.has_new_name
        + 0.70 * (place.old == style.text)
        + 0.79 * place.is_same_kind
        - 0.42 * (style.type in _MEMBERS)
        - 0.32 * (style.anchor in _WEAK)
        - 0.26 * style.is_wide
        - 0.23 * (style.kinds == ["name"])
        - 0.37 * (style.anchor in _WEAK and is_single)
        + 0.90 * (support > 1)
    )
    return 1 / (1 + math.exp(-log_odds))


_MEMBERS = (
    "attribute",
    "member_expression",
    "field_access",
    "selector_expression",
    "subscript",
    "field_expression",
    "subscript_expression",
)
_WEAK = ("assert", "not", "None", "raise", "throw", "null", "nil", "typeof", "delete")


def _anchor(syntax: Syntax, shape: Shape, node: Node) -> str:
    """Return the longest name or keyword that all places of a shape have, "" if all are short."""
    fixed = [*find_fixed_leaves(shape, node)]
    names = [syntax.text_of(each) for each in fixed if "identifier" in each.type]
    keywords = [text for each in fixed if (text := syntax.text_of(each)).lower() == each.type]
    words = (each for each in (*names, *keywords) if each.isidentifier() and each not in _COMMON)
    longest = max(words, key=len, default="")
    return longest if len(longest) >= _TELLING else ""


def _old_shape(
    syntax: Syntax, node: Node, unit: Node, texts: set[str], holes: dict[str, int], *, is_wide: bool
) -> Shape:
    """Return a piece of code with its parts that stand in ``texts`` too as holes."""
    text = syntax.text_of(node)
    is_known = text in texts or content_of(syntax, node) in texts
    if node != unit and is_known and is_part(node, unit, is_wide=is_wide):
        number = holes.setdefault(text, len(holes))
        return Shape(ANY if text in texts else node.type, hole=number)
    if not node.child_count:
        return Shape(node.type, text)
    parts = [
        _old_shape(syntax, each, unit, texts, holes, is_wide=is_wide) for each in node.children
    ]
    if all(not any(True for _ in each.holes) for each in parts):
        return Shape(node.type, text)
    return Shape(node.type, parts=tuple(parts), gaps=pieces_between(syntax, node))


def _new_shape(syntax: Syntax, node: Node, holes: dict[str, int]) -> Shape:
    text = syntax.text_of(node)
    if text in holes and node.is_named:
        return Shape("", hole=holes[text])
    if not node.child_count:
        return Shape(node.type, text)
    parts = tuple(_new_shape(syntax, each, holes) for each in node.children)
    if all(not any(True for _ in each.holes) for each in parts):
        return Shape(node.type, text)
    return Shape(node.type, parts=parts, gaps=pieces_between(syntax, node))


def _made_new(before: Syntax, now: Syntax, line: ChangedLine) -> Iterator[tuple[Node, Node]]:
    """Yield what became another node in a changed line, from inside outwards."""
    for index, (old, new) in enumerate(find_changed_nodes(before, now, line)):
        yield from _differing(before, old, now, new) if index == 0 else [(old, new)]


def _differing(before: Syntax, old: Node, now: Syntax, new: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the smallest parts of two nodes that differ, then the nodes themselves."""
    if old.type == new.type and old.child_count == new.child_count:
        for pair in zip(old.children, new.children, strict=True):
            if before.text_of(pair[0]) != now.text_of(pair[1]):
                yield from _differing(before, pair[0], now, pair[1])
    if old.type == "parenthesized_expression" != new.type and old.named_child_count == 1:
        yield old.named_children[0], new
    yield old, new


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _is_quoted(node: Node, made: str) -> bool:
    """Return whether a place is in a string that the new text cannot stand in, or in a comment."""
    above: Node | None = node
    while above is not None:
        if above.type in ("template_substitution", "interpolation"):
            return _QUOTES.search(made) is not None
        if "string" in above.type or "comment" in above.type:
            return True
        above = above.parent
    return False


_QUOTES = re.compile(r"[\"'`\\\\{}]")


def _head(syntax: Syntax, node: Node) -> tuple[int, str]:
    """Return the place of the function around a node, and the text before its body."""
    above = node.parent
    while above is not None and not any(word in above.type for word in _FUNCTIONS):
        above = above.parent
    if above is None:
        return -1, ""
    body = above.child_by_field_name("body")
    end = above.end_byte if body is None else body.start_byte
    text = syntax.text[syntax.char_of(above.start_byte) : syntax.char_of(end)]
    return above.start_byte, text


def _parameters(head: str) -> set[str]:
    """Return the names of a function's parameters, about."""
    listed = head.partition("(")[2]
    return {*re.findall(r"(?<![\w.])[a-z_]\w*(?=\s*[:,)=])", listed)} - {"self", "cls", "this"}


def _may_stand(style: Style, syntax: Syntax, node: Node) -> bool:
    """Return whether what the new shape has more may stand in the function of a place."""
    had = [each.type for each in leaves(style.old)]
    for each in leaves(style.new):
        if each.type in _RESTRICTED and each.type not in had:
            own, here = _head(syntax, style.old), _head(syntax, node)
            if own[0] == here[0]:
                continue
            returned = [text.rpartition("->")[2].split("<")[0].strip() for _, text in (own, here)]
            sign = _RESTRICTED[each.type]
            if not (sign in here[1] if sign else each.type == "?" and returned[0] == returned[1]):
                return False
    return True
