"""``redraft model import``: turns options into one call and says what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SERVES = {
    "canvas": "It reads from left to right only and fills no canvas until it is adapted: "
    "redraft train run --base FOLDER.",
    "block": "It reads block by block; finished blocks are cached.",
    "bidirectional": "It reads the whole context in every step: keep the context short.",
}


def import_weights(
    folder: Annotated[
        Path,
        typer.Argument(help="Of Hugging Face: config.json, tokenizer.json, *.safetensors."),
    ],
    name: Annotated[
        str | None, typer.Option(help="What to call it. Default: the folder's.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Precision to make; repeat for several. fp16 is for GPUs. Default: q8."),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(min=2, help="Tokens of a block, where the weights read block by block."),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Trained for these weights by 'redraft train run'."),
    ] = None,
) -> None:
    """Make a model of open weights: Llama, Qwen2, Qwen3 and the diffusion models built on them."""
    from redraft.model.weights.import_model import DEFAULT_VARIANT, import_model

    from .console import bar, err, out

    with bar() as show:
        model = import_model(
            folder,
            name,
            tuple(variant or (DEFAULT_VARIANT,)),
            block,
            adapter,
            lambda p: show("converting" if p.total else "hashing", p.fraction),
        )
    out.print(f"{model.name}: {model.summary} ({', '.join(model.prebuilt)})", markup=False)
    if model.config.adapter == "none":
        err.print(_SERVES[model.config.attention], markup=False)
    err.print(f"Use it with: redraft serve --model {model.name}", markup=False)
