"""Reads a Hugging Face folder: config.json, tokenizer and safetensors → our config and names.

Tensors are read one at a time and only when they are asked for. Knows the families' conventions
through ``families.py``; knows nothing of ONNX, of torch or of where the result goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..config import ModelConfig, tensor_shapes
from ..errors import WeightsError
from ..prompts.registry import REDRAFT_2
from ..prompts.tokenizer import END, MASK, Tokenizer
from .families import DERIVED, Family, architecture, family_of, names
from .files import read_json, sha256_of
from .safetensors_file import FloatArray, StoredTensor, tensors_in
from .vocabularies import read_tokenizer, text_range

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
#: Where config.json says that weights are quantised: most publishers, MLX, and llm-compressor once.
_QUANTISED = ("quantization_config", "quantization", "compression_config")
#: Formats that execute code when they are read.
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class Checkpoint(Mapping[str, FloatArray]):
    """Weights under Redraft's names; every access reads one tensor anew.

    Rows of the vocabulary beyond the tokenizer's last token, which pad it to a round number, are
    left out.
    """

    def __init__(self, tensors: Mapping[str, StoredTensor], vocab: int) -> None:
        self._tensors = dict(tensors)
        self._vocab = vocab

    def __getitem__(self, name: str) -> FloatArray:
        rows = self._vocab if name in ("embed.weight", "head.weight") else None
        return self._tensors[name].read(rows)

    def __contains__(self, name: object) -> bool:  # Mapping's own would read the tensor
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def read_hf_checkpoint(
    folder: Path, name: str | None = None, block: int | None = None
) -> tuple[ModelConfig, Checkpoint, Path]:
    """Configuration, weights by our names, and the file :func:`read_tokenizer` reads.

    The configuration of a plain Llama, Qwen2 or Qwen3 is that of a base to adapt: ``adapter`` is
    "none" and ``attention`` "canvas".

    Args:
        name: of the model; None: the folder's.
        block: tokens of a block, for weights that read block by block; None: as published.

    Raises:
        WeightsError: something is missing or damaged, or of a kind Redraft does not run.
        SettingsError: the family does not read in blocks of ``block``.
    """
    hf, tokenizer, family, found = _announced(folder, block)
    stored = _by_our_names(folder, family, found["layers"])
    found |= {
        "tied": hf.get("tie_word_embeddings", hf.get("weight_tying")) is True
        or "head.weight" not in stored,
        "qkv_bias": "blocks.0.attn.q.bias" in stored,
        "qk_norm": "blocks.0.attn.q_norm.weight" in stored,
    }
    if found["tied"]:
        stored.pop("head.weight", None)
    _check_shapes(folder, found, stored)
    found |= _vocabulary(folder, hf, family, tokenizer, found["vocab"])
    config = ModelConfig(name=name or model_name(folder.resolve().name), **found)
    return config, Checkpoint(stored, config.vocab), tokenizer_file(folder)


def announced(folder: Path, name: str) -> ModelConfig:
    """The shape of the network as far as config.json tells without the tensors.

    Raises:
        WeightsError: it is not one that can be imported.
    """
    hf, _, _, found = _announced(folder, None)
    return ModelConfig(name=name, **found, tied=hf.get("tie_word_embeddings") is True)


def _announced(
    folder: Path, block: int | None
) -> tuple[dict[str, Any], Tokenizer, Family, dict[str, Any]]:
    """What the small files of a folder say: config.json, tokenizer, family and its shape."""
    hf = _configuration(folder)
    if quantised := next((hf[key] for key in _QUANTISED if hf.get(key)), None):
        how = quantised.get("quant_method", quantised) if isinstance(quantised, dict) else quantised
        raise WeightsError(
            f"The weights in {folder} are quantised ({how}). Download the original in bfloat16 or "
            "float16, or a GGUF file of it."
        )
    tokenizer = read_tokenizer(tokenizer_file(folder))
    _check_tokens(folder, hf, tokenizer)
    family = family_of(hf, {text: i for i, text in tokenizer.special.items()})
    if block is None and family.in_blocks and "bd3lm" in folder.resolve().name.lower():
        block = 32  # Tiny-A2D's weights by blocks differ from the others in their name alone
    return hf, tokenizer, family, architecture(hf, family, block)


def _check_tokens(folder: Path, hf: Mapping[str, Any], tokenizer: Tokenizer) -> None:
    """Whether the tokenizer can be that of config.json, as far as its tokens' numbers tell."""
    tokenizer.check_ids()
    ends = hf.get("eos_token_id")
    for end in ends if isinstance(ends, list) else [ends]:
        if isinstance(end, int) and end >= tokenizer.size:
            raise WeightsError(
                f"config.json in {folder} ends texts with the token {end:,}, the tokenizer there "
                f"knows {tokenizer.size:,}. They belong to different models: download them again."
            )


