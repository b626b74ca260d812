"""Writes the graphs of a model with their weights: the numbers go to one file that they share.

Tensors are encoded and written one by one, so memory holds one at a time. Knows nothing of where
weights come from, of manifests (``weights/combine.py`` makes a folder appear whole) or of running.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from onnx import ModelProto

from ..config import ModelConfig
from ..errors import WeightsError
from .onnx_graph import DATA_FILE, MASK_ROW, Form, Graph, build, forms_of
from .quantize import Array, FloatArray, Stored

#: Raise when the inputs or outputs of the graphs change: ``runtime/onnx_backend.py`` refuses other
#: layouts.
LAYOUT = 2

_ALIGNMENT = 4096  # of tensors in the data file, so that it can be mapped page by page


def materialise(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write the graphs (``prefill.onnx``, ``denoise.onnx``, ``packed.onnx``, or ``denoise.onnx``
    alone), ``weights.bin``, ``config.json`` and ``graphs.json`` (variant and layout).

    Each file appears under its name when it is whole, the graphs after the data they point into.

    Args:
        context: weights of the causal pass, by the names of :class:`ModelConfig`.
        canvas: weights of the canvas pass; the row ``config.mask_token`` of its embedding is the
            mask. The same object as ``context`` where nothing differs.
        folder: made where it is missing; other files in it are left alone.
        progress: told the fraction done, 0 … 1.

    Raises:
        SettingsError: there is no such variant.
        WeightsError: a weight is missing or misshapen, or the disk is full or read-only.
    """
    graphs = {form: build(config, variant, form) for form in forms_of(config)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_data(config, graphs, context, canvas, folder, progress or (lambda _: None))
        for form, graph in graphs.items():
            data = graph.model.SerializeToString(deterministic=True)
            _write_whole(folder / f"{form}.onnx", data)
        _write_whole(folder / "config.json", config.to_json().encode())
        about = {"layout": LAYOUT, "variant": variant}
        _write_whole(folder / "graphs.json", json.dumps(about).encode())
    except OSError as error:
        raise WeightsError(
            f"The converted weights could not be written to {folder}: {error}. Free some disk "
            "space, or choose a writable cache folder, then run 'redraft model pull' again."
        ) from error


def _write_data(
    config: ModelConfig,
    graphs: dict[Form, Graph],
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    folder: Path,
    progress: Callable[[float], None],
) -> None:
    """Write every tensor once and point the graphs at it."""
    split = config.adapter == "canvas" and canvas is not context
    places: dict[tuple[str, str, bool], dict[str, tuple[int, int]]] = {}
    total = sum(len(graph.stored) for graph in graphs.values())
    done = 0
    temporary = folder / f"{DATA_FILE}.part"
    try:
        with temporary.open("wb") as file:
            for form, graph in graphs.items():
                for stored in graph.stored:
                    own = split and form != "prefill" and stored.adapted
                    key = (stored.name, stored.format, own)
                    if key not in places:
                        weights = _source(config, stored, canvas if own else context, canvas)
                        places[key] = _append(file, stored, stored.encode(weights))
                    _point(graph.model, places[key])
                    done += 1
                    progress(done / total)
        temporary.replace(folder / DATA_FILE)
    finally:
        temporary.unlink(missing_ok=True)


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.part")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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
