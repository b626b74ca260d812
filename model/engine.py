"""The engine: a ``Predictor`` in this process.

One worker thread loads the model and answers one request after the other; the event loop queues,
waits and cancels. Cancelling the task that awaits :meth:`Engine.predict` frees its place in the
queue at once, and stops a running computation within a pass. After a while without requests the
worker frees the model; the next request waits until it is loaded again.

Requests are served in the order of their arrival, until more arrive than can be served. Then the
newest is served first, and a request that has waited for about one computation is refused: some get
a fresh suggestion and the others a clear refusal, instead of a late answer for all. Requests that
only read ahead wait apart, until there is no other. They count nowhere.

Source: adaptive LIFO and controlled delay, B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from .errors import EngineGone, ModelNotReady, Overloaded, PredictionTimeout, RedraftError
from .predict import Chore, Clock, Loader, LoadState, Model, predict
from .records import CanvasState, EditRequest, ModelStatus, Prediction, StepCallback
from .runtime.backend import Backend, Cancelled
from .runtime.kv_memory import return_freed
from .wire import check_request

log = logging.getLogger(__name__)

#: Requests computed or waiting at once.
QUEUE_LENGTH = 16
#: Seconds between two looks of a waiting request at whether it has waited too long.
LOOK_S = 0.25
#: Seconds from a failed load to the earliest retry, doubled with each failure, and at most. A
#: request starts the retry: the network or disk space may be back.
RETRY_AFTER_S, RETRY_AT_MOST_S = 2.0, 30.0
#: Seconds that one computation may take: longer than a cold prefill of 32k tokens on two cores.
LIMIT_S = 120.0
#: Seconds that :meth:`Engine.close` waits for the current pass; loading cannot be interrupted.
CLOSE_TIMEOUT_S = 10.0
#: The queue is strained after so many seconds without an empty moment, or so many computations.
STRAINED_S, STRAINED_COMPUTATIONS = 0.5, 3.0
#: So many waiting requests are a sign of strain too: the windows of one person never are.
CROWD = 6
#: Seconds for which a sign of strain counts.
RELIEVED_S = 10.0
#: Seconds after which every request is refused: the language server gives up by then.
PATIENCE_S = 10.0
#: Seconds that a request may wait in any case; timers are no finer under load.
LEAST_PATIENCE_S = 0.05

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class EngineJob:
    """A request on its way through the worker; cancelling ``answer`` cancels it."""

    request: EditRequest
    on_step: StepCallback | None
    queued_s: float  # on the engine's clock
    answer: Future[Prediction] = field(default_factory=Future)

    @property
    def reads_ahead(self) -> bool:
        """Return whether it gives way to every other request."""
        return bool(self.request.read_ahead)

    @property
    def has_place(self) -> bool:
        """Return whether a caller waits for it, so that it takes a place in the queue."""
        return not self.reads_ahead and not self.answer.done()

    def interrupts(self, other: EngineJob) -> bool:
        """Return whether the pass that reads ahead for ``other`` is of no use to this request."""
        request = replace(self.request, read_ahead=other.request.read_ahead)
        return other.reads_ahead and not self.reads_ahead and request != other.request

    def resolve(self, result: Prediction | Exception) -> None:
        """Set the answer, unless the caller has left."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(result, Exception):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)


