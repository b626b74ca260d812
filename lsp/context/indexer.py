"""Background thread that fills the index in small steps.

Python runs one thread at a time, so what matters to the editor is how long this one holds the
interpreter. It rests after every few milliseconds of work for as long as it worked, and longer
while the user types. It does not run at a lower priority: a thread that the system stops while it
holds the interpreter would make the editor wait.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from ..documents.uris import code_language
from ..policy.ignore_files import IgnoreRules
from .index import Index, make_entry
from .listing import MOST_FILES, Found, find_files, is_generated, read_code, stamp_of, unfit_folder

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0  # between two looks, while the user works, for changes that no client reported
_CHANGES_S = 2.0  # changes within this time cause one look
_LISTING_SHARE = 4  # times the length of a look until the next one, where changes do not end
_RENEW_S = 2.0  # at most until readers see what was found in a small workspace
_RENEW_FILES = 1_000  # so many more make it as long again: it takes time by their number
_TYPING_S = 0.3  # after a key the user counts as typing
_BREATHER_S = 0.04  # between two files while the user types
_SHORTEST_REST_S = 0.0005
_SWITCH_S = 0.001
_OPEN_STAMP = -1  # in place of the time of a file's last change: its text comes from the editor

Refuse = Callable[[str], str]  # why the file at a path must not be read, "" if it may be
OnIndexed = Callable[[int, int], None]  # files done, all files
Job = Callable[[Callable[[], None]], None]  # is given what to call every few milliseconds


class Indexer:
    """Keeps an :class:`Index` of some folders and of the open documents.

    Args:
        refuse: why the file at a path must not be read, "" if it may be.
        clock: reads seconds and never goes back.
        background: work in a thread; else only where :meth:`catch_up` is called.
    """

    def __init__(
        self,
        refuse: Refuse,
        clock: Callable[[], float] = time.monotonic,
        background: bool = True,
    ) -> None:
        self.index = Index()
        self.unread: dict[Path, str] = {}  # folders of the last look of which nothing is listed
        self.rules = IgnoreRules()  # as of the last look
        self.has_looked = False  # every file was seen at least once
        #: Called in the thread: with the names of a folder, and to read more ignore files.
        self.listed: Callable[[Path, Sequence[str]], None] = lambda _folder, _names: None
        self.read_rules: Callable[[IgnoreRules], None] = lambda _: None
        self._refuse, self._clock, self._background = refuse, clock, background
        self._folders: tuple[Path, ...] = ()
        self._opened: dict[str, tuple[int, str, str]] = {}  # path: revision, language, text
        self._revisions: dict[str, int] = {}  # of open documents, as the index has them
        self._files: dict[str, Found] = {}
        self._jobs: list[Job] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._look_at_s: float | None = 0.0  # when to look again; by the machine's clock
        self._look_s = 0.0  # length of the last look
        self._looked_at = self._renewed_at = 0.0
        self._saved: set[str] = set()  # paths of files to read again
        self._worked_until = 0.0  # seconds of processor time of the thread
        self._typed_at = float("-inf")
        self._thread: threading.Thread | None = None

    # --- called from any thread; all of these return at once ---------------------------------

    def start(self) -> None:
        """Start the thread, once."""
        if self._background and self._thread is None and not self._stopping.is_set():
            # By default a thread that wants the interpreter waits 5 ms for it. A shorter wait helps
            # the editor and costs this thread a few percent.
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
            self._thread = threading.Thread(target=self._run, name="redraft-index", daemon=True)
            self._thread.start()

    def stop(self, wait_s: float = 2.0) -> None:
        """End the thread; it finishes its file."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    def watch(self, folders: Sequence[Path]) -> None:
        """Index these folders and no others."""
        self._folders = tuple(folders)
        self.look_again()

    def look_again(self, wait_s: float = 0.0) -> None:
        """Look for files that changed on disk, in so many seconds."""
        due_s = time.monotonic() + wait_s
        if self._look_at_s is None or due_s < self._look_at_s:
            self._look_at_s = due_s
            self._wake.set()

    def on_change(self) -> None:
        """Look for files that changed on disk, once for all changes within two seconds."""
        self.look_again(max(_CHANGES_S, _LISTING_SHARE * self._look_s))

    def on_save(self, path: str) -> None:
        """Read a file again that was saved."""
        with self._lock:
            self._saved.add(path)
        self._wake.set()

    def on_open(self, path: str, language: str, revision: int, text: Callable[[], str]) -> None:
        """Index a document as the editor has it, unless its revision is known."""
        with self._lock:
            waiting = self._opened.get(path)
            known = self._revisions.get(path) if waiting is None else waiting[0]
            if known != revision:
                self._opened[path] = (revision, language, text())
                self._revisions.setdefault(path, 0)
                self._wake.set()

    def on_close(self, path: str) -> None:
        """Index the file on disk from now on."""
        with self._lock:
            self._opened.pop(path, None)
            known = self._revisions.pop(path, None)
        if known is not None:
            self.on_save(path)

    def open_paths(self) -> set[str]:
        """Return the paths of the open documents."""
        with self._lock:
            return set(self._revisions)

    def note_typing(self) -> None:
        """Note that the user is at work: rest longer for a moment, and look again now and then."""
        self._typed_at = self._clock()
        if self._typed_at - self._looked_at >= LOOK_AGAIN_S:
            self._wake.set()

    def fetch_missed(self) -> None:
        """Read the dropped texts again that were asked for."""
        if self.index.misses:
            self._wake.set()

    def later(self, job: Job) -> None:
        """Run ``job`` in the background."""
        with self._lock:
            self._jobs.append(job)
        self._wake.set()

    def catch_up(self) -> None:
        """Index all that waits, in this thread; for replays, whose clock is simulated."""
        assert not self._background  # two threads would fill one index
        self._wake.clear()
        self._work()

    def file_at(self, path: str) -> Found | None:
        """Return the file at a path, None if the last look did not list it."""
        return self._files.get(path)

    @property
    def is_complete(self) -> bool:
        """True if every file of the workspace was seen, and each has one path."""
        return not self._folders or (len(self._folders) == 1 and self.has_looked)

    @property
    def is_idle(self) -> bool:
        """True if nothing is left to do."""
        return self._idle.is_set() and not self._wake.is_set() and self._look_at_s is None

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception:
                logger.exception("indexing failed; it goes on with the next change")
            self._idle.set()
            due_s = self._look_at_s
            self._wake.wait(None if due_s is None else max(0.0, due_s - time.monotonic()))
            self._idle.clear()
            self._wake.clear()

    def _work(self) -> None:
        self._do_urgent()
        if self._is_due() or self._clock() - self._looked_at >= LOOK_AGAIN_S:
            self._look_at_s = None
            self._scan()
            is_whole = not self._is_due()
            self._looked_at = self._clock()
            self._renew()
            self.has_looked = self.has_looked or is_whole
            _trim_heap()
        if self.index.is_stale:
            self._renew()

    def _is_due(self) -> bool:
        """Return whether to look at the folders now; without a thread nothing waits."""
        due_s = self._look_at_s
        return due_s is not None and (not self._background or time.monotonic() >= due_s)

    def _scan(self) -> None:
        """Read the files that changed in the folders, and forget those that are gone."""
        unread, rules = dict[Path, str](), IgnoreRules()
        began_s = time.monotonic()
        found = within(
            *(self._folders, self._refuse, self.open_paths(), unread, rules),
            find=partial(find_files, listed=self.listed, rest=self._rest),
        )
        self._look_s = time.monotonic() - began_s
        for folder, why in unread.items():
            if self.unread.get(folder) != why:
                logger.warning("nothing of %s is indexed: %s", folder, why)
        self.read_rules(rules)
        self.unread, self.rules = unread, rules
        self._files = {each.path: each for each in found}
        for each in found:
            if self._stopping.is_set() or self._is_due():
                return
            self._do_urgent()
            if each.path in self._revisions or self._refuse(each.path):
                continue
            if _refresh(self.index, each, self._rest):
                self._breathe()
        _forget(self.index, self._files.keys() | self.open_paths())

    def _do_urgent(self) -> None:
        """Work on what a query waits for: jobs, open documents, texts that were dropped."""
        while (job := self._next_job()) is not None and not self._stopping.is_set():
            try:
                job(self._rest)
            except Exception:
                logger.exception("a job in the background failed")
        while (opened := self._next_opened()) is not None and not self._stopping.is_set():
            path, revision, language, text = opened
            if not (self._refuse(path) or is_generated(text)):
                entry = make_entry(path, language, text, (_OPEN_STAMP, revision), self._rest)
                self.index.put(entry, text)
                self._breathe()
        for path in self._take_saved():
            self._read_saved(path)
        for path in self.index.take_missed():
            found = self._files.get(path)
            may_read = found is not None and not self._refuse(path)
            missed = read_code(found.folder, found.path) if found and may_read else None
            if missed is not None:
                self.index.put_text(path, missed)
        due_s = _RENEW_S * (1 + len(self.index.generation) / _RENEW_FILES)
        if self.index.is_stale and self._clock() - self._renewed_at >= due_s:
            self._renew()

    def _take_saved(self) -> set[str]:
        with self._lock:
            saved, self._saved = self._saved, set()
            return saved

    def _read_saved(self, path: str) -> None:
        """Read one file again; a new one may be ignored, so the folders are listed for it."""
        found = self._files.get(path)
        if path in self._revisions:
            return  # the text of the editor counts
        if found is None or self._refuse(path):
            self.index.remove(path)
            if code_language(path) is not None and found is None:
                self.on_change()
        elif _refresh(self.index, found, self._rest):
            self._breathe()

    def _next_job(self) -> Job | None:
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

    def _renew(self) -> None:
        self.index.renew()
        self._renewed_at = self._clock()
        self._rest()

    def _rest(self) -> None:
        """Sleep for as long as this thread worked since the last time."""
        if self._background:
            worked = time.thread_time() - self._worked_until
            time.sleep(max(_SHORTEST_REST_S, worked))
            self._worked_until = time.thread_time()

    def _breathe(self) -> None:
        self._rest()
        if self._background and self._clock() - self._typed_at < _TYPING_S:
            self._stopping.wait(_BREATHER_S)


