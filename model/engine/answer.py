"""From a request to a prediction, in one thread: prompt, prefix cache, denoising, candidates.

Knows nothing of threads, queues or event loops; whoever calls it says whether the answer is still
wanted and what the clock reads.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from ..decoding.candidates import Effort, Field, Proposal, effort_for
from ..decoding.canvas_edits import write_canvas_edits
from ..decoding.copies import Odds
from ..decoding.denoise import (
    Brief,
    Cancelled,
    Denoised,
    Draft,
    Limits,
    Plan,
    denoise,
    denoise_packed,
    plan_for,
)
from ..decoding.judged_edits import write_edits
from ..decoding.prices import PassPrices
from ..decoding.probabilities import confidence
from ..edits.repeats import find_repeats
from ..prompt.answers import InvalidAnswer
from ..prompt.constraints import ValidRange
from ..prompt.foreign import Declined, Read
from ..prompt.formats import Format, format_of
from ..prompt.render import Prompt
from ..prompt.tokens import Tokenizer
from ..records import Candidate, Confidence, EditRequest, Prediction, Source, Stats, StepCallback
from ..runtime.backend import Backend, Sequence
from ..runtime.prefix_cache import PrefixCache
from .budget import CHUNK

Clock = Callable[[], float]  # seconds, monotonic


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model with what it needs to answer."""

    name: str  # without the variant
    backend: Backend
    tokenizer: Tokenizer
    cache: PrefixCache
    context_tokens: int  # the budget of requests that name none
    notice: str = ""  # for people, said once: why it runs where it runs
    version: str = ""  # of the weights
    prices: PassPrices | None = None  # of causal passes on this machine; None: not measured
    odds: Odds = field(default_factory=Odds)  # of drafts; learnt over all answers

    @property
    def label(self) -> str:
        return f"{self.name} {self.backend.variant}"


LoadState = Literal["downloading", "loading"]


class LoadProgress(Protocol):
    """What a loader reports to; raises :class:`Cancelled` when the engine is being closed."""

    def __call__(self, state: LoadState, progress: float | None, message: str) -> None: ...


Loader = Callable[[LoadProgress], Model]


def answer(
    model: Model,
    request: EditRequest,
    clock: Clock,
    cancelled: Callable[[], bool] = lambda: False,
    on_step: StepCallback | None = None,
    queue_ms: float = 0.0,
    plan: Plan | None = None,
) -> Prediction:
    """Predict.

    Args:
        plan: how boldly to fill canvases; None: as the request's quality says. Benchmarks set it.

    Raises:
        Cancelled: ``cancelled`` said so, between two chunks of prefill or two denoise steps.
    """
    begin = clock()
    budget = request.context_tokens or model.context_tokens
    config = model.backend.config
    written_in = format_of(config.prompt_format)
    prompt = written_in.render(request, model.tokenizer, config, budget)
    id_ = f"cmpl-{secrets.token_hex(12)}"
    if isinstance(prompt, Declined):
        nothing = Stats(queue_ms=queue_ms, total_ms=queue_ms + (clock() - begin) * 1e3)
        return Prediction(id_, model.label, (), prompt.reason, nothing, model.version)
    request = _with_room(request, prompt)
    rendered = clock()
    context = prompt.tokens[:-1]
    with model.cache.acquire(context, room_for(request, config)) as lease:
        prefill(lease.sequence, context[lease.reused :], cancelled)
        prefilled = clock()
        written = _write(model, lease.sequence, prompt, request, plan, cancelled, on_step)
    end = clock()
    read = Reader(written_in, prompt, request, model.tokenizer.vocab_bytes)
    candidates, reason = read.candidates(written.drafts)
    stats = Stats(
        prompt_tokens=len(prompt.tokens),
        reused_tokens=lease.reused,
        computed_tokens=len(context) - lease.reused + written.prefilled,
        canvas_tokens=sum(len(draft.token_ids) for draft in written.drafts),
        denoise_steps=written.passes,
        repaired_tokens=sum(draft.repaired for draft in written.drafts),
        queue_ms=queue_ms,
        prompt_ms=(rendered - begin) * 1e3,
        prefill_ms=(prefilled - rendered) * 1e3,
        denoise_ms=(end - prefilled) * 1e3,
        total_ms=queue_ms + (clock() - begin) * 1e3,
        cut=prompt.cut,
        drafts=written.drafted,
    )
    return Prediction(id_, model.label, candidates, reason, stats, model.version)


