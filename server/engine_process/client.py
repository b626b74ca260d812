"""Client of the shared engine process: joins it, starts it, and restarts it after a crash.

``EngineClient`` is a ``Predictor`` that outlives engine processes. When the process has ended or
hangs, another is started, and the request that was lost is asked once more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

import psutil
from redraft.model.errors import EngineGone, ModelNotReady, RedraftError, Unauthorized
from redraft.model.records import EditRequest, ModelStatus, Prediction, StepCallback
from redraft.model.release import BUILD
from redraft.model.remote import RemotePredictor, until_ready

from ..settings import Settings
from .liveness import POLL_S, end_if_hung, reach
from .rendezvous import DEFAULT_ENGINE, Endpoint, Rendezvous

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Flags that let a process outlive its starter on Windows.
if sys.platform == "win32":
    DETACHED_FLAGS = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
else:
    DETACHED_FLAGS = 0

#: Seconds within which crashes belong to one series, and the longest pause between two starts.
CRASH_WINDOW_S, MAX_BACKOFF_S = 120.0, 30.0

#: Seconds that a request waits for an engine that starts, or for a model that is loaded again.
#: Whatever happens, it is answered or refused within 2 s; the start continues.
PATIENCE_S = 1.5

#: Seconds without an answer after which the engine's status is asked for, repeatedly; and the
#: seconds that a request waits for that status.
LOOK_S, SILENT_S = 1.0, 0.9


async def join_running(settings: Settings) -> RemotePredictor | None:
    """Return the running engine process, or None. It is neither started nor kept alive."""
    endpoint = Rendezvous.of(settings).read()
    return None if endpoint is None else await reach(endpoint, end_hung=False)


class EngineClient:
    """A ``Predictor`` over the engine process, joined or started at the first call.

    Args:
        engine: what the process runs, as ``module:callable``; tests choose another.
        patience_s: seconds that a request waits while there is no engine or no model.
    """

    def __init__(
        self, settings: Settings, engine: str = DEFAULT_ENGINE, patience_s: float = PATIENCE_S
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._patience_s = patience_s
        self._running: _Running | None = None
        self._starting: asyncio.Task[_Running] | None = None
        self._crashes = _Crashes(settings.backoff_s)
        self._has_answered = False  # any engine, to any request
        self._is_closed = False

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """Predict, and restart the engine if it ends meanwhile.

        Raises:
            ModelNotReady: the engine starts, or loads its model.
            EngineGone: it cannot be started, or ended twice during this request.
        """
        deadline = time.monotonic() + self._patience_s

        async def ask(remote: RemotePredictor) -> Prediction:
            while True:
                try:
                    return await remote.predict(request, on_step)
                except ModelNotReady:  # wait only for a model that is loaded again
                    if not self._has_answered or time.monotonic() >= deadline:
                        raise
                    if not (await until_ready(remote, deadline_s=deadline)).can_answer:
                        raise

        prediction = await self._call(ask, deadline)
        self._has_answered = True
        return prediction

    async def status(self) -> ModelStatus:
        """Return the engine's status; "loading" while it starts."""
        try:
            return await self._call(RemotePredictor.status, time.monotonic() + self._patience_s)
        except ModelNotReady as error:
            return ModelStatus("loading", self._settings.model, message=str(error))

    def process(self) -> psutil.Process | None:
        """Return the engine's process, None while there is none."""
        return None if self._running is None else self._running.endpoint.process()

    async def close(self) -> None:
        """Disconnect. The engine ends by itself once no client is left."""
        self._is_closed = True
        if self._starting is not None:
            self._starting.cancel()
            with suppress(asyncio.CancelledError, RedraftError):
                await self._starting
        if self._running is not None:
            await self._running.close()

    async def _call(self, use: Callable[[RemotePredictor], Awaitable[T]], deadline: float) -> T:
        """Return ``use(engine)``; call it again with a new engine if the first one ends.

        Args:
            deadline: monotonic seconds until which to wait for a start.
        """
        failure: RedraftError | None = None
        for _ in range(2):
            running = await self._join(deadline)
            try:
                return await running.call(use)
            except (EngineGone, Unauthorized) as error:  # ended, or replaced by another engine
                failure = error
                await self._drop(running, str(error))
        raise EngineGone(
            f"The engine process died twice over the same request ({failure}). Its log is "
            f"{Rendezvous.of(self._settings).log_file}; please report it."
        ) from failure

    async def _join(self, deadline: float) -> _Running:
        """Return the running engine; start one if there is none.

        Raises:
            ModelNotReady: it is still starting at ``deadline``.
            EngineGone: it cannot be started.
        """
        if self._is_closed:
            raise EngineGone("This connection to the engine was closed. Open a new one.")
        if self._running is not None:
            return self._running
        if self._starting is None or self._starting.done():  # several requests share one start
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_retrieve_error)
        starting, rest_s = self._starting, max(deadline - time.monotonic(), 0.0)
        if (await asyncio.wait((starting,), timeout=rest_s))[0] and not starting.cancelled():
            return starting.result()
        what = "ended and is being started again" if self._crashes else "is being started"
        raise ModelNotReady(f"The engine process {what}. Try again in a moment.")

    async def _start(self) -> _Running:
        await self._crashes.pause()
        try:
            remote, endpoint = await _join_or_start(self._settings, self._engine)
        except EngineGone as error:
            self._crashes.add(str(error))
            raise
        self._running = running = _Running(remote, endpoint)
        running.attending = asyncio.create_task(self._attend(running))
        return running

    async def _attend(self, running: _Running) -> None:
        """Stay connected, which keeps the engine from ending; drop it once it has ended."""
        with suppress(RedraftError):
            await running.remote.attend()
        await self._drop(running, "the connection to it ended")

    async def _drop(self, running: _Running, why: str) -> None:
        if self._running is running:  # otherwise it was dropped before
            log.warning("the engine process is gone: %s", why)
            self._running = None
            self._crashes.add(why)
            await running.close()


