"""A document and its edit history, as their tests use them."""

from __future__ import annotations

from hypothesis import strategies as st
from redraft.lsp.documents.history import History
from redraft.lsp.documents.history_edits import hunks_of_span
from unidiff.patch import Hunk

from support.editors.workbench import URI, Workbench

CODE = "".join(f"value_{i} = compute({i})\n" for i in range(60))


def lines(bench: Workbench, uri: str = URI) -> list[str]:
    return list(bench.documents[uri].lines)


def hunks(history: History, uri: str = URI) -> list[Hunk]:
    """Return the hunks of a document since its newest snapshot, without the edit in progress."""
    document = history._documents.get(uri)
    entries = history._entries if document else []
    return [
        hunk
        for entry in entries
        if document and entry.snapshot == document.snapshot
        for hunk in entry.hunks
    ]


def in_progress(history: History, uri: str = URI) -> list[Hunk]:
    """Return the hunks of the edit in progress; they apply after the finished ones."""
    document = history._documents.get(uri)
    if document is None or document.burst is None:
        return []
    return [*hunks_of_span(document.burst.span.trim(), document.lines)]


def snapshot(history: History, uri: str = URI) -> list[str]:
    """Return the text that the hunks of a document start from; [] if it is not open."""
    document = history._documents.get(uri)
    made = list(document.lines) if document else []
    for hunk in reversed([*hunks(history, uri), *in_progress(history, uri)]):
        old, new = sides(hunk)
        first = hunk.target_start - bool(new)
        assert made[first : first + len(new)] == new
        made[first : first + len(new)] = old
    return made


def rebuilt(bench: Workbench, uri: str = URI) -> list[str]:
    """Return the newest snapshot with everything since applied to it."""
    history = bench.history
    made = snapshot(history, uri)
    for hunk in [*hunks(history, uri), *in_progress(history, uri)]:
        assert hunk.is_valid()
        old, new = sides(hunk)
        first = hunk.source_start - bool(old)
        assert made[first : first + len(old)] == old
        made[first : first + len(old)] = new
    return made


def sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """Return the lines of a hunk before and after it."""
    source, target = (
        [str(line)[1:-1] for line in side] for side in (hunk.source_lines(), hunk.target_lines())
    )
    return source, target


places = st.tuples(st.integers(0, 14), st.integers(0, 4))
