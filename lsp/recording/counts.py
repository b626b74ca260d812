"""Counts of suggestions by day, language and kind, and the folder that keeps them.

Each session writes one file for each day, so that several language servers write at once
without a lock. A file holds counts and the names of languages, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import platformdirs
from redraft.model.errors import InvalidRequest, SettingsError
from redraft.model.records import Task
from redraft.model.validation import AnyText, Exactly, object_of, read

from ..context.safe_reading import UnreadableFile, read_file

FORMAT = "redraftStatistics@1.0"
KEPT_DAYS = 90
#: Upper ends of the classes of the wait, in ms; one more class counts longer waits.
WAIT_ENDS_MS = (
    *(10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1_000, 1_500, 2_000, 3_000),
    *(4_000, 6_000, 8_000, 10_000),
)

_FOLDER = "REDRAFT_STATISTICS_DIR"
_FORGOTTEN = "forgotten"  # empty file, whose time says when everything was deleted
_MOST_BYTES = 1_000_000  # of a file: a day of ten languages has 5 kB
_MOST = 10**9  # the largest count that is believed
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-[0-9a-f]{8}\.json(\.tmp)?")
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}", re.ASCII)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_NOINHERIT", "O_BINARY"):
    _WRITE |= getattr(os, _flag, 0)

K = TypeVar("K", bound=tuple[Any, ...] | str)
Ending = Literal["accepted", "typed", "ignored", "rejected"]
_Count = Annotated[int, Exactly(0, _MOST)]


@dataclass(slots=True)
class SuggestionCounts:
    """Counts of suggestions that have ended."""

    accepted: _Count = 0  # by a gesture, wholly or in part
    typed: _Count = 0  # the user typed all of it by hand
    ignored: _Count = 0  # anything else, such as another suggestion in its place
    rejected: _Count = 0
    saved: _Count = 0  # keys that the user did not have to press
    waits: tuple[_Count, ...] = (0,) * (len(WAIT_ENDS_MS) + 1)  # by :data:`WAIT_ENDS_MS`

    @property
    def shown(self) -> int:
        """The number of suggestions."""
        return sum(getattr(self, name) for name in get_args(Ending))

    @property
    def accepted_share(self) -> float:
        """The share that was accepted by a gesture, 0 … 1."""
        return self.accepted / self.shown if self.shown else 0.0

    def add_wait(self, wait_ms: float) -> None:
        """Count the wait for one suggestion."""
        at = sum(end < wait_ms for end in WAIT_ENDS_MS)
        self.waits = (*self.waits[:at], self.waits[at] + 1, *self.waits[at + 1 :])

    @property
    def p50_ms(self) -> int | None:
        """The wait that half of the suggestions did not exceed; None: above the last end."""
        return self._wait_ms(0.5)

    @property
    def p95_ms(self) -> int | None:
        """The wait that 95 % of the suggestions did not exceed; None: above the last end."""
        return self._wait_ms(0.95)

    def _wait_ms(self, share: float) -> int | None:
        reached, wanted = 0, share * sum(self.waits)
        for end, count in zip(WAIT_ENDS_MS, self.waits, strict=False):
            reached += count
            if count and reached >= wanted:
                return end
        return None

    def __add__(self, other: SuggestionCounts) -> SuggestionCounts:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        waits = tuple(map(sum, zip(self.waits, other.waits, strict=True)))
        return SuggestionCounts(**sums, waits=waits)

    def without_negatives(self) -> SuggestionCounts:
        """Return the same with 0 for negative counts: what they correct was deleted."""
        return SuggestionCounts(
            **{name: max(0, getattr(self, name)) for name in _SUMMED}, waits=self.waits
        )


_SUMMED = [each.name for each in fields(SuggestionCounts) if each.name != "waits"]


@dataclass(frozen=True, slots=True)
class CountsRow:
    """The counts of one day, language and kind."""

    day: AnyText  # local, YYYY-MM-DD
    language: AnyText  # LSP language id
    kind: Task
    counts: SuggestionCounts = field(default_factory=SuggestionCounts)


@dataclass(frozen=True, slots=True)
class _StoredDay:
    """Content of a file."""

    format: Literal["redraftStatistics@1.0"]
    rows: tuple[CountsRow, ...]


def sum_counts(
    rows: Iterable[CountsRow], key: Callable[[CountsRow], K]
) -> dict[K, SuggestionCounts]:
    """Return the sums of the rows by a key, in its order."""
    sums: dict[K, SuggestionCounts] = {}
    for row in rows:
        name = key(row)
        sums[name] = sums.get(name, SuggestionCounts()) + row.counts
    return dict(sorted(sums.items()))


def day_of(now_s: float) -> str:
    """Return the local day of a time in s since 1970."""
    return time.strftime("%Y-%m-%d", time.localtime(now_s))


def language_name(id_: str) -> str:
    """Return a language id, or "other" for what cannot be one."""
    return id_ if _LANGUAGE.fullmatch(id_) else "other"


class StatisticsFolder:
    """The statistics of this user: ``REDRAFT_STATISTICS_DIR``, or within the user's data."""

    def __init__(self, folder: Path | None = None) -> None:
        named = os.environ.get(_FOLDER, "").strip()
        known = Path(named).expanduser().absolute() if named else None
        data = platformdirs.user_data_path("redraft", appauthor=False)
        self.folder = folder or known or data / "statistics"

    def add(self, session: str, rows: Iterable[CountsRow]) -> None:
        """Add the rows of a session to those that its files have; counts may be negative.

        Args:
            session: 8 hexadecimal digits.

        Raises:
            OSError: a file cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        by_day: dict[str, list[CountsRow]] = {}
        for row in rows:
            by_day.setdefault(row.day, []).append(row)
        names = []
        for day, some in by_day.items():
            names.append(name := f"{day}-{session}.json")
            with contextlib.suppress(UnreadableFile, InvalidRequest):
                some = [*_rows(read_file(self.folder, name, _MOST_BYTES), day), *some]
            self._write(name, sum_counts(some, lambda row: (row.day, row.language, row.kind)))
        # The caller tries again after an error, so no day is replaced before all are written.
        for name in names:
            (self.folder / f"{name}.tmp").replace(self.folder / name)

    def _write(self, name: str, rows: Mapping[tuple[str, str, Task], SuggestionCounts]) -> None:
        made = [asdict(CountsRow(*key, counts.without_negatives())) for key, counts in rows.items()]
        beside = os.open(self.folder / f"{name}.tmp", _WRITE, 0o600)
        with os.fdopen(beside, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "rows": made}, file, separators=(",", ":"))

    def read(self, days: int, today: date) -> tuple[list[CountsRow], list[str]]:
        """Return the rows of the last days, oldest first, and a sentence on each unusable file."""
        first = (today - timedelta(days=days - 1)).isoformat()
        rows: list[CountsRow] = []
        problems: list[str] = []
        for name, day in sorted(self._files()):
            if day < first or name.endswith(".tmp"):
                continue
            try:
                rows += _rows(read_file(self.folder, name, _MOST_BYTES), day)
            except UnreadableFile as error:
                problems.append(f"{self.folder / name} is left out: it {error}")
            except InvalidRequest as error:
                said = str(error).partition(". ")[0].rstrip(".")
                problems.append(f"{self.folder / name} is left out: {said}; delete it")
        return rows, problems

    def prune(self, today: date) -> None:
        """Delete what is older than :data:`KEPT_DAYS`."""
        first = (today - timedelta(days=KEPT_DAYS - 1)).isoformat()
        self._delete([name for name, day in self._files() if day < first])

    def forget(self) -> int:
        """Delete all statistics, also what running servers have not written yet.

        Return the number of files.

        Raises:
            SettingsError: a file cannot be deleted.
        """
        names = [name for name, _ in self._files()]
        if self.folder.is_dir():
            try:
                (self.folder / _FORGOTTEN).touch(mode=0o600)
            except OSError as error:
                raise SettingsError(f"{self.folder} cannot be written to: {error}") from error
        left = self._delete(names)
        if left:
            raise SettingsError(f"{self.folder / left[0]} cannot be deleted; delete it by hand")
        return len(names)

    def was_deleted_since(self, since_s: float) -> bool:
        """Return whether everything was deleted after a time, in s since 1970."""
        try:
            return (self.folder / _FORGOTTEN).lstat().st_mtime > since_s
        except OSError:
            return False

    def _delete(self, names: Sequence[str]) -> list[str]:
        """Delete some files, and return those that stay."""
        left = []
        for name in names:
            try:
                (self.folder / name).unlink(missing_ok=True)
            except OSError:
                left.append(name)
        return left

    def _files(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the day of each file; other files of the folder are left alone."""
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is not None and not entry.is_dir(follow_symlinks=False):
                yield entry.name, match[1]


def _rows(data: bytes, day: str) -> tuple[CountsRow, ...]:
    """Return the rows of a file.

    Raises:
        InvalidRequest: they cannot be used.
    """
    content = object_of(data)
    if content.get("format") != FORMAT:
        raise InvalidRequest(f"it is no file of the format {FORMAT}")
    rows = read(_StoredDay, content, whole="file").rows
    for row in rows:
        is_ours = row.day == day and row.language == language_name(row.language)
        if not is_ours or row.kind == "chat" or len(row.counts.waits) != len(WAIT_ENDS_MS) + 1:
            raise InvalidRequest("a row has an impossible day, language, kind or number of waits")
    return rows
