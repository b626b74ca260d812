"""Several next edits over one prefix cache, where the weights judge: ranges, drafts, texts, rank.

All that may be said is one tree of tokens behind the prompt (``tree.py``), and a tick is one pass
over what is new in it:

1. "No edit", the first digit of a range, and the drafts that somebody proposes (repeated edits) as
   they stand.
2. The likeliest ranges are read to their ends, and on, as far as it may pay, along their lines as
   they are; those that are whole are written by the model, side by side, as
   :func:`~redraft.model.decoding.denoise.denoise` would: what is known of a range's draft or lines
   is the beginning of its text.
3. When enough is written or the time is up, what is the same is merged, the rest ranked.

Knows nothing of prompts or documents; ``engine/answer.py`` says what the lines are and what to
propose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace

import numpy as np

from ..records import LEAST_LOG, CanvasState, Source, StepCallback
from ..runtime.backend import Sequence
from .answer import Answer
from .candidates import (
    BESIDE,
    DRAFT_TOKENS,
    FAR_FETCHED,
    HOPELESS_LATE,
    Effort,
    Field,
    Proposal,
    good_enough,
    is_edit,
    is_quiet,
    merged,
    no_edit,
    priced,
    range_tree,
    text_of,
    usable,
)
from .denoise import Denoised, Run
from .judging import Judging
from .plan import Brief, Draft
from .prices import worth
from .probabilities import confidence
from .ranges import Opening
from .tree import Node, Tree

#: How often a token of an edited line is that of the line as it was, where those before it were.
#: Decides only how far lines are read ahead.
LINE_STAYS = 0.85
#: Tokens of a line read ahead where nothing is known of what a pass costs.
LINE_AHEAD = 12


def write_edits(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    field: Field,
    effort: Effort,
    rng: np.random.Generator,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    late: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Candidates, the best first; where no edit is the answer, that alone.

    Args:
        sequence: holds the prompt without its last token; left as it came.
        on_step: follows the range written first, and is shown the best candidate at the end.
        late: whether the time is up: nothing more is written then than one text.

    Raises:
        Cancelled: ``cancelled`` said so, between two passes.
    """
    run = Run(sequence, cancelled, on_step)
    return _Editor(run, last_token, brief, field, effort, rng, late).write()


@dataclass(slots=True)
class _Writing:
    """The model's own text for a range, in progress."""

    opening: Opening
    judging: Judging
    passes: int = 0
    path: list[int] = field(default_factory=list)  # tokens behind the root that are settled

    @property
    def answer(self) -> Answer:
        return self.judging.answer

    def asks(self) -> list[int]:
        """What is to be read next: what is settled, and what is drafted behind it."""
        self.judging.drafts = self.judging.copy()
        return [*self.path, *(each.token for each in self.judging.drafts)]

    def go_on(self, tree: Tree, run: Run) -> None:
        """Settle all that the tree knows."""
        self.passes += 1
        while self.answer.finish is None:
            node = tree.node(self.path)
            if node is None or not node.read:
                return
            drafts = self.judging.drafts
            out, _ = tree.said(node, [each.token for each in drafts])
            self.judging.drafts = drafts[: len(out.top) - 1]
            before = len(self.answer.settled)
            kept = self.judging.review(out)
            run.tally.note(self.judging.drafts, self.judging.right)
            self.judging.settle(kept)
            self.path += self.answer.settled[before:]


