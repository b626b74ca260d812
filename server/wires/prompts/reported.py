"""What an editor reports of a file, as edit clients write it among the other files of a prompt.

A line is ``line 10: [ERROR] undefined: foo (source: gopls)`` or ``Line 10: [gopls] undefined: x``;
place and brackets may be missing. Its number counts in the file, of which a
prompt shows an excerpt: a report belongs where the names that it quotes stand. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from redraft.model.records import Diagnostic
from redraft.model.rules.diagnostics import undefined_name
from redraft.model.text.names import whole_name

#: What clients call the file of reports.
NAMES = frozenset({"diagnostics", "context/diagnostics"})
#: Reports that are looked at, and characters of one.
MOST, LONGEST = 64, 1_000

_LINE = re.compile(
    r"(?:line (?P<line>\d{1,9}): ?)?(?:\[(?P<tag>[^\]]{1,40})\] ?)?(?P<said>.+)", re.I
)
_SOURCE = re.compile(r" \(source: [^()]{0,80}\)$")
_QUOTED = re.compile(r"['\"`‘“]([^\W\d]\w*)['\"`’”]")
_SEVERITIES = {"error": 1, "warning": 2, "warn": 2, "information": 3, "info": 3, "hint": 4}


@dataclass(frozen=True, slots=True)
class ReportedLine:
    """One line of it."""

    line: int | None  # of the file, 1-based; None: not told
    message: str
    severity: int  # as in ``Diagnostic``


def reports_in(files: Iterable[tuple[str, str]]) -> tuple[ReportedLine, ...]:
    """What is reported in those of ``files``, path and text, that hold reports."""
    found = (one for path, text in files if path.strip() in NAMES for one in _read(text))
    return tuple(one for one, _ in zip(found, range(MOST), strict=False))


def _read(text: str) -> Iterator[ReportedLine]:
    for line in text.splitlines():
        read = _LINE.match(line.strip()[:LONGEST])
        if read is None:
            continue
        tag = (read["tag"] or "").lower()
        number = int(read["line"]) if read["line"] else None
        yield ReportedLine(number, _SOURCE.sub("", read["said"]), _SEVERITIES.get(tag, 1))


def placed(
    reports: Sequence[ReportedLine], lines: Sequence[str], first: int, last: int
) -> tuple[Diagnostic, ...]:
    """Those that belong to one of the lines [first, last), 0-based, beyond doubt."""
    found = []
    for report in reports:
        at = _place(report, lines, first, last)
        if at is not None:
            found.append(Diagnostic(at, report.message, report.severity))
    return tuple(found)


def _place(report: ReportedLine, lines: Sequence[str], first: int, last: int) -> int | None:
    """The line it names where what it quotes stands there, else the only one where it does."""
    undefined = undefined_name(report.message)
    names = {*_QUOTED.findall(report.message), *([undefined] if undefined else [])}
    if not names:
        return None
    patterns = [whole_name(name) for name in names]
    fitting = [at for at in range(first, last) if all(each.search(lines[at]) for each in patterns)]
    if report.line is not None and report.line - 1 in fitting:
        return report.line - 1
    return fitting[0] if len(fitting) == 1 else None
