"""The engine: a :class:`~redraft.model.records.Predictor` in this process.

One worker thread loads the model and then answers one request after the other; the event loop only
queues, waits and cancels. Knows nothing of LSP or HTTP. Cancelling the task that awaits
:meth:`Engine.predict` frees its place in the queue at once, and stops a running computation in the
middle of a pass, or before the next one where the backend cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..errors import EngineGone, ModelNotReady, Overloaded, PredictionTimeout, RedraftError
from ..records import CanvasState, EditRequest, ModelStatus, Prediction, StepCallback
from ..runtime.backend import Backend, Cancelled
from .abilities import abilities_of, chat_abilities_of
from .answer import Clock, Loader, LoadState, Model, answer
from .converse import longest_tokens
from .waiting import Waiting

log = logging.getLogger(__name__)

#: Requests that may wait behind the one being computed.
QUEUE_LENGTH = 16
#: A request to an engine whose loading failed starts another try: the network may be back, the disk
#: may have room again. So long after the first failure, twice as long after each more, and at most.
RETRY_AFTER_S, RETRY_AT_MOST_S = 2.0, 30.0
#: Seconds that one computation may take: longer than a cold prefill of 32k tokens on two cores.
LIMIT_S = 120.0
#: How long :meth:`Engine.close` waits for the pass in hand; loading cannot be interrupted.
CLOSE_TIMEOUT_S = 10.0


@dataclass(eq=False, slots=True)
class _Job:
    """One request on its way through the worker."""

    request: EditRequest
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Prediction]
    on_step: StepCallback | None
    queued_s: float  # on the engine's clock
    cancelled: threading.Event = field(default_factory=threading.Event)

    def show(self, state: CanvasState) -> None:
        """Hand a canvas state to the caller's loop."""
        if self.on_step is not None:
            self._call(self._show, state)

    def _show(self, state: CanvasState) -> None:
        if self.on_step is not None and not self.future.done():
            self.on_step(state)

    def resolve(self, result: Prediction | Exception) -> None:
        self._call(self._resolve, result)

    def _resolve(self, result: Prediction | Exception) -> None:
        if self.future.done():
            return
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the caller's loop is gone: nobody waits
            self.loop.call_soon_threadsafe(function, *args)


