"""Tokenizers of other models: files of Hugging Face and of GGUF.

They are read so that text cannot forge a special token of theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers import Tokenizer as BpeTokenizer

from ..errors import WeightsError
from ..prompts.registry import REDRAFT_2
from ..prompts.tokenizer import END, MASK, Tokenizer
from .gguf import UNUSED, GGUFFile

#: Added tokens that look like these are special whatever their flag says: Qwen does not flag its
#: fill-in-the-middle tokens, and a file that contains one must not become a mark.
_MARKLIKE = re.compile(r"\|?[<\[｜].*[>\]｜]\|?")

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A way to cut text into words."""

    words: tuple[str, ...] = ()  # regular expressions, one after another; (): that of GPT-2
    digits: bool = False  # each digit first becomes a word
    nfc: bool = False
    whole_words: bool = False  # a word that is a token is one, whatever the merges say


_BY_DIGITS = _Rule(digits=True)
_QWEN = _Rule(
    (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    nfc=True,
)
#: By their names in GGUF, which are llama.cpp's; the expressions are those of tokenizer.json.
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "smollm": _BY_DIGITS,
        "starcoder": _BY_DIGITS,
        "refact": _BY_DIGITS,
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
#: Types of the tokens of a GGUF file that are marks: control and user-defined ones.
_MARK_TYPES = (3, 4)
_BEGIN = "tokenizer.ggml.bos_token_id"


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a ``tokenizer.json``, or of a ``vocab.json`` beside a ``merges.txt``.

    Raises:
        WeightsError: it is missing, no tokenizer, or not byte-level BPE.
    """
    try:
        return Tokenizer.of(_read(path))
    except WeightsError:
        raise
    except Exception as error:  # the library raises plain Exception
        is_odd = isinstance(error, KeyError | TypeError | AttributeError)
        why = "it is not laid out as a tokenizer of Hugging Face" if is_odd else error
        raise WeightsError(
            f"Cannot read the tokenizer {path}: {why}. Fetch it again from where the weights are."
        ) from error


def _read(path: Path) -> BpeTokenizer:
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
        return BpeTokenizer.from_str(text)
    for added in forgeable:
        added["special"] = True
    return BpeTokenizer.from_str(json.dumps(data | {"truncation": None, "padding": None}))


def _from_vocabulary(folder: Path, vocab: dict[str, int]) -> BpeTokenizer:
    """Return the tokenizer of Dream's files, which has Qwen2's words."""
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    added = enumerate(_added_tokens(folder, len(vocab)), len(vocab))
    return build_bpe(vocab, merges, dict(added), "qwen2")


def _added_tokens(folder: Path, first: int) -> list[str]:
    """Return the names of the tokens beyond the vocabulary, by ascending id.

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
    return [beyond[i] for i in sorted(beyond)]


def gguf_tokenizer(file: GGUFFile) -> Tokenizer:
    """Return the byte-level BPE tokenizer that a GGUF file holds, without unused tokens at its end.

    Raises:
        WeightsError: there is none, it is of another kind, or it contradicts itself.
    """
    model = file.get("tokenizer.ggml.model", str)
    if model != "gpt2":
        file.fail(f"its tokenizer is of kind {model!r}, only byte-level BPE ('gpt2') is known")
    tokens, types = file.get("tokenizer.ggml.tokens", list), file.token_types()
    if len(types) != len(tokens):
        file.fail("its tokenizer has not one type for each token")
    while types and types[-1] == UNUSED:
        types.pop()
    vocab = {token: i for i, token in enumerate(tokens[: len(types)])}
    if len(vocab) != len(types):
        file.fail("its tokenizer lists a token twice")
    special = {i: tokens[i] for i, kind in enumerate(types) if kind in _MARK_TYPES}
    merges = [tuple(rule.split(" ")) for rule in file.get("tokenizer.ggml.merges", list)]
    for pair in merges:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= vocab.keys():
            file.fail(f"its tokenizer merges {' '.join(pair)[:60]!r}, which are not its tokens")
    rule = file.get("tokenizer.ggml.pre", str)
    bpe = build_bpe(vocab, merges, special, rule)
    opens = file.value("tokenizer.ggml.add_bos_token")
    if (rule == "llama-bpe" if opens is None else opens) and _BEGIN in file:
        begin = file.get(_BEGIN, int)
        name = tokens[begin]  # it precedes every text that asks for special tokens
        bpe.post_processor = processors.TemplateProcessing(
            single=f"{name} $A", special_tokens=[(name, begin)]
        )
    return Tokenizer(bpe, special)


def build_bpe(
    vocab: dict[str, int],
    merges: list[tuple[str, ...]],
    special: Mapping[int, str],
    rule: str = "smollm",
) -> BpeTokenizer:
    """Return byte-level BPE that cuts text into words by one of the rules.

    Raises:
        WeightsError: the rule is unknown.
    """
    if (known := _RULES.get(rule)) is None:
        raise WeightsError(
            f"The tokenizer cuts text into words by the rule {rule!r}; known are "
            f"{', '.join(_RULES)}. Choose other weights, or import the original's folder, whose "
            "tokenizer.json says how."
        )
    bpe = BpeTokenizer(
        models.BPE(vocab=vocab, merges=merges, ignore_merges=known.whole_words)  # type: ignore[arg-type]
    )
    if known.nfc:
        bpe.normalizer = normalizers.NFC()
    cuts: list[Any] = [pre_tokenizers.Split(Regex(words), "isolated") for words in known.words]
    cuts += [pre_tokenizers.Digits(individual_digits=True)] if known.digits else []
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not known.words)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([*cuts, bytes_of])
    bpe.decoder = decoders.ByteLevel()
    names = [name for _, name in sorted(special.items())]
    bpe.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return bpe


def token_fields(tokenizer: Tokenizer, plain: bool, mask: int | None = None) -> dict[str, Any]:
    """Return the fields of :class:`ModelConfig` that a vocabulary decides.

    Args:
        plain: the weights only write from left to right.
        mask: the token that is written over; None: by its name.

    Raises:
        WeightsError: the vocabulary lacks marks that diffusion models need.
    """
    if not plain:
        tokenizer.check_marks()
    if mask is None:
        mask = tokenizer.mark(MASK if tokenizer.has_mark(MASK) else END)
    # Special tokens stand at both ends of a vocabulary.
    first, last = 0, tokenizer.size
    while first in tokenizer.special and first < tokenizer.size:
        first += 1
    while last - 1 in tokenizer.special and last > first:
        last -= 1
    return {
        "vocab": tokenizer.size,
        "mask_token": mask,
        "end_token": tokenizer.mark(END),
        "prompt_format": REDRAFT_2,
        "special_tokens": first,
        "special_from": last if last < tokenizer.size else 0,
    }
