"""Changes that the user made alike in two lines, at the other places of that shape in the document.

A place is certain if its names mean what they mean in the two lines, before the change and after
it. What is not certain is left out; if the user passed over a place between them, so is all.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from redraft.model.records import RecentEdit
from redraft.model.rules.alike.repeated_lines import (
    ChangedLine,
    find_changed_lines,
    find_changed_nodes,
    find_repeated,
    locate_lines,
)
from redraft.model.rules.alike.restyle import places_of_style, styles_of
from redraft.model.rules.alike.shapes import (
    UNITS,
    Shape,
    find_fixed_leaves,
    find_telling_name,
    is_called,
    is_target,
    leaves,
    parts_like,
    shapes_of,
)
from redraft.model.text.names import places_of
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import count_errors
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename

_MOST_PLACES = 200
_ATTEMPTS = 3
_LONGEST = 60  # characters of a shape in the label
_KEYED = re.compile(r"\[[\"'`]\w+[\"'`]\]")
_DEFINES = re.compile(
    "(?:definition|declaration|declarator|_item|_spec|function_expression)$"
    "|^assignment|^named_expression"
)
_OBJECTS = ("self", "this", "cls")
#: What may stand in some functions only.
_RESTRICTED = frozenset(("await", "yield", "return", "?", "break", "continue", "throw"))


@dataclass(frozen=True)
class _Place:
    """Piece of code before the change."""

    node: Node
    start: int  # index into the text
    row: int
    parts: dict[int, str]


def find_repeats(edits: Sequence[RecentEdit], own: CodeFile) -> Iterator[WholeRename]:
    """Yield the changes that two lines have in common and that fit elsewhere, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    lines = locate_lines(find_changed_lines(edits, own.path), own.text)
    before = text_before(own, lines)
    is_found = False
    for pair in find_repeated(lines, own.path):
        try:
            found = _Repeat(before, own, lines, pair).find()
        except UnclearUse:
            continue
        if found is not None:
            yield found
            is_found = True
    if not is_found:
        yield from _same_object(own, lines[-1:])


def changes_keys(lines: Sequence[ChangedLine]) -> bool:
    """Return whether the newest changed line may have made a key a member, or a member a key."""
    return any(
        len(_KEYED.findall(each.old)) != len(_KEYED.findall(each.new)) for each in lines[-1:]
    )


def _same_object(own: CodeFile, lines: Sequence[ChangedLine]) -> Iterator[WholeRename]:
    """Yield one access to a key that became a member at the others of the object in a function."""
    if not changes_keys(lines):
        return
    try:
        before = text_before(own, lines)
        for style in styles_of(before.syntax, own.syntax, lines[0]):
            start, _ = own.syntax.span(style.new)
            meant = _object_at(own, start)
            near = (
                each
                for each in places_of_style(style, before.syntax, own.syntax)
                if style.is_key and each.is_near and meant == _object_at(own, each.start)
            )
            made = FileRename(own, tuple((each.start, each.end, each.new) for each in near))
            after = replace(own, text=made.result)
            if made.spans and count_errors(after.syntax) <= count_errors(own.syntax):
                what = f"change `{_label(style.shape)}` to `{_label(style.made)}`"
                yield WholeRename("", "", start, (made,), what)
                return
    except UnclearUse:
        return


def _object_at(own: CodeFile, at: int) -> Hashable:
    """Return what the first name of an expression means."""
    leaf = own.syntax.node_at(at)
    assert leaf is not None, "each place in a text has a node"
    return own.syntax.text_of(leaf), _sense(own, leaf)


