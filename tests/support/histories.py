"""A document and its edit history, as their tests use them."""

from __future__ import annotations

from hypothesis import strategies as st
from unidiff import PatchedFile

from support.workbench import URI, Workbench

CODE = "".join(f"value_{i} = compute({i})\n" for i in range(60))


def lines(bench: Workbench, uri: str = URI) -> list[str]:
    return list(bench.documents[uri].lines)


def rebuilt(bench: Workbench, uri: str = URI) -> list[str]:
    """Return the newest snapshot with everything since applied to it."""
    lines = list(bench.history.snapshot(uri))
    for patch in [*bench.history.patches(uri), *bench.history.in_progress(uri)]:
        apply(patch, lines)
    return lines


def apply(patch: PatchedFile, lines: list[str]) -> None:
    [hunk] = patch
    assert hunk.is_valid()
    old = [str(line)[1:-1] for line in hunk.source_lines()]
    new = [str(line)[1:-1] for line in hunk.target_lines()]
    first = hunk.source_start - bool(old)
    assert lines[first : first + len(old)] == old
    lines[first : first + len(old)] = new


places = st.tuples(st.integers(0, 14), st.integers(0, 4))
