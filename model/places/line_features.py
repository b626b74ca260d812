"""Features of the lines of a file: what the last edits and the text say about each line.

80 columns; the 34 that did not help (names by rule, windows, symbols, headers, equal stride) are
left out. :data:`COLUMNS` lists them in the order of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..edits.edit import LineChange
from .last_edits import DECAY, LastEdits
from .line_facts import KEYWORDS, Kind, facts_of, parts_of, words_of
from .line_index import Floats, LineIndex, hashes

Column = tuple[str, ArrayLike]  # name, and a value for each line or one for all

_MOST_ADDED, _MOST_KEPT, _MOST_ADDED_IN_ALL = 60, 40, 120  # words
_LINES_OF_TEXT = {"old": 20, "new": 40}  # of a change, compared by their whole text
_SIMILAR = 0.5  # from which a line counts as like the old ones
_FAR_FILE = {"distance": 9.5, "headers between": 12.0, "like old between": 8.0}
_LANGUAGES = {
    "python": 0,
    "typescript": 1,
    "javascript": 1,
    "typescriptreact": 1,
    "javascriptreact": 1,
    "tsx": 1,
    "go": 2,
    "rust": 3,
    "java": 4,
    "kotlin": 4,
    "c": 5,
    "cpp": 5,
}
#: Columns that are numbers of categories, and how many there are.
CATEGORIES = {"kind": len(Kind), "kind of last edit": len(Kind), "language": 7}


def columns_of(
    index: LineIndex, edits: LastEdits, path: str, language: str
) -> dict[str, NDArray[np.float32]]:
    """Return the features of the lines of a file, by name.

    Args:
        index: of the present text.
        path: of the file, as the edits have it.
        language: LSP id.

    Returns:
        Columns of shape [lines]; those of one value for all lines have stride 0.
    """
    return {
        name: np.broadcast_to(np.asarray(values, np.float32), (index.total,))
        for name, values in _Reader(index, edits, path, language).columns()
    }


class _Reader:
    """Columns of one file; those that others build on are kept."""

    def __init__(self, index: LineIndex, edits: LastEdits, path: str, language: str) -> None:
        self.index, self.edits, self.path, self.language = index, edits, path, language
        self.removed, self.added, self.kept = edits.newest
        self.here = [
            LineChange(min(one.first, index.total - 1), one.old, one.new)
            for one in edits.here(path)
        ]
        end = edits.end(path)
        self.end = None if end is None else min(end, index.total - 1)
        self.has_removed = index.words.overlap(hashes(self.removed))
        self.like_old, self.like_old_newest = self._best_likeness(edits.old_lines)
        self.like_new, self.like_new_newest = self._best_likeness(edits.new_lines)
        texts = (edits.tokens("text", side, most=most) for side, most in _LINES_OF_TEXT.items())
        self.same_as_old, self.same_as_new = (_looked_up(index.text, each) for each in texts)
        self.shaped_as_old = _looked_up(index.shape, edits.tokens("shape", "old"))

    def columns(self) -> Iterator[Column]:
        yield from self._words()
        yield from self._lines()
        yield from self._neighbours()
        yield from self._place()
        yield from self._distance() if self.end is not None else _no_distance()
        yield from self._line()
        yield from self._moment()
        yield from self._file()

    # --- words of the edits ----------------------------------------------------------------------

    def _words(self) -> Iterator[Column]:
        words, edits = self.index.words, self.edits
        removed = words.overlap(hashes(edits.removed), [*edits.removed.values()])
        added = dict([*edits.added.items()][:_MOST_ADDED_IN_ALL])
        yield "removed, last edit", self.has_removed
        yield "added, last edit", words.overlap(hashes(self.added[:_MOST_ADDED]))
        yield "kept, last edit", words.overlap(hashes(self.kept[:_MOST_KEPT]))
        yield "removed", removed
        yield "added", words.overlap(hashes(added), [*added.values()])
        yield "removed, share of the best line", removed / max(float(removed.max()), 1e-6)
        parts = self.index.parts
        old, new = parts_of([*self.removed, *self.kept]), parts_of([*self.added, *self.kept])
        gone = [part for part in parts_of(self.removed) if part not in new]
        came = [part for part in [*parts_of(self.added)][:_MOST_ADDED] if part not in old]
        yield "parts removed", parts.overlap(hashes(gone))
        yield "parts added", parts.overlap(hashes(came))
        defined, undefined = edits.defined
        yield "names defined", words.overlap(hashes(sorted(defined)))
        yield "names no longer defined", words.overlap(hashes(sorted(undefined)))
        uses = edits.uses
        yield "calls, keywords, members", self.index.uses.overlap([*uses], [*uses.values()])

    # --- whole lines -----------------------------------------------------------------------------

    def _lines(self) -> Iterator[Column]:
        index, edits = self.index, self.edits
        yield "like old lines", self.like_old
        yield "like new lines", self.like_new
        yield "like old lines, last edit", self.like_old_newest
        yield "like new lines, last edit", self.like_new_newest
        yield "more like old than new", self.like_old_newest - self.like_new_newest
        best = max(float(self.like_old_newest.max()), 1e-6)
        yield "like old lines, share of the best line", self.like_old_newest / best
        yield "same text as old", self.same_as_old
        yield "same text as new", self.same_as_new
        yield "same shape as old", self.shaped_as_old
        yield "same shape as new", _looked_up(index.shape, edits.tokens("shape", "new"))
        both = "old", "new"
        yield "same first token", _looked_up(index.first, edits.tokens("first", *both))
        yield "same first two tokens", _looked_up(index.first_two, edits.tokens("first_two", *both))
        yield "same last token", _looked_up(index.last, edits.tokens("last", *both))
        yield "same kind of line", _looked_up(index.kind, edits.tokens("kind", *both))
        yield "same indentation", index.indent == self._indent_of_edit()

    def _best_likeness(self, changes: Sequence[Sequence[object]]) -> tuple[Floats, Floats]:
        """Return the highest similarity to lines of all changes, and to those of the newest."""
        found, newest = (np.zeros(self.index.total, np.float32) for _ in range(2))
        for age, lines in enumerate(changes):
            for line in lines:
                value = self.index.words.similar(line.words)  # type: ignore[attr-defined]
                found = np.maximum(found, value * np.float32(DECAY**age))
                if age == 0:
                    newest = np.maximum(newest, value)
        return found, newest

    def _indent_of_edit(self) -> int:
        lines = [
            line for each in self.edits.changes[:1] for line in each.change.old or each.change.new
        ]
        return facts_of(lines[0]).indent if lines else -9

    # --- lines around the edits ------------------------------------------------------------------

    def _neighbours(self) -> Iterator[Column]:
        words, total = self.index.words, self.index.total
        inserted, changed = (np.zeros(total, np.float32) for _ in range(2))
        for age, each in enumerate(self.edits.changes[:3]):
            around = each.above, each.below
            above, below = (words.similar(facts_of(line).words) for line in around)
            if each.change.old:
                pair = _shifted(above, -1) + _shifted(below, 1)
                changed = np.maximum(changed, np.float32(DECAY**age) * pair)
            else:
                pair = above + _shifted(below, 1)
                pair = np.maximum(pair, _shifted(pair, -1))
                inserted = np.maximum(inserted, np.float32(DECAY**age) * pair)
        yield "neighbours like those of an insertion", inserted
        yield "neighbours like those of a change", changed

    # --- place -----------------------------------------------------------------------------------

    def _place(self) -> Iterator[Column]:
        index, at = self.index, self.index.at
        yield "lines below header", np.log1p(at - index.header)
        yield "same file as last edit", self.end is not None
        nearest: ArrayLike = 9.0
        if self.here:
            gaps = [_gap(at, one.first, one.first + max(len(one.new), 1) - 1) for one in self.here]
            nearest = np.log1p(np.minimum.reduce(gaps))
        yield "distance to any edit here", nearest
        yield "edits here", len(self.here)
        is_import = index.kind == Kind.IMPORT
        yield "end of imports", is_import & ~np.append(is_import[1:], False)

    def _distance(self) -> Iterator[Column]:
        assert self.end is not None
        index, at, end = self.index, self.index.at, self.end
        away, first = at - end, self.here[0].first
        yield "distance", np.log1p(np.abs(away))
        yield "below", away > 0
        yield "just below", np.exp(-np.abs(away - 1.0) / 3.0)
        yield "near", np.exp(-np.abs(away) / 20.0)
        yield "in the last edit", (away <= 0) & (at >= first)
        headers = np.abs(index.section - index.section[end])
        yield "headers between", np.minimum(headers, _FAR_FILE["headers between"])
        yield "same definition", index.header == index.header[end]
        yield "same class", index.class_header == index.class_header[end]
        offset = first - index.header[first]
        yield "same place in definition", np.exp(-np.abs(at - index.header - offset) / 2.0)
        is_like_old = (self.same_as_old > 0) | (self.like_old_newest > _SIMILAR)
        for name, flags in (
            ("like old between", is_like_old),
            ("same shape between", self.shaped_as_old > 0),
            ("removed between", self.has_removed > 0),
        ):
            count = np.cumsum(flags)
            yield name, np.minimum(np.abs(count - count[end]), _FAR_FILE["like old between"])
        step = first - self.here[1].first if len(self.here) > 1 else 0
        yield "in direction of steps", np.sign(step) * np.sign(away)
        yield "last step", np.sign(step) * np.log1p(abs(step))
        yield "below all edits", at > max(one.first + len(one.new) for one in self.here)
        yield "above all edits", at < min(one.first for one in self.here)

    # --- the line itself -------------------------------------------------------------------------

    def _line(self) -> Iterator[Column]:
        index = self.index
        blank = index.kind == Kind.BLANK
        following = np.append(index.indent[1:], -1)
        yield "kind", index.kind
        yield "indentation", index.indent
        yield "length", index.length
        yield "before a blank line", np.append(blank[1:], True)
        yield "after a blank line", np.append(True, blank[:-1])
        yield "ends a block", (following < index.indent) & ~blank
        yield "opens a block", (following > index.indent) & ~blank
        yield "is import", index.kind == Kind.IMPORT
        yield "is header", index.is_header
        is_bare = blank | (index.kind == Kind.COMMENT) | (index.kind == Kind.CLOSING)
        yield "is blank, comment or bracket", is_bare
        yield "line from top", np.log1p(index.at)
        yield "line from end", np.log1p(index.total - index.at)

    # --- the same for all lines ------------------------------------------------------------------

    def _moment(self) -> Iterator[Column]:
        index, edits = self.index, self.edits
        change = edits.changes[0].change if edits.changes else LineChange(0)
        lines = change.old or change.new
        yield "lines of file", np.log1p(index.total)
        yield "lines removed", np.log1p(len(change.old))
        yield "lines added", np.log1p(len(change.new))
        yield "kind of last edit", facts_of(lines[0]).kind if lines else -1
        yield "most removed", self.has_removed.max()
        yield "lines with removed", np.log1p(np.count_nonzero(self.has_removed))
        yield "lines as old", np.log1p(np.count_nonzero(self.same_as_old))
        yield "most like old", self.like_old_newest.max()
        yield "lines of same shape", np.log1p(np.count_nonzero(self.shaped_as_old))
        begins, ends = index.words.find(hashes(self.added[:30]))
        yield "added names unknown here", np.count_nonzero(ends - begins <= 1)
        yield "edits known", len(edits.changes)
        yield "language", _LANGUAGES.get(self.language, CATEGORIES["language"] - 1)
        yield "brackets opened by the last edit", max(-4, min(edits.brackets, 4))
        yield "indented by the last edit", max(-8, min(edits.indent, 8))

    def _file(self) -> Iterator[Column]:
        folder, _, name = self.path.rpartition("/")
        folder_of_edit, _, name_of_edit = self.edits.path.rpartition("/")
        one, other = parts_of(words_of([name])), parts_of(words_of([name_of_edit]))
        shared = sum(part in other for part in one)
        yield "file names alike", shared / max(len(one) + len(other) - shared, 1)
        yield "same folder", folder == folder_of_edit
        lower = self.path.lower()
        yield "is a test", "test" in lower or "spec" in lower
        names: Floats = np.zeros(self.index.total, np.float32)
        if self.end is None:
            stem = words_of([name_of_edit.rpartition(".")[0] or name_of_edit])
            names = self.index.words.overlap(hashes(w for w in stem if w not in KEYWORDS))
        yield "names the file edited", names
        yield "lines that name the file edited", np.log1p(np.count_nonzero(names))


def _no_distance() -> Iterator[Column]:
    """Yield the columns of :meth:`_Reader._distance` in another file than that of the last edit."""
    yield "distance", _FAR_FILE["distance"]
    for name in ("below", "just below", "near", "in the last edit"):
        yield name, 0.0
    yield "headers between", _FAR_FILE["headers between"]
    for name in ("same definition", "same class", "same place in definition"):
        yield name, 0.0
    for name in ("like old between", "same shape between", "removed between"):
        yield name, _FAR_FILE["like old between"]
    for name in ("in direction of steps", "last step", "below all edits", "above all edits"):
        yield name, 0.0


def _looked_up(values: NDArray[np.int64], weights: Mapping[int, float]) -> Floats:
    """Return the weight of each value, 0 where there is none, [lines]."""
    found = np.zeros(len(values), np.float32)
    for value, weight in weights.items() if len(weights) <= 6 else ():
        found[values == value] = weight
    if len(weights) <= 6:
        return found
    keys = np.fromiter(weights, np.int64, len(weights))
    order = np.argsort(keys)
    keys, sorted_weights = keys[order], np.fromiter(weights.values(), np.float32)[order]
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[places] == values, sorted_weights[places], found)


def _shifted(values: Floats, by: int) -> Floats:
    """Return the value of the line ``by`` lines below each line, 0 beyond the text, [lines]."""
    found = np.zeros_like(values)
    if by > 0:
        found[:-by] = values[by:]
    else:
        found[-by:] = values[:by]
    return found


def _gap(at: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Return how many lines each line is away from [first, last], [lines]."""
    return np.maximum(np.maximum(first - at, at - last), 0)


#: Names of all columns, in the order of the weights.
COLUMNS = tuple(columns_of(LineIndex.of([""]), LastEdits(()), "", ""))
