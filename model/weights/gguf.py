"""Reads GGUF files: metadata, tokenizer data and weights, dequantised to float32 by numpy alone.

``read_checkpoint`` returns weights under Redraft's names (see :class:`ModelConfig`), rotary halves
as Hugging Face lays them out. It knows nothing of adapters, ONNX, torch or where the file came
from. The file is not trusted: every length is compared with what the file still holds before
anything is allocated, and nothing in it is ever executed or unpickled.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS
from ..errors import WeightsError

FloatArray = NDArray[np.float32]

_MAX_ENTRIES = 1 << 16  # metadata keys or tensors; real files have a few hundred
_MAX_ITEMS = 1 << 22  # of one metadata array; vocabularies have a few hundred thousand
_MAX_ALIGNMENT = 1 << 16

_STRING, _ARRAY = 8, 9
_SCALARS: Mapping[int, str] = MappingProxyType(
    {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4",
     7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies in its file and how it is stored."""

    name: str  # as in the file
    shape: tuple[int, ...]  # row-major, the innermost dimension last
    kind: int  # ggml type number
    offset: int  # bytes from the start of the file
    nbytes: int


def _fail(path: Path, what: str) -> NoReturn:
    raise WeightsError(
        f"{path} is not a GGUF file Redraft can read: {what}. If it was downloaded, it is damaged "
        "or incomplete: delete it and run 'redraft model pull' again."
    )


class GGUFFile:
    """The parsed head of a GGUF file; tensors are read from disk when asked for."""

    def __init__(self, path: Path) -> None:
        """Parse the metadata and the tensor table.

        Raises:
            WeightsError: the file is missing, truncated, of another format or inconsistent.
        """
        self.path = path
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                head = _Head(path, file, size)
                self.metadata, self.tensors = head.parse()
        except OSError as error:
            raise WeightsError(
                f"cannot read {path}: {error.strerror or error}. Check the path and its "
                "permissions."
            ) from error

    def read(self, name: str) -> FloatArray:
        """One tensor as a fresh, writable float32 array."""
        info = self.tensors.get(name)
        if info is None:
            _fail(self.path, f"it has no tensor {name!r}")
        try:
            with self.path.open("rb") as file:
                file.seek(info.offset)
                raw = file.read(info.nbytes)
        except OSError as error:
            raise WeightsError(
                f"cannot read {self.path}: {error.strerror or error}. Check the disk it lies on."
            ) from error
        if len(raw) != info.nbytes:
            _fail(self.path, f"it became shorter while it was read, at tensor {name!r}")
        storage = _STORAGE[info.kind]
        with np.errstate(invalid="ignore", over="ignore"):  # looked at below
            values = storage.decode(np.frombuffer(raw, dtype=np.uint8)).reshape(info.shape)
        if not np.isfinite(values).all():
            _fail(self.path, f"tensor {name!r} holds values that are not finite")
        return values

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of the metadata; ``default`` where it is absent."""
        value = self.metadata.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            _fail(self.path, f"metadata {key} is {_short(value)}, not a whole number")
        return value

    def text(self, key: str) -> str:
        """A string of the metadata."""
        value = self.metadata.get(key)
        if not isinstance(value, str):
            _fail(self.path, f"metadata {key} is {_short(value)}, not a string")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive number of the metadata.

        A float32 comes back as the shortest decimal that stands for it: 1e-5, not 9.99999975e-6.
        """
        value = self.metadata.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            _fail(self.path, f"metadata {key} is {_short(value)}, not a positive number")
        return float(str(np.float32(value)))


def _short(value: object) -> str:
    return repr(value)[:60] if value is not None else "missing"


# ------------------------------------------------------------------------------ the head


