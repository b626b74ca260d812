"""Fills the index in the background: one thread that works in small bites and stands back.

Python runs one thread at a time, so what matters to the editor is how long this one holds on to the
interpreter. It rests after every few milliseconds of work for as long as it worked, and for longer
while the user types. The operating system is not asked for a lower priority: a thread put to sleep
while it holds the interpreter would make the editor wait. Knows nothing of what the index is for.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .index import TEXT_BYTES, Index, make_entry
from .workspace import (
    MOST_FILES,
    Found,
    find_files,
    is_made,
    read_code,
    stamp_of,
    unfit_folder,
)

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0  # between two looks, while the user works, for changes nobody told of
_RENEW_S = 2.0  # at most so long until readers see what was found in a small workspace
_RENEW_FILES = 1_000  # so many more make it as long again: it takes time by their number
_TYPING_S = 0.3  # after a keystroke the user counts as typing
_BREATHER_S = 0.04  # between two files meanwhile
_SHORTEST_REST_S = 0.0005
_SWITCH_S = 0.001
_OPEN_STAMP = -1  # in place of the time of a file's last change: its text comes from the editor

Refuse = Callable[[str], str]
OnIndexed = Callable[[int, int], None]  # files done, files in all


class Indexer:
    """Keeps an :class:`Index` of some folders and of the open documents.

    Args:
        refuse: why the file at a path must not be read, "" if it may be.
        text_bytes: of compressed texts to keep.
        background: work in a thread of its own; else only where :meth:`catch_up` is called.
    """

    def __init__(
        self,
        refuse: Refuse,
        clock: Callable[[], float] = time.monotonic,
        text_bytes: int = TEXT_BYTES,
        background: bool = True,
    ) -> None:
        self.index = Index(text_bytes)
        self._refuse = refuse
        self._clock = clock
        self._background = background
        self._folders: tuple[Path, ...] = ()
        self._opened: dict[str, tuple[int, str, str]] = {}  # path: revision, language, text
        self._revisions: dict[str, int] = {}  # of open documents, as the index has them
        self._files: dict[str, Found] = {}
        self.unread: dict[Path, str] = {}  # folders of the last look, and why nothing was listed
        self._jobs: list[Callable[[Callable[[], None]], None]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._look_again = True
        self._looked_at = self._renewed_at = 0.0
        self._worked_until = 0.0  # seconds of processor time of the thread
        self._typed_at = float("-inf")
        self._thread: threading.Thread | None = None

    # --- called from any thread; all of these return at once ---------------------------------

    def start(self) -> None:
        if self._background and self._thread is None and not self._stopping.is_set():
            # By default a thread that wants the interpreter waits 5 ms for it. The editor's shall
            # not: it costs the one in the background a few percent.
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
            self._thread = threading.Thread(target=self._run, name="redraft-index", daemon=True)
            self._thread.start()

    def stop(self, wait_s: float = 2.0) -> None:
        """End the thread; it finishes the file it is at."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    def watch(self, folders: Sequence[Path]) -> None:
        """Index these folders and no others."""
        self._folders = tuple(folders)
        self.look_again()

    def look_again(self) -> None:
        """Files may have changed on disk."""
        self._look_again = True
        self._wake.set()

    def opened(self, path: str, language: str, revision: int, text: Callable[[], str]) -> None:
        """A document as the editor has it now. Costs nothing where ``revision`` is known."""
        with self._lock:
            waiting = self._opened.get(path)
            known = self._revisions.get(path) if waiting is None else waiting[0]
            if known != revision:
                self._opened[path] = (revision, language, text())
                self._revisions.setdefault(path, 0)
                self._wake.set()

    def closed(self, path: str) -> None:
        """From now on the file on disk counts."""
        with self._lock:
            self._opened.pop(path, None)
            known = self._revisions.pop(path, None)
        if known is not None:
            self.look_again()

    def open_paths(self) -> set[str]:
        with self._lock:
            return set(self._revisions)

    def typing(self) -> None:
        """The user is at work: stand back for a moment, and see to it now and then."""
        self._typed_at = self._clock()
        if self._typed_at - self._looked_at >= LOOK_AGAIN_S:
            self._wake.set()

    def fetch_missed(self) -> None:
        """Read the texts again that were asked for in vain."""
        if self.index.misses:
            self._wake.set()

    def later(self, job: Callable[[Callable[[], None]], None]) -> None:
        """Run ``job`` in the background; it is given what to call every few milliseconds."""
        with self._lock:
            self._jobs.append(job)
        self._wake.set()

    def catch_up(self) -> None:
        """Do all that waits, here and now: for replays, whose clock stands still meanwhile."""
        assert not self._background  # two threads would fill one index
        self._wake.clear()
        self._work()

    @property
    def is_idle(self) -> bool:
        """Is there nothing left to do, as far as is known?"""
        return self._idle.is_set() and not self._wake.is_set()

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception:
                logger.exception("indexing failed; it goes on with the next change")
            self._idle.set()
            self._wake.wait()
            self._idle.clear()
            self._wake.clear()

    def _work(self) -> None:
        self._urgent()
        due = self._clock() - self._looked_at >= LOOK_AGAIN_S
        if self._look_again or due:
            self._look_again = False
            self._scan()
            self._looked_at = self._clock()
            self._renew()
            _give_back()
        if self.index.is_stale:
            self._renew()

    def _scan(self) -> None:
        """Read what changed in the folders, and forget what is gone."""
        unread: dict[Path, str] = {}
        found = within(self._folders, self._refuse, self.open_paths(), unread.__setitem__)
        for folder, why in unread.items():
            if self.unread.get(folder) != why:
                logger.warning("nothing of %s is indexed: %s", folder, why)
        self.unread = unread
        self._files = {each.path: each for each in found}
        for each in found:
            if self._stopping.is_set() or self._look_again:
                return
            self._urgent()
            if each.path not in self._revisions and self._refresh(each):
                self._breathe()
        forget(self.index, self._files.keys() | self.open_paths())

    def _refresh(self, found: Found) -> bool:
        """Read a file again if it changed; one that cannot be indexed stops no other."""
        try:
            return refresh(self.index, found, self._rest)
        except Exception:
            logger.exception("%s cannot be indexed", found.path)
            self.index.put_unfit(found.path, stamp_of(found.file) or (0, 0))
            return True

    def _urgent(self) -> None:
        """What somebody waits for: jobs, open documents, texts given up too early."""
        while (job := self._next_job()) is not None and not self._stopping.is_set():
            try:
                job(self._rest)
            except Exception:
                logger.exception("a job in the background failed")
        while (item := self._next_opened()) is not None and not self._stopping.is_set():
            self._put_opened(*item)
        for path in self.index.missed():
            found = self._files.get(path)
            text = read_code(found.folder, found.path) if found is not None else None
            if text is not None:
                self.index.put_text(path, text)
        due_s = _RENEW_S * (1 + len(self.index.snapshot) / _RENEW_FILES)
        if self.index.is_stale and self._clock() - self._renewed_at >= due_s:
            self._renew()

    def _next_job(self) -> Callable[[Callable[[], None]], None] | None:
        with self._lock:
            return self._jobs.pop(0) if self._jobs else None

    def _next_opened(self) -> tuple[str, int, str, str] | None:
        with self._lock:
            if not self._opened:
                return None
            path = next(iter(self._opened))
            revision, language, text = self._opened.pop(path)
            self._revisions[path] = revision
            return path, revision, language, text

    def _put_opened(self, path: str, revision: int, language: str, text: str) -> None:
        if self._refuse(path) or is_made(text):
            return
        entry = make_entry(path, language, text, (_OPEN_STAMP, revision), self._rest)
        self.index.put(entry, text)
        self._breathe()

    def _renew(self) -> None:
        self.index.renew()
        self._renewed_at = self._clock()
        self._rest()

    def _rest(self) -> None:
        """Sleep for as long as was worked since the last time."""
        if not self._background:
            return
        worked = time.thread_time() - self._worked_until
        time.sleep(max(_SHORTEST_REST_S, worked))
        self._worked_until = time.thread_time()

    def _breathe(self) -> None:
        self._rest()
        if self._background and self._clock() - self._typed_at < _TYPING_S:
            self._stopping.wait(_BREATHER_S)