class _Running:
    """A running engine process: its connection, and the watch for hangs."""

    def __init__(self, remote: RemotePredictor, endpoint: Endpoint) -> None:
        self.remote = remote
        self.attending: asyncio.Task[None] | None = None
        self.endpoint = endpoint
        self._looking: asyncio.Task[bool] | None = None  # whether it hangs

    async def call(self, use: Callable[[RemotePredictor], Awaitable[T]]) -> T:
        """Return ``use(engine)``, as long as the engine answers status requests.

        Raises:
            ModelNotReady: the engine does not answer.
            EngineGone: it hung and was ended.
        """
        asking = asyncio.ensure_future(use(self.remote))
        try:
            while not (await asyncio.wait((asking,), timeout=LOOK_S))[0]:
                await self._look(asking)
            return asking.result()
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, RedraftError):
                await asking

    async def close(self) -> None:
        """Disconnect, and stop watching."""
        for task in (self.attending, self._looking):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
                with suppress(asyncio.CancelledError, RedraftError):
                    await task
        await self.remote.close()

    async def _look(self, asking: asyncio.Future[T]) -> None:
        """Check that the engine answers. The check outlives this call: all requests share it."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(end_if_hung(self.remote, self.endpoint))
        looking = self._looking
        await asyncio.wait((asking, looking), timeout=SILENT_S, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return
        if not looking.done():
            raise ModelNotReady(
                "The engine process shows no sign of life; if it stays silent it is ended and "
                "started again. Try again in a moment."
            )
        if looking.cancelled() or looking.result():
            raise EngineGone("The engine process hung and was ended.")


class _Crashes:
    """Recent crashes. The pause before a start doubles with each, to spare the processor."""

    def __init__(self, backoff_s: float) -> None:
        self._backoff_s = backoff_s
        self._at_s: deque[float] = deque(maxlen=16)  # monotonic seconds
        self._why = ""

    def __bool__(self) -> bool:
        return bool(self._at_s)

    def add(self, why: str) -> None:
        self._at_s.append(time.monotonic())
        self._why = why

    async def pause(self) -> None:
        """Wait until the next start is due.

        Raises:
            EngineGone: it is due too late for any request to wait for it.
        """
        now = time.monotonic()
        recent = [at for at in self._at_s if now - at < CRASH_WINDOW_S]
        if not recent:
            return
        pause_s = min(self._backoff_s * 2 ** (len(recent) - 1), MAX_BACKOFF_S)
        rest_s = recent[-1] + pause_s - now
        if rest_s > PATIENCE_S:
            raise EngineGone(
                f"The engine process failed {len(recent)} times; the next try is in {rest_s:.0f} "
                f"s. The last time: {self._why}"
            )
        await asyncio.sleep(max(rest_s, 0.0))


async def _join_or_start(settings: Settings, engine: str) -> tuple[RemotePredictor, Endpoint]:
    """Return the engine process; start one if none answers."""
    meeting = Rendezvous.of(settings)
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + settings.start_timeout_s
    while time.monotonic() < deadline:
        endpoint, is_taken = meeting.read(), meeting.is_taken()
        if endpoint and is_taken:
            remote = await reach(endpoint, end_hung=True)
            if remote is not None:
                return remote, endpoint
        elif not is_taken and not _is_starting(child, meeting):
            child = _spawn(settings, engine, meeting)
        await asyncio.sleep(POLL_S)
    if child is not None:
        child.kill()
    raise EngineGone(
        f"The engine process did not answer within {settings.start_timeout_s:g} s. "
        f"Its log is {meeting.log_file}; 'redraft doctor' looks for the cause."
    )


def _is_starting(child: subprocess.Popen[bytes] | None, meeting: Rendezvous) -> bool:
    """Return whether the started process may still become the engine.

    Raises:
        EngineGone: it failed; the message has its last words.
    """
    code = None if child is None else child.poll()
    if code:
        raise EngineGone(
            f"The engine process cannot start (exit code {code}): "
            f"{_last_line(meeting.start_log_file)} Its log is {meeting.log_file}."
        )
    return child is not None and code is None


def _spawn(settings: Settings, engine: str, meeting: Rendezvous) -> subprocess.Popen[bytes]:
    """Start the engine so that it outlives this process and its terminal.

    ``-P`` and the working folder keep Python from importing files of the user's project.
    """
    command = [sys.executable, "-P", "-m", "redraft.server.engine_process.host"]
    command += ["--engine", engine, "--build", BUILD]
    command += ["--settings", settings.model_dump_json(exclude={"api_key"})]
    log.info("starting an engine process")
    output = _open_or_discard(meeting.start_log_file)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=meeting.folder,
            creationflags=DETACHED_FLAGS,
            start_new_session=True,  # ignored on Windows, where the flags do it
        )
    except OSError as error:
        raise EngineGone(f"The engine process cannot be started: {error}.") from error
    finally:
        output.close()


def _retrieve_error(starting: asyncio.Task[_Running]) -> None:
    """Retrieve the error of a failed start, so that asyncio does not warn about it."""
    if not starting.cancelled():
        starting.exception()


def _open_or_discard(file: Path) -> IO[bytes]:
    try:
        return file.open("wb")
    except OSError:
        return Path(os.devnull).open("wb")


def _last_line(file: Path) -> str:
    """Return the last line of the process's output, where Python names the exception."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].rstrip(".") + "." if lines else "it wrote nothing."
