"""Tokenizers of other models: which tokens are special, and which of them serve as our marks.

Turns a Hugging Face ``tokenizer.json`` (or ``vocab.json`` with ``merges.txt``, as Dream is
published) into one whose special tokens cannot be forged by text. Knows nothing of prompts.

The marks of the prompt carry the names of SmolLM2's vocabulary. Where a name is absent,
a special token of the same use stands in, and where there is none of that either, one that the
model hardly ever saw: reserved ones first. What the model makes of it is not measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Names that take the place of a mark, best first.
STAND_INS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "<|endoftext|>": (
            "<|end_of_text|>", "<[end▁of▁sentence]>", "<｜end▁of▁sentence｜>", "</s>", "<|im_end|>",
        ),
        "<file_sep>": ("<|file_sep|>", "<|file_separator|>"),
        "<jupyter_start>": ("<|fim_suffix|>", "<fim_suffix>", "<[fim-suffix]>"),
        "<jupyter_text>": ("<|fim_middle|>", "<fim_middle>", "<[fim-middle]>"),
        "<jupyter_output>": ("<|box_start|>",),
        "<jupyter_script>": ("<|box_end|>",),
        "<issue_start>": ("<|object_ref_start|>", "<|repo_name|>", "<repo_name>"),
        "<empty_output>": (
            "<|mask|>", "<|MASK|>", "|<MASK>|", "<|mdm_mask|>", "<M>", "<mask>", "[MASK]",
        ),
    }
)  # fmt: skip
#: Names of the mark that opens a file in a vocabulary's own fill-in-the-middle.
FAR_PREFIXES = frozenset({"<|fim_prefix|>", "<fim_prefix>", "<[fim-prefix]>"})
#: Names of the mark at the cursor of a region that is written anew.
CURSORS = frozenset({"<|object_ref_end|>", "<issue_comment>"})
_END, _MASK = "<|endoftext|>", "<empty_output>"

#: Added tokens that look like these are special whatever their flag says: Qwen does not flag its
#: fill-in-the-middle tokens, and a file that contains one must not become a mark.
_MARKLIKE = re.compile(r"\|?[<\[｜].*[>\]｜]\|?")
_RESERVED = re.compile(r"reserv|never|unused|extra|placeholder|plhd|pad", re.IGNORECASE)

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a vocabulary cuts text into words."""

    words: tuple[str, ...] = ()  # regular expressions, one after another; (): that of GPT-2
    nfc: bool = False
    whole_words: bool = False  # a word that is a token is one, whatever the merges say


_QWEN = _Rule(
    (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    nfc=True,
)
#: By their names in GGUF, which are llama.cpp's; the expressions are of each tokenizer.json.
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "qwen2": _QWEN,
        "deepseek-r1-qwen": _QWEN,
        "seed-coder": _Rule(
            (
                rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1}}"
                rf"| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",
            )
        ),
        "llama-bpe": _Rule(
            (
                rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
                rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
            ),
            whole_words=True,
        ),
        "deepseek-coder": _Rule(
            (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
        ),
        "gpt-2": _Rule(),
        "mellum": _Rule(),
    }
)
#: The rules of GGUF files that :func:`build_by_rule` knows.
RULES = tuple(_RULES)


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a ``tokenizer.json``, or in the ``vocab.json`` beside a ``merges.txt``.

    Raises:
        ValueError: it is not byte-level BPE, so its tokens do not say which bytes they stand for.
        Exception: of the tokenizers library, where the file is none of its kind.
    """
    from tokenizers import Tokenizer

    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    if path.name == "vocab.json":
        return _from_vocabulary(path.parent, data)
    steps = [data.get("pre_tokenizer") or {}, data.get("decoder") or {}]
    steps += [inner for step in steps for inner in step.get("pretokenizers", ())]
    if data["model"].get("type") != "BPE" or not any(s.get("type") == "ByteLevel" for s in steps):
        raise ValueError("it is not byte-level BPE, the only kind whose tokens are known as bytes")
    forgeable = [
        added
        for added in data.get("added_tokens", ())
        if not added.get("special") and _MARKLIKE.fullmatch(added["content"])
    ]
    if not forgeable and not data.get("truncation") and not data.get("padding"):
        return Tokenizer.from_str(text)
    for added in forgeable:
        added["special"] = True
    return Tokenizer.from_str(json.dumps(data | {"truncation": None, "padding": None}))


def _from_vocabulary(folder: Path, vocab: dict[str, int]) -> Tokenizer:
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    added = enumerate(_added_tokens(folder, len(vocab)), len(vocab))
    return build_by_rule("qwen2", vocab, merges, dict(added))


def build_by_rule(
    rule: str, vocab: dict[str, int], merges: list[tuple[str, ...]], special: Mapping[int, str]
) -> Tokenizer:
    """Byte-level BPE that cuts text into words by one of :data:`RULES`."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
    )

    known = _RULES[rule]
    bpe = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, ignore_merges=known.whole_words)  # type: ignore[arg-type]
    )
    if known.nfc:
        bpe.normalizer = normalizers.NFC()
    cuts = [pre_tokenizers.Split(Regex(words), "isolated") for words in known.words]
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cuts)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([*cuts, bytes_of])
    bpe.decoder = decoders.ByteLevel()
    names = [name for _, name in sorted(special.items())]
    bpe.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return bpe


