"""Files, texts and moments that never get a suggestion.

Pure functions of texts and settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from redraft.model.edits.edit import Edit, LineChange
from redraft.model.edits.syntax_errors import count_errors_of
from redraft.model.gate.reasons import Abstain
from redraft.model.memo import Memo
from redraft.model.text.common import common_ends
from redraft.model.text.cursor import line_after, line_before

from .paths import end_of
from .secret_files import secret_in
from .session.questions import Query
from .settings import LspSettings

_WORD = re.compile(r"\w+")


def missing_word(just_done: Sequence[LineChange], query: Query) -> str:
    """The word that is gone at the cursor; "" where none is, or where the code is whole without it,
    as ``f()`` is without an argument, or in a language that is not known.

    Args:
        just_done: as of :meth:`..history.History.just_done`.
    """
    if not just_done or len(just_done[0].old) != 1 or len(just_done[0].new) != 1:
        return ""
    (old,), (new,) = just_done[0].old, just_done[0].new
    head, tail = common_ends(new, old)
    gone = old[head : len(old) - tail]
    place = just_done[0].first, head
    if head + tail < len(new) or not _WORD.fullmatch(gone) or _at_cursor(query) != place:
        return ""
    put_back = Edit(query.text, query.cursor, query.cursor, gone)
    errors = count_errors_of(put_back, query.path, query.language)
    return gone if errors is not None and errors[1] < errors[0] else ""


def _at_cursor(query: Query) -> tuple[int, int]:
    """The cursor's 0-based line, and the characters before it there."""
    return query.line, query.cursor - query.text.rfind("\n", 0, query.cursor) - 1


#: Characters on either side of the cursor that show how dense a text is. Counting through all of a
#: large file at each keystroke would be the most expensive thing the server does.
_AROUND = 20_000

_WILD = re.compile(r"[*?[]")
_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|swp|tmp))+$")


def refuse_file(path: str, settings: LspSettings, uri: str = "") -> str:
    """Why the file at ``path`` gets no suggestions; "": nothing speaks against it.

    Args:
        path: as shown to the model, "/" separated.
        uri: of its document, where there is one: "config" may be ".kube/config".
    """
    globs = _sorted_out(settings.secret_globs)
    return globs.refusals.get((path, uri), globs.refuse)


@dataclass(frozen=True, slots=True)
class _Globs:
    """Patterns by what it takes to match them. One by one they would take 20,000 files seconds."""

    names: frozenset[str]
    endings: tuple[str, ...]
    others: re.Pattern[str]
    each: tuple[str, ...]
    below: tuple[tuple[str, int], ...]  # with folders in them, and how many parts of a path
    #: By path and URI: each open file is looked at with every question.
    refusals: Memo[tuple[str, str], str] = field(default_factory=lambda: Memo(4 << 20))

    def refuse(self, file: tuple[str, str]) -> str:
        """Why the file of a path and a URI is refused, "" if it is not."""
        path, uri = file[0].lower(), file[1]
        name, place = path.rsplit("/", 1)[-1], end_of(uri).lower() if uri else path
        found = next(filter(None, map(self.fitting, {name, _BACKUP.sub("", name), path})), "")
        for glob, folders in self.below:
            if not found and fnmatchcase("/".join(place.split("/")[-folders:]), glob):
                found = glob
        return f"{name} may hold secrets (setting secret_globs, pattern {found})" if found else ""

    def fitting(self, path: str) -> str:
        """A pattern that fits, "" if none does."""
        if path in self.names:
            return path
        if path.endswith(self.endings) or self.others.match(path):
            return next(glob for glob in self.each if fnmatchcase(path, glob))
        return ""


@lru_cache(maxsize=4)
def _sorted_out(globs: tuple[str, ...]) -> _Globs:
    each = tuple(glob.lower() for glob in globs)
    names = [glob for glob in each if not _WILD.search(glob)]
    endings = [glob[1:] for glob in each if glob[:1] == "*" and not _WILD.search(glob[1:])]
    others = sorted({*each} - {*names} - {f"*{ending}" for ending in endings})
    return _Globs(
        names=frozenset(names),
        endings=tuple(endings),
        others=re.compile("|".join(map(translate, others)) or r"(?!)"),
        each=each,
        below=tuple((glob, glob.count("/") + 1) for glob in each if "/" in glob),
    )


def refuse_text(text: str, cursor: int, settings: LspSettings, path: str = "") -> Abstain | None:
    """Why a document is too large or too dense to be read, no text at all, or a secret; None: it is
    none of that."""
    if len(text) > settings.max_file_chars:
        return Abstain(
            "too_large",
            f"the file is too large: {len(text):,} characters, at most {settings.max_file_chars:,}",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return Abstain(
            "binary", f"this looks like a binary file: line {line} contains a NUL character"
        )
    secret = secret_in(text, path)
    if secret:
        return Abstain("secret", f"this file {secret}")
    width = len(line_before(text, cursor)) + len(line_after(text, cursor))
    if width > settings.max_line_chars:
        return Abstain(
            "long_line",
            f"the line is too long: {width:,} characters, at most {settings.max_line_chars:,}",
        )
    start, end = max(0, cursor - _AROUND), min(len(text), cursor + _AROUND)
    mean = (end - start) // (text.count("\n", start, end) + 1)
    limit = settings.max_line_chars // 10
    if mean > limit and len(text) > settings.max_line_chars:
        return Abstain(
            "minified", f"the text looks minified: {mean:,} characters per line, at most {limit:,}"
        )
    return None
