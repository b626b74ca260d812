"""``redraft model import``: turns options into one call and says what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from redraft.model.config import ModelConfig

_SERVES = {
    "canvas": "It writes from left to right, in the prompt {format}; what it repeats comes many "
    "tokens at a time.",
    "drafts": "It drafts on canvases and judges them from left to right, in the prompt {format}.",
    "in place": "It fills in place, on a canvas that grows and shrinks: keep the context short.",
    "block": "It reads block by block; finished blocks are cached.",
    "bidirectional": "It reads the whole context in every step: keep the context short.",
}


def _way_of(config: ModelConfig) -> str:
    """Which of :data:`_SERVES`."""
    if config.expand_token:
        return "in place"
    drafts = config.attention == "canvas" and config.has_canvases
    return "drafts" if drafts else config.attention


def memory_for(variants: Sequence[str] | None) -> tuple[int, bool]:
    """Bytes of memory where these variants run, or where this machine runs best where none is
    named; and whether that is CUDA."""
    from redraft.model.network.quantize import HALF
    from redraft.model.runtime.device import cuda_problem
    from redraft.model.runtime.machine import import_onnxruntime, memory_of

    named = set(variants or ())
    gpu = bool(named & set(HALF)) if named else not cuda_problem(import_onnxruntime())
    return memory_of("CUDA" if gpu else "CPU"), gpu


def import_weights(
    path: Annotated[
        Path,
        typer.Argument(
            help="A GGUF file, or a folder of Hugging Face: config.json, tokenizer.json, "
            "*.safetensors."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="What to call it. Default: as the folder or file.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help="Precision to make; repeat for several. Default: q8, or q4 where that does not "
            "fit in memory; on CUDA fp16 or q4f16."
        ),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(min=2, help="Tokens of a block, where the weights read block by block."),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Trained for these weights by 'redraft train run'."),
    ] = None,
    prompt_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Prompt that autoregressive weights were trained on. Default: told by "
            "their vocabulary and name.",
        ),
    ] = None,
) -> None:
    """Make a model of open weights: Llama, Qwen2, Qwen3 and the diffusion models built on them."""
    from redraft.model.weights.import_model import import_model

    from .console import bar, err, out

    memory, gpu = memory_for(variant)
    with bar() as show:
        model = import_model(
            path,
            name,
            variant,
            block,
            adapter,
            lambda p: show("converting" if p.total else "hashing", p.fraction),
            prompt_format,
            memory=memory,
            gpu=gpu,
        )
    out.print(f"{model.name}: {model.summary} ({', '.join(model.prebuilt)})", markup=False)
    if adapter is None:
        how = _SERVES[_way_of(model.config)].format(format=model.config.prompt_format)
        err.print(how, markup=False)
    err.print(f"Use it with: redraft serve --model {model.name}", markup=False)
