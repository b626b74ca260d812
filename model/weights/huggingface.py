"""Hugging Face folders: config.json, tokenizer and safetensors, read as our config and names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..config import ModelConfig, tensor_shapes
from ..errors import WeightsError
from ..prompts.tokenizer import Tokenizer
from .families import DERIVED, Family, architecture, family_of, names
from .files import read_json, sha256_of
from .tensors import StoredTensor, Tensors, tensors_in
from .vocabularies import read_tokenizer, token_fields

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
#: Where config.json says that weights are quantised: most publishers, MLX, and llm-compressor once.
_QUANTISED = ("quantization_config", "quantization", "compression_config")
#: Formats that execute code when they are read.
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class Checkpoint(NamedTuple):
    """Content of a folder; the tensors are read when they are asked for."""

    config: ModelConfig
    tensors: Tensors
    tokenizer: Tokenizer
    family: Family


def read_folder(folder: Path, name: str | None = None) -> Checkpoint:
    """Return the content of a folder.

    The configuration of a plain Llama, Qwen2 or Qwen3 is that of a base to adapt: ``adapter`` is
    "none" and ``attention`` "canvas". Rows that pad the vocabulary are left out.

    Args:
        name: of the model; None: the folder's.

    Raises:
        WeightsError: something is missing or damaged, or of a kind Redraft does not run.
    """
    hf, tokenizer, family, fields = _announced(folder)
    stored = _by_our_names(folder, family, fields["layers"])
    fields |= {
        "tied": hf.get("tie_word_embeddings", hf.get("weight_tying")) is True
        or "head.weight" not in stored,
        "qkv_bias": "blocks.0.attn.q.bias" in stored,
        "qk_norm": "blocks.0.attn.q_norm.weight" in stored,
    }
    if fields["tied"]:
        stored.pop("head.weight", None)
    _check_shapes(folder, fields, stored)
    if tokenizer.size > fields["vocab"]:
        raise WeightsError(
            f"The tokenizer in {folder} knows {tokenizer.size:,} tokens, the embedding has "
            f"{fields['vocab']:,} rows. They belong to different models: download them again."
        )
    mask = family.mask and (hf.get("mask_token_id") or family.mask)
    fields |= token_fields(tokenizer, family.plain, mask)
    if fields["mask_token"] not in tokenizer.special:
        raise WeightsError(
            f"{family.name} writes over the token {mask}, which the tokenizer in {folder} does not "
            "know as a special one. Download the tokenizer that belongs to these weights."
        )
    config = ModelConfig(name=name or model_name(folder.resolve().name), **fields)
    rows = {"embed.weight": config.vocab, "head.weight": config.vocab}
    tensors = Tensors(stored, lambda each: stored[each].read(rows.get(each)))
    return Checkpoint(config, tensors, tokenizer, family)


def read_announced(folder: Path, name: str) -> ModelConfig:
    """Return the shape of the network as far as config.json says without the tensors.

    Raises:
        WeightsError: it is not one that can be imported.
    """
    hf, _, _, fields = _announced(folder)
    return ModelConfig(name=name, **fields, tied=hf.get("tie_word_embeddings") is True)


def _announced(folder: Path) -> tuple[dict[str, Any], Tokenizer, Family, dict[str, Any]]:
    """Return what the small files of a folder say: config.json, tokenizer, family, its shape."""
    hf = read_json(folder / "config.json")
    if not hf:
        raise WeightsError(
            f"{folder} holds no config.json that can be read. Name the folder of a Hugging Face "
            "model: config.json, tokenizer.json and *.safetensors."
        )
    if quantised := next((hf[key] for key in _QUANTISED if hf.get(key)), None):
        how = quantised.get("quant_method", quantised) if isinstance(quantised, dict) else quantised
        raise WeightsError(
            f"The weights in {folder} are quantised ({how}). Download the original in bfloat16 or "
            "float16, or a GGUF file of it."
        )
    tokenizer = read_tokenizer(tokenizer_file(folder))
    tokenizer.check_ids()
    ends = hf.get("eos_token_id")
    for end in ends if isinstance(ends, list) else [ends]:
        if isinstance(end, int) and end >= tokenizer.size:
            raise WeightsError(
                f"config.json in {folder} ends texts with the token {end:,}, the tokenizer there "
                f"knows {tokenizer.size:,}. They belong to different models: download them again."
            )
    family = family_of(hf, tokenizer.special)
    if family.name == "Tiny-A2D" and "bd3lm" in folder.resolve().name.lower():
        # Its weights by blocks differ from the others in their name alone.
        family = replace(family, attention="block", block=32)
    return hf, tokenizer, family, architecture(hf, family)


def checkpoint_sha256(folder: Path) -> str:
    """Return one SHA-256 over config.json and every file of weights.

    Raises:
        WeightsError: a file is missing or cannot be read.
    """
    files = sorted({tensor.path for tensor in _tensors(folder).values()})
    digest = hashlib.sha256()
    for path in (folder / "config.json", *files):
        digest.update(f"{path.name} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def tokenizer_file(folder: Path) -> Path:
    """Return the file of the folder that :func:`read_tokenizer` reads.

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


def _tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return every tensor of the folder by the layout's name."""
    if index := read_json(folder / _INDEX):
        return _sharded(folder, index)
    files = sorted(folder.glob("*.safetensors"))
    if (folder / _SINGLE) in files or len(files) == 1:
        return tensors_in(folder / _SINGLE if folder / _SINGLE in files else files[0])
    if files:
        raise WeightsError(
            f"{folder} holds {len(files)} safetensors files and no {_INDEX} that says what is "
            "where. Download the index too."
        )
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        raise WeightsError(
            f"{folder} holds weights only as {pickled[0]}, a pickle, which can run any program "
            "when it is read: Redraft never does. Download the safetensors of this model, or "
            "convert it with its publisher's tools where you trust it."
        )
    raise WeightsError(f"{folder} holds no safetensors. Download model.safetensors or its shards.")


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


def _by_our_names(folder: Path, family: Family, layers: int) -> dict[str, StoredTensor]:
    theirs = _tensors(folder)
    if layers > len(theirs):  # each layer has tensors
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
    folder: Path, fields: Mapping[str, Any], stored: Mapping[str, StoredTensor]
) -> None:
    """Check that every tensor the network needs is there, in its shape, and no other."""
    expected = tensor_shapes({**asdict(ModelConfig()), **fields})
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


def model_name(stem: str) -> str:
    """Return a model name out of a folder's or file's."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64]
    return name or "imported"
