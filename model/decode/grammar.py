"""Constraints on an answer: a forced beginning, JSON of a schema, a regular expression, a grammar.

A constraint says which tokens may follow those that are written. llguidance enforces grammars. JSON
is written on one line, properties in the schema's order; a keyword that cannot be enforced is
refused, not ignored.
"""

from __future__ import annotations

import json
import weakref
from bisect import bisect_left
from collections.abc import Sequence as Seq
from functools import lru_cache
from typing import Any

import llguidance
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidRequest
from ..prompts.tokenizer import Tokenizer
from ..records import Grammar
from ..text.common import common_head

#: Longest grammar, characters: one of 5,000 properties (150,000) takes three seconds to read.
MAX_GRAMMAR = 1 << 16
#: JSON is written on one line.
_JSON: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
#: Tokens of the longest answer that is searched for to see whether there is any.
LONGEST_SEARCH = 1_024
#: Ends of texts, objects, lists and their entries.
_CLOSERS = ('"', "}", "]", ",")
#: A text is being written where this may follow.
_LETTER = "z"
#: Further characters in the order in which they are tried, and the number of last tokens in which
#: the characters tried so far are counted.
_ASCII = "0@:/.-a" + "".join(map(chr, range(0x20, 0x7F)))
_LATELY = 300
#: Beginnings that are followed side by side, and tokens tried behind each.
_BEAM, _BRANCHES = 4, 4
#: Tokens that they may reach: it takes a second.
_BEAM_TOKENS = 128


class Constraint:
    """A condition on an answer, or on its beginning alone, which is not drafted."""

    def token_mask(self, written: Seq[int], /) -> NDArray[np.bool_] | None:
        """Return a mask [vocab] over the token behind ``written``, the answer's tokens so far.

        None: every token may follow from here on.
        """
        raise NotImplementedError

    def legal(self, _written: Seq[int], _draft: Seq[int], /) -> int:
        """Return how many tokens of a draft may follow those written."""
        return 0

    def must_follow(self, _written: Seq[int], /) -> tuple[int, ...]:
        """Return the tokens that must follow those written; they are drafts like others."""
        return ()

    def shortest_end(self, _written: Seq[int], _most: int, /) -> tuple[int, ...] | None:
        """Return the fewest tokens found, of so many at most, that make a whole answer.

        These are none where the answer may end anywhere; None: no such tokens were found.
        """
        return ()


