"""Which predicted edits are never shown, by the language server and over HTTP alike.

Pure functions of texts and of what the user did; each returns why not, None when it has no
objection. Knows nothing of thresholds, of time, or of what was shown before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..memo import Memo
from ..text.common import common_ends
from ..text.scopes import Bindings
from ..text.syntax import Syntax, count_errors, language_of, parse
from .abstained import Abstained
from .replacement import Replacement
from .reversal import undoes
from .spans import Span

#: Lines from the cursor and from the last edit beyond which an edit would come out of the blue.
FAR_LINES = 40
#: Lines from the cursor beyond which an edit of nothing but imports is a nuisance.
FAR_IMPORTS = 12

_SHORTEST_AGAIN = 4  # letters and digits of lines that are there: a bracket may be needed twice

_NAME = re.compile(r"[^\W\d]\w+")
_ANY_NAME = re.compile(r"[^\W\d]\w*")
_OF_IMPORTS = frozenset(["import", "from", "use", "as", "const", "let", "var", "require", "static"])
_IN_BLOCK = re.compile(r"\t\"[\w./-]+\"$")  # of Go
_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|use\s+[\w:\\]|#\s*include\b|using\s+[\w.=\s]+;"
    r"|(?:local\s+\w+\s*=\s*)?require(?:_relative|_once)?\b|(?:const|let|var)\b.*=\s*require\("
    r"|export\b.*\bfrom\s|package\s+[\w.]+;?\s*$)"
)

#: Markers of prompts and of weights' vocabularies; the model must write none of them.
_SPECIAL = re.compile(
    r"<\|[\w.\- ]{1,40}\|>|<｜[^｜\n]{1,40}｜>|<\[fim-\w+\]>"
    r"|<(?:fim_\w+|empty_output|file_sep|filename|repo_name|reponame|gh_stars"
    r"|issue_(?:start|comment|closed)|jupyter_\w+)>"
)

#: Something said three times running, or a short thing four times: weights that have lost their way
#: go round in circles until the tokens run out.
_CIRCLE = re.compile(
    r"(?P<long>.{16,80}?)(?P=long){2,}|(?P<short>.{1,15}?)(?P=short){3,}", re.DOTALL
)
_CIRCLE_CHARS, _CIRCLE_TURNS = 40, 16  # what is below both, such as "0, 0, 0, 0", may be meant

# A file longer than this is parsed around the edit alone, from a line to a line that begin at the
# margin: every suggestion waits for several parses, and 100,000 characters take 20 ms each.
_WHOLE_CHARS = 30_000
_AROUND_LINES = 300
_NEARBY_LINES = 5  # where errors in the file as it is excuse errors in the edit


def refuse_edit(
    edit: Replacement, just_done: Iterable[Span], cursor_line: int, last_edit: int | None
) -> Abstained | None:
    """Why an edit would never please anyone; the parse check apart, which costs more.

    Args:
        just_done: the user's last edits, at their places in the edit's text.
        cursor_line, last_edit: 0-based lines.
    """
    start, end, new = edit.whole_lines()
    old = edit.text[start:end]
    if old == new:
        return Abstained("no_change", "the edit would change nothing")
    if old.split() == new.split() or "".join(old.split()) == "".join(new.split()):
        return Abstained("whitespace_only", "the model would change only spaces or line breaks")
    if "\ufffd" in new:  # stands for bytes that are not valid UTF-8: writing it would lose them
        return Abstained("half_character", "the edit would rewrite a line with broken characters")
    refused = refuse_writing(edit.least().new, edit.text)
    if refused is not None:
        return refused
    if _writes_again(edit.least()):
        return Abstained(
            "repeats_what_follows", "the edit would repeat lines that are already there"
        )
    if undoes(edit, just_done):
        return Abstained("reversal", "the edit would undo what you just typed")
    first, last = edit.lines
    away = _distance(cursor_line, first, last)
    changed = _changed(old.split("\n"), new.split("\n"))
    imports = bool(changed) and all(map(_IMPORT.match, changed))
    if _brings_in(changed, just_done):
        return None
    if away > FAR_LINES and (last_edit is None or _distance(last_edit, first, last) > FAR_LINES):
        return Abstained(
            "far_away", f"the edit is {away} lines away from the cursor and from your last edits"
        )
    if away > FAR_IMPORTS and imports:
        return Abstained("far_import", f"the edit changes only imports, {away} lines away")
    return None


def is_import(lines: Sequence[str]) -> bool:
    """Return whether lines are imports and nothing else."""
    return bool(lines) and all(_IMPORT.match(line) or _IN_BLOCK.match(line) for line in lines)


def _brings_in(changed: Sequence[str], just_done: Iterable[Span]) -> bool:
    """Do imports bring in a name that the user just wrote? Then no place is too far."""
    if not is_import(changed):
        return False
    names = {name for line in changed for name in _NAME.findall(line)} - _OF_IMPORTS
    written = {name for span in just_done for line in span.new for name in _NAME.findall(line)}
    return not names.isdisjoint(written)


def _writes_again(least: Replacement) -> bool:
    """Does it only put lines beside the same lines? A bracket may well be needed twice."""
    lines = f"{least.text}\n".splitlines(keepends=True)
    made = f"{least.result}\n".splitlines(keepends=True)
    head, tail = common_ends(lines, made)
    new = made[head : len(made) - tail]
    if (
        least.old
        or head + tail < len(lines)
        or sum(map(str.isalnum, "".join(new))) < _SHORTEST_AGAIN
    ):
        return False
    return new in (made[head - len(new) : head], made[head + len(new) : head + 2 * len(new)])


def _distance(line: int, first: int, last: int) -> int:
    return max(0, first - line, line - last + 1)


def _changed(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Lines of either that the other does not have."""
    return [line for line in (*old, *new) if line.strip() and (line in old) != (line in new)]


