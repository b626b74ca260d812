"""Graphs of a model with their weights, whose numbers lie in one file that the graphs share.

Tensors are encoded on several cores and written in order, so that memory holds a few at a time.
``weights/convert.py`` makes a folder appear whole.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
from onnx import ModelProto

from ..config import ModelConfig
from ..errors import WeightsError
from .frequent import FILES, FREQUENT_FILE, frequent_tokens, has_short_head
from .layout import DATA_FILE, LAYOUT, Form, forms_of
from .onnx_graph import MASK_ROW, SHORT_ROWS, build, tables_of
from .quantize import Array, FloatArray, Stored, variant_named

#: Name and format of a tensor, and whether it is as the canvas has it, not as the context has.
Key = tuple[str, str, bool]
#: Offset and length in the data file, in bytes, of each tensor by its name in a graph.
Places = dict[str, tuple[int, int]]

_ALIGNMENT = 4096  # of tensors in the data file, so that it can be mapped page by page
#: Weights that are encoded at the same time at most: a vocabulary alone may be 2 GB.
_AT_ONCE = 1 << 26
_WORKERS = min(8, os.cpu_count() or 1)


def materialise(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Write graphs, weights and the description of both into a folder.

    The files are ``<form>.onnx`` of each of ``layout.forms_of``, ``weights.bin``, ``config.json``
    and ``graphs.json``: variant, layout, forms, and the places in ``weights.bin`` of the tables
    that are looked up outside the graphs. Each file appears under its name when it is whole, the
    graphs after the data they point into.

    Args:
        context: weights of the causal pass, by the names of :class:`ModelConfig`; read by several
            threads at once.
        canvas: weights of the canvas pass; the row ``config.mask_token`` of its embedding is the
            mask. The same object as ``context`` where nothing differs. With an adapter on masks it
            also has that adapter's matrices, ``….lora_a`` and ``….lora_b``, and its sampler's.
        folder: made where it is missing; other files in it are left alone.
        progress: called with the fraction done, 0 … 1.

    Raises:
        SettingsError: there is no such variant.
        WeightsError: a weight is missing or misshapen, or the disk is full or read-only.
    """
    graphs = {form: build(config, variant, form) for form in forms_of(config)}
    tables = tables_of(config, variant)
    is_split = config.adapter == "canvas" and canvas is not context

    def key(stored: Stored, form: Form = "causal") -> Key:
        own = stored.of_masks or (is_split and form == "denoise" and stored.adapted)
        return stored.name, stored.format, own

    def encode(stored: Stored, own: bool) -> dict[str, Array]:
        if stored.sources == (MASK_ROW,):
            return stored.encode({MASK_ROW: canvas["embed.weight"][config.mask_token]})
        if stored.sources == (SHORT_ROWS,):
            return stored.encode({SHORT_ROWS: context["embed.weight"][frequent_tokens(config)]})
        return stored.encode(canvas if own else context)

    wanted = {key(each, form): each for form, graph in graphs.items() for each in graph.stored}
    wanted |= {key(each): each for each in tables}
    places: dict[Key, Places] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _whole(folder / DATA_FILE) as file:
            for at, arrays in _encoded(wanted, encode):
                places[at] = _append(file, arrays)
                progress(len(places) / len(wanted))
        for form, graph in graphs.items():
            for stored in graph.stored:
                _point(graph.model, places[key(stored, form)])
            with _whole(folder / f"{form}.onnx") as file:
                file.write(graph.model.SerializeToString(deterministic=True))
        if has_short_head(config, variant_named(variant), "causal"):
            with _whole(folder / FREQUENT_FILE) as file:
                file.write(FILES[config.vocab].read_bytes())
        with _whole(folder / "config.json") as file:
            file.write(config.to_json().encode())
        found = {
            name: {
                "offset": places[key(stored)][name][0], "dtype": dtype.name, "shape": list(shape)
            }
            for stored in tables
            for name, (dtype, shape) in stored.tensors().items()
        }  # fmt: skip
        about = {"layout": LAYOUT, "variant": variant, "forms": list(graphs), "tables": found}
        with _whole(folder / "graphs.json") as file:
            file.write(json.dumps(about).encode())
    except OSError as error:
        raise WeightsError(
            f"The converted weights could not be written to {folder}: {error}. Free some disk "
            "space, or choose a writable cache folder, then run 'redraft model pull' again."
        ) from error


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which appears under its name when it is whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _encoded(
    wanted: Mapping[Key, Stored], encode: Callable[[Stored, bool], dict[str, Array]]
) -> Iterator[tuple[Key, dict[str, Array]]]:
    """Yield the arrays of each of ``wanted``, in order, which several threads encode."""
    begun: deque[tuple[Key, int, Future[dict[str, Array]]]] = deque()
    with ThreadPoolExecutor(_WORKERS) as pool:
        for key, stored in wanted.items():
            size = prod(stored.shape)
            while begun and size + sum(each for _, each, _ in begun) > _AT_ONCE:
                earlier, _, future = begun.popleft()
                yield earlier, future.result()
            begun.append((key, size, pool.submit(encode, stored, key[2])))
        for earlier, _, future in begun:
            yield earlier, future.result()


def _append(file: BinaryIO, arrays: Mapping[str, Array]) -> Places:
    """Write arrays to the end of a file; return the offset and length of each."""
    places: Places = {}
    for name, array in arrays.items():
        start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
        file.seek(start)
        file.write(np.ascontiguousarray(array).data)
        places[name] = (start, array.nbytes)
    return places


def _point(model: ModelProto, places: Places) -> None:
    for tensor in model.graph.initializer:
        if tensor.name in places and len(tensor.external_data) == 1:
            offset, length = places[tensor.name]
            tensor.external_data.add(key="offset", value=str(offset))
            tensor.external_data.add(key="length", value=str(length))
