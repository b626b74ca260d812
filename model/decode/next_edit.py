"""Next edits by rewriting a region whose old text is the draft (format redraft-3).

One pass scores the old text: it gives the probability of no edit, and of each place where a change
may begin. The likeliest beginnings, and edits by rule, are then written or scored side by side
until they join the old text again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np

from ..records import LEAST_LOG, Confidence, Quality
from ..runtime.backend import Scores
from ..text.common import common_head, common_tail
from .branches import CONFIRM, Branch, OldText, log_of, pack, take
from .completion import Brief, Draft, to_text
from .drafts import continuation
from .pass_costs import worth
from .passes import Passes
from .recent import LEAD
from .sampling import confidence

#: Probability of "no edit" from which the model writes nothing, where that may be the answer.
QUIET = 0.5
#: A beginning this much less likely than the best one, in nats, is not written.
FAR = 5.0
#: Log-probability below which a branch is given up.
HOPELESS = -6.0
#: A branch waits while another one that is being written is likelier by so many nats. It goes on
#: if that one falls behind or ends no likelier than it, so the best answer stays the same.
BEHIND = 2.0
#: Rows of one pass that writes. From 33 rows on attention runs through other kernels, with other
#: last bits.
WIDEST = 32
#: Rows of the first pass that scores the old text, which often suffices, and of a further one.
SCORED_FIRST, SCORED = 64, 96
#: Beginnings taken from one place at most.
_EACH = 2


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Limits of a search for next edits."""

    beginnings: int  # that the model writes on from
    rules: int  # edits by rule that are scored, the likeliest first
    deadline_ms: float  # after which only the best unfinished branch goes on
    beside: float  # nats that a branch may be less likely than a finished one, to go on


SEARCH: dict[Quality, SearchBudget] = {
    "low": SearchBudget(beginnings=1, rules=2, deadline_ms=200.0, beside=0.0),
    "medium": SearchBudget(beginnings=3, rules=2, deadline_ms=400.0, beside=1.0),
    "high": SearchBudget(beginnings=6, rules=8, deadline_ms=1_500.0, beside=FAR),
}