# --- what is written ---------------------------------------------------------------------------


def refuse_writing(written: str, text: str) -> Abstained | None:
    """Why nobody wants ``written`` anywhere in ``text``."""
    leaked = _SPECIAL.search(written)
    if leaked is not None and leaked[0] not in text:
        return Abstained("special_token", f"the model wrote its control token {leaked[0]}")
    if "\ufffd" in written:
        return Abstained("half_character", "the model wrote a broken character")
    if _goes_round(written, text):
        return Abstained("in_circles", "the model repeats itself")
    return None


def _goes_round(completion: str, text: str) -> bool:
    """Does it say the same again and again, where the file itself does not?"""
    for circle in _CIRCLE.finditer(completion):
        said = circle["long"] or circle["short"]
        telling = any(char.isalnum() for char in said)  # a ruler of dashes is no circle
        length = len(circle[0])
        lost = length >= _CIRCLE_CHARS or length >= _CIRCLE_TURNS * len(said)
        if lost and telling and 2 * said not in text:
            return True
    return False


# --- syntax ------------------------------------------------------------------------------------


def refuse_syntax(edit: Replacement, path: str, language: str) -> Abstained | None:
    """Why an edit would break the file: it parses worse than before, and nothing near the edit was
    broken already. None as well where there is no grammar for the language."""
    start, end, new = edit.whole_lines()
    low, high = _around(edit.text, start, end)
    before, after = edit.text[low:high], edit.text[low:start] + new
    after += edit.text[end:high]
    tree = parsed(before, language) or parsed(before, language_of(path) or "")
    if tree is None:
        return None
    near = _nearby(before, start - low, end - low)
    if count_errors(tree, *near):
        return None
    changed = parse(after, tree.language, tree)
    added = count_errors(changed) - count_errors(tree) if changed else 0
    if added <= 0:
        return None
    return Abstained("syntax_errors", f"the edit would add {added} syntax error{'s' * (added > 1)}")


def refuse_undefined(edit: Replacement, path: str, language: str) -> Abstained | None:
    """Why an edit would take away what the code still uses, such as a parameter; None where it does
    not, where something comes in its place, or where there is no grammar for the language."""
    start, end, new = edit.whole_lines()
    old, come = {*_ANY_NAME.findall(edit.text[start:end])}, {*_ANY_NAME.findall(new)}
    if not come < old:
        return None
    before = parsed(edit.text, language) or parsed(edit.text, language_of(path) or "")
    after = parse(edit.result, before.language, before) if before is not None else None
    if before is None or after is None:
        return None
    first = edit.text.count("\n", 0, start)
    rows = range(first, first + edit.text.count("\n", start, end) + 1)
    for name in sorted(old - come):
        bound = [one for one in Bindings(before, name).occurrences if one.role == "binding"]
        if any(one.line in rows for one in bound) and any(
            one.role in ("use", "shorthand") and one.scope is None
            for one in Bindings(after, name).occurrences
        ):
            return Abstained(
                "leaves_undefined", f"the edit would take away '{name}', which is still used"
            )
    return None


def count_errors_of(
    edit: Replacement, path: str, language: str, behind: str = ""
) -> tuple[int, int] | None:
    """The syntax errors around an edit without it and with it; None where there is no grammar for
    the language.

    Args:
        behind: what is to be written behind the new text as well.
    """
    low, high = _around(edit.text, edit.start, edit.end)
    before = edit.text[low:high]
    tree = parsed(before, language) or parsed(before, language_of(path) or "")
    if tree is None:
        return None
    after = edit.text[low : edit.start] + edit.new + behind + edit.text[edit.end : high]
    changed = parse(after, tree.language, tree)
    was = count_errors(tree)
    return was, count_errors(changed) if changed else was


def parsed(text: str, language: str) -> Syntax | None:
    """The syntax tree of a text that is asked about again and again: all candidates of an answer
    are edits of one text, 20 ms each in 2,600 lines, and both tasks are asked at one cursor. None
    where there is no grammar for the language."""
    return _TREES.get((text, language), lambda asked: parse(*asked))


_TREES: Memo[tuple[str, str], Syntax | None] = Memo(
    8 << 20, lambda tree: 0 if tree is None else 16 * len(tree.text)
)


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a text to parse: all of it, or, where it is long, from margin to margin."""
    if len(text) <= _WHOLE_CHARS:
        return 0, len(text)
    low, high = start, end
    for _ in range(_AROUND_LINES):
        low = text.rfind("\n", 0, max(0, low - 1)) + 1
        high = text.find("\n", min(high + 1, len(text)))
        high = len(text) if high < 0 else high
    while low > 0 and not at_margin(text, low):
        low = text.rfind("\n", 0, low - 1) + 1
    while high < len(text) and not at_margin(text, high + 1):
        high = text.find("\n", high + 1)
        high = len(text) if high < 0 else high
    return low, high


def at_margin(text: str, at: int) -> bool:
    """Does a definition begin in the line that starts at ``at``?"""
    return text[at : at + 1].isalpha() or text[at : at + 1] in ("@", "#")


def _nearby(text: str, start: int, end: int) -> tuple[int, int]:
    for _ in range(_NEARBY_LINES):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
        following = text.find("\n", end + 1)
        end = len(text) if following < 0 else following
    return start, end
