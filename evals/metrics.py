"""Metrics that compare a suggestion with what the user wrote.

Pure functions over texts: *base* is the document when the suggestion was made, *candidate* the
document with the suggestion accepted, *final* the document as the user left it. Callers remove
changes that the user did not type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from redraft.lsp.learning.kept_text import dense, measure_kept
from redraft.model.edits.hunks import hunks_of
from redraft.model.text.common import common_head, common_tail
from redraft.model.text.syntax import count_errors, parse

#: Upper ends of the classes of answer length, in tokens of the true answer.
LENGTHS = (4, 8, 16, 32, 64)


def exact(found: str, wanted: str) -> bool:
    return found.rstrip() == wanted.rstrip()


def first_line_exact(found: str, wanted: str) -> bool:
    """Return whether the first lines are equal; where the answer ends does not matter."""
    return exact(found.partition("\n")[0], wanted.partition("\n")[0])


def length_class(tokens: int | None) -> str:
    """Return the class of an answer of ``tokens`` tokens, such as "5-8 tokens"."""
    if tokens is None:
        return "not recorded"
    low = 1
    for high in LENGTHS:
        if tokens <= high:
            return f"{low}-{high} tokens"
        low = high + 1
    return f"{low}+ tokens"


#: Worth of a suggestion that is accepted, and cost of one that is shown and is not. They say the
#: same as "show at p >= 25 %".
ACCEPTED, NOT_ACCEPTED = 0.75, -0.25

_ORDERS = range(1, 7)  # of n-grams
_BETA_SQUARED = 4.0  # recall counts twice as much as precision


# --- delta chrF ----------------------------------------------------------------------------------


def delta_chrf(base: str, expected: Iterable[str], actual: str) -> float:
    """Return how similar the change from ``base`` to ``actual`` is to an expected one, 0 … 100.

    White space is dropped. For n = 1 … 6, added and removed character n-grams are counted
    separately; those that both changes share are right. Precision and recall (1 if there is nothing
    to do) are averaged over n; F with beta = 2. The best of several expected texts counts.
    """
    was, now = dense(base), dense(actual)
    return max(_delta_chrf(was, dense(wanted), now) for wanted in expected)


def _delta_chrf(base: str, wanted: str, actual: str) -> float:
    base, wanted, actual = _trimmed(base, wanted, actual)
    precision = recall = 0.0
    for n in _ORDERS:
        was = _ngrams(base, n)
        one, other = _came_and_went(was, wanted, n), _came_and_went(was, actual, n)
        right = sum((one & other).values())
        found, needed = sum(other.values()), sum(one.values())
        precision += right / found if found else 1.0
        recall += right / needed if needed else 1.0
    precision, recall = precision / len(_ORDERS), recall / len(_ORDERS)
    below = _BETA_SQUARED * precision + recall
    return 100.0 * (1 + _BETA_SQUARED) * precision * recall / below if below else 0.0


def _trimmed(*texts: str) -> tuple[str, ...]:
    """Drop what all texts have in common at both ends, except what n-grams of a change reach."""
    reach = max(_ORDERS) - 1
    head = max(0, common_head(*texts) - reach)
    tail = max(0, common_tail(*texts, most=min(map(len, texts)) - head) - reach)
    return tuple(each[head : len(each) - tail] for each in texts)


def _ngrams(text: str, n: int) -> Counter[str]:
    return Counter(text[at : at + n] for at in range(len(text) - n + 1))


def _came_and_went(was: Counter[str], text: str, n: int) -> Counter[tuple[bool, str]]:
    """Return the n-grams that ``text`` adds (True) and removes (False), with their counts."""
    now = _ngrams(text, n)
    came = {(True, gram): times for gram, times in (now - was).items()}
    went = {(False, gram): times for gram, times in (was - now).items()}
    return Counter(came | went)


# --- reversal ------------------------------------------------------------------------------------


def reversal_ratio(before: str, base: str, candidate: str) -> float | None:
    """Return the share of a suggestion's changed characters that undoes edits of the user.

    Only edits at lines that the suggestion changes count, compared by words.

    Args:
        before: the document before these edits, which made ``base`` of it.

    Returns:
        None where the suggestion changes nothing, or too much to be compared.
    """
    lines, was = base.split("\n"), before.split("\n")
    changed = [(each.first, each.last) for each in hunks_of(lines, candidate.split("\n"))]
    for back in reversed(hunks_of(lines, was)):  # from the bottom, so that lines above stay put
        if any(first <= back.last and back.first <= last for first, last in changed):
            lines[back.first : back.last] = back.new
    found = measure_kept(base, candidate, "\n".join(lines))
    return None if found is None else found.kept_rate


# --- the rest ------------------------------------------------------------------------------------


def errors_added(base: str, candidate: str, language: str) -> int | None:
    """Return the number of syntax errors that a suggestion adds; None without a grammar."""
    before, after = parse(base, language), parse(candidate, language)
    return None if before is None or after is None else count_errors(after) - count_errors(before)


def keystrokes(text: str) -> int:
    """Return the keys it takes to type ``text``: editors indent a new line themselves."""
    return len(re.sub(r"\n[ \t]*", "\n", text))


def keystrokes_saved(deleted: str, written: str, jumps: bool) -> int:
    """Return the keys that accepting saves: to write it, and one to delete what is selected.

    One Tab is subtracted, and another if the edit is so far away that the first only jumps there.
    """
    return keystrokes(written) + bool(deleted) - 1 - jumps


def utility(accepted: bool) -> float:
    """Return the worth of having shown a suggestion."""
    return ACCEPTED if accepted else NOT_ACCEPTED


def harmonic_mean(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one + other else 0.0


def show_quiet_score(delta: float, show_rate: float, quiet_rate: float) -> float:
    """Return one number, 0 … 1, for what is shown and for whether it should be shown.

    Args:
        delta: delta chrF of what is shown.
        show_rate: share shown where something is left to do.
        quiet_rate: share not shown where nothing is.
    """
    return delta / 100 * harmonic_mean(show_rate, quiet_rate)
