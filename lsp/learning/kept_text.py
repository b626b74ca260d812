"""The share of a suggestion that is in the text that the user left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from redraft.model.text.common import common_head, common_tail

_LARGEST = 16_000_000  # cells of a table of common subsequences; what differs more is not aligned
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def dense(text: str) -> str:
    """Return ``text`` without white space."""
    return "".join(text.split())


@dataclass(frozen=True, slots=True)
class KeptCharacters:
    """Number of characters of a suggestion that the user kept; written and deleted ones count."""

    right: int  # written by the suggestion and still there, or rightly deleted by it
    suggested: int  # written and deleted by the suggestion
    done: int  # written and deleted from base to final

    @property
    def kept_rate(self) -> float | None:
        """Share of the suggestion that was kept; None if it changed nothing."""
        return self.right / self.suggested if self.suggested else None


def measure_kept(base: str, candidate: str, final: str) -> KeptCharacters | None:
    """Return how much of a suggestion is in the final text, by words; None if too much differs."""
    base, candidate, final = _trimmed_lines(base, candidate, final)
    was, offered, became = (_TOKEN.findall(text) for text in (base, candidate, final))
    largest = max(len(was) * len(offered), len(was) * len(became), len(offered) * len(became))
    if largest > _LARGEST:
        return None
    stays, in_offered = common_tokens(was, offered)
    lasts, in_became = common_tokens(was, became)
    new_offered = [token for token, old in zip(offered, in_offered, strict=True) if not old]
    new_became = [token for token, old in zip(became, in_became, strict=True) if not old]
    both = common_tokens(new_offered, new_became)[0]
    written = sum(len(token) for token, same in zip(new_offered, both, strict=True) if same)
    gone = [len(token) for token, stay in zip(was, stays, strict=True) if not stay]
    went = [len(token) for token, last in zip(was, lasts, strict=True) if not last]
    deleted = sum(
        len(token)
        for token, stay, last in zip(was, stays, lasts, strict=True)
        if not stay and not last
    )
    return KeptCharacters(
        right=written + deleted,
        suggested=sum(map(len, new_offered)) + sum(gone),
        done=sum(map(len, new_became)) + sum(went),
    )


def common_tokens(
    one: Sequence[str], other: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the tokens of ``one`` [n] and ``other`` [m] in their longest common subsequence."""
    in_one, in_other = np.zeros(len(one), np.bool_), np.zeros(len(other), np.bool_)
    numbers = {token: number for number, token in enumerate({*one, *other})}
    a = np.asarray([numbers[token] for token in one], np.int64)
    b = np.asarray([numbers[token] for token in other], np.int64)
    longest = np.zeros((len(a) + 1, len(b) + 1), np.int32)  # [n + 1, m + 1]
    for i, token in enumerate(a):
        with_it = longest[i, :-1] + (b == token)
        np.maximum.accumulate(np.maximum(longest[i, 1:], with_it), out=longest[i + 1, 1:])
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            in_one[i] = in_other[j] = True
        elif longest[i - 1, j] >= longest[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return in_one, in_other


def _trimmed_lines(*texts: str) -> tuple[str, ...]:
    """Drop the whole lines that all texts share at both ends."""
    first = texts[0]
    head = first.rfind("\n", 0, common_head(*texts)) + 1
    tail = common_tail(*texts, most=min(map(len, texts)) - head)
    newline = first.find("\n", len(first) - tail)
    tail = len(first) - newline if newline >= 0 else 0
    return tuple(each[head : len(each) - tail] for each in texts)