class ForcedText(Constraint):
    """The answer begins with ``text``, cut into tokens in any way."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._bytes = text.encode("utf-8", "replace")
        self._vocab, (self._sorted, self._ids) = tokenizer.vocab_bytes, tokenizer.sorted_vocab

    def token_mask(self, written: Seq[int], /) -> NDArray[np.bool_] | None:
        """Return a mask over tokens that the text begins with, or that begin with its rest."""
        done = sum(len(self._vocab[token]) for token in written)
        if done >= len(self._bytes):
            return None
        rest, tokens = self._bytes[done:], self._sorted
        mask = np.zeros(len(self._vocab), dtype=np.bool_)
        low, high = (bisect_left(tokens, edge) for edge in (rest, rest + b"\xff" * 40))
        mask[self._ids[low:high]] = True
        for end in range(1, len(rest)):
            at = min(bisect_left(tokens, rest[:end]), len(tokens) - 1)
            mask[self._ids[at]] |= tokens[at] == rest[:end]
        return mask


class GrammarConstraint(Constraint):
    """Constraint on every token of an answer.

    Args:
        grammar: what the answer must be.
        forced: text that precedes what the grammar describes.
        end_token: what ends an answer.

    Raises:
        InvalidRequest: the grammar cannot be read or enforced.
    """

    def __init__(
        self, grammar: Grammar, tokenizer: Tokenizer, end_token: int, forced: str = ""
    ) -> None:
        vocab = _vocabulary(tokenizer)
        self._matcher = vocab.compiled(grammar, forced).deep_copy()
        self._grammar = grammar
        self._end, self._size = end_token, len(tokenizer.vocab_bytes)
        self._followed: list[int] = []  # tokens that the matcher has seen
        self._bits = np.zeros(-(-self._size // 32), np.int32)
        self._closers, self._letter, self._ascii = vocab.closers, vocab.letter, vocab.ascii
        self._stop = vocab.end

    def token_mask(self, written: Seq[int], /) -> NDArray[np.bool_]:
        self._follow(written)
        return self._mask(self._matcher)

    def legal(self, written: Seq[int], draft: Seq[int], /) -> int:
        self._follow(written)
        return int(self._matcher.validate_tokens(list(draft)))

    def must_follow(self, written: Seq[int], /) -> tuple[int, ...]:
        self._follow(written)
        return tuple(self._matcher.compute_ff_tokens())

    def check_room(self, max_tokens: int) -> None:
        """Check that there is an answer of at most ``max_tokens``.

        Raises:
            InvalidRequest: none was found that is so short, or none at all.
        """
        if self.shortest_end((), max_tokens) is not None:
            return
        most = max(LONGEST_SEARCH, max_tokens)
        shortest = self.shortest_end((), most) if max_tokens < most else None
        if shortest is None:
            raise InvalidRequest(
                f"{_name(self._grammar)} cannot be fulfilled: no answer was found within "
                f"{most:,} tokens. It may contradict itself, or demand itself again."
            )
        raise InvalidRequest(
            f"'max_tokens' is {max_tokens}, but the shortest answer found that fulfils the grammar "
            f"has {len(shortest)} tokens. Ask for more."
        )

    def shortest_end(self, written: Seq[int], most: int, /) -> tuple[int, ...] | None:
        """Look along brackets and quotes first, then follow a few beginnings side by side."""
        self._follow(written)
        return self._search(most, 1) or self._search(min(most, _BEAM_TOKENS), _BEAM)

    def _search(self, most: int, beam: int) -> tuple[int, ...] | None:
        states: list[tuple[int, tuple[int, ...], llguidance.LLMatcher]]  # cost, tokens, matcher
        states = [(0, (), self._matcher.deep_copy())]
        for _ in range(most + 1):
            for _, tokens, matcher in states:
                if matcher.is_accepting():
                    return (*tokens, self._end)[: most + 1] if len(tokens) <= most else None
            following = []
            for cost, tokens, matcher in states:
                if len(tokens) >= most:
                    continue
                forced = matcher.compute_ff_tokens()
                choices = [forced] if forced else self._choices(matcher, beam, tokens)
                for rank, choice in enumerate(choices):
                    child = matcher.deep_copy() if len(choices) > 1 else matcher
                    if child.consume_tokens(choice):
                        following.append((cost + rank, (*tokens, *choice), child))
            if not following:
                return None
            states = sorted(following, key=lambda state: state[0])[:beam]
        return None

    def _choices(
        self, matcher: llguidance.LLMatcher, beam: int, before: tuple[int, ...]
    ) -> list[list[int]]:
        """Return the tokens to try next: those that end texts, lists and objects.

        Others are tried in the order of how rarely they were written, so that no search repeats
        itself for ever.
        """
        count = _BRANCHES if beam > 1 else 1
        mask = self._mask(matcher)
        quote = self._closers[0]
        if mask[self._letter]:  # within a text
            found = [quote] if mask[quote] else []
        else:
            found = [token for token in (*self._closers[1:], quote) if mask[token]]
        if len(found) < count:
            lately = before[-_LATELY:]
            rest = [token for token in self._ascii if mask[token]]
            found += sorted(rest, key=lately.count)
        if len(found) < count:
            mask[self._end] = False
            found += np.flatnonzero(mask)[:count].tolist()
        return [[int(token)] for token in dict.fromkeys(found)][:count]

    def _mask(self, matcher: llguidance.LLMatcher) -> NDArray[np.bool_]:
        matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        bits = np.unpackbits(self._bits.view(np.uint8), bitorder="little")[: self._size]
        mask = bits.astype(np.bool_)  # [vocab]
        ends = bool(mask[self._stop])
        mask[self._stop] = False
        mask[self._end] = ends and matcher.is_accepting()
        return mask

    def _follow(self, written: Seq[int]) -> None:
        """Bring the matcher to the state behind ``written``, of which it does not see the end."""
        written = [token for token in written if token != self._end]
        common = common_head(self._followed, written)
        if common < len(self._followed):
            self._matcher.rollback(len(self._followed) - common)
        self._followed = written
        if written[common:] and not self._matcher.consume_tokens(written[common:]):
            raise InvalidRequest(
                f"{_name(self._grammar)} cannot be followed any further: "
                f"{_first_line(self._matcher.get_error())}. Simplify it."
            )


class _Vocabulary:
    """A tokenizer for llguidance, made in 0.3 to 0.7 s for 151,665 tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.compiled = lru_cache(maxsize=16)(self._compile)
        marks, weak = set(tokenizer.special), weakref.ref(tokenizer)
        self.end = next(iter(sorted(marks)))
        tokens = [
            data if data and i not in marks else f"<|{i}|>".encode()
            for i, data in enumerate(tokenizer.vocab_bytes)
        ]

        class Described:
            """The tokenizer that ``TokenizerWrapper`` wraps."""

            eos_token_id = self.end
            bos_token_id = None
            special_token_ids = sorted(marks)

            def __init__(self) -> None:
                self.tokens = tokens

            def __call__(self, text: str) -> list[int]:
                of = weak()
                assert of is not None, "an answer is written with it"
                return of.encode(text)

        wrapper = llguidance.TokenizerWrapper(Described())
        self.tokens = llguidance.LLTokenizer(wrapper, n_vocab=len(tokens))
        ids = {data: i for i, data in enumerate(tokenizer.vocab_bytes) if data}
        self.letter = ids[_LETTER.encode()]
        self.closers = tuple(ids[text.encode()] for text in _CLOSERS)
        self.ascii = tuple(ids[text.encode()] for text in _ASCII if text.encode() in ids)

    def _compile(self, grammar: Grammar, forced: str) -> llguidance.LLMatcher:
        """Return a matcher at the beginning of an answer; copy it before use."""
        if len(grammar.text) > MAX_GRAMMAR:
            raise InvalidRequest(
                f"{_name(grammar)} has {len(grammar.text):,} characters, at most {MAX_GRAMMAR:,} "
                "are read. Simplify it."
            )
        matcher = llguidance.LLMatcher(self.tokens, _source(grammar, forced), log_level=0)
        if matcher.is_error():
            raise InvalidRequest(
                f"{_name(grammar)} cannot be enforced: {_first_line(matcher.get_error())}. Leave "
                "that out, or say it otherwise."
            )
        return matcher


