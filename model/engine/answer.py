"""From a request to a prediction, in one thread: prompt, prefix cache, denoising, candidates.

Knows nothing of threads, queues or event loops; whoever calls it says whether the answer is still
wanted and what the clock reads.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
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
from ..decoding.tree import WIDEST
from ..edits.facts import with_facts
from ..prompt.answers import InvalidAnswer, read_answer
from ..prompt.chat import ChatTemplate
from ..prompt.constraints import Constraint, ValidRange
from ..prompt.grammars import WholeAnswer
from ..prompt.render import Prompt, render
from ..prompt.tokens import Tokenizer
from ..proposals.propose import propose
from ..records import Candidate, EditRequest, Prediction, Source, Stats, StepCallback
from ..runtime.backend import Backend, Sequence
from ..runtime.prefix_cache import PrefixCache
from .budget import CHUNK
from .converse import chat_prompt, price_labels

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
    template: ChatTemplate | None = None  # of conversations; None: these weights know none
    #: Why its files are not what was loaded; "" while they are. Asked between two passes.
    changed: Callable[[], str] = lambda: ""

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
    room = room_for(request, model.backend.config)
    if request.conversation is not None:
        prompt = chat_prompt(model.template, model.name, request.conversation, model.backend, room)
    else:
        prompt = render(request, model.tokenizer, model.backend.config, budget)
    constraint = _constraint(model, prompt, request)
    rendered = clock()
    context = prompt.tokens[:-1]
    with model.cache.acquire(context, room) as lease:
        lease.sequence.permit(prompt.permitted or (model.backend.config.end_token,))
        prefill(lease.sequence, context[lease.reused :], cancelled)
        prefilled = clock()
        writing = _Writing(clock, cancelled, on_step)
        written = _write(model, lease.sequence, prompt, constraint, request, plan, writing)
    end = clock()
    candidates, reason = read_candidates(prompt, request, written.drafts)
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
    id_ = f"cmpl-{secrets.token_hex(12)}"
    return Prediction(id_, model.label, candidates, reason, stats, model.version)


def room_for(request: EditRequest, config: ModelConfig) -> int:
    """Tokens needed behind the prompt: the answer, its last canvas while a causal pass judges it,
    and one more window; or the windows of all candidates side by side."""
    width, rows = config.canvas_width, request.candidates
    branches = 0  # of next edits, where they are read side by side
    if request.task == "next_edit":
        effort = effort_for(request.quality, request.candidates)
        rows = effort.ranges + effort.drafts
        if config.verifier == "ar":
            branches = 2 * (request.max_tokens + WIDEST)
    judged = (width + 1) * (config.masks + 1)  # of one pass, with all masks there may be
    return max(request.max_tokens + 2 * width, rows * width, request.max_tokens + judged, branches)


def prefill(sequence: Sequence, tokens: tuple[int, ...], cancelled: Callable[[], bool]) -> None:
    """Append ``tokens`` in chunks, so that a cancel is heard soon."""
    for start in range(0, len(tokens), CHUNK):
        if cancelled():
            raise Cancelled
        sequence.prefill(np.asarray(tokens[start : start + CHUNK], dtype=np.int64))


@dataclass(frozen=True, slots=True)
class _Writing:
    """Who waits for what is written."""

    clock: Clock
    cancelled: Callable[[], bool]
    on_step: StepCallback | None

    def late_after(self, ms: float) -> Callable[[], bool]:
        """Whether more than ``ms`` have passed since this was asked."""
        until_s = self.clock() + ms / 1e3
        return lambda: self.clock() >= until_s


def _constraint(model: Model, prompt: Prompt, request: EditRequest) -> Constraint | None:
    """What the answer must be or begin with.

    Raises:
        InvalidRequest: the request's grammar cannot be enforced or fulfilled.
    """
    if request.grammar is None:
        return prompt.constraint
    end_token = prompt.permitted[0] if prompt.permitted else model.backend.config.end_token
    whole = WholeAnswer(request.grammar, model.tokenizer, end_token, prompt.forced)
    whole.check_room(request.max_tokens)
    return whole


def _write(
    model: Model,
    sequence: Sequence,
    prompt: Prompt,
    constraint: Constraint | None,
    request: EditRequest,
    plan: Plan | None,
    writing: _Writing,
) -> Denoised:
    cancelled, on_step = writing.cancelled, writing.on_step
    infill = request.task == "infill"
    plan = plan or plan_for(request.quality, request.temperature, request.top_p)
    config = model.backend.config
    if prompt.permitted:
        config = replace(config, end_token=prompt.permitted[0])
    surest = infill and plan.temperature == 0 and request.grammar is None
    brief = Brief(
        config=config,
        vocab_bytes=prompt.vocab_bytes or model.tokenizer.vocab_bytes,
        plan=plan,
        limits=Limits(
            max_tokens=request.max_tokens,
            min_tokens=request.min_tokens,
            max_lines=request.max_lines if infill else None,
            # Of what is drawn at random every line is unlikely.
            line_above=plan.line_above if surest else 0.0,
            whole_lines=prompt.above_a_line,
            stop=() if request.task == "next_edit" else request.stop,
            forced=prompt.forced,
        ),
        constraint=constraint,
        source=_source(model, prompt, request),
        prices=model.prices,
        odds=model.odds,
    )
    last, rng = prompt.tokens[-1], np.random.default_rng(request.seed)
    if request.conversation is not None and request.conversation.labels:
        labels = [model.tokenizer.encode(label) for label in request.conversation.labels]
        return price_labels(sequence, last, labels, request.conversation.labels, brief, cancelled)
    if _looks_around(request, brief.plan):
        effort = effort_for(request.quality, request.candidates)
        field = _field(model, prompt, request, effort)
        write = write_edits if brief.judged else write_canvas_edits
        late = writing.late_after(
            effort.deadline_ms if plan.deadline_ms is None else plan.deadline_ms
        )
        return write(sequence, last, brief, field, effort, rng, on_step, cancelled, late)
    if request.candidates == 1:
        return denoise(sequence, last, brief, rng, on_step, cancelled)
    return denoise_packed(sequence, last, brief, rng, request.candidates, on_step, cancelled)


def _looks_around(request: EditRequest, plan: Plan) -> bool:
    """Whether several ranges are looked at; where answers are drawn, each draw has its own."""
    return request.task == "next_edit" and plan.temperature == 0


def _field(model: Model, prompt: Prompt, request: EditRequest, effort: Effort) -> Field:
    """The region's lines, and what recent edits did that could be done to them too."""
    (top, bottom), lines, at = prompt.region, prompt.lines, prompt.line
    proposed = propose(request.edits, lines, top, bottom, at)[: effort.drafts]
    assert isinstance(prompt.constraint, ValidRange)

    def tokens_of(new: Iterable[str]) -> tuple[int, ...]:
        return tuple(model.tokenizer.encode("".join(f"{line}\n" for line in new)))

    return Field(
        count=bottom - top,
        cursor=at - top + 1,
        chars=prompt.constraint.chars,
        lines=lambda first, last: tokens_of(lines[top + first - 1 : top + last]),
        proposals=tuple(
            Proposal(
                each.first - top + 1,
                each.last - top,
                tokens_of(each.lines),
                each.chance,
                each.family,
            )
            for each in proposed
        ),
    )


