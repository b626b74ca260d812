"""The prefix cache: which cached sequence a new prompt continues.

A few sequences are kept, least recently used first to go. A prompt takes the one that shares the
longest prefix with it: in place when little is lost by cutting its tail, as a copy when a long
tail would be lost. The decision is a pure function; what it costs to be wrong is only time, since
every path yields the same keys and values: a sequence that rotates positions otherwise than a fresh
one would (see ``rope.stretch``) is never continued.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidRequest
from ..text.common import common_head
from .backend import Backend, Sequence
from .kv_memory import size_class
from .rope import stretch

#: A sequence is copied rather than cut when more cached tokens than this would be lost. On two
#: cores a token costs 0.6 ms to compute again and 0.01 ms to copy, but a copy takes a buffer (a new
#: one of 2,048 tokens 0.1 s to touch), and the tail behind an edit (the near window, the last
#: answer) is of no use to anyone. Ghost text and next edits come by turns, so that a tail of the
#: other task is never cut.
LONG_TAIL = 256

#: Prefixes shorter than this are not worth copying: every prompt starts alike.
SHORT_PREFIX = 64

#: Sequences kept at most, however small.
MOST_SEQUENCES = 8


@dataclass(frozen=True, slots=True)
class Held:
    """A cached sequence as the decision sees it."""

    common: int  # tokens shared with the prompt
    length: int  # tokens cached
    capacity: int  # tokens its buffer holds
    stretch: float = 1.0  # by how much it compresses positions
    is_kin: bool = True  # it served the same task last


@dataclass(frozen=True, slots=True)
class Reuse:
    """The cached sequence that a prompt continues, cut to their common prefix."""

    index: int
    copied: Literal["", "beside", "instead"] = ""  # a copy beside it, or instead of it


def decide(
    held: Seq[Held], needed: int, stretch: float = 1.0, stable: int | None = None
) -> Reuse | None:
    """Return what a prompt that needs a capacity of ``needed`` tokens continues; None: nothing.

    Args:
        stretch: of a fresh sequence for it. Keys that were rotated otherwise would give another
            answer than a fresh run, so a sequence that outgrew a rotation, or a large one that a
            short prompt comes back to, is of no use however much it shares.
        stable: tokens of the prompt that stay while the user types. Where a sequence of the same
            task holds them, its tail is an older state of the same edit, and is cut.
    """
    alike = [i for i, each in enumerate(held) if each.stretch == stretch and each.common]
    if not alike:
        return None
    best = max(alike, key=lambda i: (held[i].common, -held[i].length))
    chosen = held[best]
    is_older = chosen.is_kin and stable is not None and chosen.common >= stable
    most = chosen.length if is_older else LONG_TAIL if chosen.is_kin else 0
    if chosen.length - chosen.common > most:
        return Reuse(best, "beside") if chosen.common >= SHORT_PREFIX else None
    return Reuse(best) if needed <= chosen.capacity else Reuse(best, "instead")


def excess(sizes: Seq[int], budget: int) -> Literal["oversized", "bytes", "count"] | None:
    """Return why sequences of these sizes in bytes cannot be held together; None: they can."""
    within = [size for size in sizes if size <= budget]
    if len(sizes) - len(within) > 1:
        return "oversized"
    if sum(within) > budget:
        return "bytes"
    return "count" if len(sizes) > MOST_SEQUENCES else None


def victims(idle: Seq[int], others: Seq[int], budget: int) -> list[int]:
    """Return the indices of ``idle`` to release so that the rest fits together with ``others``.

    Args:
        idle: sizes in bytes, least recently used first.
        others: sizes of those that stay, and of the one that is to come.
    """
    left = dict(enumerate(idle))
    while (over := excess([*left.values(), *others], budget)) is not None:
        helpful = (
            i for i in left if over == "count" or (left[i] > budget) == (over == "oversized")
        )
        victim = next(helpful, None)
        if victim is None:
            break
        del left[victim]
    return [i for i in range(len(idle)) if i not in left]


@dataclass(frozen=True, slots=True)
class Lease:
    """A sequence lent to one request. Extend it by ``tokens[reused:]``.

    Leaving the ``with`` block, or ``release``, gives it back with whatever it then holds.
    """

    cache: PrefixCache
    sequence: Sequence
    reused: int  # tokens of the prompt that it holds

    def release(self) -> None:
        self.cache.take_back(self.sequence)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


class PrefixCache:
    """Sequences of one backend by what they hold.

    Args:
        budget_bytes: of KV memory over all sequences but one: a sequence larger than the whole
            budget is kept beside the others, since refusing a long prompt would be worse, and so
            would computing it for minutes whenever a short one came between. There is never a
            second. While a request runs, rounding up to a size class may exceed the budget too.
    """

    def __init__(self, backend: Backend, budget_bytes: int) -> None:
        self._backend = backend
        self._budget_bytes = budget_bytes
        self._idle: list[Sequence] = []  # least recently used first
        self._lent: list[Sequence] = []
        self._tasks: dict[int, str] = {}  # that each sequence served last, by its id()

    def count_held(self, tokens: Seq[int]) -> int:
        """Return how many of the first of ``tokens`` a sequence holds, whatever follows there."""
        wanted = list(tokens)
        return max((common_head(list(each.tokens), wanted) for each in self._idle), default=0)

    def acquire(
        self, tokens: Seq[int], room: int, task: str = "", stable: int | None = None
    ) -> Lease:
        """Lend a sequence that holds the first ``reused`` of ``tokens`` and nothing else.

        Args:
            room: tokens that will be needed behind ``tokens``, windows included.
            task: that they are for.
            stable: how many of them stay while the user types; None: unknown.

        Raises:
            InvalidRequest: so many tokens fit in no sequence, or there is no memory for them.
        """
        needed = len(tokens) + room
        config = self._backend.config
        held = [
            Held(
                common_head(list(each.tokens), list(tokens)),
                len(each.tokens),
                each.capacity,
                stretch(config, each.capacity),
                self._tasks[id(each)] == task,
            )
            for each in self._idle
        ]
        chosen = decide(held, needed, stretch(config, size_class(needed)), stable)
        sequence = self._fresh(needed) if chosen is None else self._reuse(chosen, held, needed)
        self._lent.append(sequence)
        kept = {id(each) for each in (*self._idle, *self._lent)}
        self._tasks = {key: known for key, known in self._tasks.items() if key in kept}
        self._tasks[id(sequence)] = task
        return Lease(self, sequence, len(sequence.tokens))

    def take_back(self, sequence: Sequence) -> None:
        """Take a lent sequence back; a second time does nothing."""
        if any(each is sequence for each in self._lent):
            self._lent = [each for each in self._lent if each is not sequence]
            self._idle.append(sequence)
            self._evict(0, self._idle[-1])

    @property
    def bytes_held(self) -> int:
        """The memory of the keys and values of all sequences, lent ones included."""
        return sum(self._sizes([*self._idle, *self._lent]))

    def clear(self) -> None:
        """Forget every sequence that is not lent."""
        while self._idle:
            self._backend.release(self._idle.pop())

    def _reuse(self, chosen: Reuse, held: Seq[Held], needed: int) -> Sequence:
        source, common = self._idle[chosen.index], held[chosen.index].common
        if chosen.copied:
            self._evict(needed, source)
            sizes = self._sizes([*self._idle, *self._lent], needed)
            if chosen.copied == "beside" and excess(sizes, self._budget_bytes) is None:
                return self._backend.fork(source, common, needed)
            if needed > source.capacity:
                fork = self._backend.fork(source, common, needed)
                self._drop(source)
                self._backend.release(source)
                return fork
        self._drop(source)  # without memory for both, the tail is lost after all
        source.truncate(common)
        return source

    def _fresh(self, needed: int) -> Sequence:
        self._evict(needed, None)
        try:
            return self._backend.open(needed)
        except InvalidRequest:
            if not self._idle:
                raise
            self.clear()  # memory is short: what is asked for now goes before what was
            return self._backend.open(needed)

    def _evict(self, needed: int, keep: Sequence | None) -> None:
        """Release the least recently used until ``needed`` more tokens fit, but never ``keep``."""
        old = [each for each in self._idle if each is not keep]
        stay = self._sizes([*self._lent, *([] if keep is None else [keep])], needed)
        for index in victims(self._sizes(old), stay, self._budget_bytes):
            self._drop(old[index])
            self._backend.release(old[index])

    def _drop(self, sequence: Sequence) -> None:
        self._idle = [each for each in self._idle if each is not sequence]

    def _sizes(self, sequences: Seq[Sequence], needed: int = 0) -> list[int]:
        """Return the bytes of each, and of a further one of ``needed`` tokens unless that is 0."""
        tokens = [each.capacity for each in sequences] + ([needed] if needed else [])
        return [count * self._backend.bytes_per_token for count in tokens]
