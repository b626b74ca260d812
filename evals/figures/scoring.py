"""Comparisons of an answer with the true text. Pure functions over texts.

Exact match ignores trailing whitespace of the whole answer and nothing else: indentation counts.
"""

from __future__ import annotations

#: Upper ends of the classes of answer length, in tokens of the true answer.
LENGTHS = (4, 8, 16, 32, 64)


def exact(found: str, wanted: str) -> bool:
    return found.rstrip() == wanted.rstrip()


def first_line_exact(found: str, wanted: str) -> bool:
    """Whether the first line is right, wherever the answer should have ended."""
    return exact(found.partition("\n")[0], wanted.partition("\n")[0])


def length_class(tokens: int) -> str:
    """The class of an answer of ``tokens`` tokens, such as "5-8 tokens"."""
    low = 1
    for high in LENGTHS:
        if tokens <= high:
            return f"{low}-{high} tokens"
        low = high + 1
    return f"{low}+ tokens"
