"""GGUF files through the ``gguf`` package: the naming and ordering rules it does not know.

The file is mapped and one tensor is dequantised at a time; nothing in it is ever executed.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS, tensor_shapes
from ..errors import WeightsError
from .files import explain_errors
from .tensors import FloatArray, Tensors

if TYPE_CHECKING:
    from gguf import GGUFReader

#: Values dequantised at once: the package's intermediate results are several times as large.
_SLICE = 1 << 22
_KINDS = {
    int: "a whole number",
    float: "a positive number",
    str: "a string",
    list: "a list of strings",
}
T = TypeVar("T", int, float, str, list[str])


class GGUFFile:
    """Metadata and tensors of one file, which stays mapped as long as this lives."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            WeightsError: the file is missing, truncated or of another format.
        """
        self.path = path
        with explain_errors("read", path), path.open("rb") as file:
            magic = file.read(4)
        if magic != b"GGUF":
            raise WeightsError(
                f"{path} is not a GGUF file: it does not begin with 'GGUF'. Name a .gguf file, or "
                "a folder with config.json, tokenizer.json and *.safetensors."
            )
        try:
            with explain_errors("read", path):
                reader = _reader(path)
        except WeightsError:
            raise
        except Exception as error:  # the package checks little: whatever breaks it is damage
            self.fail(f"{type(error).__name__}: {error}")
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        # ggml lists the innermost dimension first.
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(int(size) for size in reversed(tensor.shape))
            for name, tensor in self._tensors.items()
        }
        if (parts := self.get("split.count", int, 1)) > 1:
            raise WeightsError(
                f"{path} is one of {parts} parts of a GGUF file. Join them with llama.cpp's "
                "'llama-gguf-split --merge', or use the safetensors of these weights."
            )

    def fail(self, what: str) -> NoReturn:
        """Refuse the file.

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
        """Return the bytes that a tensor takes in the file."""
        return int(self._tensors[name].n_bytes)

    def read(self, name: str, rows: int | None = None) -> FloatArray:
        """Return one tensor, or the first ``rows`` of it, as a fresh, writable float32 array.

        Raises:
            WeightsError: it is stored in a way that cannot be read, or not finite.
        """
        shape = self.shapes[name]
        stored = self._tensors[name].data
        if len(shape) == 1:
            values = np.array(self._dequantised(name, stored), np.float32)
        else:
            count = shape[0] if rows is None else min(rows, shape[0])
            values = np.empty((count, *shape[1:]), np.float32)
            step = max(1, _SLICE // max(1, int(np.prod(shape[1:]))))
            for at in range(0, count, step):
                part = stored[at : min(at + step, count)]
                values[at : at + step] = self._dequantised(name, part)
        if not np.isfinite(values).all():
            self.fail(f"tensor {name!r} holds values that are not finite")
        return values

    def _dequantised(self, name: str, stored: NDArray[Any]) -> NDArray[Any]:
        from gguf.quants import dequantize

        kind = self._tensors[name].tensor_type
        try:
            return dequantize(stored, kind)
        except NotImplementedError:
            self.fail(f"tensor {name!r} is stored as {kind.name}")

    def value(self, key: str) -> Any:
        """Return a value of the metadata; None where it is absent."""
        field = self._fields.get(key)
        if field is None:
            return None
        try:
            return field.contents()
        except (UnicodeDecodeError, IndexError, ValueError) as error:
            self.fail(f"metadata {key} cannot be read ({error})")

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value of the metadata; ``default`` where it is absent.

        Args:
            kind: int: not negative; float: positive, and a float32 comes back as the shortest
                decimal with the same float32, 1e-5 and not 9.99999975e-6; str; list: of strings.

        Raises:
            WeightsError: it is absent without a default, or of another kind.
        """
        value: Any = self.value(key) if key in self else default
        is_fit = {
            int: type(value) is int and value >= 0,
            float: type(value) in (int, float) and 0 < value < 1e30,
            str: isinstance(value, str),
            list: isinstance(value, list) and all(isinstance(each, str) for each in value),
        }[kind]
        if not is_fit:
            found = "missing" if value is None else repr(value)[:60]
            self.fail(f"metadata {key} is {found}, not {_KINDS[kind]}")
        return cast(T, float(str(np.float32(value))) if kind is float else value)

    def chat_template(self) -> str:
        """Return the Jinja template of conversations; "" where the file has none."""
        found = self.value("tokenizer.chat_template")
        return found if isinstance(found, str) else ""

    def token_types(self) -> list[int]:
        """Return the type of each token, as the file lists them; [] where it does not."""
        found = self.value("tokenizer.ggml.token_type")
        return [int(kind) for kind in found] if isinstance(found, list) else []


def _reader(path: Path) -> GGUFReader:
    # Imported here: only a model being made needs it, not one being served.
    from gguf import GGUFReader

    class Reader(GGUFReader):
        """The package's reader on a plain view of the mapped file.

        Every slice of a memmap costs microseconds, and a vocabulary has a million of them (6.3 s
        of a core against 1.8).
        """

        @property  # type: ignore[override]
        def data(self) -> NDArray[np.uint8]:
            return self._view

        @data.setter
        def data(self, mapped: NDArray[np.uint8]) -> None:
            self._view = mapped.view(np.ndarray)

    return Reader(path)


# --- checkpoints ----------------------------------------------------------------------------------

#: Type of the tokens that pad a vocabulary.
UNUSED = 5

_LINEARS = dict(
    zip(
        LINEARS,
        ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"),
        strict=True,
    )
)
#: Architectures that are one dense Llama-style network; some interleave Q and K rows.
_ARCHITECTURES = ("llama", "qwen2", "qwen3", "dream", "llada")
_INTERLEAVED = ("llama", "llada")
_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
#: By what the frequencies of positions are divided: how llama.cpp keeps Llama 3's.
_DIVISORS = "rope_freqs.weight"


def read_checkpoint(file: GGUFFile, tied: bool = False) -> tuple[dict[str, Any], Tensors]:
    """Return the architecture, as fields of :class:`ModelConfig`, and the weights by our names.

    Rotary halves are laid out as Hugging Face does, and rows that pad the vocabulary left out.

    Args:
        tied: embedding and head are one matrix, even where the file stores it twice; the copy of
            more bits is taken for both. Otherwise a stored head is a separate matrix.

    Raises:
        WeightsError: it is of an architecture the network cannot run, or has tensors missing, left
            over or of the wrong shape.
    """
    fields = _architecture(file, tied)
    names = dict(_expected_names(fields))
    spare = set()
    if fields["tied"] and _HEAD in file.shapes:
        best = max((_EMBEDDING, _HEAD), key=file.nbytes)
        names["embed.weight"] = best
        spare = {_EMBEDDING, _HEAD} - {best}
    expected = tensor_shapes(fields | {"vocab": file.shapes[_EMBEDDING][0]})
    for ours, theirs in names.items():
        found = file.shapes.get(theirs)
        if found is None:
            file.fail(f"it has no tensor {theirs!r}")
        if found != expected[ours]:
            file.fail(f"tensor {theirs!r} has shape {list(found)}, not {list(expected[ours])}")
    unknown = sorted(set(file.shapes) - set(names.values()) - spare - {_DIVISORS})
    if unknown:
        file.fail(f"its tensors {unknown[:5]} belong to a network Redraft does not run")
    rows = {"embed.weight": fields["vocab"], "head.weight": fields["vocab"]}
    heads = {}  # part of our name -> heads whose rotary rows are interleaved
    if file.get("general.architecture", str) in _INTERLEAVED:
        heads = {".attn.q.": fields["heads"], ".attn.k.": fields["kv_heads"]}

    def read(name: str) -> FloatArray:
        values = file.read(names[name], rows.get(name))
        for part, count in heads.items():
            if part in name:
                return _unpermute(values, count)
        return values

    return fields, Tensors(names, read)


def _unpermute(values: FloatArray, heads: int) -> FloatArray:
    """Undo llama.cpp's interleaving: rows (a0, b0, a1, b1, …) of a head become (a…, b…)."""
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])  # [heads, head_dim / 2, 2, …]
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def stores_tied(file: GGUFFile) -> bool:
    """Return whether embedding and head are one matrix, stored twice in different precision.

    Some converters write a tied one again in more bits.
    """
    if not {_EMBEDDING, _HEAD} <= set(file.shapes) or file.shapes[_EMBEDDING] != file.shapes[_HEAD]:
        return False
    one, other = (file.read(name, rows=64) for name in (_EMBEDDING, _HEAD))
    return bool(np.linalg.norm(one - other) < 0.2 * np.linalg.norm(other))


