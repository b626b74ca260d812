"""Line ends of an edit: lines that stay keep theirs, new lines get the end that most lines have."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.model.edits.hunks import hunks_of

from .open_documents import Document


def client_edit(document: Document, start: int, end: int, new: str) -> tuple[int, int, str]:
    """Return an edit of a document's text with the line ends that the client's text gets.

    The edit grows by a line end where the last line would get that of another one.

    Args:
        start, end: indices into the text, as in the result. new: what replaces that part.
    """
    first, usual = document.line_of(start), document.line_end
    old_lines, new_lines = document.text[start:end].split("\n"), new.split("\n")
    old_ends = document.line_ends[first : first + len(old_lines)]
    ends = _ends(old_lines, old_ends, new_lines, usual)
    if document.text[end : end + 1] == "\n" and ends[-1] != old_ends[-1]:
        end += 1
    else:
        ends[-1] = ""
    # A lone CR and an LF that meet would be one line end.
    for at in range(len(ends) - 1):
        if ends[at] == "\r" and not new_lines[at + 1] and ends[at + 1] == "\n":
            ends[at] = "\r\n"
    text = "".join(line + end for line, end in zip(new_lines, ends, strict=True))
    if _is_behind_cr(document, start) and text[:1] in ("", "\n"):
        if not text and _is_before_lf(document, end):
            text, end = "\r\n", end + 1
        text = text.replace("\n", "\r\n", 1) if text[:1] == "\n" else text
    if text.endswith("\r") and _is_before_lf(document, end):
        text += "\n"
    return start, end, text


def _ends(old: Sequence[str], old_ends: Sequence[str], new: Sequence[str], usual: str) -> list[str]:
    """Return the ends of new lines: those of the old lines that they are, or took the place of."""
    if len(old) == 1 and len(new) > 1:  # text within a line, or in its place
        return [*[usual] * (len(new) - 1), old_ends[-1]]
    ends, at = list[str](), 0  # at: in the old lines
    for hunk in hunks_of([*old], [*new]):
        ends += old_ends[at : hunk.first]
        paired = old_ends[hunk.first : hunk.last][: len(hunk.new)]
        ends += [*paired, *[usual] * (len(hunk.new) - len(paired))]
        at = hunk.last
    ends += old_ends[at:]
    return [*(end or usual for end in ends[:-1]), ends[-1]]  # the last line has none


def _is_behind_cr(document: Document, start: int) -> bool:
    """Return whether the client's text has a lone CR right before ``start``."""
    if not start or document.text[start - 1] != "\n":
        return False
    return document.line_ends[document.line_of(start) - 1] == "\r"


def _is_before_lf(document: Document, end: int) -> bool:
    """Return whether the client's text has an LF alone at ``end``."""
    if document.text[end : end + 1] != "\n":
        return False
    return document.line_ends[document.line_of(end)] == "\n"
