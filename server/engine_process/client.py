"""Joins the user's engine process, and starts it where there is none; the clients of ``host.py``.

What a client gets is a ``Predictor`` that survives the engine: when the process is gone, or hangs,
it is started again, and the one request that was lost is asked once more when the model is ready.
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
from redraft.model.release import RELEASE
from redraft.model.remote import RemotePredictor

from ..settings import Settings
from .rendezvous import DEFAULT_ENGINE, Endpoint, Rendezvous
from .signs_of_life import POLL_S, end_if_hung, end_process, reach, reach_living

log = logging.getLogger(__name__)

T = TypeVar("T")

#: What lets a process outlive its starter on Windows.
if sys.platform == "win32":
    DETACHED_FLAGS = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
else:
    DETACHED_FLAGS = 0

#: Seconds in which crashes count as one series, and the longest wait between two starts.
CRASH_WINDOW_S, MAX_BACKOFF_S = 120.0, 30.0

#: Seconds that a request waits for an engine that is being started, or for a model that is loaded
#: again; with what follows, it is answered or told why not within 2 s. The start goes on meanwhile.
PATIENCE_S = 1.5

#: Seconds without an answer after which the engine is asked whether it lives, again and again; and
#: how long it may be silent then until the request is given up. It is ended later, if at all.
LOOK_S, SILENT_S = 1.0, 0.9


async def join_running(settings: Settings) -> RemotePredictor | None:
    """Return the engine process as it is now, without starting, replacing or keeping it."""
    endpoint = Rendezvous.of(settings).read()
    return None if endpoint is None else await reach(endpoint)


class EngineClient:
    """A ``Predictor`` over the engine process; joins or starts it at the first call.

    Args:
        engine: what the process runs, as ``module:callable``; other than the default in tests.
        release: of this side; an older engine is asked to leave.
        patience_s: that a request waits while there is no engine or no model.
    """

    def __init__(
        self,
        settings: Settings,
        engine: str = DEFAULT_ENGINE,
        release: str = RELEASE,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._release = release
        self._remote: RemotePredictor | None = None
        self._endpoint: Endpoint | None = None  # of ``_remote``
        self._answered = False  # has any engine yet?
        self._patience_s = patience_s
        self._starting: asyncio.Task[RemotePredictor] | None = None
        self._looking: asyncio.Task[bool] | None = None  # does the engine hang?
        self._crashes: deque[float] = deque(maxlen=16)  # monotonic seconds
        self._last_failure = ""
        self._pinging: asyncio.Task[None] | None = None
        self._closed = False

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """
        Raises:
            ModelNotReady: the engine is being started, or loads its model.
            EngineGone: it cannot be started, or died over this request twice.
        """
        give_up = time.monotonic() + self._patience_s
        prediction = await self._call(
            lambda remote: self._once_ready(remote, request, on_step, give_up), give_up
        )
        self._answered = True
        return prediction

    async def status(self) -> ModelStatus:
        give_up = time.monotonic() + self._patience_s
        try:
            return await self._call(lambda remote: remote.status(), give_up)
        except ModelNotReady as error:
            return ModelStatus("loading", self._settings.model, message=str(error))

    async def close(self) -> None:
        """Leave the engine to the others; it goes by itself when nobody is left."""
        self._closed = True
        for task in (self._pinging, self._starting, self._looking):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, RedraftError):
                    await task
        if self._remote is not None:
            await self._remote.close()

    async def _call(self, use: Callable[[RemotePredictor], Awaitable[T]], give_up: float) -> T:
        """
        Args:
            give_up: monotonic seconds; whatever has to be started or loaded is not waited for
                after that.
        """
        remote = await self._joined(give_up)
        try:
            return await self._attended(remote, use)
        except (EngineGone, Unauthorized) as error:  # gone, or another one has taken its place
            log.warning("the engine process is gone, starting another: %s", error)
            await self._drop(remote, str(error))
        remote = await self._joined(give_up)
        try:
            return await self._attended(remote, use)
        except (EngineGone, Unauthorized) as error:
            await self._drop(remote, str(error))
            raise EngineGone(
                f"The engine process died twice over the same request ({error}). Its log is "
                f"{Rendezvous.of(self._settings).log_file}; please report it."
            ) from error

    async def _once_ready(
        self,
        remote: RemotePredictor,
        request: EditRequest,
        on_step: StepCallback | None,
        give_up: float,
    ) -> Prediction:
        """The prediction; of a model that is only being loaded again, once it is."""
        while True:
            try:
                return await remote.predict(request, on_step)
            except ModelNotReady:
                if not self._answered or not await _becomes_ready(remote, give_up):
                    raise

    async def _attended(
        self, remote: RemotePredictor, use: Callable[[RemotePredictor], Awaitable[T]]
    ) -> T:
        """What ``use`` gets from the engine, as long as that shows signs of life.

        Raises:
            ModelNotReady: it does not.
            EngineGone: it has not for long, and was ended.
        """
        asking = asyncio.ensure_future(use(remote))
        try:
            while not (await asyncio.wait((asking,), timeout=LOOK_S))[0]:
                await self._look(remote, asking)
            return asking.result()
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, RedraftError):
                await asking

    async def _look(self, remote: RemotePredictor, asking: asyncio.Future[T]) -> None:
        """Does the engine live? Goes on until that is known, for whoever asks next.

        Raises:
            ModelNotReady, EngineGone: as :meth:`_attended`.
        """
        endpoint = self._endpoint
        if self._remote is not remote or endpoint is None:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(end_if_hung(remote, endpoint))
        await asyncio.wait(
            (asking, self._looking), timeout=SILENT_S, return_when=asyncio.FIRST_COMPLETED
        )
        if asking.done():
            return
        if not self._looking.done():
            raise ModelNotReady(
                "The engine process shows no sign of life; if it stays silent it is ended and "
                "started again. Try again in a moment."
            )
        if self._looking.result():
            raise EngineGone("The engine process hung and was ended.")

    async def _joined(self, give_up: float) -> RemotePredictor:
        """
        Raises:
            ModelNotReady: it is being started, and goes on to be.
            EngineGone: it cannot be started.
        """
        if self._closed:
            raise EngineGone("This connection to the engine was closed. Open a new one.")
        if self._remote is not None:
            return self._remote
        if self._starting is None or self._starting.done():  # several requests start one engine
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_heard)
        starting, rest_s = self._starting, max(give_up - time.monotonic(), 0.0)
        if (await asyncio.wait((starting,), timeout=rest_s))[0] and not starting.cancelled():
            return starting.result()
        what = "ended and is being started again" if self._crashes else "is being started"
        raise ModelNotReady(f"The engine process {what}. Try again in a moment.")

    async def _start(self) -> RemotePredictor:
        await self._back_off()
        try:
            starter = _Starter(self._settings, self._engine, self._release)
            self._remote, self._endpoint = await starter.join()
        except EngineGone as error:
            self._note_crash(str(error))
            raise
        if self._pinging is None:
            self._pinging = asyncio.create_task(self._ping())
        return self._remote

    async def _drop(self, remote: RemotePredictor, why: str) -> None:
        if self._remote is remote:  # else another request noticed first
            self._remote = None
            self._note_crash(why)
            await remote.close()

    def _note_crash(self, why: str) -> None:
        self._crashes.append(time.monotonic())
        self._last_failure = why

    async def _back_off(self) -> None:
        """Waits longer with each crash in a row, so that a broken engine costs no whole core."""
        now = time.monotonic()
        recent = [at for at in self._crashes if now - at < CRASH_WINDOW_S]
        if not recent:
            return
        pause_s = min(self._settings.backoff_s * 2 ** (len(recent) - 1), MAX_BACKOFF_S)
        rest_s = recent[-1] + pause_s - now
        if rest_s > PATIENCE_S:
            raise EngineGone(
                f"The engine process failed {len(recent)} times; the next try is in {rest_s:.0f} "
                f"s. The last time: {self._last_failure}"
            )
        await asyncio.sleep(max(rest_s, 0.0))

    async def _ping(self) -> None:
        """Keeps the engine from leaving while an editor is open; mends nothing."""
        while True:
            await asyncio.sleep(self._settings.ping_s)
            if self._remote is not None:
                with suppress(RedraftError):
                    await self._remote.status()


class _Starter:
    """One attempt to join the engine process, starting it if need be."""

    def __init__(self, settings: Settings, engine: str, release: str) -> None:
        self._settings = settings
        self._engine = engine
        self._release = release
        self._meeting = Rendezvous.of(settings)
        self._child: subprocess.Popen[bytes] | None = None
        # Once at most: after a downgrade, what is on disk stays older than this process.
        self._may_replace = True

    async def join(self) -> tuple[RemotePredictor, Endpoint]:
        give_up = time.monotonic() + self._settings.start_timeout_s
        while time.monotonic() < give_up:
            endpoint, lives = self._meeting.read(), self._meeting.is_taken()
            if endpoint and endpoint.older_than(self._release) and self._may_replace:
                await self._replace(endpoint)
            elif endpoint and lives and (remote := await reach_living(endpoint)) is not None:
                return remote, endpoint
            elif not self._is_starting() and not lives:
                self._child = self._spawn()
            await asyncio.sleep(POLL_S)
        if self._child is not None:
            self._child.kill()  # ours, and it never answered
        raise EngineGone(
            f"The engine process did not answer within {self._settings.start_timeout_s:g} s. "
            f"Its log is {self._meeting.log_file}; 'redraft doctor' looks for the cause."
        )

    async def _replace(self, endpoint: Endpoint) -> None:
        """Have an engine of an older release leave, gently at first."""
        self._may_replace = False
        log.info("asking the engine of release %s to leave", endpoint.release)
        address = Path(endpoint.address) if endpoint.socket else endpoint.address
        remote = RemotePredictor(address, endpoint.token)
        try:
            await remote.call("POST", "/redraft/v1/leave")
        except RedraftError as error:
            log.info("it does not listen: %s", error)
        finally:
            await remote.close()
        for end in (None, psutil.Process.terminate, psutil.Process.kill):
            if end is not None:
                end_process(endpoint, end)
            give_up = time.monotonic() + self._settings.shutdown_s + 2.0
            while time.monotonic() < give_up:
                if not self._meeting.is_taken():
                    return
                await asyncio.sleep(POLL_S)

    def _is_starting(self) -> bool:
        """Whether the process we started still may become the engine.

        Raises:
            EngineGone: it failed; says with what.
        """
        if self._child is None:
            return False
        code = self._child.poll()
        if code:
            said = _tail(self._meeting.start_log_file)
            raise EngineGone(
                f"The engine process cannot start (exit code {code}): {said} "
                f"Its log is {self._meeting.log_file}."
            )
        return code is None

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Start the engine so that it outlives this process and its terminal.

        ``-P`` and the folder: nothing in the folder of the user's project shall be imported.
        """
        settings = self._settings.model_dump_json(exclude={"api_key"})
        command = [sys.executable, "-P", "-m", "redraft.server.engine_process.host"]
        command += ["--engine", self._engine, "--settings", settings]
        log.info("starting an engine process")
        output = _open_or_discard(self._meeting.start_log_file)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._meeting.folder,
                creationflags=DETACHED_FLAGS,
                start_new_session=True,  # passed over on Windows, as the flags are 0 elsewhere
            )
        except OSError as error:
            raise EngineGone(f"The engine process cannot be started: {error}.") from error
        finally:
            output.close()


def _heard(starting: asyncio.Task[RemotePredictor]) -> None:
    """A failed start is told to whoever waits for it or asks next; maybe nobody does."""
    if not starting.cancelled():
        starting.exception()


async def _becomes_ready(remote: RemotePredictor, give_up: float) -> bool:
    """Whether the model that is being loaded is ready before ``give_up`` (monotonic seconds)."""
    while time.monotonic() < give_up:
        state = (await remote.status()).state
        if state != "loading":
            return state == "ready"
        await asyncio.sleep(POLL_S)
    return False


def _open_or_discard(file: Path) -> IO[bytes]:
    try:
        return file.open("wb")
    except OSError:
        return Path(os.devnull).open("wb")


def _tail(file: Path) -> str:
    """The last line that the process said, which is where Python names the exception."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].rstrip(".") + "." if lines else "it said nothing."
