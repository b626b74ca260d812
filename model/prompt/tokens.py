"""Text to token ids and back, with the marks of the prompt.

Byte-level BPE through the ``tokenizers`` library; knows nothing of prompts or models. Special
tokens never come out of ordinary text: a file that contains ``<|endoftext|>`` is encoded letter by
letter, so no user text can forge a mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import WeightsError
from .marks import CURSORS, FAR_PREFIXES, RULES, build_by_rule, find_marks, read_tokenizer

if TYPE_CHECKING:  # 4 MB that the language server, which only knows the format, does without
    from tokenizers import Tokenizer as BpeTokenizer

#: The marks of a prompt, by their names in SmolLM2's vocabulary; ``marks.py`` knows who stands
#: in for them elsewhere.
END = "<|endoftext|>"
FILE = "<file_sep>"
SUFFIX = "<jupyter_start>"
PREFIX = "<jupyter_text>"
REGION = "<jupyter_output>"
EDIT = "<jupyter_script>"
HISTORY = "<issue_start>"
MASK = "<empty_output>"
MARKS = (END, FILE, SUFFIX, PREFIX, REGION, EDIT, HISTORY, MASK)
#: Rules of GGUF files by which text is cut into single digits, and then as GPT-2 does.
_BY_DIGITS = ("smollm", "starcoder", "refact")
#: Opens what stands far above the cursor: PREFIX too, but in vocabularies whose own
#: fill-in-the-middle marks tell the two apart.
FAR_PREFIX = "<far_prefix>"
#: Stands at the cursor within a region that is written anew (redraft-3).
CURSOR = "<|object_ref_end|>"


def _byte_of_char() -> dict[str, int]:
    """Inverse of the byte-level alphabet (GPT-2): printable stand-in character -> byte."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in kept}
    spare = 0x100
    for byte in range(0x100):
        if byte not in kept:
            table[chr(spare)] = byte
            spare += 1
    return table


