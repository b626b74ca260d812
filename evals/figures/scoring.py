"""How near an answer is to what was wanted. Pure functions over texts.

Exact match ignores trailing whitespace of the whole answer and nothing else: indentation counts.
Edit similarity is 1 - Levenshtein distance / length of the longer text, in characters, after the
same stripping.
"""

from __future__ import annotations

from rapidfuzz.distance import Levenshtein

#: Upper ends of the classes of answer length, in tokens of the true answer.
LENGTHS = (4, 8, 16, 32, 64)


def exact(found: str, wanted: str) -> bool:
    return found.rstrip() == wanted.rstrip()


def first_line_exact(found: str, wanted: str) -> bool:
    """Whether the first line is right, wherever the answer should have ended."""
    return exact(found.partition("\n")[0], wanted.partition("\n")[0])


def similarity(found: str, wanted: str) -> float:
    """0 … 1; two empty texts are equal."""
    return float(Levenshtein.normalized_similarity(found.rstrip(), wanted.rstrip()))


def length_class(tokens: int) -> str:
    """The class of an answer of ``tokens`` tokens, such as "5-8 tokens"."""
    low = 1
    for high in LENGTHS:
        if tokens <= high:
            return f"{low}-{high} tokens"
        low = high + 1
    return f"{low}+ tokens"