class _Head:
    """Reads the head front to back, never past the end of the file."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path, self._file, self._size = path, file, size
        self._at = 0

    def parse(self) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
        if self._take(4) != b"GGUF":
            _fail(self._path, "it does not begin with 'GGUF'")
        version = self._unpack("<I")
        if version != 3:
            _fail(self._path, f"its format version is {version}, only little-endian 3 is supported")
        tensor_count, entry_count = self._unpack("<Q"), self._unpack("<Q")
        if max(tensor_count, entry_count) > _MAX_ENTRIES:
            _fail(self._path, f"it claims {tensor_count} tensors and {entry_count} metadata keys")
        metadata: dict[str, Any] = {}
        for _ in range(entry_count):
            key = self._string()
            metadata[key] = self._value(self._unpack("<I"), nested=False)
        return metadata, self._tensor_table(tensor_count, self._alignment(metadata))

    def _alignment(self, metadata: Mapping[str, Any]) -> int:
        value = metadata.get("general.alignment", 32)
        if not isinstance(value, int) or not 1 <= value <= _MAX_ALIGNMENT or value & (value - 1):
            _fail(self._path, f"general.alignment is {_short(value)}")
        return value

    def _tensor_table(self, count: int, alignment: int) -> dict[str, TensorInfo]:
        entries = [self._tensor_entry() for _ in range(count)]
        start = -(-self._at // alignment) * alignment
        table: dict[str, TensorInfo] = {}
        for name, shape, kind, offset in entries:
            nbytes = self._stored_bytes(name, shape, kind)
            if offset % alignment or start + offset + nbytes > self._size:
                _fail(self._path, f"tensor {name!r} lies beyond the end of the file")
            if name in table:
                _fail(self._path, f"it names tensor {name!r} twice")
            table[name] = TensorInfo(name, shape, kind, start + offset, nbytes)
        return table

    def _tensor_entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        dimensions = self._unpack("<I")
        if not 1 <= dimensions <= 4:
            _fail(self._path, f"tensor {name!r} has {dimensions} dimensions")
        # ggml lists the innermost dimension first.
        shape = tuple(reversed([self._unpack("<Q") for _ in range(dimensions)]))
        return name, shape, self._unpack("<I"), self._unpack("<Q")

    def _stored_bytes(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        storage = _STORAGE.get(kind)
        if storage is None:
            known = ", ".join(s.name for s in _STORAGE.values())
            _fail(self._path, f"tensor {name!r} has storage type {kind}; known are {known}")
        if 0 in shape or shape[-1] % storage.block:
            _fail(self._path, f"tensor {name!r} has shape {list(shape)} in {storage.name}")
        return prod(shape) // storage.block * storage.block_bytes

    def _value(self, kind: int, nested: bool) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            if nested:
                _fail(self._path, "its metadata nests arrays")
            return self._array(self._unpack("<I"), self._unpack("<Q"))
        if kind not in _SCALARS:
            _fail(self._path, f"its metadata has a value of unknown type {kind}")
        return np.frombuffer(self._take(np.dtype(_SCALARS[kind]).itemsize), _SCALARS[kind])[
            0
        ].item()

    def _array(self, kind: int, count: int) -> Any:
        if count > _MAX_ITEMS:
            _fail(self._path, f"a metadata array claims {count} items")
        if kind in _SCALARS:
            dtype = np.dtype(_SCALARS[kind])
            return np.frombuffer(self._take(count * dtype.itemsize), dtype)
        return tuple(self._value(kind, nested=True) for _ in range(count))

    def _string(self) -> str:
        raw = self._take(self._unpack("<Q"))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            _fail(self._path, f"a string at byte {self._at - len(raw)} is not UTF-8")

    def _unpack(self, form: str) -> int:
        value: int = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return value

    def _take(self, count: int) -> bytes:
        # Compared before reading: a hostile length must not become an allocation.
        if count > self._size - self._at:
            _fail(self._path, f"it ends at byte {self._size}, in the middle of its head")
        raw = self._file.read(count)
        if len(raw) != count:
            _fail(self._path, "it became shorter while it was read")
        self._at += count
        return raw


# ------------------------------------------------------------------------------ storage types


@dataclass(frozen=True, slots=True)
class _Storage:
    name: str
    block: int  # values per block
    block_bytes: int
    decode: Callable[[NDArray[np.uint8]], FloatArray]  # [bytes] -> [values]


def _f32(raw: NDArray[np.uint8]) -> FloatArray:
    return raw.view("<f4").astype(np.float32)


def _f16(raw: NDArray[np.uint8]) -> FloatArray:
    return raw.view("<f2").astype(np.float32)


def bf16_to_float32(raw: NDArray[np.uint8]) -> FloatArray:
    """bfloat16 bytes as float32: bfloat16 is the upper half of a float32."""
    return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _scale(blocks: NDArray[np.uint8], at: int) -> FloatArray:
    """The float16 at byte ``at`` of every block, as a column."""
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)  # [blocks, 1]


def _nibbles(packed: NDArray[np.uint8]) -> FloatArray:
    """Low halves of all bytes of a block first, then the high halves."""
    values = np.empty((len(packed), 2 * packed.shape[1]), np.float32)  # [blocks, 32]
    values[:, : packed.shape[1]] = packed & 15
    values[:, packed.shape[1] :] = packed >> 4
    return values


def _q4_0(raw: NDArray[np.uint8]) -> FloatArray:
    blocks = raw.reshape(-1, 18)
    values = _nibbles(blocks[:, 2:])
    values -= 8
    values *= _scale(blocks, 0)
    return values.reshape(-1)


def _q4_1(raw: NDArray[np.uint8]) -> FloatArray:
    blocks = raw.reshape(-1, 20)
    values = _nibbles(blocks[:, 4:])
    values *= _scale(blocks, 0)
    values += _scale(blocks, 2)
    return values.reshape(-1)


def _q8_0(raw: NDArray[np.uint8]) -> FloatArray:
    blocks = raw.reshape(-1, 34)
    values = blocks[:, 2:].view(np.int8).astype(np.float32)
    values *= _scale(blocks, 0)
    return values.reshape(-1)


_STORAGE: Mapping[int, _Storage] = MappingProxyType(
    {
        0: _Storage("F32", 1, 4, _f32),
        1: _Storage("F16", 1, 2, _f16),
        2: _Storage("Q4_0", 32, 18, _q4_0),
        3: _Storage("Q4_1", 32, 20, _q4_1),
        8: _Storage("Q8_0", 32, 34, _q8_0),
        30: _Storage("BF16", 1, 2, bf16_to_float32),
    }
)


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
#: Architectures that are one dense Llama-style network; only "llama" interleaves Q and K rows.
_ARCHITECTURES = ("llama", "qwen2", "qwen3")


class Checkpoint(Mapping[str, FloatArray]):
    """Weights under Redraft's names; every access dequantises one tensor anew.

    Reading tensor by tensor keeps the peak at the largest tensor; ``dict(checkpoint)`` has all.
    """

    def __init__(self, file: GGUFFile, names: Mapping[str, str], heads: Mapping[str, int]) -> None:
        self._file, self._names = file, dict(names)
        self._heads = heads  # suffix of our name -> heads whose rotary rows are interleaved

    def __getitem__(self, name: str) -> FloatArray:
        values = self._file.read(self._names[name])
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

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return self._file.tensors[self._names[name]].shape


def _unpermute(values: FloatArray, heads: int) -> FloatArray:
    """Undo llama.cpp's interleaving: rows (a0, b0, a1, b1, …) of a head become (a…, b…)."""
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])  # [heads, head_dim / 2, 2, …]
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], Checkpoint]:
    """The architecture, as fields of :class:`ModelConfig`, and the weights by our names.

    Raises:
        WeightsError: not a GGUF file, of an architecture the network cannot run, or with tensors
            missing, left over or of the wrong shape.
    """
    file = GGUFFile(path)
    config = _architecture(file)
    names = dict(_expected_names(config))
    expected = tensor_shapes(config)
    for ours, theirs in names.items():
        found = file.tensors.get(theirs)
        if found is None:
            _fail(path, f"it has no tensor {theirs!r}")
        if found.shape != expected[ours]:
            _fail(
                path,
                f"tensor {theirs!r} has shape {list(found.shape)}, not {list(expected[ours])}",
            )
    unknown = sorted(set(file.tensors) - set(names.values()))
    if unknown:
        _fail(path, f"its tensors {unknown[:5]} belong to a network Redraft does not run")
    interleaved = file.text("general.architecture") == "llama"
    heads = {".attn.q.": config["heads"], ".attn.k.": config["kv_heads"]} if interleaved else {}
    return config, Checkpoint(file, names, heads)


