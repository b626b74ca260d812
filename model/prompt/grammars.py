"""What a whole answer must be: JSON of a schema, a match of a regular expression, or of a grammar.

llguidance says which tokens may follow what is written, so that no answer can leave the grammar.
JSON is written on one line, properties in the schema's order; a keyword that cannot be enforced is
refused, not ignored. Knows nothing of models, and of how tokens are chosen among.
"""

from __future__ import annotations

import json
from collections.abc import Sequence as Seq
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import llguidance
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidRequest
from ..records import Grammar
from .tokens import Tokenizer

if TYPE_CHECKING:  # a name for checking alone: the library has none at run time
    from llguidance._lib import JsonCompileOptions

Json = dict[str, Any]

#: Longest grammar, characters: one of 5,000 properties (150,000) takes three seconds to read.
MAX_GRAMMAR = 1 << 16
#: How JSON is written: on one line.
_JSON: JsonCompileOptions = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
#: Tokens of the longest answer that is looked for to see whether there is any.
LONGEST_SEARCH = 1_024
#: What ends a text, and objects and lists or their entries.
_CLOSERS = ('"', "}", "]", ",")
#: Where this may follow, a text is being written.
_LETTER = "z"
#: Further characters in the order in which they are tried, and so many tokens back it is looked
#: which of them were written.
_ASCII = "0@:/.-a" + "".join(map(chr, range(0x20, 0x7F)))
_LATELY = 300
#: Beginnings that are followed side by side, and tokens tried behind each.
_BEAM, _BRANCHES = 4, 4
#: So far at most: it takes a second.
_BEAM_TOKENS = 128