class _Repeat:
    """Change that two lines of a document have in common.

    Args:
        before: the document before the lines changed.
        own: the document as it is.
        lines: all that the user changed, at most one for each row.
        pair: two of them, the newest last.
    """

    def __init__(
        self,
        before: CodeFile,
        own: CodeFile,
        lines: Sequence[ChangedLine],
        pair: tuple[ChangedLine, ChangedLine],
    ) -> None:
        self._before, self._own, self._pair = before, own, pair
        self._lines = {line.row: line for line in lines}

    def find(self) -> WholeRename | None:
        """Return the change at all other places, None if it fits nowhere else.

        Raises:
            UnclearUse: a place may or may not be one.
        """
        for old, new in self._units():
            shapes = shapes_of(self._before.syntax, old, self._own.syntax, new)
            if shapes is None or _is_restricted(new[1]) > _is_restricted(old[1]):
                continue
            word = find_telling_name(self._before.syntax, shapes[0], old[1])
            return self._at_places(shapes, old, new, word) if word else None
        return None

    def _units(self) -> Iterator[tuple[tuple[Node, Node], tuple[Node, Node]]]:
        """Yield what changed in both lines, the smallest unit first: before, and after."""
        before, now = self._before.syntax, self._own.syntax
        first, second = (list(find_changed_nodes(before, now, line)) for line in self._pair)
        for old, new in first:
            if old.type not in UNITS or is_called(old):
                continue
            for other, made in second:
                if other.type == old.type and made.type == new.type:
                    yield (old, other), (new, made)

    def _at_places(
        self,
        shapes: tuple[Shape, Shape],
        old: tuple[Node, Node],
        new: tuple[Node, Node],
        word: str,
    ) -> WholeRename | None:
        shape, made = shapes
        written = {self._own.syntax.text_of(leaf) for leaf in find_fixed_leaves(made, new[1])}
        found = self._places(shape, made, old, word)
        places = [each for each in found if not self._defines(each.node, written)]
        if len(places) > _MOST_PLACES:
            raise UnclearUse(f"{shape.type} stands at more than {_MOST_PLACES} places")
        done = [each for each in places if each.row in self._lines]
        self._check(done, made)
        low, high = sorted(line.row for line in self._pair)
        rest = [each for each in places if each.row not in self._lines]
        if any(low < each.row < high for each in rest):
            raise UnclearUse("a place between the two was left as it is")
        known = {_senses(self._before, shape, each.node) for each in done}
        if len(known) != 1:
            raise UnclearUse("the two lines use different names")
        rest = [each for each in rest if _clear_senses(self._before, shape, each.node) in known]
        # To leave a place out changes what others are read as: look again without it.
        for _ in range(_ATTEMPTS):
            offered = FileRename(self._own, tuple(self._span(each, made) for each in rest))
            unfit = self._unfit(offered, rest, made, new)
            if not unfit:
                break
            rest = [each for each in rest if each not in unfit]
        if unfit or not rest:
            return None
        start, _ = self._own.syntax.span(new[1])
        what = f"change `{_label(shape)}` to `{_label(made)}`"
        return WholeRename("", "", start, (offered,), what)

    def _places(
        self, shape: Shape, made: Shape, old: tuple[Node, Node], word: str
    ) -> Iterator[_Place]:
        """Yield the places of a shape, from top to bottom.

        Raises:
            UnclearUse: two of them overlap.
        """
        syntax, end = self._before.syntax, 0
        is_alone = all(_is_statement(node) for node in old)
        for at in places_of(word, syntax.text):
            for node, start, last in syntax.around(at, at + len(word)):
                parts = parts_like(syntax, shape, node) if node.type == old[1].type else None
                if parts is None or not parts.keys() >= set(made.holes):
                    continue
                if start < end and parts:
                    raise UnclearUse("a place lies within another one")
                is_like = is_target(node) == is_target(old[1]) and not is_called(node)
                if start < end or not is_like or (is_alone and not _is_statement(node)):
                    break
                if not _is_in_string(node):
                    end = last
                    yield _Place(node, start, node.start_point.row, parts)
                break

    def _defines(self, node: Node, names: set[str]) -> bool:
        """Return whether a place is in the definition of a name: of the function extracted."""
        syntax, above = self._before.syntax, node.parent
        while above is not None:
            named = above.child_by_field_name("name") or above.child_by_field_name("left")
            is_known = named is not None and syntax.text_of(named) in names
            if is_known and _DEFINES.search(above.type):
                return True
            above = above.parent
        return False

    def _check(self, done: Sequence[_Place], made: Shape) -> None:
        """Refuse a change that the user did not make wherever they changed its line."""
        texts = {each.row: self._lines[each.row].old for each in done}
        for each in reversed(done):
            start, end = self._before.syntax.span(each.node)
            at, text = start - self._before.start_of(each.row), texts[each.row]
            texts[each.row] = text[:at] + made.fill(each.parts) + text[at + end - start :]
        if any(self._lines[row].new != text for row, text in texts.items()):
            raise UnclearUse("the user changed another place in another way")

    def _span(self, place: _Place, made: Shape) -> tuple[int, int, str]:
        start, end = self._before.syntax.span(place.node)
        last = place.node.end_point.row
        if any(place.row <= row <= last for row in self._lines):
            raise UnclearUse("a place holds a changed line")
        shift = self._own.start_of(place.row) - self._before.start_of(place.row)
        return start + shift, end + shift, made.fill(place.parts)

    def _unfit(
        self, offered: FileRename, places: Sequence[_Place], made: Shape, new: tuple[Node, Node]
    ) -> list[_Place]:
        """Return the places that a change would give another shape or names of another meaning.

        Raises:
            UnclearUse: the result has errors, or the changed lines themselves are unlike.
        """
        after = replace(self._own, text=offered.result)
        if after.syntax.tree.root_node.has_error:
            raise UnclearUse("the result would have errors")

        def sense(start: int, parts: dict[int, str]) -> Hashable:
            """Return what the names at a place mean afterwards, None if its shape is another."""
            spans = (each for each in offered.spans if each[0] < start)
            at = start + sum(len(text) - (end - first) for first, end, text in spans)
            last = at + len(made.fill(parts))
            for node, *span in after.syntax.around(at, last):
                found = parts_like(after.syntax, made, node) if span == [at, last] else None
                if found is not None and all(found[hole] == parts[hole] for hole in made.holes):
                    return _clear_senses(after, made, node)
            return None

        syntax = self._own.syntax
        done = {
            sense(syntax.span(node)[0], parts)
            for node in new
            if (parts := parts_like(syntax, made, node)) is not None
        }
        if len(done) != 1 or None in done:
            raise UnclearUse("the two lines use different names")
        starts = zip(offered.spans, places, strict=True)
        return [each for span, each in starts if sense(span[0], each.parts) not in done]