def _with_room(request: EditRequest, prompt: Prompt) -> EditRequest:
    """With as many tokens as the format's answers take, whatever the change is worth."""
    return replace(request, max_tokens=prompt.room) if prompt.room else request


def room_for(request: EditRequest, config: ModelConfig) -> int:
    """Tokens needed behind the prompt: the answer, its last canvas while a causal pass judges it,
    and one more window; or the windows of all candidates side by side."""
    width, rows = config.canvas_width, request.candidates
    if request.task == "next_edit":
        effort = effort_for(request.quality, request.candidates)
        rows = effort.ranges + effort.drafts
    judged = (width + 1) * (config.masks + 1)  # of one pass, with all masks there may be
    return max(request.max_tokens + 2 * width, rows * width, request.max_tokens + judged)


def prefill(sequence: Sequence, tokens: tuple[int, ...], cancelled: Callable[[], bool]) -> None:
    """Append ``tokens`` in chunks, so that a cancel is heard soon."""
    for start in range(0, len(tokens), CHUNK):
        if cancelled():
            raise Cancelled
        sequence.prefill(np.asarray(tokens[start : start + CHUNK], dtype=np.int64))


def _write(
    model: Model,
    sequence: Sequence,
    prompt: Prompt,
    request: EditRequest,
    plan: Plan | None,
    cancelled: Callable[[], bool],
    on_step: StepCallback | None,
) -> Denoised:
    infill = request.task == "infill" and not prompt.room  # the answer is what stands at the cursor
    plan = plan or plan_for(request.quality, request.temperature, request.top_p)
    brief = Brief(
        config=model.backend.config,
        vocab_bytes=model.tokenizer.vocab_bytes,
        plan=plan,
        limits=Limits(
            max_tokens=request.max_tokens,
            min_tokens=request.min_tokens,
            max_lines=request.max_lines if infill else None,
            # Of what is drawn at random every line is unlikely.
            line_above=plan.line_above if infill and plan.temperature == 0 else 0.0,
            whole_lines=prompt.above_a_line,
            stop=request.stop if infill else prompt.stop,
            forced=prompt.forced,
        ),
        constraint=prompt.constraint,
        source=_source(model, prompt, request),
        prices=model.prices,
        odds=model.odds,
    )
    last, rng = prompt.tokens[-1], np.random.default_rng(request.seed)
    if isinstance(prompt.constraint, ValidRange) and _looks_around(request, brief.plan):
        effort = effort_for(request.quality, request.candidates)
        field = _field(model, prompt, request, effort)
        write = write_edits if brief.judged else write_canvas_edits
        return write(sequence, last, brief, field, effort, rng, on_step, cancelled)
    if request.candidates == 1:
        return denoise(sequence, last, brief, rng, on_step, cancelled)
    return denoise_packed(sequence, last, brief, rng, request.candidates, on_step, cancelled)


def _looks_around(request: EditRequest, plan: Plan) -> bool:
    """Whether several ranges are looked at; where answers are drawn, each draw has its own."""
    return request.task == "next_edit" and plan.temperature == 0


def _field(model: Model, prompt: Prompt, request: EditRequest, effort: Effort) -> Field:
    """The region's lines, and what recent edits did that could be done to them too."""
    (top, bottom), lines, at = prompt.region, prompt.lines, prompt.line
    repeats = find_repeats(request.edits, lines, top, bottom, at)[: effort.drafts]
    assert isinstance(prompt.constraint, ValidRange)

    def tokens_of(new: Iterable[str]) -> tuple[int, ...]:
        return tuple(model.tokenizer.encode("".join(f"{line}\n" for line in new)))

    return Field(
        count=bottom - top,
        cursor=at - top + 1,
        chars=prompt.constraint.chars,
        lines=lambda first, last: tokens_of(lines[top + first - 1 : top + last]),
        proposals=tuple(
            Proposal(each.first - top + 1, each.last - top, tokens_of(each.lines), each.chance)
            for each in repeats
        ),
    )