class Engine:
    """Loads in the background as soon as it is made; answers once :meth:`status` says ready.

    Args:
        loader: makes the model; runs in the worker thread and reports its progress.
        model: what to call the model until it is loaded.
        queue_length: requests that may wait behind the one being computed.
        limit_s: seconds after which a computation is given up.
    """

    def __init__(
        self,
        loader: Loader,
        model: str,
        queue_length: int = QUEUE_LENGTH,
        clock: Clock = time.perf_counter,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._loader = loader
        self._clock = clock
        self._limit_s = limit_s
        self._changed = threading.Condition()  # guards everything below
        self._status = ModelStatus("loading", model)
        self._waiting: Waiting[_Job] = Waiting(queue_length)
        self._computing: tuple[_Job, Backend] | None = None
        self._closing = False
        self._retry = False
        self._failed_s = 0.0  # when the last load failed
        self._failures = 0  # in a row
        self._mean_s = 0.3  # of a computation, for Retry-After
        self._thread = threading.Thread(target=self._work, name="redraft-engine", daemon=True)
        self._thread.start()

    # -- for the event loop -----------------------------------------------------------------

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """See :class:`~redraft.model.records.Predictor`; ``on_step`` runs in the caller's loop.

        Raises:
            RedraftError: the computation failed; the engine goes on.
        """
        loop = asyncio.get_running_loop()
        job = _Job(request, loop, loop.create_future(), on_step, self._clock())
        self._enqueue(job)
        try:
            return await job.future
        finally:
            self._forget(job)

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

    # -- the queue --------------------------------------------------------------------------

    def _enqueue(self, job: _Job) -> None:
        with self._changed:
            if self._closing:
                raise _gone()
            if self._status.state != "ready":
                self._demand_retry()
                raise ModelNotReady(_not_ready(self._status))
            if not self._waiting.add(job, self._clock()):
                raise Overloaded(
                    f"{len(self._waiting)} requests wait already, which is the limit. "
                    "Try again in a moment.",
                    retry_after_s=self._mean_s * (len(self._waiting) + 1),
                )
            self._changed.notify_all()

    def _forget(self, job: _Job) -> None:
        """Nobody waits for ``job`` any more."""
        job.cancelled.set()
        with self._changed:
            self._waiting.remove(job)
            if self._computing is not None and self._computing[0] is job:
                self._interrupt()

    def _interrupt(self) -> None:
        """End the pass under way; the lock is held."""
        if self._computing is not None:
            self._computing[1].interrupt(True)

    @contextlib.contextmanager
    def _being_computed(self, job: _Job, backend: Backend) -> Iterator[None]:
        with self._changed:
            self._computing = (job, backend)
        try:
            yield
        finally:
            with self._changed:
                self._computing = None
                backend.interrupt(False)

    def _demand_retry(self) -> None:
        """Load again, where loading failed long enough ago."""
        pause_s = min(RETRY_AFTER_S * 2 ** max(self._failures - 1, 0), RETRY_AT_MOST_S)
        if self._status.state == "failed" and self._clock() - self._failed_s >= pause_s:
            self._retry = True
            self._changed.notify_all()

    # -- the worker thread ------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while (model := self._load()) is not None:
                try:
                    self._serve(model)
                finally:
                    model.backend.close()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """Nothing is answered from here on."""
        with self._changed:
            self._closing = True
            self._status = dataclasses.replace(
                self._status, state="absent", progress=None, message="The engine was closed."
            )
            abandoned = self._waiting.take_all()
        for job in abandoned:
            job.resolve(_gone())

    def _load(self) -> Model | None:
        """The model, after as many tries as are demanded; None: the engine is being closed."""
        while True:
            with self._changed:
                self._changed.wait_for(self._may_load)
                if self._closing:
                    return None
                self._retry = False
            try:
                self._report("loading", None, "")
                model = self._loader(self._report)
            except Cancelled:
                return None
            except Exception as error:
                self._fail(error)
                continue
            with self._changed:
                self._failures = 0
                config, talks = model.backend.config, model.template
                self._status = ModelStatus(
                    state="ready",
                    model=model.label,
                    provider=model.backend.provider,
                    message=model.notice,
                    context_tokens=model.context_tokens,
                    longest_tokens=longest_tokens(model.backend),
                    chat_model="" if talks is None else model.name,
                    abilities=abilities_of(config),
                    chat_abilities=chat_abilities_of(config, talks.knows_tools) if talks else (),
                    prompt_format=config.prompt_format,
                )
            return model

    def _may_load(self) -> bool:
        return self._closing or self._retry or self._status.state != "failed"

    def _report(self, state: LoadState, progress: float | None, message: str) -> None:
        with self._changed:
            if self._closing:
                raise Cancelled
            self._status = dataclasses.replace(
                self._status, state=state, progress=progress, message=message
            )

    def _fail(self, error: Exception) -> None:
        message = str(error)
        if not isinstance(error, RedraftError):
            log.error("Loading the model failed.", exc_info=error)
            message = (
                f"Loading the model failed unexpectedly ({type(error).__name__}: {error}). "
                "Run 'redraft doctor', and report it if it stays."
            )
        with self._changed:
            self._failed_s = self._clock()
            self._failures += 1
            self._status = dataclasses.replace(
                self._status, state="failed", progress=None, message=message
            )

    def _serve(self, model: Model) -> None:
        """Answers until the engine is closed, or the files of the model are not what they were."""
        while (job := self._next()) is not None:
            if (problem := model.changed()) or (problem := self._compute(model, job)):
                self._load_again(problem, job)
                return

    def _load_again(self, problem: str, job: _Job) -> None:
        log.error("%s; loading it again.", problem)
        self._report("loading", None, problem)
        for one in (job, *self._all_waiting()):
            one.resolve(ModelNotReady(f"{problem}; it is being loaded again. Try in a moment."))

    def _all_waiting(self) -> list[_Job]:
        with self._changed:
            return self._waiting.take_all()

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._closing:
                now = self._clock()
                for stale in self._waiting.take_stale(now, self._mean_s):
                    stale.resolve(self._too_late(now - stale.queued_s))
                if self._waiting:
                    return self._waiting.take(now, self._mean_s)
                self._changed.wait()
            return None

    def _too_late(self, waited_s: float) -> Overloaded:
        return Overloaded(
            f"More is asked than this machine can answer: after {waited_s:.1f} s the answer would "
            "have come too late. Try again in a moment.",
            retry_after_s=self._mean_s * (len(self._waiting) + 1),
        )

    def _compute(self, model: Model, job: _Job) -> str:
        """Answers one request. "": all is well; else why the model has to be loaded again."""
        begin, problem = self._clock(), ""

        def is_over() -> bool:
            nonlocal problem
            problem = problem or model.changed()
            if problem or self._closing or job.cancelled.is_set():
                return True
            return self._clock() - begin > self._limit_s

        try:
            with self._being_computed(job, model.backend):
                prediction = answer(
                    model,
                    job.request,
                    self._clock,
                    cancelled=is_over,
                    on_step=job.show if job.on_step is not None else None,
                    queue_ms=(begin - job.queued_s) * 1e3,
                )
        except Cancelled:
            if not problem:  # heard only where the engine, not the caller, ended it
                job.resolve(_gone() if self._closing else self._took_too_long(begin))
        except RedraftError as error:
            job.resolve(error)
        except Exception as error:
            log.error("A prediction failed.", exc_info=error)
            job.resolve(_broke(error))
        else:
            self._mean_s += 0.2 * (self._clock() - begin - self._mean_s)
            job.resolve(prediction)
        return problem

    def _took_too_long(self, begin: float) -> PredictionTimeout:
        return PredictionTimeout(
            f"The prediction was given up after {self._clock() - begin:.0f} s, the limit being "
            f"{self._limit_s:g} s. Ask for less context or fewer tokens."
        )


def _gone() -> EngineGone:
    return EngineGone("The engine is being closed. Start it again to go on.")


def _broke(error: Exception) -> RedraftError:
    return RedraftError(
        f"The prediction failed inside the engine ({type(error).__name__}: {error}). The engine "
        "goes on; report it if it happens again."
    )


def _not_ready(status: ModelStatus) -> str:
    if status.state == "failed":
        return f"The model {status.model} could not be loaded: {status.message}"
    share = "" if status.progress is None else f" ({status.progress:.0%})"
    return f"The model {status.model} is {status.state}{share}. Try again in a moment."