def text_before(now: CodeFile, lines: Sequence[ChangedLine]) -> CodeFile:
    """Return a file as it was before lines changed."""
    rows = now.text.split("\n")
    for line in lines:
        rows[line.row] = line.old
    return replace(now, text="\n".join(rows))


def _senses(source: CodeFile, shape: Shape, node: Node) -> Hashable:
    """Return what the names of a place that never differ mean."""
    names = (
        leaf
        for leaf in find_fixed_leaves(shape, node)
        if leaf.type in _OBJECTS or "identifier" in leaf.type
    )
    return tuple(_sense(source, leaf) for leaf in names)


def _clear_senses(source: CodeFile, shape: Shape, node: Node) -> Hashable:
    """Return what the names of a place that never differ mean, None if that is unclear."""
    try:
        return _senses(source, shape, node)
    except UnclearUse:
        return None


def _sense(source: CodeFile, leaf: Node) -> Hashable:
    name, at = source.syntax.text_of(leaf), leaf.start_byte
    if name in _OBJECTS:
        above = leaf.parent
        while above is not None and not above.type.startswith(("class", "impl_item")):
            above = above.parent
        return above.start_byte if above is not None else None
    places = source.occurrences(name)
    here = next((each for each in places if source.byte(each) == at), None)
    if here is None or here.role in ("member", "field", "keyword") or here.scope is None:
        return here.role if here is not None else None
    bound = [each for each in places if each.role == "binding" and each.scope == here.scope]
    known = [each for each in places if each.scope == here.scope and each.role != "use"]
    scope = source.syntax.tree.root_node.descendant_for_byte_range(*here.scope)
    is_turned = scope is not None and scope.type.endswith(("comprehension", "generator_expression"))
    is_at_once = not is_turned and (here.scope != source.whole or not _runs_later(leaf))
    is_late = is_at_once and all(source.byte(each) > at for each in known) and bool(known)
    if len(bound) > 1 or is_late:
        raise UnclearUse(f"{name} is bound several times, or after its use")
    return (_declared(source, bound[0]) if bound else "") or here.scope


def _runs_later(node: Node) -> bool:
    """Return whether code runs when a function is called, not when its file is read."""
    above = node.parent
    while above is not None and not re.search("function|lambda|method", above.type):
        above = above.parent
    return above is not None


def _declared(source: CodeFile, place: Occurrence) -> str:
    """Return a parameter with its type, "" for something else."""
    above = source.node(place).parent
    is_typed = above is not None and "parameter" in above.type
    typed = above.child_by_field_name("type") if is_typed and above is not None else None
    return source.syntax.text_of(above) if typed is not None and above is not None else ""


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _is_in_string(node: Node) -> bool:
    above = node.parent
    while above is not None and "string" not in above.type:
        above = above.parent
    return above is not None


def _is_restricted(node: Node) -> int:
    return sum(leaf.type in _RESTRICTED for leaf in leaves(node))


def _label(shape: Shape) -> str:
    text = " ".join(shape.fill(dict.fromkeys((*shape.holes,), "…")).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
