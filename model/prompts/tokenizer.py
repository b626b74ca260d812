"""Text as tokens and back, and the marks of prompts.

Byte-level BPE by the ``tokenizers`` library. Special tokens never come out of ordinary text: a file
that contains ``<|endoftext|>`` is encoded letter by letter, so that no text can forge a mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import WeightsError

if TYPE_CHECKING:  # 4 MB that the language server, which only needs the format, does without
    from tokenizers import Tokenizer as BpeTokenizer

#: The marks of a prompt, by their names in SmolLM2's vocabulary.
END = "<|endoftext|>"
FILE = "<file_sep>"
SUFFIX = "<jupyter_start>"
PREFIX = "<jupyter_text>"
REGION = "<jupyter_output>"
EDIT = "<jupyter_script>"
HISTORY = "<issue_start>"
MASK = "<empty_output>"
MARKS = (END, FILE, SUFFIX, PREFIX, REGION, EDIT, HISTORY, MASK)
#: Opens the text far above the cursor. It is PREFIX in vocabularies whose own fill-in-the-middle
#: has no mark that opens a file.
FAR_PREFIX = "<far_prefix>"
_FAR_PREFIXES = frozenset({"<|fim_prefix|>", "<fim_prefix>", "<[fim-prefix]>"})
#: Marks the cursor within a region that is rewritten (redraft-3).
CURSOR = "<|object_ref_end|>"
_CURSORS = frozenset({CURSOR, "<issue_comment>"})
#: Special tokens of the same use, best first, for vocabularies without a mark's name.
_STAND_INS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        END: (
            "<|end_of_text|>", "<[end▁of▁sentence]>", "<｜end▁of▁sentence｜>", "</s>", "<|im_end|>",
        ),
        FILE: ("<|file_sep|>", "<|file_separator|>"),
        SUFFIX: ("<|fim_suffix|>", "<fim_suffix>", "<[fim-suffix]>"),
        PREFIX: ("<|fim_middle|>", "<fim_middle>", "<[fim-middle]>"),
        REGION: ("<|box_start|>",),
        EDIT: ("<|box_end|>",),
        HISTORY: ("<|object_ref_start|>", "<|repo_name|>", "<repo_name>"),
        MASK: ("<|mask|>", "<|MASK|>", "|<MASK>|", "<|mdm_mask|>", "<M>", "<mask>", "[MASK]"),
    }
)  # fmt: skip
_RESERVED = re.compile(r"reserv|never|unused|extra|placeholder|plhd|pad", re.IGNORECASE)
#: Beginnings of a text and turns of a conversation mean too much to the model to be other marks.
_BORDER = re.compile(r"begin|start_header|end_header|eot|eom|im_start|im_end")


class Tokenizer:
    """Encodes text that holds no marks, and names the marks.

    Args:
        bpe: a tokenizer of the library.
        special: names of the special tokens by id; they decode to nothing.

    Raises:
        WeightsError: nothing in this vocabulary can be END.
    """

    def __init__(self, bpe: BpeTokenizer, special: Mapping[int, str]) -> None:
        bpe.encode_special_tokens = True
        self._bpe = bpe
        self.special = dict(special)  # names by id
        self._special_ids = {name: i for i, name in special.items()}
        self._ids = find_marks(special)
        self.check_marks((END,))
        far = next((i for i, name in special.items() if name in _FAR_PREFIXES), None)
        self.has_far_prefix = far is not None  # another mark than PREFIX
        cursor = next((i for i, name in special.items() if name in _CURSORS), None)
        more = {FAR_PREFIX: self._ids.get(PREFIX) if far is None else far, CURSOR: cursor}
        self._ids |= {name: i for name, i in more.items() if i is not None}

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """Return the tokenizer of a ``tokenizer.json`` that this project wrote.

        Raises:
            WeightsError: the file is missing or damaged.
        """
        from tokenizers import Tokenizer as BpeTokenizer

        try:
            bpe = BpeTokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise WeightsError(
                f"Cannot read the tokenizer {path}: {error}. Fetch it again with 'redraft model "
                "pull', or import the weights again."
            ) from error
        return cls.of(bpe)

    @classmethod
    def of(cls, bpe: BpeTokenizer) -> Tokenizer:
        """Return a tokenizer with the special tokens that ``bpe`` flags as such."""
        added = bpe.get_added_tokens_decoder()
        return cls(bpe, {i: token.content for i, token in added.items() if token.special})

    def save(self, path: Path) -> None:
        """Write a ``tokenizer.json``."""
        self._bpe.save(str(path))

    @property
    def size(self) -> int:
        """The highest id plus one, as ids have no holes; see :meth:`check_ids`."""
        return max(self._bpe.get_vocab_size(with_added_tokens=True), max(self.special) + 1)

    def check_marks(self, marks: Sequence[str] = MARKS) -> None:
        """Check that the vocabulary has a token for each of ``marks``.

        Raises:
            WeightsError: it has none for some.
        """
        missing = [mark for mark in marks if mark not in self._ids]
        if missing:
            raise WeightsError(
                f"The tokenizer has no tokens {missing}, which the prompt needs as marks. "
                "It belongs to another model: fetch the one of these weights, with 'redraft model "
                "pull' where they are ours."
            )

    def check_ids(self) -> None:
        """Check that tokens are numbered without holes.

        Raises:
            WeightsError: they are not.
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
        """Return whether there is a token for a mark."""
        return name in self._ids

    def special_id(self, name: str) -> int | None:
        """Return the id of the special token with this name, if there is one."""
        return self._special_ids.get(name)

    @cached_property
    def begin(self) -> int | None:
        """The special token that this tokenizer puts before every text; None: it puts none."""
        first = self._bpe.encode("a", add_special_tokens=True).ids[0]
        return first if first in self.special else None

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; lone surrogates (half a UTF-16 pair) become U+FFFD."""
        if not text:
            return []
        try:
            return self._bpe.encode(text, add_special_tokens=False).ids
        except (UnicodeEncodeError, TypeError):
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._bpe.encode(clean, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ``ids``: special tokens vanish, broken UTF-8 becomes U+FFFD."""
        return b"".join(self.vocab_bytes[i] for i in ids).decode("utf-8", "replace")

    @cached_property
    def vocab_bytes(self) -> list[bytes]:
        """The bytes of each token; none for special tokens."""
        byte_of = byte_alphabet()
        alphabet = frozenset(byte_of)
        latin = str.maketrans({char: chr(byte) for char, byte in byte_of.items()})
        table = []
        for i in range(self.size):
            token = self._bpe.id_to_token(i)
            if token is None or i in self.special:
                table.append(b"")
            elif alphabet.issuperset(token):
                table.append(token.translate(latin).encode("latin-1"))
            else:  # added as it is written, such as a run of spaces
                table.append(token.encode())
        return table

    @cached_property
    def sorted_vocab(self) -> tuple[list[bytes], list[int]]:
        """The bytes of all tokens, sorted, and the token of each."""
        vocab = self.vocab_bytes
        tokens = sorted(filter(vocab.__getitem__, range(len(vocab))), key=vocab.__getitem__)
        return [vocab[token] for token in tokens], tokens