#: They are freed with their tokenizer, whose model may be unloaded.
_VOCABULARIES: weakref.WeakKeyDictionary[Tokenizer, _Vocabulary] = weakref.WeakKeyDictionary()


def _vocabulary(tokenizer: Tokenizer) -> _Vocabulary:
    if tokenizer not in _VOCABULARIES:
        _VOCABULARIES[tokenizer] = _Vocabulary(tokenizer)
    return _VOCABULARIES[tokenizer]


def _source(grammar: Grammar, forced: str) -> str:
    """Return the grammar in llguidance's notation, with ``forced`` before it."""
    make = llguidance.LLMatcher
    try:
        if grammar.kind == "json_schema":
            source = make.grammar_from_json_schema(grammar.text, defaults=_JSON)
        elif grammar.kind == "regex":
            source = make.grammar_from_regex(grammar.text)
        else:
            source = make.grammar_from_lark(grammar.text)
    except ValueError as error:
        raise InvalidRequest(f"{_name(grammar)} cannot be read: {error}. Fix it.") from None
    if not forced:
        return str(source)
    try:
        parts = json.loads(source)["grammars"]
    except ValueError:  # in Lark's notation it is the only part
        parts = [{"lark_grammar": source}]
    parts[0]["name"] = "answer"
    begin = {"lark_grammar": f"start: {json.dumps(forced, ensure_ascii=False)} @answer"}
    return json.dumps({"grammars": [begin, *parts]})


def _name(grammar: Grammar) -> str:
    """Return the name of a grammar in errors, after the request's field that holds it."""
    kinds = {"json_schema": "JSON schema", "regex": "regular expression", "lark": "grammar"}
    kind = kinds[grammar.kind]
    return f"'{grammar.field}': the {kind}" if grammar.field else f"The {kind}"


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.partition("<state>")[0].splitlines()]
    return " ".join(line for line in lines if line)[:300].rstrip(".")
