"""The layout of ready folders, shared by the writer of graphs and the runtime; needs no onnx."""

from __future__ import annotations

from typing import Literal

from ..config import ModelConfig

#: Raise when inputs, outputs or files of the graphs change: the runtime refuses other layouts.
LAYOUT = 7
#: The file beside the graphs that holds every large tensor.
DATA_FILE = "weights.bin"
#: Likeliest tokens that a graph returns of each row, falling.
TOP = 8

#: ``causal`` appends tokens to the KV cache; ``denoise`` reads a canvas in both directions.
Form = Literal["causal", "denoise"]


def forms_of(config: ModelConfig) -> tuple[Form, ...]:
    """Return the graphs of a model.

    onnxruntime packs the weights of each graph anew, so each one is another copy in memory.
    """
    if config.attention != "canvas":
        return ("denoise",)  # it reads any part of a sequence
    return ("causal", "denoise") if config.has_canvases else ("causal",)