def _architecture(file: GGUFFile) -> dict[str, Any]:
    arch = file.text("general.architecture")
    if arch not in _ARCHITECTURES:
        _fail(file.path, f"its architecture is {arch!r}; known are {', '.join(_ARCHITECTURES)}")
    if file.metadata.get(f"{arch}.rope.scaling.type", "none") != "none":
        _fail(file.path, "its positions are scaled in a way Redraft does not know")
    hidden = file.integer(f"{arch}.embedding_length")
    heads = file.integer(f"{arch}.attention.head_count")
    kv_heads = file.integer(f"{arch}.attention.head_count_kv", heads)
    layers = file.integer(f"{arch}.block_count")
    head_dim = file.integer(f"{arch}.attention.key_length", hidden // max(heads, 1))
    # Every layer has tensors of its own, so more layers than tensors is a lie.
    if not 1 <= layers <= len(file.tensors) or min(hidden, heads, kv_heads, head_dim) < 1:
        _fail(file.path, f"it claims {layers} layers, {heads} heads and hidden size {hidden}")
    rotary = file.integer(f"{arch}.rope.dimension_count", head_dim)
    if heads % kv_heads or head_dim % 2 or rotary != head_dim:
        _fail(file.path, f"{heads} heads of {head_dim}, {kv_heads} for keys, {rotary} rotated")
    if "token_embd.weight" not in file.tensors:
        _fail(file.path, "it has no tensor 'token_embd.weight'")
    return {
        "vocab": file.tensors["token_embd.weight"].shape[0],
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate": file.integer(f"{arch}.feed_forward_length"),
        "rope_base": file.number(f"{arch}.rope.freq_base", 10_000.0),
        "norm_eps": file.number(f"{arch}.attention.layer_norm_rms_epsilon"),
        "tied": "output.weight" not in file.tensors,
        "qkv_bias": "blk.0.attn_q.bias" in file.tensors,
        "qk_norm": "blk.0.attn_q_norm.weight" in file.tensors,
        "max_positions": file.integer(f"{arch}.context_length"),
    }


def _expected_names(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of our name and GGUF's."""
    yield "embed.weight", "token_embd.weight"
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
        yield "head.weight", "output.weight"


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor a network of this architecture has, by our names."""
    hidden, intermediate = config["hidden"], config["intermediate"]
    queries, keys = config["heads"] * config["head_dim"], config["kv_heads"] * config["head_dim"]
    linears = {
        "attn.q": (queries, hidden),
        "attn.k": (keys, hidden),
        "attn.v": (keys, hidden),
        "attn.o": (hidden, queries),
        "mlp.gate": (intermediate, hidden),
        "mlp.up": (intermediate, hidden),
        "mlp.down": (hidden, intermediate),
    }
    block: dict[str, tuple[int, ...]] = {
        "norm_attn.weight": (hidden,),
        "norm_mlp.weight": (hidden,),
    }
    block |= {f"{name}.weight": shape for name, shape in linears.items()}
    if config["qkv_bias"]:
        block |= {f"attn.{part}.bias": (linears[f"attn.{part}"][0],) for part in "qkv"}
    if config["qk_norm"]:
        block |= {f"attn.{part}_norm.weight": (config["head_dim"],) for part in "qk"}
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (config["vocab"], hidden)}
    for i in range(config["layers"]):
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    shapes["norm.weight"] = (hidden,)
    if not config["tied"]:
        shapes["head.weight"] = (config["vocab"], hidden)
    return shapes


# ------------------------------------------------------------------------------ tokenizer


def tokenizer_data(path: Path) -> dict[str, Any]:
    """The byte-level BPE tokenizer stored in a GGUF file, checked for consistency.

    Keys: ``tokens`` (list of str, by id, in the printable byte alphabet of GPT-2), ``merges``
    (list of "left right"), ``token_type`` (list of int, by id: 1 normal, 3 control, 4 user-defined,
    5 unused, 6 byte), ``pre`` (name of the pre-tokenizer), and ``bos``, ``eos``, ``unknown``,
    ``padding`` (token id or None).

    Raises:
        WeightsError: there is none, it is of another kind, or it contradicts itself.
    """
    file = GGUFFile(path)
    model = file.text("tokenizer.ggml.model")
    if model != "gpt2":
        _fail(path, f"its tokenizer is of kind {model!r}, only byte-level BPE ('gpt2') is known")
    tokens = _strings(file, "tokenizer.ggml.tokens")
    if len(set(tokens)) != len(tokens):
        _fail(path, "its tokenizer lists a token twice")
    merges = _strings(file, "tokenizer.ggml.merges")
    known = set(tokens)
    for rule in merges:
        left, _, right = rule.partition(" ")
        if not {left, right, left + right} <= known:
            _fail(path, f"its tokenizer merges {_short(rule)}, which are not its tokens")
    types = file.metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, np.ndarray) or len(types) != len(tokens):
        _fail(path, "its tokenizer has not one type for each token")
    roles = ("bos", "eos", "unknown", "padding")
    return {
        "tokens": list(tokens),
        "merges": list(merges),
        "token_type": [int(kind) for kind in types],
        "pre": file.text("tokenizer.ggml.pre"),
        **{role: _token_id(file, role, len(tokens)) for role in roles},
    }


def _strings(file: GGUFFile, key: str) -> tuple[str, ...]:
    value = file.metadata.get(key)
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        _fail(file.path, f"metadata {key} is {_short(value)}, not a list of strings")
    return value


def _token_id(file: GGUFFile, role: str, vocabulary: int) -> int | None:
    key = f"tokenizer.ggml.{role}_token_id"
    if key not in file.metadata:
        return None
    value = file.integer(key)
    if value >= vocabulary:
        _fail(file.path, f"{key} is {value}, beyond its {vocabulary} tokens")
    return value