def _give_back() -> None:
    """Parsing leaves holes in the heap: hand them back where the C library can, 8 MB of 5,000 files
    by measurement."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


# --- the work itself ---------------------------------------------------------------------------


def fill(index: Index, folders: Sequence[Path], refuse: Refuse, progress: OnIndexed) -> None:
    """Index some folders at once, here; for commands and benchmarks."""
    found = within(folders, refuse, ())
    for done, each in enumerate(found):
        progress(done, len(found))
        refresh(index, each)
    forget(index, {each.path for each in found})
    index.renew()


def within(
    folders: Iterable[Path],
    refuse: Refuse,
    near: Iterable[str],
    unread: Callable[[Path, str], None] = lambda folder, why: None,
) -> list[Found]:
    """The files of all folders, those close to the paths ``near`` first; where two folders have a
    file of the same path, or one is inside the other, the inner one's counts.

    Args:
        unread: told of each folder of which nothing can be listed, and why; the others still are.
    """
    found: dict[str, Found] = {}
    taken: set[str] = set()
    for folder in sorted(set(folders), key=lambda each: -len(each.parts)):
        for each in _listed(folder, refuse, unread):
            if each.file not in taken:
                taken.add(each.file)
                found.setdefault(each.path, each)
    close = [path.split("/")[:-1] for path in near]
    ranked = sorted(found.values(), key=lambda each: -_closeness(each.path, close))
    return ranked[:MOST_FILES]


def _listed(folder: Path, refuse: Refuse, unread: Callable[[Path, str], None]) -> Sequence[Found]:
    why = unfit_folder(folder)
    if not why:
        try:
            return find_files(folder, refuse)
        except Exception as error:
            logger.exception("listing %s failed", folder)
            why = f"listing it failed: {type(error).__name__}: {error}"
    unread(folder, why)
    return ()


def _closeness(path: str, folders: list[list[str]]) -> float:
    """How much of the way to one of the folders a path goes along."""
    parts = path.split("/")[:-1]
    best = 0.0
    for folder in folders:
        shared = 0
        while shared < min(len(parts), len(folder)) and parts[shared] == folder[shared]:
            shared += 1
        best = max(best, (1 + shared) / (1 + max(len(parts), len(folder))))
    return best


def refresh(index: Index, found: Found, rest: Callable[[], None] | None = None) -> bool:
    """Read a file again if it changed; whether it did."""
    stamp = stamp_of(found.file)
    if stamp is None or stamp == index.stamp(found.path):
        return False
    text = read_code(found.folder, found.path)
    if text is None:
        index.put_unfit(found.path, stamp)
        return True
    index.put(make_entry(found.path, found.language, text, stamp, rest), text, keep=False)
    return True


def forget(index: Index, paths: Iterable[str]) -> None:
    """Drop every file but these."""
    for path in set(index.paths()) - set(paths):
        index.remove(path)