def _source(model: Model, prompt: Prompt, request: EditRequest) -> NDArray[np.int64]:
    """The prompt, and before it the region's lines without their numbers: an edit repeats them."""
    first, last = prompt.region
    lines = prompt.lines[first:last] if request.task == "next_edit" else []
    region = model.tokenizer.encode("\n".join(lines)) if lines else []
    return np.asarray([*region, *prompt.tokens], dtype=np.int64)


def read_candidates(
    prompt: Prompt, request: EditRequest, drafts: tuple[Draft, ...]
) -> tuple[tuple[Candidate, ...], str]:
    """The drafts that change the document, each change once, and why there are none if so."""
    if request.conversation is not None:
        return tuple(_candidate((0, 0, draft.text), draft) for draft in drafts), ""
    found: dict[str, Candidate] = {}  # by the document it makes
    reason = ""
    for draft in drafts:
        try:
            change = read_answer(prompt, request, draft.text, draft.ended)
        except InvalidAnswer as error:
            reason = reason or str(error)
            continue
        if change is None or request.text[change[0] : change[1]] == change[2]:
            reason = reason or _nothing(request, draft, draft.text[len(prompt.forced) :])
            continue
        made = request.text[: change[0]] + change[2] + request.text[change[1] :]
        first = found.get(made)
        found[made] = _candidate(change, draft) if first is None else _joined(first, draft)
    candidates = with_facts(request, tuple(found.values())[: request.candidates])
    return candidates, "" if candidates else reason


def _joined(first: Candidate, draft: Draft) -> Candidate:
    """A candidate that was written another way too."""
    source: Source = first.source if first.source == draft.source else "both"
    sure = first.confidence
    repeat = draft.confidence.repeat if sure.repeat is None else sure.repeat
    family = first.family or draft.family
    return replace(first, source=source, family=family, confidence=replace(sure, repeat=repeat))


def _nothing(request: EditRequest, draft: Draft, written: str) -> str:
    if request.task == "next_edit":
        return "The model would change nothing here."
    if draft.finish == "stop":
        return "The answer begins with a stop string."
    if written.strip():
        return "The model would only write what follows the cursor anyway."
    if written or draft.finish == "length":
        return "The model would only begin a new line here."
    return "The model would write nothing here."


def _candidate(change: tuple[int, int, str], draft: Draft) -> Candidate:
    start, end, text = change
    return Candidate(
        start=start,
        end=end,
        text=text,
        confidence=draft.confidence,
        tokens=len(draft.token_ids),
        steps=draft.steps,
        finish=draft.finish,
        source=draft.source,
        family=draft.family,
    )


def warm_up(backend: Backend) -> None:
    """Run every kind of pass once, so that no request pays for first-time set-up."""
    config = backend.config
    width = config.canvas_width
    sequence = backend.new_sequence(CHUNK + 2 * width)
    try:
        tokens = config.special_tokens + np.arange(CHUNK, dtype=np.int64) % 64
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