def _source(model: Model, prompt: Prompt, request: EditRequest) -> NDArray[np.int64]:
    """The prompt, and before it the region's lines without their numbers: an edit repeats them."""
    first, last = prompt.region
    lines = prompt.lines[first:last] if request.task == "next_edit" else []
    region = model.tokenizer.encode("\n".join(lines)) if lines else []
    return np.asarray([*region, *prompt.tokens], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the drafts of one request."""

    written_in: Format
    prompt: Prompt
    request: EditRequest
    vocab_bytes: Seq[bytes]

    def candidates(self, drafts: tuple[Draft, ...]) -> tuple[tuple[Candidate, ...], str]:
        """The drafts that change the document, each change once, and why there are none if so."""
        found: dict[str, Candidate] = {}  # by the document it makes
        request, reason = self.request, ""
        for draft in drafts:
            ended = draft.ended or draft.finish == "stop"
            try:
                change = self.written_in.read(self.prompt, request, draft.text, ended)
            except InvalidAnswer as error:
                reason = reason or str(error)
                continue
            if change is None or request.text[change.start : change.end] == change.text:
                reason = reason or self._nothing(draft)
                continue
            made = request.text[: change.start] + change.text + request.text[change.end :]
            first = found.get(made)
            one = self._candidate(change, draft)
            found[made] = one if first is None else _joined(first, draft)
        return tuple(found.values())[: request.candidates], "" if found else reason

    def _candidate(self, change: Read, draft: Draft) -> Candidate:
        return Candidate(
            start=change.start,
            end=change.end,
            text=change.text,
            confidence=self._sureness(change, draft),
            tokens=len(draft.token_ids),
            steps=draft.steps,
            finish=draft.finish,
            source=draft.source,
        )

    def _sureness(self, change: Read, draft: Draft) -> Confidence:
        """Of a rewritten region, how sure the model was of the tokens that change something, the
        first token behind them included: repeating the rest is no merit."""
        if change.written is None or not draft.probabilities:
            return draft.confidence
        first, last = (len(draft.text[:index].encode()) for index in change.written)
        sure, at = list[float](), 0
        for token, probability in zip(draft.token_ids, draft.probabilities, strict=True):
            begins, at = at, at + len(self.vocab_bytes[token])
            if at > first:
                sure.append(probability)
            if begins >= last:
                break
        return confidence(sure or [draft.probabilities[-1]])

    def _nothing(self, draft: Draft) -> str:
        if self.request.task == "next_edit":
            return "The model would change nothing here."
        if self.prompt.room:
            return "The model would put nothing in at the cursor."
        written = draft.text[len(self.prompt.forced) :]
        if draft.finish == "stop":
            return "The answer begins with a stop string."
        if written.strip():
            return "The model would only write what follows the cursor anyway."
        if written or draft.finish == "length":
            return "The model would only begin a new line here."
        return "The model would write nothing here."


def _joined(first: Candidate, draft: Draft) -> Candidate:
    """A candidate that was written another way too."""
    source: Source = first.source if first.source == draft.source else "both"
    sure = first.confidence
    repeat = draft.confidence.repeat if sure.repeat is None else sure.repeat
    return replace(first, source=source, confidence=replace(sure, repeat=repeat))


def warm_up(backend: Backend) -> None:
    """Run every kind of pass once, so that no request pays for first-time set-up."""
    config = backend.config
    width = config.canvas_width
    sequence = backend.new_sequence(CHUNK + 2 * width)
    try:
        some = min(64, len(config.text_ids))
        tokens = config.text_ids.start + np.arange(CHUNK, dtype=np.int64) % some
        sequence.prefill(tokens)
        sequence.truncate(CHUNK - 8)
        sequence.prefill(tokens[-8:-1])  # a keystroke's worth
        window = np.full(width, config.mask_token, dtype=np.int64)
        window[0] = tokens[-1]
        for logits in (False, True):
            sequence.denoise(window, logits=logits)
            if config.verifier == "ar":
                sequence.verify(tokens[-4:], logits=logits)
                sequence.truncate(CHUNK - 8)
        sequence.denoise_packed(np.stack([window, window]))
    finally:
        backend.release(sequence)
