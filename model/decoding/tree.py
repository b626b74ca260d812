"""What the causal pass says of several texts that begin alike: a tree of tokens behind a prompt.

Each token is read once, whatever texts it is part of. All that is new in a call is read in one
pass, side by side: positions are given, and no branch sees another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..runtime.backend import FloatArray, Rows, Scores
from .denoise import Run

#: Tokens read in one pass: a cancel is heard before each, and whole distributions of as many lie in
#: memory at once (``SCORED_CHUNK`` in ``runtime/onnx_sequence.py`` says what that takes).
WIDEST = 32


@dataclass(slots=True, eq=False)
class Node:
    """A token, and what the causal pass says comes behind it."""

    token: int
    parent: Node | None
    depth: int  # tokens before it, from the tree's root
    children: dict[int, Node] = field(default_factory=dict)
    read: bool = False  # are the next fields known?
    best: int = 0  # likeliest next token
    log: float = 0.0  # its log-probability
    logs: dict[int, float] = field(default_factory=dict)  # log-probability of some next tokens
    logits: FloatArray | None = None  # [vocab] as long as somebody may ask
    row: int | None = None  # where its keys and values lie, behind the prompt

    def path(self) -> list[Node]:
        """From the root to here."""
        found: list[Node] = []
        at: Node | None = self
        while at is not None:
            found.append(at)
            at = at.parent
        return found[::-1]


class Tree:
    """Texts behind one prompt.

    Args:
        run: passes over a sequence that holds the prompt without ``root``, its last token.
        end: ends a text; how likely that is, is known behind every node.
        keep: of nodes above this depth, whole distributions are kept.
    """

    def __init__(self, run: Run, root: int, end: int, keep: int = 0) -> None:
        self.root = Node(root, None, 0)
        self._run, self._end, self._keep = run, end, keep
        self._base = len(run.sequence.tokens)
        self._rows: list[Node] = []  # whose keys and values lie behind the prompt, in order

    def node(self, tokens: Seq[int]) -> Node | None:
        """The last of ``tokens``, which follow the root; None where it was never asked for."""
        at: Node | None = self.root
        for token in tokens:
            at = at.children.get(token) if at is not None else None
        return at

    def read(self, texts: Seq[Seq[int]]) -> list[Node]:
        """Read all of some texts, each of which follows the root.

        Returns:
            The nodes that were not read before, with their ``logits``; these are dropped when the
            next call comes.
        """
        for node in self._nodes(self.root):
            if node.depth >= self._keep:
                node.logits = None
        return self._read_together([self._grown(text) for text in texts])

    def said(self, node: Node, drafts: Seq[int]) -> tuple[Scores, Node]:
        """What was said behind ``node`` and ``drafts``, as far as these were read; and the last."""
        found = [node]
        for token in drafts:
            following = found[-1].children.get(token)
            if following is None or not following.read:
                break
            found.append(following)
        logits: list[FloatArray] = []  # of as many as are kept, from the first on
        for each in found:
            if each.logits is None:
                break
            logits.append(each.logits)
        targets = [one.logs.get(two.token, -math.inf) for one, two in pairwise(found)]
        return Scores(
            np.asarray([[each.best] for each in found], np.int64),
            np.asarray([[each.log] for each in found], np.float32),
            np.asarray([*targets, -math.inf], np.float32),
            np.stack(logits) if logits else None,
        ), found[-1]

    # -- growing --------------------------------------------------------------------------------

    def _nodes(self, at: Node) -> Iterator[Node]:
        stack = [at]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children.values()

    def _grown(self, text: Seq[int]) -> Node:
        at = self.root
        for token in text:
            at = at.children.setdefault(token, Node(token, at, at.depth + 1))
        return at

    def _read_together(self, ends: Seq[Node]) -> list[Node]:
        fresh: dict[int, Node] = {}
        for end in ends:
            fresh |= {id(node): node for node in end.path() if not node.read}
        waiting = list(fresh.values())
        while waiting:
            part, waiting = waiting[:WIDEST], waiting[WIDEST:]
            self._pass(part)
        return list(fresh.values())

    def _pass(self, part: list[Node]) -> None:
        """Read nodes whose parents are read or among those before them."""
        new, sequence = self._without_rows(part), self._run.sequence
        if len(sequence.tokens) + len(new) + 1 > sequence.capacity:
            self._forget_rows()
            new = self._without_rows(part)
        held = len(self._rows)
        for row, node in enumerate(new, held):
            node.row = row
        self._rows += new
        sees = np.zeros((len(new), held + len(new)), np.bool_)
        for at, node in enumerate(new):
            sees[at, [one.row for one in node.path() if one.row is not None]] = True
        tokens = np.asarray([node.token for node in new], np.int64)
        positions = np.asarray([self._base + node.depth for node in new], np.int64)
        self._note(new, self._run.read(Rows(tokens, positions, sees, tokens), logits=True))

    def _without_rows(self, part: list[Node]) -> list[Node]:
        """What has to be run for ``part``: all of each path that does not lie in the cache."""
        needed: dict[int, Node] = {}
        for node in part:
            needed |= {id(one): one for one in node.path() if one.row is None}
        return list(needed.values())

    def _forget_rows(self) -> None:
        """There is no room for more: what a text still needs is read again with it."""
        self._run.sequence.truncate(self._base)
        for node in self._rows:
            node.row = None
        self._rows = []

    # -- what a pass says -----------------------------------------------------------------------

    def _note(self, nodes: Seq[Node], out: Scores) -> None:
        assert out.logits is not None
        for at, node in enumerate(nodes):
            if node.read:
                continue
            node.read = True
            node.best, node.log = out.best(at)
            node.logits = out.logits[at]
            whole = float(node.logits[node.best]) - node.log
            asked = (*node.children, self._end)
            node.logs = {token: float(node.logits[token]) - whole for token in asked}
            node.logs[node.best] = node.log
