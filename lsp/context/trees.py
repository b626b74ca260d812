"""Syntax trees of the documents that the user is in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from redraft.model.text.syntax import LANGUAGES, Syntax, language_of, parse, parse_cached

from ..snapshot import Snapshot

Job = Callable[[Callable[[], None]], None]  # is given what to call every few milliseconds

_PARSED_AT_ONCE = 48_000  # characters; more takes over 10 ms and is parsed in the background
_MOST = 3  # documents whose trees are kept


class Trees:
    """Trees by document, each brought up to date in a few milliseconds.

    Args:
        later: runs a job in the background.
    """

    def __init__(self, later: Callable[[Job], None]) -> None:
        self._later = later
        self._trees: OrderedDict[str, Syntax] = OrderedDict()  # by URI, least recent first
        self._valid: dict[str, Syntax] = {}  # the last one without errors, by URI
        self._parsing: set[str] = set()

    def get(self, snapshot: Snapshot) -> Syntax | None:
        """Return the tree of the document that the user is in, and keep it.

        None if its language has no grammar, and while a large file is parsed for the first time in
        the background.
        """
        language, earlier = tree_language(snapshot), self._trees.get(snapshot.uri)
        if earlier is not None and (earlier.text, earlier.language) == (snapshot.text, language):
            return earlier
        if earlier is None and len(snapshot.text) > _PARSED_AT_ONCE:
            self._parse_later(snapshot.uri, snapshot.text, language)
            return None
        return self._keep(snapshot.uri, parse(snapshot.text, language, self._base(snapshot)))

    def _base(self, snapshot: Snapshot) -> Syntax | None:
        """Return the tree from which to parse a text: the last one, or the last valid one.

        A long chain of broken trees drifts away from a fresh parse (18 of 300 in JavaScript), which
        takes twice as long as a step (19 ms and 10 ms for 24,000 broken characters).
        """
        earlier, valid = self._trees.get(snapshot.uri), self._valid.get(snapshot.uri)
        if earlier is None or valid is None or len(snapshot.text) > _PARSED_AT_ONCE:
            return earlier
        return valid if earlier.tree.root_node.has_error else earlier

    def look(self, snapshot: Snapshot) -> Syntax | None:
        """Return the tree of a text that the user is not in; trees that are kept stay.

        None if its language has no grammar, and for a large file without a tree that is kept.
        """
        language, earlier = tree_language(snapshot), self._trees.get(snapshot.uri)
        if earlier is not None and earlier.language == language:
            same = earlier.text == snapshot.text
            return earlier if same else parse(snapshot.text, language, self._base(snapshot))
        return (
            None if len(snapshot.text) > _PARSED_AT_ONCE else parse_cached(snapshot.text, language)
        )

    def on_close(self, uri: str) -> None:
        """Drop the tree of a document."""
        self._trees.pop(uri, None)
        self._valid.pop(uri, None)

    def _parse_later(self, uri: str, text: str, language: str) -> None:
        if uri in self._parsing:
            return
        self._parsing.add(uri)

        def job(rest: Callable[[], None]) -> None:
            try:
                self._keep(uri, parse(text, language, rest=rest))
            finally:
                self._parsing.discard(uri)

        self._later(job)

    def _keep(self, uri: str, syntax: Syntax | None) -> Syntax | None:
        if syntax is not None:
            self._trees[uri] = syntax
            self._trees.move_to_end(uri)
            if not syntax.tree.root_node.has_error:
                self._valid[uri] = syntax
            while len(self._trees) > _MOST:
                self._valid.pop(self._trees.popitem(last=False)[0], None)
        return syntax


def tree_language(snapshot: Snapshot) -> str:
    """Return the language by which a document is parsed."""
    if snapshot.language in LANGUAGES:
        return snapshot.language
    return language_of(snapshot.path) or snapshot.language