class Queue(Generic[T]):
    """A bounded queue; the caller passes the time, in seconds.

    Args:
        length: how many requests may wait or be computed.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._waiting: deque[tuple[float, T]] = deque()  # since when, oldest first
        self._ahead: deque[T] = deque()  # for idle moments, oldest first
        self._crowded_s = 0.0  # since when the queue was never empty
        self._overrun_s = float("-inf")  # of the last refusal or crowd

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: T, now_s: float, computing: int = 0) -> bool:
        """Append ``item``; return whether there was room.

        Args:
            computing: requests that were taken and are computed.
        """
        if len(self._waiting) + computing >= self.length:
            self._overrun_s = now_s
            return False
        if not self._waiting:
            self._crowded_s = now_s
        self._waiting.append((now_s, item))
        if len(self._waiting) >= CROWD:
            self._overrun_s = now_s
        return True

    def add_ahead(self, item: T) -> bool:
        """Append ``item`` to what is done in idle moments; return whether there was room."""
        if len(self._ahead) >= self.length:
            return False
        self._ahead.append(item)
        return True

    def put_back(self, item: T) -> None:
        """Put back what was interrupted in an idle moment; it goes on first."""
        self._ahead.appendleft(item)

    def has_any(self) -> bool:
        """Return whether :meth:`take` has something to return."""
        return bool(self._waiting or self._ahead)

    def remove(self, item: T) -> None:
        """Remove ``item`` if it still waits."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != item)
        self._ahead = deque(each for each in self._ahead if each != item)

    def is_strained(self, now_s: float, computation_s: float) -> bool:
        """Return whether more requests arrive than can be served.

        Args:
            computation_s: mean time of a computation.
        """
        if now_s - self._overrun_s < RELIEVED_S:
            return True
        long_s = max(STRAINED_S, STRAINED_COMPUTATIONS * computation_s)
        return bool(self._waiting) and now_s - self._crowded_s > long_s

    def take(self, now_s: float, computation_s: float) -> T:
        """Remove and return the next request; there must be one."""
        if not self._waiting:
            return self._ahead.popleft()
        is_strained = self.is_strained(now_s, computation_s)
        return (self._waiting.pop() if is_strained else self._waiting.popleft())[1]

    def take_stale(self, now_s: float, computation_s: float) -> list[T]:
        """Remove and return the requests that have waited too long, oldest first.

        Under strain the newest stays for as long as without: refusing it would help no other.
        """
        patience_s = PATIENCE_S
        if self.is_strained(now_s, computation_s):
            patience_s = max(computation_s, LEAST_PATIENCE_S)
        stale = []
        while self._waiting:
            limit_s = patience_s if len(self._waiting) > 1 else PATIENCE_S
            if now_s - self._waiting[0][0] <= limit_s:
                break
            stale.append(self._waiting.popleft()[1])
        if stale:
            self._overrun_s = now_s
        return stale

    def take_all(self) -> list[T]:
        """Remove and return all requests, oldest first."""
        items = [item for _, item in self._waiting] + [*self._ahead]
        self._waiting.clear()
        self._ahead.clear()
        return items