def checkpoint_sha256(folder: Path) -> str:
    """One SHA-256 over config.json and every file of weights: what an adapter was trained for.

    Raises:
        WeightsError: a file is missing or cannot be read.
    """
    files = sorted({tensor.path for tensor in _tensors(folder).values()})
    digest = hashlib.sha256()
    for path in (folder / "config.json", *files):
        digest.update(f"{path.name} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def tokenizer_file(folder: Path) -> Path:
    """The file of the folder that :func:`read_tokenizer` reads.

    Raises:
        WeightsError: there is none.
    """
    if (folder / "tokenizer.json").is_file():
        return folder / "tokenizer.json"
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return folder / "vocab.json"
    raise WeightsError(
        f"{folder} has no tokenizer.json, nor vocab.json with merges.txt. Download the tokenizer's "
        "files too; a SentencePiece model (tokenizer.model) alone is not enough."
    )


def family_name(folder: Path) -> str:
    """What the weights in a folder are, for people."""
    special = read_tokenizer(tokenizer_file(folder)).special
    return family_of(_configuration(folder), {text: i for i, text in special.items()}).name


# ------------------------------------------------------------------------------ files


def _configuration(folder: Path) -> dict[str, Any]:
    hf = read_json(folder / "config.json")
    if not hf:
        raise WeightsError(
            f"{folder} holds no config.json that can be read. Name the folder of a Hugging Face "
            "model: config.json, tokenizer.json and *.safetensors."
        )
    return hf


def _tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the folder by the layout's name."""
    index = read_json(folder / _INDEX)
    if index:
        return _sharded(folder, index)
    single = folder / _SINGLE
    if not single.is_file():
        files = sorted(folder.glob("*.safetensors"))
        if len(files) != 1:
            raise _no_tensors(folder, len(files))
        single = files[0]
    return tensors_in(single)


def _sharded(folder: Path, index: Mapping[str, Any]) -> dict[str, StoredTensor]:
    placed = index.get("weight_map")
    if not isinstance(placed, dict) or not all(
        isinstance(file, str) and Path(file).name == file for file in placed.values()
    ):
        raise WeightsError(
            f"{folder / _INDEX} does not list the files beside it. Download it again."
        )
    shards = {file: tensors_in(folder / file) for file in sorted(set(placed.values()))}
    missing = [name for name, file in placed.items() if name not in shards[file]]
    if missing:
        raise WeightsError(
            f"{folder / placed[missing[0]]} lacks {missing[0]!r}, which {_INDEX} promises. "
            "Download it again."
        )
    return {name: shards[file][name] for name, file in placed.items()}


def _no_tensors(folder: Path, count: int) -> WeightsError:
    if count:
        return WeightsError(
            f"{folder} holds {count} safetensors files and no {_INDEX} that says what is where. "
            "Download the index too."
        )
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        return WeightsError(
            f"{folder} holds weights only as {pickled[0]}, a pickle, which can run any program "
            "when it is read: Redraft never does. Download the safetensors of this model, or "
            "convert it with its publisher's tools where you trust it."
        )
    return WeightsError(f"{folder} holds no safetensors. Download model.safetensors or its shards.")


# ------------------------------------------------------------------------------ fitting together


def _by_our_names(folder: Path, family: Family, layers: int) -> dict[str, StoredTensor]:
    theirs = _tensors(folder)
    if layers > len(theirs):  # each layer has tensors of its own
        raise WeightsError(
            f"config.json in {folder} says {layers:,} layers, its weights are {len(theirs):,} "
            "tensors. The files belong to different models: download them again."
        )
    ours = {mine: theirs[name] for mine, name in names(family, layers) if name in theirs}
    used = {tensor.name for tensor in ours.values()}
    unknown = sorted(name for name in theirs if name not in used and not name.endswith(DERIVED))
    if unknown:
        raise WeightsError(
            f"The tensors {unknown[:3]} in {folder} belong to a network Redraft does not run "
            f"(read as {family.name} of {layers} layers). Choose other weights."
        )
    return ours


def _check_shapes(
    folder: Path, found: Mapping[str, Any], stored: Mapping[str, StoredTensor]
) -> None:
    """Every tensor the network needs is there, in the shape config.json says, and no other."""
    expected = tensor_shapes({**asdict(ModelConfig()), **found})
    for name, shape in expected.items():
        tensor = stored.get(name)
        if tensor is None:
            raise WeightsError(f"{folder} lacks the weights of {name!r}. Download it again.")
        if tensor.shape != shape:
            raise WeightsError(
                f"{tensor.name!r} in {tensor.path} has shape {list(tensor.shape)}, config.json "
                f"says {list(shape)}. The files belong to different models: download them again."
            )
        tensor.check_type()
    extra = sorted(set(stored) - set(expected))
    if extra:
        raise WeightsError(
            f"{stored[extra[0]].name!r} in {folder} is in some layers only. Choose other weights."
        )


def _vocabulary(
    folder: Path, hf: Mapping[str, Any], family: Family, tokenizer: Tokenizer, rows: int
) -> dict[str, Any]:
    """Which tokens are text, and which one is the mask and which the end."""
    size = tokenizer.size
    if size > rows:
        raise WeightsError(
            f"The tokenizer in {folder} knows {size:,} tokens, the embedding has {rows:,} rows. "
            "They belong to different models: download them again."
        )
    if not family.plain:
        tokenizer.check_marks()
    mask = tokenizer.mark(MASK if tokenizer.has_mark(MASK) else END)
    if not family.plain and family.mask is not None:
        mask = hf.get("mask_token_id") or family.mask
    if mask not in tokenizer.special:
        raise WeightsError(
            f"{family.name} writes over the token {mask}, which the tokenizer in {folder} does not "
            "know as a special one. Download the tokenizer that belongs to these weights."
        )
    first, last = text_range(tokenizer.special, size)
    return {
        "vocab": size,
        "mask_token": mask,
        "end_token": tokenizer.mark(END),
        "prompt_format": REDRAFT_2,
        "special_tokens": first,
        "special_from": last if last < size else 0,
    }


def model_name(stem: str) -> str:
    """A model name out of a folder's or file's."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64]
    return name or "imported"