def _added_tokens(folder: Path, first: int) -> Iterator[str]:
    """Names of the tokens beyond the vocabulary, by ascending id.

    Raises:
        ValueError: their ids leave a gap, so that they would get others.
    """
    about = folder / "tokenizer_config.json"
    data: Any = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {}
    ids = {int(i): token["content"] for i, token in data.get("added_tokens_decoder", {}).items()}
    if (folder / "added_tokens.json").is_file():
        more = json.loads((folder / "added_tokens.json").read_text(encoding="utf-8"))
        ids |= {int(i): name for name, i in more.items()}
    beyond = {i: name for i, name in ids.items() if i >= first}
    if sorted(beyond) != list(range(first, first + len(beyond))):
        raise ValueError(f"its added tokens {sorted(beyond)} do not follow the {first} others")
    return iter(beyond[i] for i in sorted(beyond))


def find_marks(special: Mapping[int, str], marks: Sequence[str]) -> dict[str, int]:
    """Ids for the marks, those missing for which there is no special token left.

    Args:
        special: names of the special tokens by id.
    """
    ids = {name: i for i, name in special.items()}
    found = {mark: ids[mark] for mark in marks if mark in ids}
    for mark in marks:
        if mark not in found:
            names = [*STAND_INS.get(mark, ()), *(_masks(ids) if mark == _MASK else ())]
            fitting = (ids[n] for n in names if n in ids and ids[n] not in found.values())
            if (token := next(fitting, None)) is not None:
                found[mark] = token
    spare = sorted(
        (i for i in special if i not in found.values() and not _is_text_border(special[i])),
        key=lambda i: (not _RESERVED.search(special[i]), -i),
    )
    spare = [i for i in spare if special[i] not in FAR_PREFIXES]
    missing = [mark for mark in marks if mark not in found and mark != _END]
    return found | dict(zip(missing, spare, strict=False))


def _masks(ids: Mapping[str, int]) -> list[str]:
    return [name for name in sorted(ids) if "mask" in name.lower()]


def _is_text_border(name: str) -> bool:
    """Beginnings of a text and turns of a conversation mean too much to be marks."""
    return bool(re.search(r"begin|start_header|end_header|eot|eom|im_start|im_end", name))


def text_range(special: Mapping[int, str], size: int) -> tuple[int, int]:
    """Ids [first, last) between the special tokens at both ends of a vocabulary of ``size``."""
    first, last = 0, size
    while first in special and first < size:
        first += 1
    while last - 1 in special and last > first:
        last -= 1
    return first, last
