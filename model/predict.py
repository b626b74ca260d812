"""Prediction, step by step, in the calling thread."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .config import ModelConfig
from .conversation import (
    abilities_of,
    chat_abilities_of,
    chat_prompt,
    longest_tokens,
    price_labels,
)
from .decode.answers import Reader
from .decode.canvas import grow
from .decode.completion import Brief, Draft, Plan, plan_for
from .decode.drafts import Odds
from .decode.endings import AnswerLimits
from .decode.grammar import Constraint, ForcedText, GrammarConstraint
from .decode.next_edit import SEARCH, WIDEST, rewrite
from .decode.pass_costs import PassPrices
from .decode.passes import Passes
from .decode.recent import RecentAnswers
from .decode.regions import at_likely_rule, rank_rules, region_text, rule_texts
from .decode.retry import FittingSearch
from .decode.speculative import write
from .errors import InvalidRequest
from .gate.blocks import openers
from .prompts.chat_template import ChatTemplate
from .prompts.format import Declined, Prompt
from .prompts.registry import REDRAFT_3, format_of
from .prompts.tokenizer import Tokenizer
from .records import LEAST_LOG, EditRequest, ModelStatus, Prediction, Stats, StepCallback
from .rules.rule_edits import RuleEdit
from .runtime.backend import CHUNK, Backend, Cancelled, Denoises, Sequence
from .runtime.prefix_cache import PrefixCache

Clock = Callable[[], float]  # seconds, monotonic

#: Prompt tokens read at once on a CPU. A key interrupts the request of the key before it, and a
#: chunk that takes longer than a key (256 tokens: 0.4 s with the 0.5B model) is never kept. Smaller
#: chunks cost more: 64 tokens 4 % of processor time, 32 a fifth.
CPU_STEP = 64
READ_AHEAD = "the prompt was read ahead"


@dataclass(frozen=True, slots=True)
class Chore:
    """Work for an engine without requests; a request ends it, and then it is done anew."""

    idle_s: float  # seconds without a request before it begins
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Model:
    """Loaded weights with tokenizer, prefix cache and measured costs."""

    name: str  # without the variant
    backend: Backend
    tokenizer: Tokenizer
    cache: PrefixCache
    context_tokens: int  # the budget of requests that name none
    notice: str = ""  # for people: why it runs on this device
    version: str = ""  # of the weights
    prices: PassPrices | None = None  # of causal passes on this machine; None: not measured
    odds: Odds = field(default_factory=Odds)  # of drafts; learnt over all answers
    recent: RecentAnswers = field(default_factory=RecentAnswers)  # drafts for the next answers
    template: ChatTemplate | None = None  # of conversations; None: these weights have none
    chores: tuple[Chore, ...] = ()  # for an engine, in this order
    why_outdated: Callable[[], str] = lambda: ""  # why another model is to run; "" this one
    larger: str = ""  # see :class:`ModelStatus`
    about_larger: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {self.backend.variant}"

    def status(self) -> ModelStatus:
        """Return the status of an engine that answers with this model."""
        config, template = self.backend.config, self.template
        return ModelStatus(
            state="ready",
            model=self.label,
            provider=self.backend.provider,
            message=self.notice,
            context_tokens=self.context_tokens,
            longest_tokens=longest_tokens(self.backend),
            chat_model="" if template is None else self.name,
            abilities=abilities_of(config),
            chat_abilities=chat_abilities_of(config, template.knows_tools) if template else (),
            prompt_format=config.prompt_format,
            reads_ahead=True,
            larger=self.larger,
            about_larger=self.about_larger,
        )


LoadState = Literal["downloading", "loading"]


#: Receives a loader's state, its progress 0 … 1 (None: unknown) and a message for people; raises
#: :class:`Cancelled` if the engine is being closed.
LoadProgress = Callable[[LoadState, float | None, str], None]
Loader = Callable[[LoadProgress], Model]


def predict(
    model: Model,
    request: EditRequest,
    clock: Clock,
    cancelled: Callable[[], bool] = lambda: False,
    on_step: StepCallback | None = None,
    plan: Plan | None = None,
) -> Prediction:
    """Compute one prediction, or only read its prompt (``EditRequest.read_ahead``).

    Args:
        plan: settings of decoding; None: those of the request's quality. Benchmarks set it.

    Raises:
        InvalidRequest: these weights cannot answer this request; the message says why.
        Cancelled: ``cancelled`` returned True, between two chunks of prefill or two passes. What
            was read stays in the prefix cache.
    """
    # 1. Render the prompt, unless these weights decline the request.
    begin, config, id_ = clock(), model.backend.config, f"cmpl-{secrets.token_hex(12)}"
    rules = rank_rules(request) if _rewrites(model, request) else []
    prompt = prompt_for(model, request, rules)
    if isinstance(prompt, Declined):
        spent = Stats(total_ms=(clock() - begin) * 1e3)
        return Prediction(id_, model.label, (), prompt.reason, spent, model.version)
    if prompt.room:  # the format decides how many tokens its answers take
        request = replace(request, max_tokens=prompt.room)
    plan = plan or plan_for(request.quality, request.temperature, request.top_p)
    brief = _brief(model, prompt, request, plan)
    rendered = clock()

    # 2. Read what the prefix cache lacks, then write the answer.
    context = prompt.tokens[:-1]
    room = room_for(request, config) + len(prompt.behind)
    if request.read_ahead:
        spent = replace(_read_ahead(model, prompt, request, room, cancelled), cut=prompt.cut)
        spent = replace(spent, total_ms=(clock() - begin) * 1e3)
        return Prediction(id_, model.label, (), READ_AHEAD, spent, model.version)
    with model.cache.acquire(context, room, request.task, prompt.stable or None) as lease:
        lease.sequence.permit(prompt.permitted or config.ends)
        prefill(lease.sequence, context[lease.reused :], cancelled, step_of(model.backend))
        prefilled = clock()
        passes = Passes(lease.sequence, cancelled, on_step)
        if prompt.rewrites and plan.temperature == 0:  # a random draw is drawn whole
            search = SEARCH[request.quality]
            known = rule_texts(model.tokenizer, prompt, request, rules, search.rules)
            is_late = _late_after(clock, search.deadline_ms, plan)
            drafts = rewrite(passes, _region(model, prompt), known, brief, search, is_late)
        else:
            drafts = _write(model, passes, prompt, request, brief)
    end = clock()
    if _is_free(request, prompt) and drafts:
        model.recent.note(request, prompt, drafts[0])
    if passes.tried:
        model.recent.note_rewrites(request.path, passes.tried)

    # 3. Parse the answer into edits.
    vocab_bytes = prompt.vocab_bytes or model.tokenizer.vocab_bytes
    reader = Reader(format_of(config.prompt_format), prompt, request, vocab_bytes)
    candidates, reason = reader.read(tuple(drafts))
    stats = Stats(
        prompt_tokens=len(prompt.tokens),
        reused_tokens=lease.reused,
        computed_tokens=len(context) - lease.reused + passes.prefilled,
        canvas_tokens=_written(drafts[:1] if prompt.rewrites else drafts),
        denoise_steps=passes.count,
        repaired_tokens=sum(draft.repaired for draft in drafts),
        prompt_ms=(rendered - begin) * 1e3,
        prefill_ms=(prefilled - rendered) * 1e3,
        denoise_ms=(end - prefilled) * 1e3,
        total_ms=(clock() - begin) * 1e3,
        cut=prompt.cut,
        drafts=passes.tally.counts(),
    )
    is_given_up = not candidates and any(draft.finish == "unsure" for draft in drafts)
    return Prediction(id_, model.label, candidates, reason, stats, model.version, is_given_up)


def _read_ahead(
    model: Model, prompt: Prompt, request: EditRequest, room: int, cancelled: Callable[[], bool]
) -> Stats:
    """Read what a request wants of its prompt. Nothing behind what is held already is lost."""
    context = prompt.tokens[: prompt.stable if request.read_ahead == "stable" else -1]
    reused = model.cache.count_held(context)
    if reused < len(context):
        room += len(prompt.tokens) - len(context)
        with model.cache.acquire(context, room, request.task, prompt.stable or None) as lease:
            reused = lease.reused
            prefill(lease.sequence, context[reused:], cancelled, step_of(model.backend))
    return Stats(len(prompt.tokens), reused, len(context) - reused)


def _written(drafts: list[Draft]) -> int:
    """Return the tokens of answers, with those that they copy from what they replace."""
    return sum(len(draft.token_ids) + draft.copied for draft in drafts)


def _rewrites(model: Model, request: EditRequest) -> bool:
    """Return whether a region is rewritten, to which edits by rule may move."""
    return model.backend.config.prompt_format == REDRAFT_3 and request.task == "next_edit"


def prompt_for(
    model: Model, request: EditRequest, rules: list[RuleEdit] | None = None
) -> Prompt | Declined:
    """Return the prompt that ``request`` becomes, or why this model declines it.

    Args:
        rules: the edits by rule for this request where they are known, the likeliest first.
    """
    config, budget = model.backend.config, request.context_tokens or model.context_tokens
    if _rewrites(model, request):
        known = rank_rules(request) if rules is None else rules
        request = at_likely_rule(request, known, model.tokenizer, budget)
    if request.conversation is not None:
        room = room_for(request, config)
        return chat_prompt(model.template, model.name, request.conversation, model.backend, room)
    return format_of(config.prompt_format).render(request, model.tokenizer, config, budget)


def room_for(request: EditRequest, config: ModelConfig) -> int:
    """Return how many tokens are needed behind the prompt.

    That is the answer, its last canvas while a causal pass verifies it, and one more window; or all
    branches of next edits.
    """
    width = config.canvas_width + (not config.logit_shift)
    is_searched = request.task == "next_edit" and config.verifier == "ar"
    branches = 2 * (request.max_tokens + WIDEST) if is_searched else 0
    verified = (width + 1) * (config.masks + 1)  # of one pass, with as many masks as possible
    return max(request.max_tokens + 2 * width, request.max_tokens + verified, branches)


def step_of(backend: Backend) -> int:
    """Return how many tokens of a prompt are read at once."""
    return CPU_STEP if backend.provider == "CPU" else CHUNK


def prefill(
    sequence: Sequence,
    tokens: tuple[int, ...] | NDArray[np.int64],
    cancelled: Callable[[], bool],
    step: int = CHUNK,
) -> None:
    """Append ``tokens``, ``step`` at a time.

    What was read before a cancel is kept for the next prompt.

    Raises:
        Cancelled: ``cancelled`` returned True between two chunks.
    """
    for start in range(0, len(tokens), step):
        if cancelled():
            raise Cancelled
        sequence.extend(np.asarray(tokens[start : start + step], dtype=np.int64))


def _constraint(model: Model, prompt: Prompt, request: EditRequest) -> Constraint | None:
    """Return the constraint that the answer must keep.

    Raises:
        InvalidRequest: the request's grammar cannot be enforced or fulfilled.
    """
    config, tokenizer = model.backend.config, model.tokenizer
    if request.grammar is None:
        return ForcedText(prompt.forced, tokenizer) if prompt.forced else None
    is_causal = config.verifier == "ar"
    if prompt.room or not is_causal:
        how = "with the text around the cursor" if is_causal else "in any order"
        raise InvalidRequest(
            f"{model.name} writes what goes in {how}, so that no grammar can be held against it. "
            "Leave the grammar out, or choose a model that fills in from left to right."
        )
    end_token = prompt.permitted[0] if prompt.permitted else config.end_token
    whole = GrammarConstraint(request.grammar, tokenizer, end_token, prompt.forced)
    whole.check_room(request.max_tokens)
    return whole


def _brief(model: Model, prompt: Prompt, request: EditRequest, plan: Plan) -> Brief:
    """Return what stays the same while the answer is written."""
    config = model.backend.config
    if prompt.permitted:
        config = replace(config, end_token=prompt.permitted[0])
    rewrites = request.task == "next_edit" or prompt.room > 0
    surest = _is_free(request, prompt) and plan.temperature == 0  # else every line is unlikely
    verifies = config.verifier == "ar"  # the first guesses of a canvas are no likelihood
    above = openers(request.text, request.cursor, request.path, request.language) if surest else ()
    return Brief(
        config=config,
        vocab_bytes=prompt.vocab_bytes or model.tokenizer.vocab_bytes,
        plan=plan,
        limits=AnswerLimits(
            max_tokens=request.max_tokens,
            min_tokens=request.min_tokens,
            max_lines=None if rewrites else request.max_lines,
            line_above=plan.line_above if surest else 0.0,
            openers=above,
            total_above=request.least_total if surest and verifies else LEAST_LOG,
            whole_lines=prompt.above_a_line,
            stop=prompt.stop if rewrites else request.stop,
            forced=prompt.forced,
        ),
        constraint=_constraint(model, prompt, request),
        source=_source(model, prompt, request),
        prices=model.prices,
        odds=model.odds,
    )


def _region(model: Model, prompt: Prompt) -> list[int]:
    """Return the prompt's last token and the tokens of its region as it is."""
    top = prompt.region[0]
    return [prompt.tokens[-1], *model.tokenizer.encode(region_text(prompt, top, top, ()))]