class _Editor:
    """The candidates of one moment."""

    def __init__(
        self,
        run: Run,
        last_token: int,
        brief: Brief,
        field: Field,
        effort: Effort,
        rng: np.random.Generator,
        late: Callable[[], bool],
    ) -> None:
        self._run, self._base = run, len(run.sequence.tokens)
        self._tree = Tree(run, last_token, brief.config.end_token, keep=brief.limits.min_tokens)
        self._last_token = last_token
        self._brief, self._field, self._effort, self._rng = brief, field, effort, rng
        self._late = late
        self._ranges = range_tree(brief, field)
        self._chars = {token: char for char, token in field.chars.items()}
        self._promise: dict[str, float] = {}  # by range: log of the best proposal's chance
        self._writing: dict[str, _Writing] = {}  # by range, in the order in which they were begun
        self._drafts: list[Draft] = []

    def write(self) -> Denoised:
        try:
            self._search()
        finally:  # branches are no text that a later prompt could go on from
            self._run.sequence.truncate(self._base)
        drafts = merged(self._drafts)
        if drafts and self._run.on_step is not None:
            steps = max(self._run.passes, drafts[0].steps)
            self._run.on_step(CanvasState(steps, (drafts[0].text,)))
        counts = self._run.tally.counts()
        found = tuple(drafts or [no_edit(self._ranges, self._brief)])
        return Denoised(found, self._run.passes, self._run.prefilled, counts)

    def _search(self) -> None:
        proposed = usable(self._brief, self._field, self._effort, quiet=False)
        self._read([[], *map(self._whole, proposed)])
        quiet = is_quiet(self._ranges, self._brief)
        judged = usable(self._brief, self._field, self._effort, quiet)
        self._read([self._whole(proposal) for proposal in judged])
        for proposal in judged:
            self._judge(proposal)
        if not quiet:
            self._write_ranges()

    # -- reading ------------------------------------------------------------------------------

    def _read(self, texts: Seq[Seq[int]]) -> None:
        """Read texts behind the prompt, and price what may follow each beginning of a range."""
        for node in self._tree.read(texts):
            opening = self._opening_of(node)
            if opening is not None:
                assert node.logits is not None
                self._ranges.note(opening, node.logits)

    def _opening_of(self, node: Node) -> str | None:
        """The beginning of a range that a node ends; None where its range is whole."""
        text = ""
        for each in node.path()[1:]:
            if text.endswith("\n"):
                return None
            text += self._chars[each.token]
        return None if text.endswith("\n") else text

    def _whole(self, proposal: Proposal) -> list[int]:
        """A proposal as the model would write it, END apart: nothing comes behind that."""
        return [*self._ranges.tokens(proposal.range), *proposal.tokens]

    def _judge(self, proposal: Proposal) -> None:
        """A candidate of somebody's draft as it stands, which was read."""
        opening = self._ranges.opening(proposal.range)
        assert opening is not None, "it was read"
        tokens = (*self._whole(proposal), self._brief.config.end_token)
        nodes = self._tree.node(tokens[:-1])
        assert nodes is not None
        text = [*zip(nodes.path(), tokens, strict=True)][len(proposal.range) :]
        logs = [node.logs[token] for node, token in text]
        sure = confidence([math.exp(log) for log in (*opening.logs, *logs)])
        sure = replace(sure, repeat=proposal.chance)
        source: Source = "both" if all(node.best == token for node, token in text) else "repeat"
        draft = Draft(
            text_of(tokens, self._brief), tokens, sure, 1, 0, "end", source, proposal.family
        )
        self._drafts.append(priced(draft, opening, self._ranges))
        if proposal.chance > 0:
            known = self._promise.get(proposal.range, LEAST_LOG)
            self._promise[proposal.range] = max(math.log(proposal.chance), known)

    # -- writing ------------------------------------------------------------------------------

    def _write_ranges(self) -> None:
        """The most promising ranges, side by side where that can be, until enough is written."""
        while True:
            chosen = self._side_by_side(self._chosen())
            if not chosen:
                return
            texts = [self._next(opening, at) for at, opening in enumerate(chosen)]
            self._read([text for text in texts if text])
            for opening in chosen:
                one = self._writing.get(opening.text)
                if one is not None:
                    one.go_on(self._tree, self._run)
                    self._finish(one)
            self._show()

    def _side_by_side(self, chosen: list[Opening]) -> list[Opening]:
        """Those worth the positions they take in the next pass; others wait until the best one
        turns out to be no better than they are."""
        hopes = [self._hope(each) for each in chosen]
        return [
            each for each, hope in zip(chosen, hopes, strict=True) if hope >= max(hopes) - BESIDE
        ]

    def _hope(self, opening: Opening) -> float:
        """Log-probability that its text has at most."""
        one = self._writing.get(opening.text)
        return self._worth(opening) if one is None else one.answer.total

    def _chosen(self) -> list[Opening]:
        """The ranges to go on with: those in progress, and others as long as there is time."""
        going = [one.opening for one in self._writing.values() if self._goes_on(one)]
        room = self._effort.ranges - max(len(going), len(self._writing))
        if room <= 0 or ((going or self._drafts) and self._late()):
            return going
        left = [each for each in self._ranges.open() if each.text not in self._writing]
        begun = [self._worth(one.opening) for one in self._writing.values()]
        best = max([*begun, *map(self._worth, left)], default=LEAST_LOG)
        needed = good_enough(self._drafts, self._effort.wanted)
        # No text can make up for its place, but a proposal may be what it promises.
        fitting = [
            each
            for each in left
            if each.total >= self._effort.hopeless
            and self._worth(each) >= max(best - FAR_FETCHED, needed)
        ]
        return [*going, *sorted(fitting, key=self._worth, reverse=True)[:room]]

    def _goes_on(self, one: _Writing) -> bool:
        if not self._is_open(one):
            return False
        if self._late():  # the best alone, and only where nothing better is known
            open_ = filter(self._is_open, self._writing.values())
            best = max(open_, key=lambda each: each.answer.total)
            least = max(good_enough(self._drafts, 1), HOPELESS_LATE) if self._drafts else -math.inf
            return one is best and one.answer.total > least
        return one.answer.total >= good_enough(self._drafts, self._effort.wanted)

    def _is_open(self, one: _Writing) -> bool:
        return one.answer.finish is None and one.answer.total >= self._effort.hopeless

    def _worth(self, opening: Opening) -> float:
        """How promising a range is: as likely as it is, or as somebody's draft for it is."""
        promise = self._promise.get(opening.text, LEAST_LOG)
        return max(opening.total, promise)

    def _next(self, opening: Opening, place: int) -> list[int]:
        """What to read for a range: to its end and, of the first in a tick, on along its lines;
        or what its text asks for, which begins with all that is known of it."""
        if opening.whole:
            one = self._writing.get(opening.text) or self._begin(opening)
            return one.asks() if one.answer.finish is None else []
        guess = self._ranges.guess(opening.text)
        return [*self._ranges.tokens(guess), *(self._ahead(guess) if place == 0 else ())]

    def _ahead(self, whole: str) -> Seq[int]:
        """The beginning of a range's lines as they are, as far as it is worth reading at once."""
        if not self._brief.plan.copies:
            return ()
        lines = self._field.lines(*Opening(whole, ()).range)
        room = min(self._brief.limits.max_tokens, DRAFT_TOKENS) - len(whole) - 1
        prices = self._brief.prices
        far = LINE_AHEAD if prices is None else worth([LINE_STAYS] * 2 * LINE_AHEAD, prices)
        return lines[: max(min(room, far), 0)]

    def _begin(self, opening: Opening) -> _Writing:
        answer = Answer(self._brief, self._last_token, self._rng)
        tokens = self._ranges.tokens(opening.text)
        answer.open_with(tokens, [math.exp(log) for log in opening.logs])
        one = _Writing(opening, Judging(answer), path=tokens)
        self._writing[opening.text] = one
        one.go_on(self._tree, self._run)
        return one

    def _finish(self, one: _Writing) -> None:
        if one.answer.finish is None:
            return
        draft = replace(one.answer.draft(), steps=one.passes)
        draft = priced(draft, one.opening, self._ranges)
        if is_edit(draft, one.opening, self._brief, self._field):
            self._drafts.append(draft)

    def _show(self) -> None:
        first = next(iter(self._writing.values()), None)
        if first is not None:
            self._run.show(first.answer)
