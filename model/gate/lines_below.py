"""Lines of ghost text that the file already has below the cursor, in any language.

Models write on past their place: an answer ends in the closing line, or goes on with the next
clause, that stands there already. Most grammars do not notice: a shell reads a second ``fi`` as the
name of a command. Blocks are recognised by indentation and by the marks that end them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..text.cursor import indent_of, line_after, line_before

_LINES_BELOW = 200  # of the file that are compared

#: Lines that only end a block whose beginning is as deep: brackets, and the words for "end".
_ENDS = re.compile(r"[)}\]]+[;,]?$|(?:end\w*|fi|done|esac)\b(?!\s*[=(]\s*\w)", re.IGNORECASE)
#: Clauses within a block: a line that ends one part and begins the next.
_CLAUSE = re.compile(
    r"(?:\}\s*)?(?:else|elif|elsif|elseif|rescue|ensure|catch|except|finally|when|case|default)\b"
)
_FENCE = re.compile(r"```+|~~~+|\"\"\"|'''")
_TAG = re.compile(r"</([\w:.-]+)\s*>")
#: Marks that begin a block, and those that end it or a part of it, at any depth.
_MARKS = (
    (re.compile(r"\s*#\s*if"), re.compile(r"\s*#\s*(?:endif|else|elif\w*)\b"), "endif"),
    (re.compile(r"\\begin\{"), re.compile(r"\\end\{"), "end"),
    (re.compile(r"/\*"), re.compile(r"\*/"), "*/"),
    (re.compile(r"<!--"), re.compile(r"-->"), "-->"),
    (
        re.compile(r"\{%-?\s*(?:if|for|block|macro|call|filter|with|raw|unless|case)\b"),
        re.compile(r"\{%-?\s*(?:end|else|elif|elsif|when)"),
        "end",
    ),
)
#: Languages in which a line break within a statement means nothing, and what begins their clauses.
_FREE_FORM = {
    "sql": re.compile(
        r"(?:from|where|group|order|having|limit|join|inner|left|right|full|cross|on|values|set"
        r"|union|returning)\b",
        re.IGNORECASE,
    )
}
#: Languages of data, in which no key stands twice in one block.
_DATA = ("yaml", "toml", "ini", "properties")


def without_repeats(written: str, text: str, cursor: int, language: str) -> Iterator[str]:
    """Yield ``written`` without the lines that follow it in the file, the longest text first.

    A line that ends a block which the text itself begins is no repeat.

    Args:
        written: goes in at ``text[cursor]``.
        language: LSP id, "" if unknown.
    """
    before, below = line_before(text, cursor), _lines_below(text, cursor)
    lines = written.split("\n")
    is_above = bool(line_after(text, cursor).strip())
    if not below or not written.strip() or (is_above and before.strip()):
        return  # within a line other rules find what follows
    whole = [before + lines[0], *lines[1:]]
    kept = _without_end(lines, whole, below, language)
    if kept is None:
        at = _first_repeat(lines, whole, below, language)
        kept = None if at is None else "\n".join(lines[:at])
    if kept is None:
        return
    if is_above and "\n" in written:
        yield kept.rstrip() + "\n" + before if kept.strip() else ""
    else:
        yield kept.rstrip()


def _lines_below(text: str, cursor: int) -> list[str]:
    """Return the lines behind the cursor that are not blank, the rest of its line included."""
    rest = line_after(text, cursor)
    first, *below = text[cursor:].split("\n", _LINES_BELOW)[:_LINES_BELOW]
    lines = [line.rstrip() for line in below if line.strip()]
    return [line_before(text, cursor) + first.rstrip(), *lines] if rest.strip() else lines


# --- repeats at the end --------------------------------------------------------------------------


def _without_end(
    lines: Sequence[str], whole: Sequence[str], below: Sequence[str], language: str
) -> str | None:
    """Return the text without last lines that are the next ones of the file; None: there are none.

    Args:
        lines: of the text.
        whole: the same, the first with what stands before it.
        below: the next lines of the file.
    """
    last = [at for at, line in enumerate(whole) if line.strip()]
    for count in range(min(len(last), len(below)), 0, -1):
        first = last[-count]
        rest = [whole[at].rstrip() for at in last[len(last) - count + 1 :]]
        if rest != [*below[1:count]]:
            continue
        if first > 0 and whole[first].rstrip() == below[0]:
            if not _ends_own_block(_own(lines, whole), below[0]):
                return "\n".join(lines[:first])
        elif first == 0 and _is_all(lines[0], whole[0], below[0]):
            return ""
        elif (size := _end_of_line(_own(lines, whole), first, below[0], language)) is not None:
            return "\n".join([*lines[:first], lines[first].rstrip()[:-size]])
    return None


def _is_all(line: str, whole: str, below: str) -> bool:
    """Return whether the first line is all of the next one, which ends a block."""
    return whole.strip() == line.strip() == below.strip() and _surplus([whole], below) is not None


def _own(lines: Sequence[str], whole: Sequence[str]) -> list[str]:
    """Return the lines with blanks in place of what the user wrote of the first."""
    return [" " * (len(whole[0]) - len(lines[0])) + lines[0], *lines[1:]]


def _end_of_line(own: Sequence[str], at: int, below: str, language: str) -> int | None:
    """Return the characters at the end of a line that repeat the next one; None: they do not.

    Only a tag and the like, or a clause of a language that heeds no line breaks: ``x = a or b``
    above ``b`` repeats nothing.
    """
    wanted, line = below.strip(), own[at].rstrip()
    if not line.endswith(wanted) or line.strip() == wanted:
        return None
    clause = _FREE_FORM.get(language)
    if clause is not None and clause.match(wanted) and line[: -len(wanted)][-1:].isspace():
        return len(wanted)
    marked = _TAG.match(wanted) or any(end.match(wanted) for _, end, _ in _MARKS)
    return len(wanted) if marked and not _ends_own_block(own, below) else None


# --- repeats within ------------------------------------------------------------------------------


def _first_repeat(
    lines: Sequence[str], whole: Sequence[str], below: Sequence[str], language: str
) -> int | None:
    """Return the first line with which the text goes on as the file does; None: there is none.

    That is where it leaves the cursor's block as the file leaves it, or where it begins the block
    that stands next: its other lines may differ, as the model does not know them.
    """
    own, is_begun = _own(lines, whole), whole[0].strip() != lines[0].strip()
    depth = _depth(whole[0]) if whole[0].strip() else _depth(_next(whole, 0))
    leaving = next((line for line in below if _depth(line) < depth), None)
    for at, raw in enumerate(whole):
        line = raw.rstrip()
        if not line or (at == 0 and (is_begun or language not in _DATA)):
            continue
        if line == leaving or (line == below[0] and _marks_part(line)):
            if not _ends_own_block(own[:at] if _CLAUSE.match(line.strip()) else own, line):
                return at
        elif line == below[0] and _depth(line) == depth and not _surplus(own, line):
            is_header = _depth(_next(whole, at)) > depth and _depth("".join(below[1:2])) > depth
            is_key = language in _DATA and not line.lstrip().startswith(("-", "#"))
            if (is_header or is_key) and not _continues(own[:at], line):
                return at
    return None


def _continues(above: Sequence[str], line: str) -> bool:
    """Return whether a line is a clause of a block that the lines above it begin."""
    return _CLAUSE.match(line.strip()) is not None and _ends_own_block(above, line)


def _marks_part(line: str) -> bool:
    """Return whether a line ends a block, or a part of it, by a mark at any depth."""
    return any(end.match(line.strip()) for _, end, _ in _MARKS) or _FENCE.match(line) is not None


# --- blocks --------------------------------------------------------------------------------------


def _ends_own_block(whole: Sequence[str], line: str) -> bool:
    """Return whether a line, or a clause, belongs to a block that these lines begin."""
    if _CLAUSE.match(line.strip()):
        return _opened(whole, line) > 0
    surplus = _surplus(whole, line)
    return surplus is not None and surplus <= 0


def _surplus(whole: Sequence[str], line: str) -> int | None:
    """Return how many more blocks the lines end than they begin, of those that ``line`` ends.

    None: it ends no block.
    """
    mark = line.strip()
    if fence := _FENCE.match(mark):
        return sum(each.count(fence[0]) for each in whole) % 2
    text = "\n".join(whole)
    if tag := _TAG.match(mark):
        opened = re.findall(rf"<{re.escape(tag[1])}\b(?![^<>]*/>)", text)
        return len(re.findall(rf"</{re.escape(tag[1])}\b", text)) - len(opened)
    for begins, ends, end in _MARKS:
        if ends.match(mark):
            ended = sum(end in each for each in whole if ends.search(each))
            is_part = end not in mark  # such as "#else", which belongs to what is open
            return ended - sum(len(begins.findall(each)) for each in whole) + is_part
    return -_opened(whole, line) if _ENDS.match(mark) else None


def _opened(whole: Sequence[str], line: str) -> int:
    """Return how many blocks as deep as ``line`` the lines begin, less those that they end."""
    depth, count = _depth(line), 0
    for at, each in enumerate(whole):
        if not each.strip() or _depth(each) != depth:
            continue
        if _ENDS.match(each.strip()):
            count -= 1
        elif not _CLAUSE.match(each.strip()) and _depth(_next(whole, at)) > depth:
            count += 1
    return count


def _next(lines: Sequence[str], at: int) -> str:
    """Return the next line that is not blank, "" if there is none."""
    return next((line for line in lines[at + 1 :] if line.strip()), "")


def _depth(line: str) -> int:
    return len(indent_of(line))
