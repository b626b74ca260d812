"""Writes the graphs of a model with their weights: the numbers go to one file that they share.

Tensors are encoded and written one by one, so memory holds one at a time. Knows nothing of where
weights come from, of manifests (``weights/convert.py`` makes a folder appear whole) or of running.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from onnx import ModelProto

from ..config import ModelConfig
from ..errors import WeightsError
from .layout import DATA_FILE, LAYOUT, Form, forms_of
from .onnx_graph import MASK_ROW, build, tables_of
from .onnx_interface import Graph
from .quantize import Array, FloatArray, Stored

#: Offset and length in the data file, in bytes, of each tensor by its name.
Places = dict[str, tuple[int, int]]
#: Where the runtime finds a tensor itself: {"offset": bytes, "dtype": name, "shape": list}.
Table = dict[str, Any]

_ALIGNMENT = 4096  # of tensors in the data file, so that it can be mapped page by page


def materialise(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write the graphs (``<form>.onnx`` of each of ``layout.forms_of``), ``weights.bin``,
    ``config.json`` and ``graphs.json`` (variant, layout, forms, and where the tables that are
    looked up outside the graphs lie in ``weights.bin``).

    Each file appears under its name when it is whole, the graphs after the data they point into.

    Args:
        context: weights of the causal pass, by the names of :class:`ModelConfig`.
        canvas: weights of the canvas pass; the row ``config.mask_token`` of its embedding is the
            mask. The same object as ``context`` where nothing differs. With an adapter on masks it
            also has that adapter's matrices, ``….lora_a`` and ``….lora_b``, and its sampler's.
        folder: made where it is missing; other files in it are left alone.
        progress: told the fraction done, 0 … 1.

    Raises:
        SettingsError: there is no such variant.
        WeightsError: a weight is missing or misshapen, or the disk is full or read-only.
    """
    graphs = {form: build(config, variant, form) for form in forms_of(config)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write = _Writer(config, variant, context, canvas, progress or (lambda _: None))
        tables = write.data(graphs, folder)
        for form, graph in graphs.items():
            data = graph.model.SerializeToString(deterministic=True)
            _write_whole(folder / f"{form}.onnx", data)
        _write_whole(folder / "config.json", config.to_json().encode())
        about = {"layout": LAYOUT, "variant": variant, "forms": list(graphs), "tables": tables}
        _write_whole(folder / "graphs.json", json.dumps(about).encode())
    except OSError as error:
        raise WeightsError(
            f"The converted weights could not be written to {folder}: {error}. Free some disk "
            "space, or choose a writable cache folder, then run 'redraft model pull' again."
        ) from error


@dataclass
class _Writer:
    """Writes every tensor once."""

    config: ModelConfig
    variant: str
    context: Mapping[str, FloatArray]
    canvas: Mapping[str, FloatArray]
    progress: Callable[[float], None]
    places: dict[tuple[str, str, bool], Places] = field(default_factory=dict)
    done: int = 0

    def data(self, graphs: dict[Form, Graph], folder: Path) -> dict[str, Table]:
        """Write the data file, point the graphs at it and say where the tables lie."""
        split = self.config.adapter == "canvas" and self.canvas is not self.context
        tables = tables_of(self.config, self.variant)
        total = sum(len(graph.stored) for graph in graphs.values()) + len(tables)
        temporary = folder / f"{DATA_FILE}.part"
        try:
            with temporary.open("wb") as file:
                for form, graph in graphs.items():
                    for stored in graph.stored:
                        own = (split and form == "denoise" and stored.adapted) or stored.of_masks
                        _point(graph.model, self._place(file, stored, own, total))
                found = {s: self._place(file, s, s.of_masks, total) for s in tables}
            temporary.replace(folder / DATA_FILE)
        finally:
            temporary.unlink(missing_ok=True)
        return {
            name: {"offset": found[stored][name][0], "dtype": dtype.name, "shape": list(shape)}
            for stored in tables
            for name, (dtype, shape) in stored.tensors().items()
        }

    def _place(self, file: BinaryIO, stored: Stored, own: bool, total: int) -> Places:
        """Where the tensors of ``stored`` are; written where they are not yet.

        Args:
            own: as the canvas has them, not as the context has.
            total: of tensors to be placed, for the progress.
        """
        key = (stored.name, stored.format, own)
        if key not in self.places:
            weights = self.canvas if own else self.context
            if stored.sources == (MASK_ROW,):
                weights = {MASK_ROW: self.canvas["embed.weight"][self.config.mask_token]}
            self.places[key] = _append(file, stored, stored.encode(weights))
        self.done += 1
        self.progress(self.done / total)
        return self.places[key]


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.part")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _append(file: BinaryIO, stored: Stored, arrays: Mapping[str, Array]) -> Places:
    """Write the tensors of ``stored``; offset and length of each by name."""
    places: Places = {}
    for name, (dtype, shape) in stored.tensors().items():
        array = np.ascontiguousarray(arrays[name])
        assert array.dtype == dtype and array.shape == shape, (name, array.dtype, array.shape)
        start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
        file.seek(start)
        file.write(array.data)
        places[name] = (start, array.nbytes)
    return places


def _point(model: ModelProto, places: Places) -> None:
    for tensor in model.graph.initializer:
        if tensor.name in places and len(tensor.external_data) == 1:
            offset, length = places[tensor.name]
            tensor.external_data.add(key="offset", value=str(offset))
            tensor.external_data.add(key="length", value=str(length))
