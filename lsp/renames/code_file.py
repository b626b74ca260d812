"""A file as a rename sees it: the occurrences of a name, and what surrounds each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from redraft.model.text.scopes import LANGUAGES, Bindings, Occurrence
from redraft.model.text.syntax import Syntax, parse
from tree_sitter import Node

#: Fields of a node that hold what stands before the dot.
_RECEIVERS = ("object", "operand", "value", "package", "module", "path")
_QUALIFIED = (
    *("qualified_type", "nested_type_identifier", "scoped_type_identifier", "scoped_identifier"),
    *("attribute", "member_expression", "selector_expression", "field_expression"),
)
_REST_S = 0.00005  # pause within a parse, in which other threads answer keys


class UnclearUse(Exception):
    """Reason why a rename cannot be offered as a whole, as a sentence."""


@dataclass(frozen=True)
class CodeFile:
    """A file of the workspace, or an open document."""

    uri: str
    path: str  # as shown to the model
    language: str
    text: str  # "\n" line ends
    revision: int | None = None  # of the open document; None: read from the disk
    version: int | None = None  # of the open document, where the client numbers it

    @cached_property
    def syntax(self) -> Syntax:
        """The syntax tree.

        Raises:
            UnclearUse: the language has no known scopes, or the text is too long.
        """
        tree = None
        if self.language in LANGUAGES:
            tree = parse(self.text, self.language, rest=lambda: time.sleep(_REST_S))
        if tree is None:
            raise UnclearUse(f"the scopes of {self.path} are not known")
        return tree

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]

    def start_of(self, line: int) -> int:
        """Return the index of the first character of a 0-based line."""
        return self._starts[line]

    @property
    def whole(self) -> tuple[int, int]:
        """The scope of the whole file, in bytes."""
        root = self.syntax.tree.root_node
        return root.start_byte, root.end_byte

    def occurrences(self, name: str) -> list[Occurrence]:
        """Return the places of a name in code, in the order of the text."""
        if name not in self._occurrences:
            self._occurrences[name] = Bindings(self.syntax, name).occurrences
        return self._occurrences[name]

    @cached_property
    def _occurrences(self) -> dict[str, list[Occurrence]]:
        return {}

    def index(self, place: Occurrence) -> int:
        """Return the index into the text of an occurrence."""
        return self._starts[place.line] + place.column

    def byte(self, place: Occurrence) -> int:
        """Return the first byte of an occurrence."""
        return self.syntax.byte_of(self.index(place))

    def node(self, place: Occurrence) -> Node:
        """Return the name's node of an occurrence."""
        found = self.syntax.node_at(self.index(place))
        assert found is not None, "an occurrence has a node"
        return found

    def receiver(self, place: Occurrence) -> Node | None:
        """Return what stands before the dot of an occurrence, None without one."""
        node = self.node(place)
        parent = node.parent
        if parent is None or parent.type not in _QUALIFIED:
            return None
        fields = (parent.child_by_field_name(name) for name in _RECEIVERS)
        found = next((each for each in fields if each is not None), None)
        return None if found == node else found

    def lies_in(self, place: Occurrence, scope: tuple[int, int] | None) -> bool:
        """Return whether an occurrence is within a scope."""
        return scope is not None and scope[0] <= self.byte(place) < scope[1]
