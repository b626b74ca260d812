"""What the prompts of other projects' models have in common: pieces, and changes read back.

Such a prompt is one text in which some words are special tokens of the vocabulary. A file that
holds a word which is *not* a token there but means something to the format cannot be asked about:
nobody could tell the file's from ours. Knows nothing of any one format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InvalidAnswer
from ..records import EditRequest, RecentEdit
from ..text.common import common_head, common_tail
from .answers import replace_lines
from .fitting import encode, short_path
from .tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of a prompt that is a special token."""

    name: str


Piece = str | Mark


@dataclass(frozen=True, slots=True)
class Declined:
    """The model is not asked."""

    reason: str  # for people


@dataclass(frozen=True, slots=True)
class Read:
    """An answer read back: replace text[start:end] of the document by ``text``."""

    start: int
    end: int
    text: str
    written: tuple[int, int] | None = None  # the part of the answer that says so, [first, last);
    # None: all of it. What a rewritten region only repeats says nothing of how sure the change is


def tokens_of(pieces: Iterable[Piece], tokenizer: Tokenizer) -> list[int]:
    """Token ids of a prompt; what stands between two marks is cut into tokens as one text."""
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
    """About how many tokens a part of a prompt takes."""
    return sum(1 if isinstance(piece, Mark) else len(encode(tokenizer, piece)) for piece in pieces)


def last_within(
    parts: Sequence[list[Piece]], tokenizer: Tokenizer, room: int
) -> tuple[list[list[Piece]], int]:
    """The last of ``parts``, which are the most useful, as many as take no more than ``room``
    tokens together; and the room that is left."""
    kept: list[list[Piece]] = []
    for part in reversed(parts):
        cost = count(part, tokenizer)
        if cost > room:
            break
        room -= cost
        kept.insert(0, part)
    return kept, room


def joined(parts: Iterable[list[Piece]]) -> list[Piece]:
    return [piece for part in parts for piece in part]


def other_files(request: EditRequest, mark: Mark) -> list[list[Piece]]:
    """A request's excerpts of other files, each behind ``mark`` and its path."""
    return [[mark, title(file.path), ended(file.text)] for file in request.related]


def by_file(excerpts: Iterable[list[Piece]], between: str = "") -> list[Piece]:
    """Excerpts as :func:`other_files` has them, those of one file behind its name once."""
    files: dict[Piece, list[Piece]] = {}
    for mark, name, text in excerpts:
        before = files.get(name)
        files[name] = [mark, name, text] if before is None else [*before, between, text]
    return joined(files.values())


def edits_then_files(
    edits: Sequence[list[Piece]], request: EditRequest, mark: Mark, tokenizer: Tokenizer, room: int
) -> tuple[list[list[Piece]], list[list[Piece]], str]:
    """Recent edits and, once all of them fit, excerpts of other files, within ``room`` tokens; and
    what was left out, for people."""
    shown, room = last_within(edits, tokenizer, room)
    related = other_files(request, mark) if len(shown) == len(edits) else []
    files, _ = last_within(related, tokenizer, room)
    return shown, files, left_out(len(edits) - len(shown), len(request.related) - len(files))


def left_out(edits: int, files: int) -> str:
    """What does not fit, for people; "" where all does."""
    names = zip((edits, files), ("recent edits", "related files"), strict=True)
    return "; ".join(f"left out {many} {what}" for many, what in names if many)


def ended(text: str) -> str:
    """``text`` with a line end behind its last line."""
    return text if text.endswith("\n") else text + "\n"


def forged(request: EditRequest, words: Iterable[str]) -> Declined | None:
    """Why a document that holds one of a format's ``words`` cannot be asked about."""
    for word in words:
        if word in request.text:
            return Declined(
                f"The file holds {word!r}, which this model takes for a mark of its own."
            )
    return None


# ------------------------------------------------------------------------------ recent edits


def sides(edit: RecentEdit) -> tuple[list[str], list[str]]:
    """The lines of an edit's hunk before it and after it, without line ends."""
    before: list[str] = []
    after: list[str] = []
    for line in edit.diff.split("\n"):
        if line[:1] in (" ", "-"):
            before.append(line[1:])
        if line[:1] in (" ", "+"):
            after.append(line[1:])
    return before, after


def as_it_was(request: EditRequest, first: int, last: int) -> list[str]:
    """Lines [first, last) of the document before its newest recorded edit; as they are where none
    is recorded or it cannot be undone any more."""
    lines = request.text.split("\n")
    own = [edit for edit in request.edits if edit.path == request.path]
    if not own:
        return lines[first:last]
    before, after = sides(own[-1])
    at = own[-1].line
    behind = at + len(after)
    if not after or lines[at:behind] != after:
        return lines[first:last]
    earlier = [*lines[:at], *before, *lines[behind:]]
    grown = len(after) - len(before)

    def moved(line: int, within: int) -> int:
        return line if line <= at else line - grown if line >= behind else within

    return earlier[moved(first, at) : moved(last, at + len(before))]


def title(path: str) -> str:
    return f"{short_path(path)}\n"


# ------------------------------------------------------------------------------ changes


def says_something(answer: str, ended: bool, region: str) -> bool:
    """Whether there is anything to read in an answer that writes a ``region`` anew.

    Raises:
        InvalidAnswer: it broke off.
    """
    if answer.strip() and not ended:
        raise InvalidAnswer(f"The answer broke off before the end of the {region}.")
    return bool(answer.strip())


def begin_of(lines: Sequence[str], first: int) -> int:
    """Where a line begins in the document."""
    return sum(len(line) + 1 for line in lines[:first])


def read_region(
    request: EditRequest, region: tuple[int, int], new: str, starts: int = 0
) -> Read | None:
    """What a rewritten region changes; None: nothing, or for an infill nothing at the cursor.

    Args:
        region: 0-based lines [first, last) of the document that were rewritten.
        new: what they become; a line end behind the last one may be there or not.
        starts: index of ``new`` in the answer.
    """
    lines = request.text.split("\n")
    old, made = lines[region[0] : region[1]], new.split("\n")
    blank = [_blank_end(side) for side in (old, made)]
    if blank[1] == blank[0] + 1:  # of the line end that closes an answer
        made.pop()
    if request.task == "infill":
        return _inserted(request, lines, region, "\n".join(made), starts)
    head = common_head(old, made)
    tail = common_tail(old[head:], made[head:])
    if head == len(old) == len(made):
        return None
    body = made[head : len(made) - tail]
    first = starts + begin_of(made, head)
    text = "".join(f"{line}\n" for line in body)
    change = replace_lines(request.text, region[0] + head, region[1] - tail, text)
    return Read(*change, written=(first, first + len(text)))


def _blank_end(lines: list[str]) -> int:
    """How many empty lines stand at the end."""
    return next((i for i, line in enumerate(reversed(lines)) if line), len(lines))


def _inserted(
    request: EditRequest, lines: list[str], region: tuple[int, int], new: str, starts: int
) -> Read | None:
    """What was put in at the cursor, where the region is otherwise as it was."""
    old = "\n".join(lines[region[0] : region[1]])
    at = request.cursor - begin_of(lines, region[0])
    kept = new.startswith(old[:at]) and new.endswith(old[at:])
    if not kept or len(new) <= len(old):
        return None
    text = new[at : len(new) - (len(old) - at)]
    cut = text if request.max_lines is None else "\n".join(text.split("\n")[: request.max_lines])
    return Read(request.cursor, request.cursor, cut, (starts + at, starts + at + len(cut)))
