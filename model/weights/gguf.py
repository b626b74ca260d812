"""Reads GGUF files through the ``gguf`` package: the naming and ordering rules it does not know.

``read_checkpoint`` returns weights under Redraft's names (see :class:`ModelConfig`), rotary halves
as Hugging Face lays them out, and one matrix where embedding and head are tied. The file is mapped
and one tensor is dequantised at a time. It knows nothing of adapters, ONNX, torch or where the file
came from; nothing in the file is ever executed or unpickled.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS, tensor_shapes
from ..errors import WeightsError
from .files import explaining

if TYPE_CHECKING:
    from gguf import GGUFReader

FloatArray = NDArray[np.float32]

#: Values dequantised at once: the package's intermediate results are several times as large.
_SLICE = 1 << 22


def _check_magic(path: Path) -> None:
    """
    Raises:
        WeightsError: the file cannot be read, or is of another format.
    """
    with explaining("read", path), path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise WeightsError(
            f"{path} is not a GGUF file: it does not begin with 'GGUF'. Name a .gguf file, or a "
            "folder with config.json, tokenizer.json and *.safetensors."
        )


class GGUFFile:
    """Metadata and tensors of one file, which stays mapped as long as this lives."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            WeightsError: the file is missing, truncated or of another format.
        """
        self.path = path
        _check_magic(path)
        try:
            reader = _reader(path)
        except OSError as error:
            raise WeightsError(
                f"cannot read {path}: {error.strerror or error}. Check the path and its "
                "permissions."
            ) from error
        except Exception as error:  # the package checks little: whatever breaks it is damage
            self.fail(f"{type(error).__name__}: {error}")
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        # ggml lists the innermost dimension first.
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(int(size) for size in reversed(tensor.shape))
            for name, tensor in self._tensors.items()
        }
        if (parts := self.integer("split.count", 1)) > 1:
            raise WeightsError(
                f"{path} is one of {parts} parts of a GGUF file. Join them with llama.cpp's "
                "'llama-gguf-split --merge', or use the safetensors of these weights."
            )

    def fail(self, what: str) -> NoReturn:
        """
        Raises:
            WeightsError: the file cannot be used because of ``what``.
        """
        raise WeightsError(
            f"{self.path} is not a GGUF file Redraft can read: {what}. If it was downloaded, it is "
            "damaged or incomplete: delete it and run 'redraft model pull' again."
        )

    def __contains__(self, key: str) -> bool:
        """Return whether the metadata has ``key``."""
        return key in self._fields

    def nbytes(self, name: str) -> int:
        """Bytes a tensor takes in the file."""
        return int(self._tensors[name].n_bytes)

    def check_formats(self) -> None:
        """
        Raises:
            WeightsError: a tensor is stored in a way that cannot be read.
        """
        from gguf.quants import dequantize

        known = set()
        for name, stored in self._tensors.items():
            if stored.tensor_type not in known:
                known.add(stored.tensor_type)
                try:
                    dequantize(stored.data[:1], stored.tensor_type)
                except NotImplementedError:
                    self.fail(f"tensor {name!r} is stored as {stored.tensor_type.name}")

    def read(self, name: str, rows: int | None = None) -> FloatArray:
        """One tensor, or the first ``rows`` of it, as a fresh, writable float32 array."""
        from gguf.quants import dequantize

        stored, shape = self._tensors[name], self.shapes[name]
        if len(shape) == 1:
            values = np.array(dequantize(stored.data, stored.tensor_type), np.float32)
        else:
            count = shape[0] if rows is None else min(rows, shape[0])
            values = np.empty((count, *shape[1:]), np.float32)
            step = max(1, _SLICE // max(1, int(np.prod(shape[1:]))))
            for at in range(0, count, step):
                part = stored.data[at : min(at + step, count)]
                try:
                    values[at : at + step] = dequantize(part, stored.tensor_type)
                except NotImplementedError:
                    self.fail(f"tensor {name!r} is stored as {stored.tensor_type.name}")
        if not np.isfinite(values).all():
            self.fail(f"tensor {name!r} holds values that are not finite")
        return values

    def value(self, key: str) -> Any:
        """A value of the metadata; None where it is absent."""
        field = self._fields.get(key)
        if field is None:
            return None
        try:
            return field.contents()
        except (UnicodeDecodeError, IndexError, ValueError) as error:
            self.fail(f"metadata {key} cannot be read ({error})")

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of the metadata; ``default`` where it is absent."""
        value = self.value(key) if key in self else default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(f"metadata {key} is {_short(value)}, not a whole number")
        return value

    def text(self, key: str) -> str:
        """A string of the metadata."""
        value = self.value(key)
        if not isinstance(value, str):
            self.fail(f"metadata {key} is {_short(value)}, not a string")
        return value

    def strings(self, key: str) -> list[str]:
        """A list of strings of the metadata."""
        value = self.value(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(f"metadata {key} is {_short(value)}, not a list of strings")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive number of the metadata.

        A float32 comes back as the shortest decimal that stands for it: 1e-5, not 9.99999975e-6.
        """
        value = self.value(key) if key in self else default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            self.fail(f"metadata {key} is {_short(value)}, not a positive number")
        return float(str(np.float32(value)))


def _reader(path: Path) -> GGUFReader:
    # Imported here: only a model being made needs it, not one being served.
    from gguf import GGUFReader

    class Reader(GGUFReader):
        """The package's reader on a plain view of the mapped file: every slice of a memmap costs
        microseconds, and a vocabulary has a million of them (6.3 s of a core against 1.8)."""

        @property  # type: ignore[override]
        def data(self) -> NDArray[np.uint8]:
            return self._view

        @data.setter
        def data(self, mapped: NDArray[np.uint8]) -> None:
            self._view = mapped.view(np.ndarray)

    return Reader(path)


def _short(value: object) -> str:
    return repr(value)[:60] if value is not None else "missing"


# ------------------------------------------------------------------------------ checkpoints

_LINEAR_NAMES: Mapping[str, str] = MappingProxyType(
    dict(
        zip(
            LINEARS,
            ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"),
            strict=True,
        )
    )
)
#: Architectures that are one dense Llama-style network; some interleave Q and K rows.
_ARCHITECTURES = ("llama", "qwen2", "qwen3", "dream", "llada")
_INTERLEAVED = ("llama", "llada")


class Checkpoint(Mapping[str, FloatArray]):
    """Weights under Redraft's names; every access dequantises one tensor anew.

    Reading tensor by tensor keeps the peak at the largest tensor; ``dict(checkpoint)`` has all.
    """

    def __init__(self, file: GGUFFile, names: Mapping[str, str], config: Mapping[str, Any]) -> None:
        self.file = file
        self._names = dict(names)
        self._vocab = config["vocab"]
        interleaved = file.text("general.architecture") in _INTERLEAVED
        # Part of our name -> heads whose rotary rows are interleaved.
        self._heads = (
            {".attn.q.": config["heads"], ".attn.k.": config["kv_heads"]} if interleaved else {}
        )

    def __getitem__(self, name: str) -> FloatArray:
        rows = self._vocab if name in ("embed.weight", "head.weight") else None
        values = self.file.read(self._names[name], rows)
        for part, heads in self._heads.items():
            if part in name:
                return _unpermute(values, heads)
        return values

    def __contains__(self, name: object) -> bool:  # Mapping's own would read the tensor
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _unpermute(values: FloatArray, heads: int) -> FloatArray:
    """Undo llama.cpp's interleaving: rows (a0, b0, a1, b1, …) of a head become (a…, b…)."""
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])  # [heads, head_dim / 2, 2, …]
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def read_checkpoint(path: Path, tied: bool = False) -> tuple[dict[str, Any], Checkpoint]:
    """The architecture, as fields of :class:`ModelConfig`, and the weights by our names.

    Args:
        tied: embedding and head are one matrix, even where the file stores it twice; the copy of
            more bits is taken for both. Without it a head that is stored is a matrix of its own.

    Raises:
        WeightsError: not a GGUF file, of an architecture the network cannot run, or with tensors
            missing, left over or of the wrong shape.
    """
    file = GGUFFile(path)
    config = _architecture(file, tied)
    file.check_formats()
    names = dict(_expected_names(config))
    spare = set()
    if config["tied"] and _HEAD in file.shapes:
        best = max((_EMBEDDING, _HEAD), key=file.nbytes)
        names["embed.weight"] = best
        spare = {_EMBEDDING, _HEAD} - {best}
    expected = tensor_shapes(config | {"vocab": file.shapes[_EMBEDDING][0]})
    for ours, theirs in names.items():
        found = file.shapes.get(theirs)
        if found is None:
            file.fail(f"it has no tensor {theirs!r}")
        if found != expected[ours]:
            file.fail(f"tensor {theirs!r} has shape {list(found)}, not {list(expected[ours])}")
    unknown = sorted(set(file.shapes) - set(names.values()) - spare - {_DIVISORS})
    if unknown:
        file.fail(f"its tensors {unknown[:5]} belong to a network Redraft does not run")
    return config, Checkpoint(file, names, config)


