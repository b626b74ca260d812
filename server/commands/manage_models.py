"""``redraft model``: list, download, import, choose, describe, copy and remove weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Model, Variant, load, model_for

if TYPE_CHECKING:
    from redraft.model.weights.catalog import ModelInfo

    from ..settings import Settings

app = typer.Typer(
    help="List, download, import, choose, inspect, export and remove models.", no_args_is_help=True
)


def cell(content: str, style: str = "") -> Any:
    """Return text of a table that is shown as it is."""
    from rich.text import Text

    return Text(content, style)


def _memory_for(variant: str | None) -> tuple[int, bool]:
    """Return the bytes of memory where a variant runs, and whether that is CUDA.

    Without a variant it is where this machine runs best.
    """
    from redraft.model.network.quantize import HALF
    from redraft.model.runtime.device import cuda_problem
    from redraft.model.runtime.machine import import_onnxruntime, memory_of

    gpu = variant in HALF if variant else not cuda_problem(import_onnxruntime())
    return memory_of("CUDA" if gpu else "CPU"), gpu


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
    from redraft.model.weights.catalog import list_models
    from redraft.model.weights.store import ready_variants

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
    _print_choice()


def _print_choice() -> None:
    """Print which model runs, why, and what the user may answer to an offer."""
    from redraft.model.choice import explain_answers
    from redraft.model.load import which_model

    from .console import out

    settings = load()
    how = (settings.variant, settings.provider, settings.threads)
    choice = which_model(settings.model, *how)
    out.print(f"{choice.model} runs: {choice.reason}", markup=False)
    if choice.larger:
        out.print(f"{choice.about_larger} {explain_answers(choice.larger)}", markup=False)


def _print_block(name: str, lines: Iterable[str]) -> None:
    """Print a name and its lines, indented and never cut: a table of them needs 120 columns."""
    from .console import out

    out.print(name, style="bold", markup=False)
    for line in lines:
        out.print(f"  {line}", markup=False)


def _list_known(as_json: bool) -> None:
    """Print the open weights that can be pulled by name, and whether they run here."""
    from redraft.model.weights.open_weights import KNOWN, read_pulled_revision

    from .console import err, out

    memory, gpu = _memory_for(None)
    provider = "CUDA" if gpu else "CPU"
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "runs_here": each.runs(memory, provider),
            "trained_for": each.trained,
            "weights": each.weights,
            "memory_bytes": round(each.memory),
            "license": each.license,
            "from": f"{each.repo}/{each.file}".rstrip("/"),
            "revision": read_pulled_revision(each.repo),
        }
        for each in KNOWN
    ]
    if as_json:
        out.print_json(data=rows)
        return
    for row in rows:
        size = f"{row['weights'] / 1e9:.1f}B weights, {row['memory_bytes'] / 1e9:.1f} GB of memory"
        lines = [
            f"trained for {row['trained_for']}, {size}",
            f"runs here: {row['runs_here']}, license: {row['license'] or 'see the hub'}",
            f"from {row['from']}",
        ]
        pulled = [f"pulled: {row['revision'][:8]}"] if row["revision"] else []
        _print_block(row["name"], lines + pulled)
    err.print(
        f"Reckoned for {provider} with {memory / 1e9:.0f} GB, not tried. Fetch one with: redraft "
        "model pull MODEL, any other with: redraft model pull hf:OWNER/NAME",
        markup=False,
    )


@app.command("pull")
def model_pull(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A model of 'redraft model list', weights of 'model list --known', hf:OWNER/NAME, "
            "hf:OWNER/NAME/FILE.gguf, a GGUF file, or a folder of Hugging Face (config.json, "
            "tokenizer.json, *.safetensors). Default: the configured model."
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Take the weights from this GGUF file."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of an imported model. Default: the name of its weights."),
    ] = None,
    variant: Variant = None,
    prompt_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Prompt that imported causal weights were trained on. Default: by their "
            "vocabulary and name.",
        ),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Trained for a folder by 'redraft train run'."),
    ] = None,
    drop_base: Annotated[
        bool,
        typer.Option(
            "--drop-base",
            help="Delete the downloaded weights once the model is ready. Another variant, or a "
            "later release, fetches them again.",
        ),
    ] = False,
) -> None:
    """Download weights, check their SHA-256 and convert them for this machine."""
    from redraft.model.weights.catalog import list_models
    from redraft.model.weights.import_model import import_weights
    from redraft.model.weights.open_weights import find_known, pull_open
    from redraft.model.weights.store import pull

    from .console import bar, out

    is_ours = source is None or source in {model.name for model in list_models()}
    asked = None if is_ours or source is None else find_known(source)
    path = Path(source or "")
    with bar() as show:
        if asked is not None:
            memory, gpu = _memory_for(variant)
            made = pull_open(
                asked,
                name,
                variant,
                prompt_format=prompt_format,
                drop_base=drop_base,
                memory=memory,
                gpu=gpu,
                progress=lambda p: show(f"{source}: {p.label}", p.fraction),
            )
        elif not is_ours and (path.exists() or len(path.parts) > 1 or path.suffix == ".gguf"):
            memory, gpu = _memory_for(variant)
            made = import_weights(
                path,
                name,
                variant,
                adapter=adapter,
                prompt_format=prompt_format,
                memory=memory,
                gpu=gpu,
                progress=lambda p: show("converting" if p.total else "hashing", p.fraction),
            )
        else:
            settings = load(model=source, variant=variant)
            chosen = model_for(settings)
            folder = pull(
                chosen,
                base,
                _variant_here(chosen, settings),
                lambda p: show(f"{chosen}: {p.label}", p.fraction),
                drop_base,
            )
            out.print(str(folder), markup=False)
            return
    _print_imported(made)


def _print_imported(model: ModelInfo) -> None:
    """Print what was made of open weights, and how they are served."""
    from .console import err, out

    about = f"{model.summary}, {model.license or 'no license stated'}"
    out.print(f"{model.name}: {about} ({', '.join(model.prebuilt)})", markup=False)
    config, prompt = model.config, model.config.prompt_format
    if config.expand_token:
        how = "It fills in place, on a canvas that grows and shrinks: keep the context short."
    elif config.attention == "canvas" and config.has_canvases:
        how = f"It drafts on canvases and verifies from left to right, in the prompt {prompt}."
    elif config.attention == "canvas":
        how = (
            f"It writes from left to right, in the prompt {prompt}; what it repeats comes many "
            "tokens at a time."
        )
    elif config.attention == "block":
        how = "It reads block by block; finished blocks are cached."
    else:
        how = "It reads the whole context in every step: keep the context short."
    err.print(how, markup=False)
    err.print(f"Use it with: redraft serve --model {model.name}", markup=False)


def _variant_here(name: str, settings: Settings) -> str | None:
    """Return the variant that an engine on this machine runs; None where none can run."""
    from redraft.model.errors import InstallError
    from redraft.model.load import choose_device
    from redraft.model.weights.catalog import info

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
    from redraft.model.config import AUTO
    from redraft.model.load import which_model
    from redraft.model.weights.catalog import DEFAULT_MODEL

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


@app.command("decline")
def model_decline(
    model: Annotated[str, typer.Argument(help="A larger model that Redraft offers.")],
) -> None:
    """Have no editor and no command offer a larger model again."""
    from redraft.model.choice import decline_model
    from redraft.model.config import AUTO

    from .console import out

    decline_model(model)
    out.print(
        f"{model} is not offered again; 'redraft model use {AUTO}' takes that back.", markup=False
    )


@app.command("show")
def model_show(
    model: Annotated[
        str | None, typer.Argument(help="Name of the model. Default: the one that would run.")
    ] = None,
) -> None:
    """Print everything about one model as JSON."""
    import json

    from redraft.model.weights.catalog import info
    from redraft.model.weights.store import ready_variants

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
    from redraft.model.weights.store import export

    from .console import bar, out

    settings = load(model=model, variant=variant)
    name = model_for(settings)
    with bar() as show:
        folder = export(name, settings.variant, out_dir, lambda p: show(p.label, p.fraction))
    out.print(str(folder), markup=False)


@app.command("remove")
def model_remove(
    model: Annotated[str, typer.Argument(help="One of 'redraft model list'.")],
) -> None:
    """Delete a model's files from this machine; a model of Redraft's can be pulled again."""
    from redraft.model.choice import read_stored_model, store_model
    from redraft.model.config import AUTO
    from redraft.model.weights.store import remove

    from .console import err, out

    freed = remove(model)
    if read_stored_model() == model:
        store_model(AUTO, None)
        err.print(f"'redraft model use' had chosen {model}; 'auto' chooses now.", markup=False)
    what = (
        f"Removed {model}: {freed / 1e6:,.0f} MB" if freed else f"{model} was not on this machine"
    )
    out.print(f"{what}.", markup=False)