class Engine:
    """Loads in the background as soon as it is made; answers once :meth:`status` is ready.

    Args:
        loader: makes the model; runs in the worker thread and reports its progress.
        model: name of the model until it is loaded.
        queue_length: requests computed or waiting at once; more are refused.
        limit_s: seconds after which a computation is given up.
        unload_s: seconds without a request after which the model's memory is freed; None: never.
    """

    def __init__(
        self,
        loader: Loader,
        model: str,
        queue_length: int = QUEUE_LENGTH,
        clock: Clock = time.perf_counter,
        limit_s: float = LIMIT_S,
        unload_s: float | None = None,
    ) -> None:
        self._loader = loader
        self._clock = clock
        self._limit_s = limit_s
        self._unload_s = unload_s
        self._changed = threading.Condition()  # guards everything below
        self._status = ModelStatus("loading", model)
        self._queue: Queue[EngineJob] = Queue(queue_length)
        self._computing: tuple[EngineJob | None, Backend] | None = None  # no job: a chore
        self._chores: list[Chore] = []  # of the loaded model that are left
        self._closing = False
        self._retry = False
        self._reloads = False  # the model is unloaded, or on its way back: requests wait for it
        self._failed_s = 0.0  # when the last load failed
        self._failures = 0  # in a row
        self._mean_s = 0.3  # of a computation
        self._thread = threading.Thread(target=self._work, name="redraft-engine", daemon=True)
        self._thread.start()

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """Return the prediction; ``on_step`` runs in the caller's loop. See ``Predictor``.

        Raises:
            RedraftError: the computation failed; the engine goes on.
        """
        check_request(request)
        loop = asyncio.get_running_loop()

        def show(state: CanvasState) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed
                loop.call_soon_threadsafe(show_here, state)

        def show_here(state: CanvasState) -> None:
            if on_step is not None and not answer.done():
                on_step(state)

        job = EngineJob(request, on_step and show, self._clock())
        answer = asyncio.wrap_future(job.answer)
        self._enqueue(job)
        try:
            while not (await asyncio.wait((answer,), timeout=LOOK_S))[0]:
                with self._changed:
                    self._refuse_stale()
            return answer.result()
        finally:
            self._forget(job)
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # else asyncio logs an error that the caller did not stay for

    async def status(self) -> ModelStatus:
        with self._changed:
            return self._status

    async def close(self) -> None:
        """Stop computing and free the model. Waiting requests end with EngineGone."""
        with self._changed:
            self._closing = True
            self._interrupt()
            self._changed.notify_all()
        await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)

    def _enqueue(self, job: EngineJob) -> None:
        with self._changed:
            if self._closing:
                raise _gone()
            if self._status.state != "ready" and not (self._reloads and not job.reads_ahead):
                pause_s = min(RETRY_AFTER_S * 2 ** max(self._failures - 1, 0), RETRY_AT_MOST_S)
                if self._status.state == "failed" and self._clock() - self._failed_s >= pause_s:
                    self._retry = True
                    self._changed.notify_all()
                raise ModelNotReady(_not_ready(self._status))
            queue, computed = self._queue, self._computing and self._computing[0]
            if job.reads_ahead:
                has_room = queue.add_ahead(job)
            else:
                computing = computed is not None and computed.has_place
                has_room = queue.add(job, self._clock(), int(computing))
            if not has_room:
                raise self._overloaded(
                    f"{queue.length} requests are computed or waiting already, and no more can be "
                    "answered in time."
                )
            if computed is None or job.interrupts(computed):
                self._interrupt()  # chores and reading ahead give way
            self._changed.notify_all()

    def _overloaded(self, problem: str) -> Overloaded:
        return Overloaded(
            f"{problem} Try again in a moment.",
            retry_after_s=self._mean_s * (len(self._queue) + 1),
        )

    def _refuse_stale(self) -> None:
        """Refuse the requests that have waited too long; the lock is held."""
        now = self._clock()
        for job in self._queue.take_stale(now, self._mean_s):
            if self._status.state != "ready":
                job.resolve(ModelNotReady(_not_ready(self._status)))
                continue
            waited_s = now - job.queued_s
            problem = (
                "More is asked than this machine can answer: after "
                f"{waited_s:.1f} s the answer would have come too late."
            )
            job.resolve(self._overloaded(problem))

    def _forget(self, job: EngineJob) -> None:
        """Cancel ``job`` if it waits or is computed; its caller has left or has its result."""
        job.answer.cancel()
        with self._changed:
            self._queue.remove(job)
            if self._computing is not None and self._computing[0] is job:
                self._interrupt()

    def _interrupt(self) -> None:
        """End the current pass; the lock is held."""
        if self._computing is not None:
            self._computing[1].interrupt(True)

    def _work(self) -> None:
        """Run the worker thread: load, answer, load again if the files changed or after a pause."""
        try:
            while self._load_and_serve():
                if not self._closing:
                    gc.collect()  # some parts of a model refer to each other
                    return_freed()
        finally:
            self._closing = True
            self._report("absent", None, "The engine was closed.")
            self._resolve_waiting(_gone())

    def _load_and_serve(self) -> bool:
        """Answer with a model until it has to go; return False if the engine is closing."""
        model = self._load()
        if model is None:
            return False
        try:
            self._serve(model)
        finally:
            with self._changed:  # nothing refers to the model from here on
                self._chores, self._computing = [], None
            model.backend.close()
        return True

    def _report(
        self,
        state: Literal["absent", "downloading", "loading", "failed"],
        progress: float | None,
        message: str,
    ) -> None:
        with self._changed:
            self._status = replace(self._status, state=state, progress=progress, message=message)

    def _resolve_waiting(self, error: RedraftError) -> None:
        with self._changed:
            jobs = self._queue.take_all()
        for job in jobs:
            job.resolve(error)

    def _load(self) -> Model | None:
        """Return the model, after as many tries as are demanded; None: the engine is closing."""

        def report(state: LoadState, progress: float | None, message: str) -> None:
            if self._closing:
                raise Cancelled
            self._report(state, progress, message)

        while True:
            with self._changed:
                while not self._has_to_load():
                    self._changed.wait()
                self._retry = False
            try:
                report("loading", None, "")
                model = self._loader(report)
            except Cancelled:
                return None
            except Exception as error:
                with self._changed:
                    self._failed_s, self._failures = self._clock(), self._failures + 1
                    self._reloads = False
                self._report("failed", None, _why_not_loaded(error))
                self._resolve_waiting(ModelNotReady(_not_ready(self._status)))
                continue
            with self._changed:
                self._failures, self._reloads = 0, False
                self._status = model.status()
            return model

    def _has_to_load(self) -> bool:
        """Return whether the worker has to go on; the lock is held."""
        if self._closing:
            return True
        if self._status.state == "failed":
            return self._retry
        return self._status.state != "unloaded" or bool(self._queue)

    def _serve(self, model: Model) -> None:
        """Answer until the engine is closed or idle, or this model is not to run any more."""
        self._chores = list(model.chores)
        while (job := self._next(model.backend)) is not None:
            problem = model.backend.why_changed() or model.why_outdated()
            if problem or (problem := self._compute(model, job)):
                log.warning("%s; loading the model.", problem)
                self._report("loading", None, problem)
                error = ModelNotReady(f"{problem}; the model is loaded again. Try in a moment.")
                job.resolve(error)
                self._resolve_waiting(error)
                return

    def _next(self, backend: Backend) -> EngineJob | None:
        """Wait for the next request and return it; None: the engine is closing or unloads."""
        while True:
            with self._changed:
                if self._closing:
                    return None
                self._refuse_stale()
                if self._queue.has_any():
                    job = self._queue.take(self._clock(), self._mean_s)
                    self._computing = (job, backend)
                    return job
                chore = self._chores[0] if self._chores else None
                is_idle = not self._changed.wait(chore.idle_s if chore else self._unload_s)
                if is_idle and not chore and not self._queue.has_any():
                    self._unload()
                    return None
            if is_idle and chore:
                self._do(chore, backend)

    def _unload(self) -> None:
        """Say that the model is gone until the next request; the lock is held."""
        self._reloads = True
        minutes = f"{(self._unload_s or 0.0) / 60:.3g}"
        message = (
            f"its memory was freed after {minutes} idle minutes; the next request loads it again"
        )
        log.info("%s: %s", self._status.model, message)
        self._status = replace(self._status, state="unloaded", message=message)

    def _do(self, chore: Chore, backend: Backend) -> None:
        """Run a chore; a request interrupts it, and it is tried again."""
        with self._changed:
            if self._closing or self._queue.has_any():
                return
            self._computing = (None, backend)
        try:
            chore.run()
            self._chores.remove(chore)
        except Cancelled:
            pass
        except Exception as error:  # no memory for it, say: it can be done without
            log.info("Work for a pause was left: %s", error, exc_info=error)
            self._chores.remove(chore)
        finally:
            with self._changed:
                self._computing = None
                backend.interrupt(False)

    def _compute(self, model: Model, job: EngineJob) -> str:
        """Answer one request; return why the model has to be loaded again, or ""."""
        begin, problem = self._clock(), ""

        def is_over() -> bool:
            nonlocal problem
            problem = problem or model.backend.why_changed()
            if problem or self._closing or job.answer.cancelled():
                return True
            if job.reads_ahead and self._queue:
                return True
            return self._clock() - begin > self._limit_s

        try:
            prediction = predict(model, job.request, self._clock, is_over, job.on_step)
        except Cancelled:
            if self._closing:  # received only if the engine, not the caller, ended it
                job.resolve(_gone())
            elif job.reads_ahead and not problem:
                with self._changed:
                    if not job.answer.cancelled():
                        self._queue.put_back(job)
            elif not problem:
                job.resolve(
                    PredictionTimeout(
                        f"The prediction was given up after {self._clock() - begin:.0f} s, the "
                        f"limit being {self._limit_s:g} s. Ask for less context or fewer tokens."
                    )
                )
        except RedraftError as error:
            job.resolve(error)
        except Exception as error:
            log.error("A prediction failed.", exc_info=error)
            job.resolve(
                RedraftError(
                    f"The prediction failed inside the engine ({type(error).__name__}: {error}). "
                    "The engine goes on; report it if it happens again."
                )
            )
        else:
            if not job.reads_ahead:
                self._mean_s += 0.2 * (self._clock() - begin - self._mean_s)
            stats, queue_ms = prediction.stats, (begin - job.queued_s) * 1e3
            total_ms = queue_ms + stats.total_ms
            stats = replace(stats, queue_ms=queue_ms, total_ms=total_ms)
            job.resolve(replace(prediction, stats=stats))
        finally:
            with self._changed:
                self._computing = None
                model.backend.interrupt(False)
        return problem


def _gone() -> EngineGone:
    return EngineGone("The engine is being closed. Start it again to go on.")


def _why_not_loaded(error: Exception) -> str:
    if isinstance(error, RedraftError):
        return str(error)
    log.error("Loading the model failed.", exc_info=error)
    return (
        f"Loading the model failed unexpectedly ({type(error).__name__}: {error}). Run "
        "'redraft doctor', and report it if it stays."
    )


def _not_ready(status: ModelStatus) -> str:
    if status.state == "failed":
        return f"The model {status.model} could not be loaded: {status.message}"
    share = "" if status.progress is None else f" ({status.progress:.0%})"
    return f"The model {status.model} is {status.state}{share}. Try again in a moment."