class Tokenizer:
    """Encodes text that holds no marks, and names the marks.

    Args:
        bpe: a ready ``tokenizers`` tokenizer.
        special: names of the special tokens by id; they decode to nothing.
    """

    def __init__(self, bpe: BpeTokenizer, special: dict[int, str]) -> None:
        bpe.encode_special_tokens = True
        self._bpe = bpe
        self._special = dict(special)
        self._ids = find_marks(special, MARKS)
        self.check_marks((END,))
        own = (i for i, name in special.items() if name in FAR_PREFIXES)
        far = next(own, self._ids.get(PREFIX))
        if far is not None:
            self._ids[FAR_PREFIX] = far
        cursor = next((i for i, name in special.items() if name in CURSORS), None)
        if cursor is not None:
            self._ids[CURSOR] = cursor

    @classmethod
    def from_gguf(cls, data: dict[str, Any]) -> Tokenizer:
        """From what :func:`~redraft.model.weights.gguf.tokenizer_data` found in a GGUF file.

        Raises:
            WeightsError: text is cut into words by a rule Redraft does not know.
        """
        tokens: list[str] = data["tokens"]
        merges: list[tuple[str, ...]] = [tuple(merge.split(" ")) for merge in data["merges"]]
        vocab = {token: i for i, token in enumerate(tokens)}
        words = data["pre"]
        if words not in _BY_DIGITS and words not in RULES:
            known = ", ".join((*_BY_DIGITS, *RULES))
            raise WeightsError(
                f"The tokenizer cuts text into words by the rule {words!r}; known are {known}. "
                "Choose other weights, or import the original's folder, whose tokenizer.json says "
                "how."
            )
        pairs: list[tuple[str, ...]] = [m for m in merges if len(m) == 2]
        if words in _BY_DIGITS:
            bpe = build_bpe(vocab, pairs, data["special"])
        else:
            bpe = build_by_rule(words, vocab, pairs, data["special"])
        if (begin := data.get("begin")) is not None:
            _begin_with(bpe, begin, tokens[begin])
        return cls(bpe, data["special"])

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """From a ``tokenizer.json``, Redraft's or another model's; see ``marks.py``.

        Raises:
            WeightsError: the file is missing or not a tokenizer.
        """
        try:
            bpe = read_tokenizer(path)
        except Exception as error:  # the library raises plain Exception
            odd = isinstance(error, KeyError | TypeError | AttributeError)
            why = "it is not laid out as a tokenizer of Hugging Face" if odd else error
            raise WeightsError(
                f"Cannot read the tokenizer {path}: {why}. Fetch it again: with 'redraft model "
                "pull' where it is one of ours, else from where the weights came."
            ) from error
        added = bpe.get_added_tokens_decoder()
        return cls(bpe, {i: token.content for i, token in added.items() if token.special})

    def save(self, path: Path) -> None:
        self._bpe.save(str(path))

    @property
    def size(self) -> int:
        """One more than the highest id, as ids have no holes; see :meth:`check_ids`."""
        return max(self._bpe.get_vocab_size(with_added_tokens=True), max(self._special) + 1)

    @property
    def special(self) -> dict[int, str]:
        """Names of the special tokens by id."""
        return self._special

    def check_marks(self, marks: Sequence[str] = MARKS) -> None:
        """
        Raises:
            WeightsError: nothing in this vocabulary can stand for one of ``marks``.
        """
        missing = [mark for mark in marks if mark not in self._ids]
        if missing:
            raise WeightsError(
                f"The tokenizer has no tokens {missing}, which the prompt needs as marks. "
                "It belongs to another model: fetch the one of these weights, with 'redraft model "
                "pull' where they are ours."
            )

    def check_ids(self) -> None:
        """
        Raises:
            WeightsError: tokens are numbered with holes between them.
        """
        highest = max(self._bpe.get_vocab(with_added_tokens=True).values())
        if highest >= self.size:
            raise WeightsError(
                f"The tokenizer numbers its tokens up to {highest:,} and has {self.size:,} of "
                "them. Fetch the tokenizer of these weights again."
            )

    def mark(self, name: str) -> int:
        """Return the id of one of :data:`MARKS`, of FAR_PREFIX or of CURSOR, or of its stand-in."""
        if name not in self._ids:
            self.check_marks((name,))
        return self._ids[name]

    def has_mark(self, name: str) -> bool:
        return name in self._ids

    def special_id(self, name: str) -> int | None:
        """Id of a special token by its own name; None where there is none."""
        return self._special_ids.get(name)

    @cached_property
    def begin(self) -> int | None:
        """The special token that this tokenizer puts before every text; None: it puts none."""
        first = self._bpe.encode("a", add_special_tokens=True).ids[0]
        return first if first in self._special else None

    @cached_property
    def _special_ids(self) -> dict[str, int]:
        return {name: i for i, name in self._special.items()}

    @property
    def has_far_prefix(self) -> bool:
        """Return whether this vocabulary has a mark of its own for the far prefix."""
        return self._ids.get(FAR_PREFIX) != self._ids.get(PREFIX)

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``; lone surrogates (half a UTF-16 pair) become U+FFFD."""
        if not text:
            return []
        try:
            return self._bpe.encode(text, add_special_tokens=False).ids
        except (UnicodeEncodeError, TypeError):
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._bpe.encode(clean, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``: special tokens vanish, broken UTF-8 becomes U+FFFD."""
        return b"".join(self.vocab_bytes[i] for i in ids).decode("utf-8", "replace")

    @cached_property
    def vocab_bytes(self) -> list[bytes]:
        """The bytes each token id stands for; empty for special tokens."""
        byte_of = _byte_of_char()
        table = []
        for i in range(self.size):
            token = self._bpe.id_to_token(i)
            if token is None or i in self._special:
                table.append(b"")
            elif all(c in byte_of for c in token):
                table.append(bytes(byte_of[c] for c in token))
            else:  # added as it is written, such as a run of spaces
                table.append(token.encode())
        return table


def build_bpe(
    vocab: dict[str, int], merges: list[tuple[str, ...]], special: dict[int, str]
) -> BpeTokenizer:
    """Byte-level BPE with single digits, as SmolLM2 has it."""
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as BpeTokenizer

    bpe = BpeTokenizer(models.BPE(vocab=vocab, merges=merges))  # type: ignore[arg-type]
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for _, name in sorted(special.items())]
    )
    return bpe


def _begin_with(bpe: BpeTokenizer, token: int, name: str) -> None:
    """Put a special token before every text that asks for special tokens."""
    from tokenizers import processors

    bpe.post_processor = processors.TemplateProcessing(
        single=f"{name} $A", special_tokens=[(name, token)]
    )


def unfinished_word(text: str) -> str:
    """The end of ``text`` that may still grow into another token: letters with the space before
    them, or a single trailing space. The rest ends at a token boundary whatever follows.

    Digits are always single tokens and punctuation mostly stands alone, so neither is held back.
    """
    end = len(text)
    start = end
    while start and end - start < 64 and _is_letter(text[start - 1]):
        start -= 1
    if start and text[start - 1] == " ":
        start -= 1
    return text[start:]


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith(("L", "M"))