@dataclass(frozen=True, slots=True)
class RuleText:
    """An edit by rule as the region's tokens after it."""

    tokens: tuple[int, ...]  # without END
    prior: float  # probability that exactly this is the next edit
    family: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A place where the text may leave the old one."""

    at: int  # old tokens copied before
    token: int
    log: float  # log-probability of copying them
    own: float  # log-probability of ``token`` there

    @property
    def total(self) -> float:
        return self.log + self.own


@dataclass(slots=True)
class _Scored:
    """The old text as the model sees it."""

    copied: list[float]  # copied[i]: log-probability that the first i tokens stay
    starts: list[_Start]
    rules: dict[int, float]  # log-probability of the first own token of a rule, by its index


def rewrite(
    passes: Passes,
    text: Seq[int],
    rules: Seq[RuleText],
    brief: Brief,
    budget: SearchBudget,
    late: Callable[[], bool],
) -> list[Draft]:
    """Return the region rewritten, best first; unchanged alone where no edit is likelier.

    1. Score the region as it is.
    2. Write on from the best beginnings, and score the rules' texts, side by side.
    3. Rank by the probability of the copied and the changed part, and by that of the rule.

    Args:
        passes: over a sequence that holds the prompt without its last token.
        text: the prompt's last token, and the tokens of the region as it is, without END.
        late: whether the deadline has passed.
    """
    base, end = len(passes.sequence.tokens), brief.config.end_token
    last, region = text[0], text[1:]
    ends = frozenset(i for i in set(region) if b"\n" in brief.vocab_bytes[i])
    old = OldText((*region, end), ends)
    usable = [(each, common_head(old.tokens, (*each.tokens, end))) for each in rules]
    scored = _score(passes, last, old, usable, budget)  # 1.
    unchanged = scored.copied[-1]
    is_quiet = brief.limits.min_tokens == 0 and unchanged >= math.log(QUIET)
    branches = [
        _of_rule(old, each, at, scored, index)
        for index, (each, at) in enumerate(usable[: budget.rules])
        if index in scored.rules and (each.prior >= QUIET or not is_quiet)
    ]
    for start in _likeliest(scored.starts, budget) if not is_quiet else ():
        branch = Branch(old, start.at, start.log, [], [])
        branch.append(start.token, start.own)
        branches.append(branch)
    _write(passes, branches, brief, base, late, budget.beside)  # 2.
    passes.sequence.truncate(base)  # no later prompt continues a branch
    drafts = _ranked(branches, unchanged, brief)  # 3.
    drafts.append(_unchanged(old, unchanged, brief))
    passes.tried = [_with_lead(each) for each in branches]
    return drafts


# --- scoring the old text -------------------------------------------------------------------------


def _score(
    passes: Passes,
    last: int,
    old: OldText,
    rules: Seq[tuple[RuleText, int]],
    budget: SearchBudget,
) -> _Scored:
    """Score the old text in chunks, up to where no later beginning can be among the best."""
    found = _Scored([0.0], [], {})
    rows = [last, *old.tokens[:-1]]
    furthest = max((at for _, at in rules), default=0)
    for places in _parts(len(rows)):
        chunk = rows[places.start : places.stop]
        targets = np.asarray([_expected(old, rules, at) for at in places], np.int64)
        out = passes.score(chunk, False, targets, short=True)
        of_targets = out.target_logprob.reshape(len(chunk), -1)
        for row, at in enumerate(places):
            for index, (_, place) in enumerate(rules):
                if place == at:
                    found.rules[index] = float(of_targets[row, 1 + index])
            stays = min(float(of_targets[row, 0]), 0.0)
            copied = found.copied[-1]
            least = _least_start(found.starts, budget)
            if copied + log_of(-math.expm1(stays)) >= least:
                found.starts += _others(out, row, at, old.tokens[at], copied, least)
            found.copied.append(copied + stays)
        is_over = found.copied[-1] < _least_start(found.starts, budget)
        if is_over and places.stop > furthest:
            break
    return found


def _parts(count: int) -> Iterator[range]:
    """Yield the rows of one pass after another."""
    begin = 0
    while begin < count:
        passes = -(-(count - begin) // SCORED)
        size = min(SCORED_FIRST, count) if not begin else -(-(count - begin) // passes)
        yield range(begin, begin + size)
        begin += size


def _expected(old: OldText, rules: Seq[tuple[RuleText, int]], at: int) -> list[int]:
    """Return the old token at a place, and that of each rule, if its text leaves the old one there.

    Where it does not, the old token fills its place.
    """
    texts = [((*rule.tokens, old.tokens[-1]), place) for rule, place in rules]
    return [old.tokens[at], *((text if place == at else old.tokens)[at] for text, place in texts)]


def _others(
    out: Scores, row: int, at: int, old: int, copied: float, least: float
) -> Iterator[_Start]:
    """Yield the likeliest tokens besides ``old``, as long as they are likelier than ``least``."""
    pairs = zip(out.top[row].tolist(), out.top_logprob[row].tolist(), strict=True)
    others = [(token, own) for token, own in pairs if token != old]
    for token, own in others[:_EACH]:
        if copied + own < least:
            return
        yield _Start(at, token, copied, own)


def _least_start(starts: Seq[_Start], budget: SearchBudget) -> float:
    """Return the log-probability that a start needs at least to be written on from.

    It rises with every further start, so a start that falls short can be forgotten at once.
    """
    best = sorted((each.total for each in starts), reverse=True)[: budget.beginnings]
    if not best:
        return HOPELESS
    worst = best[-1] if len(best) == budget.beginnings else LEAST_LOG
    return max(worst, best[0] - FAR, HOPELESS)


def _likeliest(starts: Seq[_Start], budget: SearchBudget) -> list[_Start]:
    """Return the starts to write on from, best first."""
    least = _least_start(starts, budget)
    best = sorted(starts, key=lambda each: -each.total)[: budget.beginnings]
    return [each for each in best if each.total >= least]


# --- writing --------------------------------------------------------------------------------------


def _of_rule(old: OldText, rule: RuleText, at: int, scored: _Scored, index: int) -> Branch:
    """Return a branch whose tokens are those of ``rule`` up to CONFIRM tokens behind its change."""
    new = (*rule.tokens, old.tokens[-1])
    tail = common_tail(new, old.tokens, most=min(len(new), len(old.tokens)) - at)
    stop = min(len(new), len(new) - tail + CONFIRM)
    joined = len(old.tokens) - (len(new) - stop)
    branch = Branch(
        old,
        at,
        scored.copied[at],
        [],
        [],
        known=new[at:stop],
        family=rule.family,
        prior=rule.prior,
        joined=joined if stop < len(new) else None,
    )
    branch.append(new[at], scored.rules[index])
    return branch


def _write(
    passes: Passes,
    branches: Seq[Branch],
    brief: Brief,
    base: int,
    late: Callable[[], bool],
    beside: float,
) -> None:
    """Write all ``branches`` to their ends, or to where they are hopeless or too late."""
    scored = len(passes.sequence.tokens)
    while going := _going(branches, late(), beside):
        drafts = [_draft(each, brief, WIDEST // len(going)) for each in going]
        needed = sum(
            len(each.tokens) - len(each.rows) + len(draft)
            for each, draft in zip(going, drafts, strict=True)
        )
        if len(passes.sequence.tokens) + needed + 1 > passes.sequence.capacity:
            passes.sequence.truncate(scored)
            for each in branches:
                each.rows.clear()
            if sum(len(each.tokens) for each in going) + scored + 1 > passes.sequence.capacity:
                return
            drafts = [()] * len(going)
        cached = len(passes.sequence.tokens) - base
        packed = pack(going, drafts, base, cached)
        take(packed, passes.read(packed.rows, short=True), cached)


def _going(branches: Seq[Branch], is_late: bool, beside: float) -> list[Branch]:
    """Return the branches that are written on in the next pass."""
    open_ = [each for each in branches if each.finish is None]
    open_ = [each for each in open_ if each.known is not None or each.total >= HOPELESS]
    done = max((each.total for each in branches if each.finish), default=LEAST_LOG)
    open_ = [each for each in open_ if each.known is not None or each.total > done - beside]
    if not is_late or not open_:
        lead = max((each.total for each in open_ if each.known is None), default=LEAST_LOG)
        return [each for each in open_ if each.known or each.total >= lead - BEHIND]
    best = max(open_, key=lambda each: each.total)
    return [best] if best.total > done else []


def _draft(branch: Branch, brief: Brief, room: int) -> tuple[int, ...]:
    """Return the tokens that probably follow, as many as are worth a row."""
    unread = len(branch.tokens) - len(branch.rows)
    room = max(room - unread, 0)
    wanted = branch.likely_tokens()
    if branch.known is not None or wanted:
        return tuple(wanted[:room])
    written = np.asarray([*branch.old.tokens[: branch.start], *branch.tokens], np.int64)
    behind = np.asarray(branch.old.tokens[branch.start : -1], np.int64)
    copy = continuation(np.concatenate([brief.source, behind]), written, brief.config.text_ids)
    found = brief.odds.of_copy(copy)[:room]
    if brief.prices is not None:
        found = found[: worth([each.chance for each in found], brief.prices)]
    return tuple(each.token for each in found)


# --- results --------------------------------------------------------------------------------------


def _ranked(branches: Seq[Branch], unchanged: float, brief: Brief) -> list[Draft]:
    """Return the finished rewrites, each text once, best first."""
    found: dict[str, Draft] = {}
    for branch in sorted(branches, key=lambda each: -each.total):
        is_hopeless = branch.known is None and branch.total < HOPELESS
        if branch.finish not in ("end", "joined") or is_hopeless:
            continue
        draft = _draft_of(branch, unchanged, brief)
        same = found.get(draft.text)
        if same is None:
            found[draft.text] = draft
        elif same.source != draft.source:
            rule = same if same.family else draft
            sure = replace(same.confidence, repeat=rule.confidence.repeat)
            found[draft.text] = replace(same, source="both", family=rule.family, confidence=sure)
    return sorted(found.values(), key=lambda each: likelihood(each.confidence), reverse=True)


def likelihood(sure: Confidence) -> float:
    """Return the probability that the model or the rule, where there is one, is right.

    Of the edits that both rank, rules are right more often than their text's log-probability says:
    the model prefers a text that it knows to one that repeats what the user just did.
    """
    return 1.0 - (1.0 - math.exp(min(sure.total, 0.0))) * (1.0 - (sure.repeat or 0.0))


def _draft_of(branch: Branch, unchanged: float, brief: Brief) -> Draft:
    sure = confidence([math.exp(log) for log in branch.logs])
    sure = replace(
        sure,
        total=max(branch.total, LEAST_LOG),
        place=max(branch.log + branch.logs[0], LEAST_LOG),
        nothing=max(unchanged, LEAST_LOG),
        repeat=branch.prior if branch.known is not None else None,
        logs=(),  # of the branch alone, not of the whole answer
    )
    tokens = branch.text_tokens()
    return Draft(
        text=_text(tokens, brief),
        token_ids=tuple(branch.tokens),
        confidence=sure,
        steps=branch.passes,
        repaired=0,
        finish="end",
        source="repeat" if branch.known is not None else "model",
        family=branch.family,
        copied=len(tokens) + 1 - len(branch.tokens),
    )


def _unchanged(old: OldText, log: float, brief: Brief) -> Draft:
    """Return the region as it is: the answer "no edit"."""
    sure = replace(confidence([math.exp(log)]), nothing=max(log, LEAST_LOG), logs=())
    text, end = old.tokens[:-1], old.tokens[-1]
    return Draft(_text(text, brief), (end,), sure, 1, 0, "end", copied=len(text))


def _with_lead(branch: Branch) -> tuple[int, ...]:
    """Return the tokens of a branch, finished or not, behind the old ones before its start."""
    lead = branch.old.tokens[max(branch.start - LEAD, 0) : branch.start]
    return (*lead, *(branch.known or branch.tokens))


def _text(tokens: Seq[int], brief: Brief) -> str:
    return to_text(b"".join(brief.vocab_bytes[token] for token in tokens))
