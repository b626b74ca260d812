"""``redraft model``: which weights there are, which run, fetched, imported, described, copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .options import Model, Variant, load, model_for

if TYPE_CHECKING:
    from redraft.model.config import ModelConfig

    from ..settings import Settings

_SERVES = {
    "canvas": "It writes from left to right, in the prompt {format}; what it repeats comes many "
    "tokens at a time.",
    "drafts": "It drafts on canvases and judges them from left to right, in the prompt {format}.",
    "in place": "It fills in place, on a canvas that grows and shrinks: keep the context short.",
    "block": "It reads block by block; finished blocks are cached.",
    "bidirectional": "It reads the whole context in every step: keep the context short.",
}


def _way_of(config: ModelConfig) -> str:
    """Return the key of :data:`_SERVES`."""
    if config.expand_token:
        return "in place"
    drafts = config.attention == "canvas" and config.has_canvases
    return "drafts" if drafts else config.attention


def memory_for(variants: Sequence[str] | None) -> tuple[int, bool]:
    """Return the bytes of memory where these variants run, and whether that is CUDA.

    Without variants it is where this machine runs best.
    """
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
            help="Prompt that autoregressive weights were trained on. Default: by "
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


app = typer.Typer(help="List, download, import, inspect and export models.", no_args_is_help=True)


def cell(content: str, style: str = "") -> Any:
    """Text of a table that is shown as it is."""
    from rich.text import Text

    return Text(content, style)


@app.command("list")
def model_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    known: Annotated[
        bool, typer.Option("--known", help="List the open weights that 'pull' takes by name.")
    ] = False,
) -> None:
    """List the models that can run, and the formats that are ready on this machine."""
    if known:
        _list_known(as_json)
        return
    from redraft.model.weights.provide import ready_variants
    from redraft.model.weights.registry import list_models

    from .console import out

    if as_json:
        fields = ("name", "version", "license", "summary")
        models = [
            {name: getattr(m, name) for name in fields} | {"ready": list(ready_variants(m))}
            for m in list_models()
        ]
        out.print_json(data=models)
        return
    for model in list_models():
        ready = ", ".join(ready_variants(model)) or f"none; get it: redraft model pull {model.name}"
        lines = (f"version {model.version}, {model.license}", f"ready: {ready}", model.summary)
        _print_block(model.name, lines)


def _print_block(name: str, lines: Iterable[str]) -> None:
    """Print a name and its lines, indented and never cut: a table of them needs 120 columns."""
    from .console import out

    out.print(name, style="bold", markup=False)
    for line in lines:
        out.print(f"  {line}", markup=False)


def _list_known(as_json: bool) -> None:
    """Print the open weights that can be pulled by name, and whether they run here."""
    from redraft.model.runtime.device import cuda_problem
    from redraft.model.runtime.machine import import_onnxruntime, memory_of
    from redraft.model.weights.pull_open import KNOWN, pulled_revision

    from .console import err, out

    provider: Literal["CPU", "CUDA"] = "CUDA" if not cuda_problem(import_onnxruntime()) else "CPU"
    memory = memory_of(provider)
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "runs_here": each.runs(memory, provider),
            "trained_for": each.trained,
            "weights": each.weights,
            "memory_bytes": round(each.memory),
            "license": each.license,
            "from": each.place,
            "revision": pulled_revision(each.repo),
        }
        for each in KNOWN
    ]
    if as_json:
        out.print_json(data=rows)
        return
    for row in rows:
        _print_block(row["name"], _lines_of_known(row))
    err.print(
        f"Reckoned for {provider} with {memory / 1e9:.0f} GB, not tried. Fetch one with: redraft "
        "model pull MODEL, any other with: redraft model pull hf:OWNER/NAME",
        markup=False,
    )


def _lines_of_known(row: dict[str, Any]) -> Iterator[str]:
    """Return what people read about one entry: use, size, license, origin."""
    weights, memory = f"{row['weights'] / 1e9:.1f}B weights", f"{row['memory_bytes'] / 1e9:.1f} GB"
    yield f"trained for {row['trained_for']}, {weights}, {memory} of memory"
    yield f"runs here: {row['runs_here']}, license: {row['license'] or 'see the hub'}"
    yield f"from {row['from']}"
    if row["revision"]:
        yield f"pulled: {row['revision'][:8]}"


@app.command("pull")
def model_pull(
    model: Annotated[
        str | None,
        typer.Argument(
            help="One of 'redraft model list', of 'model list --known', hf:OWNER/NAME, or "
            "hf:OWNER/NAME/FILE.gguf. Default: the configured one."
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Take the weights from this GGUF file.",
        ),
    ] = None,
    drop_raw: Annotated[
        bool,
        typer.Option(
            "--drop-raw",
            help="Delete the base weights once the model is ready. Another variant, or a later "
            "release, fetches them again.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(help="Name of an imported model. Default: the name of its weights."),
    ] = None,
    variant: Variant = None,
) -> None:
    """Download weights, check their SHA-256 and convert them for this machine."""
    from redraft.model.weights.provide import pull
    from redraft.model.weights.pull_open import is_open
    from redraft.model.weights.registry import list_models

    from .console import bar, out

    if model is not None and is_open(model) and model not in {m.name for m in list_models()}:
        _pull_open(model, name, variant, drop_raw)
        return

    settings = load(model=model, variant=variant)
    chosen = model_for(settings)
    with bar() as show:
        folder = pull(
            chosen,
            source,
            _variant_here(chosen, settings),
            lambda p: show(f"{chosen}: {p.label}", p.fraction),
            drop_raw,
        )
    out.print(str(folder), markup=False)


def _variant_here(name: str, settings: Settings) -> str | None:
    """Return the variant that an engine on this machine runs; None where none can run."""
    from redraft.model.errors import InstallError
    from redraft.model.load import choose_device
    from redraft.model.weights.registry import info

    try:
        return choose_device(info(name), settings.variant, settings.provider).variant
    except InstallError:  # weights for another machine
        return settings.variant


@app.command("use")
def model_use(
    model: Annotated[
        str, typer.Argument(help="One of 'redraft model list', or auto: what suits this machine.")
    ],
) -> None:
    """Choose the model that runs where no setting names one; running engines change to it."""
    from redraft.model.choice import store_model
    from redraft.model.load import which_model
    from redraft.model.weights.registry import AUTO, DEFAULT_MODEL

    from .console import err, out

    settings = load()
    variant = _variant_here(DEFAULT_MODEL if model == AUTO else model, settings)
    store_model(model, variant)
    choice = which_model(AUTO, settings.variant, settings.provider, settings.threads)
    out.print(f"{choice.model} runs from the next request on: {choice.reason}", markup=False)
    if settings.model != AUTO:
        err.print(
            f"But your configuration names {settings.model}, which goes first: remove 'model' from "
            "config.toml, or the variable REDRAFT_MODEL.",
            markup=False,
        )


def _pull_open(asked: str, name: str | None, variant: str | None, drop_raw: bool) -> None:
    from redraft.model.weights.pull_open import pull_open

    from .console import bar, err, out

    variants = [variant] if variant else None
    memory, gpu = memory_for(variants)
    with bar() as show:
        made = pull_open(
            asked,
            variants,
            name,
            lambda p: show(f"{asked}: {p.label}", p.fraction),
            drop_raw,
            memory,
            gpu,
        )
    out.print(f"{made.name}: {made.summary}, {made.license or 'no license stated'}", markup=False)
    err.print(f"Use it with: redraft serve --model {made.name}", markup=False)


app.command("import")(import_weights)


@app.command("info")
def model_info(
    model: Annotated[
        str | None, typer.Argument(help="Name of the model. Default: the one that would run.")
    ] = None,
) -> None:
    """Print everything about one model as JSON."""
    import json

    from redraft.model.weights.provide import ready_variants
    from redraft.model.weights.registry import info

    found = info(model_for(load(model=model)))
    typer.echo(json.dumps({**found.describe(), "ready": ready_variants(found)}, indent=1))


@app.command("export")
def model_export(
    out_dir: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to write to; it must be empty or new.")
    ],
    model: Model = None,
    variant: Variant = None,
) -> None:
    """Copy a ready model to a folder, for a machine without a network (REDRAFT_MODELS)."""
    from redraft.model.weights.provide import export

    from .console import bar, out

    settings = load(model=model, variant=variant)
    name = model_for(settings)
    with bar() as show:
        folder = export(name, settings.variant, out_dir, lambda p: show(p.label, p.fraction))
    out.print(str(folder), markup=False)
