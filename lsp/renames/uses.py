"""Uses of a renamed definition in the same file, and calls that name a renamed parameter.

Each occurrence of the old name is a use, belongs to another definition, or is unclear. One that is
unclear stops the whole rename.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from redraft.model.text.scopes import CONSTRUCTORS, NAMED, Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from .code_file import UnclearUse
from .definition import RenamedDefinition
from .member_uses import MemberUses, is_of_unknown

_CLASS_TYPES = ("class_definition", "class_declaration", "class")


def own_uses(target: RenamedDefinition) -> Iterator[Occurrence]:
    """Yield the uses of the old name in the file of the definition.

    Raises:
        UnclearUse: an occurrence may or may not be a use.
    """
    source = target.source
    places = source.occurrences(target.old)
    if target.kind == "member":
        uses = MemberUses(target)
        yield from (each for each in places if uses.has(source, each) or _is_member(target, each))
        return
    called = callee(target)
    for place in places:
        if place.role in ("member", "field"):
            continue
        if place.role == "keyword":
            if called and place.function == called:
                yield place
        elif place.role == "import":
            if target.kind == "module" or place.scope in (target.scope, source.whole):
                raise UnclearUse(f"{target.old} is imported here as well")
        elif place.role == "binding":
            if place.scope == target.scope:
                _check_bound_again(target, place)
                yield place
        elif source.receiver(place) is not None:
            if source.language not in ("go", *SCRIPTS):
                raise UnclearUse(f"line {place.line + 1} names {target.old} by a path")
        elif _is_use(target, place):
            yield place


def callee(target: RenamedDefinition) -> str:
    """Return the name by which a function is called whose parameter was renamed, "" if none."""
    name, node = target.place.function, target.source.node(target.place)
    if not name or not _is_parameter(node):
        return ""
    if name not in CONSTRUCTORS:
        return name
    above: Node | None = node
    while above is not None and above.type not in _CLASS_TYPES:
        above = above.parent
    return target.source.syntax.name_of(above)


def replacement(target: RenamedDefinition, place: Occurrence) -> str:
    """Return the text in place of the old name; ``{old}`` becomes ``{old: new}``."""
    return f"{target.old}: {target.new}" if place.role == "shorthand" else target.new


def _is_parameter(node: Node) -> bool:
    above: Node | None = node
    while above is not None and "parameter" not in above.type:
        if "body" in above.type or above.type in NAMED:
            return False
        above = above.parent
    return above is not None


def _check_bound_again(target: RenamedDefinition, place: Occurrence) -> None:
    """Refuse a second definition of the old name, such as the original of a copy."""
    source = target.source
    parent = source.node(place).parent
    is_definition = parent is not None and (parent.type in NAMED or parent.type == "object_pattern")
    if is_definition or source.index(place) < target.at:
        raise UnclearUse(f"{target.old} is still defined in line {place.line + 1}")


def _is_use(target: RenamedDefinition, place: Occurrence) -> bool:
    """Return whether a use of a variable, function or type meant the renamed one."""
    source = target.source
    if place.scope == target.scope:
        return True
    is_inside = source.lies_in(place, target.scope)
    if place.scope is None:
        is_builtin = source.language == "python" and target.old in vars(builtins)
        if not (is_inside or is_builtin):
            raise UnclearUse(f"line {place.line + 1} uses {target.old} outside of its scope")
        return is_inside
    # An outer scope binds the old name too: before the rename the inner one hid it.
    outer_start, outer_end = place.scope
    return is_inside and outer_start <= target.scope[0] and target.scope[1] <= outer_end


def _is_member(target: RenamedDefinition, place: Occurrence) -> bool:
    """Return whether an occurrence is the renamed member, which only its class may use."""
    source = target.source
    if place.role in ("member", "field"):
        if place.scope != target.scope:
            if is_of_unknown(source, place):
                return False
            raise UnclearUse(f"line {place.line + 1} uses {target.old} of an unknown object")
        parent = source.node(place).parent
        if place.role == "field" and parent is not None and parent.type.startswith(_METHODS):
            raise UnclearUse(f"{target.old} is still defined in line {place.line + 1}")
        return True
    is_taken_apart = source.node(place).type.startswith("shorthand")  # ``{ area } = shop``
    if place.role in ("keyword", "shorthand") or is_taken_apart:
        if place.role == "keyword" and not _constructs(target, place):
            return False
        raise UnclearUse(f"line {place.line + 1} may pass {target.old} on")
    if place.role == "use" and place.scope is None and source.lies_in(place, target.scope):
        if source.language == "java":
            return True
        if source.language not in SCRIPTS:
            raise UnclearUse(f"line {place.line + 1} may use {target.old} of its class")
    return False


_METHODS = ("function_", "method_")


def _constructs(target: RenamedDefinition, place: Occurrence) -> bool:
    """Return whether a keyword is given to the class of a member."""
    source = target.source
    start = source.syntax.char_of(target.scope[0])
    return f" {place.function}" in source.text[start : start + 300].split("\n")[0]