def _late_after(clock: Clock, usual_ms: float, plan: Plan) -> Callable[[], bool]:
    """Return a check whether the plan's deadline, or the usual one, has passed since now."""
    until_s = clock() + (usual_ms if plan.deadline_ms is None else plan.deadline_ms) / 1e3
    return lambda: clock() >= until_s


def _write(
    model: Model,
    passes: Passes,
    prompt: Prompt,
    request: EditRequest,
    brief: Brief,
) -> list[Draft]:
    """Write the answers in the way that suits the request and the weights."""
    plan, last, rng = brief.plan, prompt.tokens[-1], np.random.default_rng(request.seed)
    if request.conversation is not None and request.conversation.labels:
        texts = request.conversation.labels
        labels = [model.tokenizer.encode(label) for label in texts]
        return price_labels(passes, last, labels, texts, brief)
    if prompt.in_place:
        return [grow(passes, (last, prompt.behind), brief, rng)]
    # An infill may give way to one that fits its surroundings if it is the likeliest, the only one
    # requested, and not yet shown in part.
    gives_way = _is_free(request, prompt) and request.candidates == 1 and passes.on_step is None
    if gives_way and brief.verifies and plan.temperature == 0 and plan.second_tries:
        written_in = format_of(model.backend.config.prompt_format)
        fitting = FittingSearch(passes, brief, written_in, prompt, request)
        return [fitting.write()]
    return write(passes, last, brief, rng, request.candidates)


