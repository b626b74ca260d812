"""Thread for short reads of the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class DiskThread:
    """Thread that reads what open documents depend on, so that a slow disk stops nothing else.

    It is not the thread of the index, which waits for git to list a repository. It starts with the
    first job and does not keep the process alive.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Run a job after those before it, and return its result to come."""
        result: Future[T] = Future()
        self._jobs.put((job, result))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="redraft-disk", daemon=True)
            self._thread.start()
        return result

    def _work(self) -> None:
        while True:
            job, result = self._jobs.get()
            if not result.set_running_or_notify_cancel():
                continue
            try:
                result.set_result(job())
            except Exception as error:
                result.set_exception(error)
