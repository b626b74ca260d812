"""Writes a model folder (graphs, weights, manifest) and checks one before it is loaded.

Folder: ``prefill.onnx``, ``denoise.onnx``, ``packed.onnx``, the tensors they share in
``weights.bin``, ``config.json``, and ``manifest.json`` with size and SHA-256 of each file. Knows
nothing of where weights come from or how they are run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from onnx import ModelProto

from .config import ModelConfig
from .errors import WeightsError
from .graph import DATA_FILE, FORMS, MASK_ROW, Form, Graph, build
from .quantize import Array, FloatArray, Stored, check_variant

MANIFEST = "manifest.json"
#: Raise when a change of the graphs makes folders written before unusable.
LAYOUT = 1

_ALIGNMENT = 4096  # of tensors in the data file, so that it can be mapped page by page


def materialise(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write the three graphs and their weights to ``folder``, replacing what was there at once.

    Tensors are encoded and written one by one; a reader sees the old folder or the whole new one.

    Args:
        context: weights of the causal pass, by the names of :class:`ModelConfig`.
        canvas: weights of the canvas pass; the row ``config.mask_token`` of its embedding is the
            mask. The same object as ``context`` where nothing differs.
        progress: told the fraction done, 0 … 1.

    Raises:
        WeightsError: a weight is missing or misshapen, or the disk is full or read-only.
    """
    graphs = {form: build(config, variant, form) for form in FORMS}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
        ) as temporary:
            fresh = Path(temporary) / "new"
            fresh.mkdir()
            _write(config, graphs, context, canvas, fresh, progress or (lambda _: None))
            _write_manifest(config, variant, fresh)
            _replace(fresh, folder)
    except OSError as error:
        raise WeightsError(
            f"The converted weights could not be written to {folder}: {error}. Free some disk "
            "space, or choose a writable cache folder, then run 'redraft model pull' again."
        ) from error


def _write(
    config: ModelConfig,
    graphs: dict[Form, Graph],
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    folder: Path,
    progress: Callable[[float], None],
) -> None:
    split = config.adapter == "canvas" and canvas is not context
    places: dict[tuple[str, str, bool], dict[str, tuple[int, int]]] = {}
    total = sum(len(graph.stored) for graph in graphs.values())
    done = 0
    with (folder / DATA_FILE).open("wb") as file:
        for form, graph in graphs.items():
            own = split and form != "prefill"
            for stored in graph.stored:
                key = (stored.name, stored.format, own and stored.adapted)
                if key not in places:
                    weights = _source(config, stored, canvas if own else context, canvas)
                    places[key] = _append(file, stored, stored.encode(weights))
                _point(graph.model, places[key])
                done += 1
                progress(done / total)
            data = graph.model.SerializeToString(deterministic=True)
            (folder / f"{form}.onnx").write_bytes(data)
        file.flush()
        os.fsync(file.fileno())


def _source(
    config: ModelConfig,
    stored: Stored,
    weights: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
) -> Mapping[str, FloatArray]:
    if stored.sources == (MASK_ROW,):
        return {MASK_ROW: canvas["embed.weight"][config.mask_token]}
    return weights


def _append(
    file: BinaryIO, stored: Stored, arrays: Mapping[str, Array]
) -> dict[str, tuple[int, int]]:
    """Write the tensors of ``stored``; offset and length of each by name."""
    places = {}
    for name, (dtype, shape) in stored.tensors().items():
        array = np.ascontiguousarray(arrays[name])
        assert array.dtype == dtype and array.shape == shape, (name, array.dtype, array.shape)
        start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
        file.seek(start)
        file.write(array.data)
        places[name] = (start, array.nbytes)
    return places


def _point(model: ModelProto, places: Mapping[str, tuple[int, int]]) -> None:
    for tensor in model.graph.initializer:
        if tensor.name in places and len(tensor.external_data) == 1:
            offset, length = places[tensor.name]
            tensor.external_data.add(key="offset", value=str(offset))
            tensor.external_data.add(key="length", value=str(length))


def _write_manifest(config: ModelConfig, variant: str, folder: Path) -> None:
    (folder / "config.json").write_text(config.to_json(), encoding="utf-8")
    names = ["config.json", DATA_FILE, *(f"{form}.onnx" for form in FORMS)]
    manifest = {
        "layout": LAYOUT,
        "variant": variant,
        "files": {
            name: {"bytes": (folder / name).stat().st_size, "sha256": _sha256(folder / name)}
            for name in names
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _replace(fresh: Path, folder: Path) -> None:
    """Move ``fresh`` to ``folder``; a folder in the way is moved aside first, then removed."""
    if folder.exists():
        aside = fresh.parent / "old"
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
    fresh.rename(folder)


@dataclass(frozen=True, slots=True)
class Verified:
    """A folder whose files are what they were when it was written."""

    folder: Path
    config: ModelConfig
    variant: str


def verify(folder: Path, deep: bool = True) -> Verified:
    """Check a folder written by :func:`materialise`.

    Args:
        deep: compare SHA-256 of every file; otherwise sizes only.

    Raises:
        WeightsError: a file is missing, incomplete, corrupt or of another layout.
    """
    again = "Run 'redraft model pull' again."
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        layout, variant, files = manifest["layout"], manifest["variant"], dict(manifest["files"])
        if layout != LAYOUT:
            raise WeightsError(
                f"{folder} was written in layout {layout}, this Redraft reads {LAYOUT}. {again}"
            )
        for name, expected in files.items():
            _check_file(folder / name, expected, deep)
        config = ModelConfig.from_dict(
            json.loads((folder / "config.json").read_text(encoding="utf-8"))
        )
    except FileNotFoundError as error:
        raise WeightsError(f"The model file {error.filename} is missing. {again}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{folder} is not a readable model folder: {error!r}. {again}"
        ) from error
    check_variant(variant)
    return Verified(folder, config, variant)


def _check_file(path: Path, expected: Mapping[str, Any], deep: bool) -> None:
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise WeightsError(
            f"{path} has {size:,} bytes where {expected['bytes']:,} are expected: it is "
            "incomplete. Run 'redraft model pull' again."
        )
    if deep and _sha256(path) != expected["sha256"]:
        raise WeightsError(
            f"{path} is corrupt: its SHA-256 is not {expected['sha256']}. "
            "Run 'redraft model pull' again."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