def _is_free(request: EditRequest, prompt: Prompt) -> bool:
    """Return whether any text may go in at the cursor, so that the last answers are good drafts."""
    return request.task == "infill" and not prompt.room and request.grammar is None


def _source(model: Model, prompt: Prompt, request: EditRequest) -> NDArray[np.int64]:
    """Return the tokens to copy drafts from.

    These are the last answers, the region's lines without their numbers, which an edit repeats, and
    the prompt.
    """
    first, last = prompt.region
    lines = prompt.lines[first:last] if request.task == "next_edit" else []
    region = model.tokenizer.encode("\n".join(lines)) if lines else []
    recent: list[int] = []
    end_token = model.backend.config.end_token
    if _is_free(request, prompt):
        recent = model.recent.source(request, prompt, model.tokenizer, end_token)
    elif request.task == "next_edit":
        recent = model.recent.rewrites(request.path, end_token)
    return np.asarray([*recent, *region, *prompt.tokens], dtype=np.int64)


def warm_up(backend: Backend) -> None:
    """Run every kind of pass that answers need once, so that no request pays for set-up."""
    config = backend.config
    width = config.canvas_width
    sequence = backend.open(CHUNK + 2 * width)
    try:
        some = min(64, len(config.text_ids))
        tokens = config.text_ids.start + np.arange(CHUNK, dtype=np.int64) % some
        prefill(sequence, tokens, lambda: False, step_of(backend))  # no wider: memory stays
        sequence.truncate(CHUNK - 8)
        sequence.extend(tokens[-8:-1])  # a keystroke's worth
        window = np.full(width, config.mask_token, dtype=np.int64)
        window[0] = tokens[-1]
        for logits in (False, True):
            if config.has_canvases:
                assert isinstance(sequence, Denoises)
                sequence.denoise(window, window[:0], logits=logits)
            if config.verifier == "ar":
                sequence.score(tokens[-4:], logits=logits)
                sequence.truncate(CHUNK - 8)
    finally:
        backend.release(sequence)