def _trim_heap() -> None:
    """Return the holes that parsing left in the heap to the system: 8 MB after 5,000 files."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


# --- the work itself ---------------------------------------------------------------------------


def fill(index: Index, folders: Sequence[Path], refuse: Refuse, progress: OnIndexed) -> None:
    """Index some folders at once, here; for commands and benchmarks."""
    found = within(folders, refuse, (), {}, IgnoreRules())
    for done, each in enumerate(found):
        progress(done, len(found))
        _refresh(index, each)
    _forget(index, {each.path for each in found})
    index.renew()


def within(
    folders: Iterable[Path],
    refuse: Refuse,
    near: Iterable[str],
    unread: dict[Path, str],
    rules: IgnoreRules,
    find: Callable[..., list[Found]] = find_files,
) -> list[Found]:
    """Return the files of all folders.

    Where two folders have a file of the same path, or one is inside the other, the inner one's
    counts.

    Args:
        near: paths; files close to them come first.
        unread: receives each folder of which nothing can be listed, and why.
        rules: receives the ``.redraftignore`` files.
        find: :func:`find_files`, with the arguments that it is called with.
    """
    found: dict[str, Found] = {}
    taken: set[str] = set()
    for folder in sorted(set(folders), key=lambda each: -len(each.parts)):
        why = unfit_folder(folder)
        files: Sequence[Found] = ()
        try:
            files = files if why else find(folder, refuse, rules)
        except Exception as error:
            logger.exception("listing %s failed", folder)
            why = f"listing it failed: {type(error).__name__}: {error}"
        if why:
            unread[folder] = why
        for each in files:
            if each.file not in taken:
                taken.add(each.file)
                found.setdefault(each.path, each)
    close = [path.split("/")[:-1] for path in near]
    ranked = sorted(found.values(), key=lambda each: -_closeness(each.path, close))
    return ranked[:MOST_FILES]


def _closeness(path: str, folders: list[list[str]]) -> float:
    """Return the largest share of its folders that a path has in common with one of ``folders``."""
    parts = path.split("/")[:-1]
    best = 0.0
    for folder in folders:
        shared = 0
        while shared < min(len(parts), len(folder)) and parts[shared] == folder[shared]:
            shared += 1
        best = max(best, (1 + shared) / (1 + max(len(parts), len(folder))))
    return best


def _refresh(index: Index, found: Found, rest: Callable[[], None] | None = None) -> bool:
    """Read a file again if it changed, and return whether it did. A failure stops no other file."""
    stamp = stamp_of(found.file)
    if stamp is None or stamp == index.stamp(found.path):
        return False
    try:
        text = read_code(found.folder, found.path)
        if text is not None:
            entry = make_entry(found.path, found.language, text, stamp, rest)
            index.put(entry, text, keep=False)
            return True
    except Exception:
        logger.exception("%s cannot be indexed", found.path)
    index.put_unfit(found.path, stamp)
    return True


def _forget(index: Index, paths: Iterable[str]) -> None:
    """Drop every file but these."""
    for path in set(index.paths()) - set(paths):
        index.remove(path)