def byte_alphabet() -> dict[str, int]:
    """Return the byte of each printable character that GPT-2's byte-level alphabet has for it."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in kept]
    return {chr(b): b for b in kept} | {chr(0x100 + i): b for i, b in enumerate(others)}


def find_marks(special: Mapping[int, str]) -> dict[str, int]:
    """Return the ids of the marks, without those for which no special token is left.

    A mark without a token of its name or its use gets one that the model hardly ever saw: reserved
    ones first. What the model makes of that is not measured.

    Args:
        special: names of the special tokens by id.
    """
    ids = {name: i for i, name in special.items()}
    found = {mark: ids[mark] for mark in MARKS if mark in ids}
    masks = [name for name in sorted(ids) if "mask" in name.lower()]
    for mark in MARKS:
        if mark not in found:
            names = [*_STAND_INS[mark], *(masks if mark == MASK else ())]
            fitting = (ids[n] for n in names if n in ids and ids[n] not in found.values())
            if (token := next(fitting, None)) is not None:
                found[mark] = token
    spare = [
        i
        for i, name in special.items()
        if i not in found.values() and name not in _FAR_PREFIXES and not _BORDER.search(name)
    ]
    spare.sort(key=lambda i: (not _RESERVED.search(special[i]), -i))
    missing = [mark for mark in MARKS if mark not in found and mark != END]
    return found | dict(zip(missing, spare, strict=False))


def find_unfinished_word(text: str) -> str:
    """Return the end of ``text`` that may still grow into another token.

    These are letters with the space before them, or a single trailing space. Digits are always
    single tokens and punctuation mostly is, so neither is held back.
    """
    start = len(text)
    while start and len(text) - start < 64 and _is_letter(text[start - 1]):
        start -= 1
    if start and text[start - 1] == " ":
        start -= 1
    return text[start:]


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith(("L", "M"))