_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
#: By what the frequencies of positions are divided: how llama.cpp keeps Llama 3's.
_DIVISORS = "rope_freqs.weight"


def stores_tied(file: GGUFFile) -> bool:
    """Whether embedding and head are one matrix, stored twice in different precision: some
    converters write a tied one again in more bits."""
    if not {_EMBEDDING, _HEAD} <= set(file.shapes) or file.shapes[_EMBEDDING] != file.shapes[_HEAD]:
        return False
    one, other = (file.read(name, rows=64) for name in (_EMBEDDING, _HEAD))
    return bool(np.linalg.norm(one - other) < 0.2 * np.linalg.norm(other))


def _architecture(file: GGUFFile, tied: bool) -> dict[str, Any]:
    arch = file.text("general.architecture")
    if arch not in _ARCHITECTURES:
        file.fail(f"its architecture is {arch!r}; known are {', '.join(_ARCHITECTURES)}")
    hidden = file.integer(f"{arch}.embedding_length")
    heads = file.integer(f"{arch}.attention.head_count")
    kv_heads = file.integer(f"{arch}.attention.head_count_kv", heads)
    layers = file.integer(f"{arch}.block_count")
    head_dim = file.integer(f"{arch}.attention.key_length", hidden // max(heads, 1))
    # Every layer has tensors of its own, so more layers than tensors is a lie.
    if not 1 <= layers <= len(file.shapes) or min(hidden, heads, kv_heads, head_dim) < 1:
        file.fail(f"it claims {layers} layers, {heads} heads and hidden size {hidden}")
    rotary = file.integer(f"{arch}.rope.dimension_count", head_dim)
    if heads % kv_heads or head_dim % 2 or rotary != head_dim:
        file.fail(f"{heads} heads of {head_dim}, {kv_heads} for keys, {rotary} rotated")
    if _EMBEDDING not in file.shapes:
        file.fail(f"it has no tensor {_EMBEDDING!r}")
    return {
        "vocab": _used_rows(file),
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate": file.integer(f"{arch}.feed_forward_length"),
        "rope_base": file.number(f"{arch}.rope.freq_base", 10_000.0),
        "norm_eps": file.number(f"{arch}.attention.layer_norm_rms_epsilon"),
        "tied": tied or _HEAD not in file.shapes,
        "qkv_bias": "blk.0.attn_q.bias" in file.shapes,
        "qk_norm": "blk.0.attn_q_norm.weight" in file.shapes,
        "max_positions": file.integer(f"{arch}.context_length"),
        **_scaling(file, arch, head_dim),
    }


def _scaling(file: GGUFFile, arch: str, head_dim: int) -> dict[str, Any]:
    """How positions are scaled; what that means is told by ``families.py``."""
    key = f"{arch}.rope.scaling"
    kind = file.text(f"{key}.type") if f"{key}.type" in file else "none"
    if _DIVISORS in file.shapes:
        divisors = file.read(_DIVISORS)
        if divisors.shape != (head_dim // 2,) or not (divisors > 0).all() or kind != "none":
            file.fail(f"{_DIVISORS} has shape {list(divisors.shape)}, scaling is {kind!r}")
        return {"rope_divisors": tuple(map(float, divisors))}
    if kind == "linear":
        return {"rope_divisors": (file.number(f"{key}.factor"),)}
    if kind == "yarn":
        trained = file.integer(f"{key}.original_context_length")
        return {"max_positions": trained, "rope_scaling": "yarn"}
    if kind != "none":
        file.fail(f"its positions are scaled by {kind!r}; known are linear and yarn")
    return {}


def _used_rows(file: GGUFFile) -> int:
    """Rows of the vocabulary up to the last token that is one; the rest pads a round number."""
    rows = file.shapes[_EMBEDDING][0]
    types = token_types(file)
    while rows and rows <= len(types) and types[rows - 1] == UNUSED:
        rows -= 1
    return rows


def _expected_names(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of our name and GGUF's."""
    yield "embed.weight", _EMBEDDING
    for i in range(config["layers"]):
        yield f"blocks.{i}.norm_attn.weight", f"blk.{i}.attn_norm.weight"
        yield f"blocks.{i}.norm_mlp.weight", f"blk.{i}.ffn_norm.weight"
        for ours, theirs in _LINEAR_NAMES.items():
            yield f"blocks.{i}.{ours}.weight", f"blk.{i}.{theirs}.weight"
        for part in "qkv" if config["qkv_bias"] else "":
            yield f"blocks.{i}.attn.{part}.bias", f"blk.{i}.attn_{part}.bias"
        for part in "qk" if config["qk_norm"] else "":
            yield f"blocks.{i}.attn.{part}_norm.weight", f"blk.{i}.attn_{part}_norm.weight"
    yield "norm.weight", "output_norm.weight"
    if not config["tied"]:
        yield "head.weight", _HEAD


# ------------------------------------------------------------------------------ vocabulary

#: Type of the tokens that pad a vocabulary.
UNUSED = 5


def token_types(file: GGUFFile) -> list[int]:
    """Return the type of each token, as the file lists them; [] where it does not."""
    found = file.value("tokenizer.ggml.token_type")
    return [int(kind) for kind in found] if isinstance(found, list) else []


def chat_template(file: GGUFFile) -> str:
    """The Jinja template of conversations; "" where the file has none."""
    found = file.value("tokenizer.chat_template")
    return found if isinstance(found, str) else ""
