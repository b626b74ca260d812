"""Text and marks as tokens of a prompt, and what is kept of them within a budget.

A prompt of another project's model is one text in which some words are special tokens of its
vocabulary. A file that holds a mark which is *not* a token there cannot be asked about, because the
model could not tell the file's from the prompt's: see :func:`forged`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..memo import Memo
from ..records import EditRequest, RelatedFile
from .format import Declined
from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of a prompt that is a special token, if the vocabulary has it."""

    name: str


Piece = str | Mark

_LINES_ABOVE = 60  # of a text that the document continues, where it is shown as another file


# --- tokens -----------------------------------------------------------------------------------


def encode(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Return the tokens of ``text``, remembered: sections recur from keystroke to keystroke."""
    return _ENCODED.get((weakref.ref(tokenizer), text), _encode_anew)


def _encode_anew(key: tuple[weakref.ref[Tokenizer], str]) -> tuple[int, ...]:
    tokenizer = key[0]()
    assert tokenizer is not None, "the caller has it"
    return tuple(tokenizer.encode(key[1]))


#: By weak references: a tokenizer takes 60 MB, which are freed when its model is unloaded.
_ENCODED: Memo[tuple[weakref.ref[Tokenizer], str], tuple[int, ...]] = Memo(
    16 << 20, lambda ids: 32 * len(ids)
)


def keep(tokenizer: Tokenizer, text: str, room: int, *, from_end: bool) -> list[int]:
    """Return the tokens of ``text`` within ``room``, cut at a line end.

    A single line that is longer is cut inside.
    """
    if room <= 0 or not text:
        return []
    longest = room * 24  # no token of ordinary text is longer: spare encoding what cannot fit
    if len(text) > longest:
        text = text[-longest:] if from_end else text[:longest]
    ids = encode(tokenizer, text)
    if len(ids) <= room:
        return list(ids)
    kept = list(ids[-room:] if from_end else ids[:room])
    cut = tokenizer.decode(kept)
    edge = cut.find("\n") + 1 if from_end else cut.rfind("\n") + 1
    whole = cut[edge:] if from_end else cut[:edge]
    return list(encode(tokenizer, whole)) if whole and edge else kept


def tokens_of(pieces: Iterable[Piece], tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of a prompt; the text between two marks is encoded as one."""
    tokens = [] if tokenizer.begin is None else [tokenizer.begin]
    text = ""
    for piece in pieces:
        mark = tokenizer.special_id(piece.name) if isinstance(piece, Mark) else None
        if mark is None:  # Zeta's vocabulary has no tokens for some of its marks
            text += piece.name if isinstance(piece, Mark) else piece
            continue
        tokens += [*encode(tokenizer, text), mark]
        text = ""
    return [*tokens, *encode(tokenizer, text)]


def count(pieces: Iterable[Piece], tokenizer: Tokenizer) -> int:
    """Return about how many tokens a part of a prompt takes."""
    return sum(1 if isinstance(piece, Mark) else len(encode(tokenizer, piece)) for piece in pieces)


def last_within(
    parts: Sequence[list[Piece]], tokenizer: Tokenizer, room: int
) -> tuple[list[list[Piece]], int]:
    """Return as many of the last ``parts`` as fit in ``room`` tokens, and the room that is left."""
    kept: list[list[Piece]] = []
    for part in reversed(parts):
        cost = count(part, tokenizer)
        if cost > room:
            break
        room -= cost
        kept.insert(0, part)
    return kept, room


def join_pieces(parts: Iterable[list[Piece]]) -> list[Piece]:
    """Return the pieces of all ``parts``."""
    return [piece for part in parts for piece in part]


# --- parts of a request -----------------------------------------------------------------------


def short_path(path: str) -> str:
    """Return the end of a path, on one line and of bounded length."""
    return path.replace("\n", " ").replace("\r", " ")[-200:]


def title(path: str) -> str:
    """Return a path as a line."""
    return f"{short_path(path)}\n"


def with_last_line_end(text: str) -> str:
    """Return ``text`` with a line end behind its last line."""
    return text if text.endswith("\n") else text + "\n"


def other_files(request: EditRequest, mark: Mark) -> list[list[Piece]]:
    """Return a request's excerpts of other files, each behind ``mark`` and its path.

    The text that the document continues is one of them, with its last lines.
    """
    return [[mark, title(file.path), with_last_line_end(_end_of(file))] for file in request.related]


def _end_of(file: RelatedFile) -> str:
    return "\n".join(file.text.split("\n")[-_LINES_ABOVE:]) if file.is_above else file.text


def by_file(excerpts: Iterable[list[Piece]], between: str = "") -> list[Piece]:
    """Return the pieces of :func:`other_files` with each path once, before its excerpts."""
    files: dict[Piece, list[Piece]] = {}
    for mark, name, text in excerpts:
        before = files.get(name)
        files[name] = [mark, name, text] if before is None else [*before, between, text]
    return join_pieces(files.values())


def edits_then_files(
    edits: Sequence[list[Piece]], request: EditRequest, mark: Mark, tokenizer: Tokenizer, room: int
) -> tuple[list[list[Piece]], list[list[Piece]], str]:
    """Return the recent edits and the excerpts of other files within ``room``, and what was cut.

    Other files are shown only where all edits fit.
    """
    shown, room = last_within(edits, tokenizer, room)
    related = other_files(request, mark) if len(shown) == len(edits) else []
    files, _ = last_within(related, tokenizer, room)
    return shown, files, describe_cut(len(edits) - len(shown), len(request.related) - len(files))


def describe_cut(edits: int, files: int) -> str:
    """Return what does not fit, for people; "" where all does."""
    names = zip((edits, files), ("recent edits", "related files"), strict=True)
    return "; ".join(f"left out {many} {what}" for many, what in names if many)


def refuse_forged_marks(request: EditRequest, words: Iterable[str]) -> Declined | None:
    """Return why a document that holds one of a format's ``words`` cannot be asked about."""
    for word in words:
        if word in request.text:
            return Declined(
                f"The file holds {word!r}, which this model takes for a mark of its format."
            )
    return None