def _architecture(file: GGUFFile, tied: bool) -> dict[str, Any]:
    arch = file.get("general.architecture", str)
    if arch not in _ARCHITECTURES:
        file.fail(f"its architecture is {arch!r}; known are {', '.join(_ARCHITECTURES)}")
    hidden = file.get(f"{arch}.embedding_length", int)
    heads = file.get(f"{arch}.attention.head_count", int)
    kv_heads = file.get(f"{arch}.attention.head_count_kv", int, heads)
    layers = file.get(f"{arch}.block_count", int)
    head_dim = file.get(f"{arch}.attention.key_length", int, hidden // max(heads, 1))
    # Every layer has tensors, so more layers than tensors is wrong.
    if not 1 <= layers <= len(file.shapes) or min(hidden, heads, kv_heads, head_dim) < 1:
        file.fail(f"it claims {layers} layers, {heads} heads and hidden size {hidden}")
    rotary = file.get(f"{arch}.rope.dimension_count", int, head_dim)
    if heads % kv_heads or head_dim % 2 or rotary != head_dim:
        file.fail(f"{heads} heads of {head_dim}, {kv_heads} for keys, {rotary} rotated")
    if _EMBEDDING not in file.shapes:
        file.fail(f"it has no tensor {_EMBEDDING!r}")
    rows, types = file.shapes[_EMBEDDING][0], file.token_types()
    while rows and rows <= len(types) and types[rows - 1] == UNUSED:
        rows -= 1
    return {
        "vocab": rows,
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate": file.get(f"{arch}.feed_forward_length", int),
        "rope_base": file.get(f"{arch}.rope.freq_base", float, 10_000.0),
        "norm_eps": file.get(f"{arch}.attention.layer_norm_rms_epsilon", float),
        "tied": tied or _HEAD not in file.shapes,
        "qkv_bias": "blk.0.attn_q.bias" in file.shapes,
        "qk_norm": "blk.0.attn_q_norm.weight" in file.shapes,
        "max_positions": file.get(f"{arch}.context_length", int),
        **_scaling(file, arch, head_dim),
    }


def _scaling(file: GGUFFile, arch: str, head_dim: int) -> dict[str, Any]:
    """Return how positions are scaled; ``families.py`` says what that means."""
    key = f"{arch}.rope.scaling"
    kind = file.get(f"{key}.type", str, "none")
    if _DIVISORS in file.shapes:
        divisors = file.read(_DIVISORS)
        if divisors.shape != (head_dim // 2,) or not (divisors > 0).all() or kind != "none":
            file.fail(f"{_DIVISORS} has shape {list(divisors.shape)}, scaling is {kind!r}")
        return {"rope_divisors": tuple(map(float, divisors))}
    if kind == "linear":
        return {"rope_divisors": (file.get(f"{key}.factor", float),)}
    if kind == "yarn":
        trained = file.get(f"{key}.original_context_length", int)
        return {"max_positions": trained, "rope_scaling": "yarn"}
    if kind != "none":
        file.fail(f"its positions are scaled by {kind!r}; known are linear and yarn")
    return {}


def _expected_names(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield pairs of our name and GGUF's."""
    yield "embed.weight", _EMBEDDING
    for i in range(fields["layers"]):
        ours, theirs = f"blocks.{i}", f"blk.{i}"
        yield f"{ours}.norm_attn.weight", f"{theirs}.attn_norm.weight"
        yield f"{ours}.norm_mlp.weight", f"{theirs}.ffn_norm.weight"
        for mine, name in _LINEARS.items():
            yield f"{ours}.{mine}.weight", f"{theirs}.{name}.weight"
        for part in "qkv" if fields["qkv_bias"] else "":
            yield f"{ours}.attn.{part}.bias", f"{theirs}.attn_{part}.bias"
        for part in "qk" if fields["qk_norm"] else "":
            yield f"{ours}.attn.{part}_norm.weight", f"{theirs}.attn_{part}_norm.weight"
    yield "norm.weight", "output_norm.weight"
    if not fields["tied"]:
        yield "head.weight", _HEAD