class WholeAnswer:
    """A ``Constraint`` that binds every token.

    Args:
        grammar: what the answer must be.
        forced: what the answer begins with and the grammar does not speak of.
        end_token: what ends an answer.

    Raises:
        InvalidRequest: the grammar cannot be read, or nothing fulfils it; says which and why.
    """

    def __init__(
        self, grammar: Grammar, tokenizer: Tokenizer, end_token: int, forced: str = ""
    ) -> None:
        vocab = _vocabulary(tokenizer)
        self._matcher = _compiled(grammar, forced, vocab).deep_copy()
        self._grammar = grammar
        self._end, self._size = end_token, len(tokenizer.vocab_bytes)
        self._followed: list[int] = []  # tokens that the matcher has seen
        self._bits = np.zeros(-(-self._size // 32), np.int32)
        self._closers, self._letter, self._ascii = vocab.closers, vocab.letter, vocab.ascii
        self._stop = vocab.end

    def allowed(self, written: Seq[int]) -> NDArray[np.bool_] | None:
        self._follow(written)
        return self._mask(self._matcher)

    def legal(self, written: Seq[int], draft: Seq[int]) -> int:
        self._follow(written)
        return int(self._matcher.validate_tokens(list(draft)))

    def forced(self, written: Seq[int]) -> tuple[int, ...]:
        self._follow(written)
        return tuple(self._matcher.compute_ff_tokens())

    def check_room(self, max_tokens: int) -> None:
        """
        Raises:
            InvalidRequest: no answer was found that is so short, or none at all.
        """
        if self.closing((), max_tokens) is not None:
            return
        most = max(LONGEST_SEARCH, max_tokens)
        shortest = self.closing((), most) if max_tokens < most else None
        if shortest is None:
            raise InvalidRequest(
                f"{_name(self._grammar)} cannot be fulfilled: no answer was found within "
                f"{most:,} tokens. It may contradict itself, or demand itself again."
            )
        raise InvalidRequest(
            f"'max_tokens' is {max_tokens}, but the shortest answer found that fulfils the grammar "
            f"has {len(shortest)} tokens. Ask for more."
        )

    def closing(self, written: Seq[int], most: int) -> tuple[int, ...] | None:
        """A way to the end in ``most`` tokens: along brackets and quotes first, then wherever
        a few beginnings lead that are followed side by side."""
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
        """What to try next: what ends texts, lists and objects; else the character that was written
        least, so that no search repeats itself for ever."""
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
        """Bring the matcher to the state behind ``written``; it is not told of the end, behind
        which nothing is asked."""
        written = [token for token in written if token != self._end]
        common = 0
        for one, other in zip(self._followed, written, strict=False):
            if one != other:
                break
            common += 1
        if common < len(self._followed):
            self._matcher.rollback(len(self._followed) - common)
        self._followed = written
        if written[common:] and not self._matcher.consume_tokens(written[common:]):
            raise InvalidRequest(
                f"{_name(self._grammar)} cannot be followed any further: "
                f"{_first_line(self._matcher.get_error())}. Simplify it."
            )


class _Vocabulary:
    """A tokenizer as llguidance wants it; 0.3 to 0.7 s to make for 151,665 tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        marks = set(tokenizer.special)
        self.end = next(iter(sorted(marks)))
        tokens = [
            data if data and i not in marks else f"<|{i}|>".encode()
            for i, data in enumerate(tokenizer.vocab_bytes)
        ]

        class Described:
            """What ``TokenizerWrapper`` asks for."""

            eos_token_id = self.end
            bos_token_id = None
            special_token_ids = sorted(marks)

            def __init__(self) -> None:
                self.tokens = tokens

            def __call__(self, text: str) -> list[int]:
                return tokenizer.encode(text)

        wrapper = llguidance.TokenizerWrapper(Described())
        self.tokens = llguidance.LLTokenizer(wrapper, n_vocab=len(tokens))
        ids = {data: i for i, data in enumerate(tokenizer.vocab_bytes) if data}
        self.letter = ids[_LETTER.encode()]
        self.closers = tuple(ids[text.encode()] for text in _CLOSERS)
        self.ascii = tuple(ids[text.encode()] for text in _ASCII if text.encode() in ids)


@lru_cache(maxsize=2)
def _vocabulary(tokenizer: Tokenizer) -> _Vocabulary:
    return _Vocabulary(tokenizer)


@lru_cache(maxsize=16)
def _compiled(grammar: Grammar, forced: str, vocab: _Vocabulary) -> llguidance.LLMatcher:
    """A matcher at the beginning; to be copied."""
    if len(grammar.text) > MAX_GRAMMAR:
        raise InvalidRequest(
            f"{_name(grammar)} has {len(grammar.text):,} characters, at most {MAX_GRAMMAR:,} are "
            "read. Simplify it."
        )
    matcher = llguidance.LLMatcher(vocab.tokens, _source(grammar, forced), log_level=0)
    if matcher.is_error():
        raise InvalidRequest(
            f"{_name(grammar)} cannot be enforced: {_first_line(matcher.get_error())}. Leave that "
            "out, or say it otherwise."
        )
    return matcher


def _source(grammar: Grammar, forced: str) -> str:
    """The grammar in llguidance's own notation, ``forced`` before it."""
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
    grammars = _grammars(source)
    grammars[0]["name"] = "answer"
    begin = {"lark_grammar": f"start: {json.dumps(forced, ensure_ascii=False)} @answer"}
    return json.dumps({"grammars": [begin, *grammars]})


def _grammars(source: str) -> list[Json]:
    """The parts of a grammar; one in Lark's notation may stand for itself."""
    try:
        found: list[Json] = json.loads(source)["grammars"]
    except ValueError:
        return [{"lark_grammar": source}]
    return found


def _name(grammar: Grammar) -> str:
    """What errors call it: the request's field, or else what it is."""
    kinds = {"json_schema": "JSON schema", "regex": "regular expression", "lark": "grammar"}
    kind = kinds[grammar.kind]
    return f"'{grammar.field}': the {kind}" if grammar.field else f"The {kind}"


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.partition("<state>")[0].splitlines()]
    return " ".join(line for line in lines if line)[:300].rstrip(".")
