"""``redraft train``: pack data, look at rows, train an adapter, put it in place.

Translates options into calls of ``redraft.model``; torch is imported by ``run`` alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from redraft.model.config import ModelConfig
    from redraft.model.network.quantize import FloatArray
    from redraft.model.weights.adapter import Adapter

app = typer.Typer(help="Pack training data and train the adapter.", no_args_is_help=True)

Data = Annotated[
    list[Path], typer.Argument(help="*.jsonl.zst files of commits or files, or folders of them.")
]
MODEL = "redraft-0.5b"
Base = Annotated[
    str,
    typer.Option(
        help="Whose base is read: a built-in model, or a Hugging Face folder (Llama, Qwen2, Qwen3)."
    ),
]


def sources(paths: list[Path]) -> list[Path]:
    """The given files, and of a folder the files called ``train-*``: others are held out."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.glob("train-*.jsonl.zst")) if path.is_dir() else [path]
    if not found:
        raise SettingsError(
            f"No train-*.jsonl.zst in {', '.join(map(str, paths))}. Name the files themselves, or "
            "a folder that holds them."
        )
    return found


@app.command()
def pack(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the shards.")] = Path("shards"),
    rows: Annotated[int, typer.Option(min=1, help="About how many rows to make.")] = 50_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    lengths: Annotated[
        Literal["short", "mixed", "medium", "long"],
        typer.Option(help="Of prompts: short or mixed for two CPU cores, long for a GPU."),
    ] = "medium",
    edits: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of rows that ask for the next edit.",
            show_default="as the recipe has it",
        ),
    ] = None,
    base: Base = MODEL,
) -> None:
    """Render rows with the serving prompt and pack them into token shards, once."""
    import dataclasses

    from redraft.model.training.rows import RECIPES
    from redraft.model.training.shards import pack as make
    from rich.progress import Progress

    from .console import out as console

    grounds = _base(base)
    recipe = RECIPES[lengths]
    recipe = dataclasses.replace(recipe, edit_share=recipe.edit_share if edits is None else edits)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("packing rows", total=rows)
        manifest = make(
            sources(data),
            out,
            grounds.tokenizer,
            grounds.config,
            rows=rows,
            seed=seed,
            jobs=jobs,
            recipe=recipe,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    facts = json.loads(manifest.read_text())
    console.print(f"{facts['rows']:,} rows, {facts['tokens']:,} tokens in {out}")


@app.command()
def show(
    data: Data,
    count: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 5,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    base: Base = MODEL,
) -> None:
    """Print training rows as the model sees them, marks by name, the answer in ⟦ ⟧."""
    from redraft.model.prompts.tokenizer import Tokenizer
    from redraft.model.training.rows import rows_of, show_row
    from redraft.model.training.shards import read_records

    from .console import out as console

    grounds = _base(base)
    tokenizer = Tokenizer.from_file(grounds.tokenizer)
    config, rng, printed = grounds.config, random.Random(seed), 0
    for source in sources(data):
        for record in read_records(source):
            if rng.random() > 0.02:
                continue
            for row in rows_of(record, tokenizer, config, rng):
                console.print(show_row(row, tokenizer), markup=False, highlight=False)
                printed += 1
                if printed == count:
                    return


@app.command()
def run(
    shards: Annotated[Path, typer.Option(help="Packed rows; see 'redraft train pack'.")] = Path(
        "shards"
    ),
    held_out: Annotated[
        Path | None,
        typer.Option(help="Packed rows to evaluate on, of repositories not trained on."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Run folder; resumes what it holds.")] = Path(
        "runs/default"
    ),
    config: Annotated[
        str, typer.Option(help="causal-cpu, masks-cpu, h100-causal, h100-masks, or a TOML file.")
    ] = "causal-cpu",
    start: Annotated[
        str, typer.Option(help="'shipped', 'fresh', or an adapter's .safetensors.")
    ] = "shipped",
    ground: Annotated[
        str, typer.Option(help="An adapter trained everywhere, merged into the base first.")
    ] = "",
    base: Base = MODEL,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Overrides the config.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Overrides the config.")] = None,
) -> None:
    """Train the adapter on a CPU or a CUDA device; Ctrl-C saves and stops."""
    train = _torch_side()
    import dataclasses

    from redraft.model.training.train_config import TrainConfig
    from redraft.model.weights.adapter import Adapter, with_ground

    from .console import out as console

    grounds = _base(base)
    chosen = TrainConfig.read(_config_file(config))
    chosen = dataclasses.replace(
        chosen, minutes=minutes or chosen.minutes, steps=steps or chosen.steps
    )
    begin = Adapter({}, {}, None) if start == "fresh" else _adapter(start, chosen.active, base)
    first = _ground(ground) if ground else begin.ground
    below_all = with_ground(grounds.config, grounds.tensors, begin._replace(ground=first))
    written = train.run(
        chosen,
        grounds.config,
        dict(below_all),
        _tensors(begin),
        shards,
        held_out,
        out,
        device,
        say=lambda line: console.print(line, markup=False, highlight=False),
        facts=grounds.facts,
        ground=first,
    )
    console.print(f"wrote {written}")


def _ground(name: str) -> dict[str, FloatArray]:
    """Return the tensors of an adapter to be merged first, which stands on no other."""
    below = _adapter(name)
    if below.ground:
        raise SettingsError(f"{name} is itself built on another adapter; give that one.")
    return below.lora


@app.command()
def evaluate(
    held_out: Annotated[Path, typer.Option(help="Packed rows of repositories not trained on.")],
    adapter: Annotated[str, typer.Argument(help="'shipped' or a .safetensors file.")] = "shipped",
    rows: Annotated[int, typer.Option(min=2, help="Rows for loss and accuracy.")] = 400,
    exact: Annotated[int, typer.Option(min=2, help="Of them decoded for exact match.")] = 100,
    base: Base = MODEL,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Print loss, accuracy, exact matches and tokens per step on held-out rows.

    Of masks, print how often their drafts are what the model writes next, and tokens per pass.
    """
    train = _torch_side()
    from redraft.model.config import ModelConfig
    from redraft.model.training.shards import read_shards
    from redraft.model.training.train_config import TrainConfig
    from redraft.model.weights.adapter import with_ground

    from .console import out as console

    found, grounds = _adapter(adapter, base=base), _base(base)
    described = {key: found.metadata[key] for key in ("adapter", "verifier")}
    model = ModelConfig.from_dict({**grounds.config.to_dict(), **described})
    rank = next(t.shape[0] for name, t in found.lora.items() if name.endswith("lora_a"))
    config = TrainConfig.to_evaluate(found.metadata, rank, rows, exact)
    below = dict(with_ground(model, grounds.tensors, found))
    figures = train.evaluate(
        config, model, below, _tensors(found), read_shards(held_out, model), device
    )
    console.print_json(json.dumps({"adapter": adapter, "rows": rows, "decoded": exact, **figures}))


@app.command()
def ship(
    adapter: Annotated[Path, typer.Argument(help="adapter.safetensors of a run.")],
    version: Annotated[str, typer.Option(help="Of the model, such as 0.2.0.")],
    model: Annotated[str, typer.Option(help="The built-in model whose adapter it is.")] = MODEL,
    bits: Annotated[int, typer.Option(help="16: as trained; 8: half as large.")] = 16,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Cut a larger one's products to it; with --bits 8.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="The folder it was trained over, of the same weights; with --bits 8."),
    ] = None,
    to: Annotated[Path, typer.Option(help="The checkout's folder of shipped weights.")] = Path(
        "model/shipped"
    ),
) -> None:
    """Replace the shipped adapter in a checkout, with its checksum and version."""
    from redraft.model.weights.adapter import load_adapter, of_rank, save_in_8_bits

    from .console import out as console

    if bits not in (8, 16):
        raise SettingsError(f"--bits is {bits}; choose 8 or 16.")
    if rank is not None and bits != 8:
        raise SettingsError("--rank writes the matrices anew: add --bits 8.")
    description = to / f"{model}.json"
    if not description.is_file():
        raise SettingsError(f"No {description}. Run this in a checkout, or give --to.")
    found = load_adapter(adapter)
    if found.metadata.get("logit_shift", "1") != "1":
        raise SettingsError(f"{adapter} was trained without the shift: Redraft does not serve it.")
    facts = json.loads(description.read_text(encoding="utf-8"))
    target = to / facts["adapter"]["file"]
    if base is not None:
        found = found._replace(metadata=_moved_to(found.metadata, base, facts, bits))
    _check_base(adapter, found.metadata, facts)
    if rank is not None:
        found = of_rank(found, rank)
    if bits == 8:
        save_in_8_bits(found, target)
    else:
        shutil.copyfile(adapter, target)
    facts["version"] = version
    facts["adapter"]["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
    _describe(facts["config"], found.metadata)
    description.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    console.print(f"{target} is now {model} {version}")


def _describe(config: dict[str, Any], said: Mapping[str, str]) -> None:
    """Put into a model's ``config`` what its adapter says of itself."""
    config["canvas_width"] = int(said.get("canvas", config["canvas_width"]))
    for name in ("adapter", "verifier"):
        config[name] = said.get(name, config[name])
    masks = int(said.get("masks", "0"))
    rank, sampler = int(said.get("rank", "0")), int(said.get("sampler", "0"))
    for name, value in (("masks", masks), ("mask_rank", rank), ("sampler", sampler)):
        config.pop(name, None)
        if masks and value:
            config[name] = value


def _moved_to(
    metadata: Mapping[str, str], base: Path, facts: Mapping[str, Any], bits: int
) -> dict[str, str]:
    """What an adapter says of itself once its base is the model's file instead of a folder."""
    from redraft.model.weights.huggingface import checkpoint_sha256

    if bits != 8:
        raise SettingsError("--base rewrites what the adapter says: add --bits 8.")
    if metadata.get("base_sha256") != checkpoint_sha256(base):
        raise SettingsError(f"The adapter was not trained over {base}. Give the folder it was.")
    return {**metadata, "base_sha256": facts["base"]["gguf_sha256"]}


def _check_base(adapter: Path, metadata: Mapping[str, str], facts: Mapping[str, Any]) -> None:
    """Raises:
    SettingsError: it was trained for other weights than the model is made from.
    """
    wanted = facts["base"]["gguf_sha256"]
    if metadata.get("base_sha256", wanted) != wanted:
        raise SettingsError(
            f"{adapter} was trained for weights of SHA-256 {metadata['base_sha256']}, "
            f"{facts['name']} is made from {wanted}. Give --model, or --base with a folder of the "
            "same weights."
        )


def _torch_side() -> ModuleType:
    """``redraft.model.training.train``, or what to do where torch is missing."""
    try:
        from redraft.model.training import train
    except ModuleNotFoundError as error:
        raise InstallError(
            f"Training needs {error.name}, which is not installed. Run {how_to_install('train')}."
        ) from error
    return train


def _adapter(name: str, wanted: str = "", base: str = MODEL) -> Adapter:
    """The adapter; an empty one where none is shipped for the base, or one that acts elsewhere."""
    from redraft.model.weights.adapter import Adapter, load_adapter
    from redraft.model.weights.registry import info

    if name == "shipped" and Path(base).is_dir():
        return Adapter({}, {}, None)
    path = info(base).adapter if name == "shipped" else Path(name)
    if path is None or not path.is_file():
        raise SettingsError(f"No adapter at {path}. Give its file, 'shipped' or 'fresh'.")
    adapter = load_adapter(path)
    acts = adapter.metadata.get("adapter", "canvas")
    if wanted and name == "shipped" and acts != wanted:
        return Adapter({}, {}, None)
    if acts == "canvas":
        raise SettingsError(
            f"{path} was trained on canvases, which this Redraft does not train. Train an adapter "
            "with --config causal-cpu or h100-causal."
        )
    return adapter


def _tensors(adapter: Adapter) -> dict[str, Any]:
    tensors: dict[str, Any] = {**adapter.lora, **adapter.sampler}
    if adapter.mask_embedding is not None:
        tensors["mask_embedding"] = adapter.mask_embedding
    return tensors


class _Base(NamedTuple):
    """The weights an adapter is trained over."""

    config: ModelConfig
    tensors: Mapping[str, NDArray[np.float32]]
    tokenizer: Path
    facts: dict[str, str]  # for the adapter's metadata


def _base(name: str) -> _Base:
    """The base of a built-in model, or a dense Llama, Qwen2 or Qwen3 in a Hugging Face folder."""
    if (folder := Path(name)).is_dir():
        from redraft.model.weights.huggingface import checkpoint_sha256, read_hf_checkpoint

        config, tensors, tokenizer = read_hf_checkpoint(folder)
        facts = {"base": folder.resolve().name, "base_sha256": checkpoint_sha256(folder)}
        return _Base(config, tensors, tokenizer, facts)
    from redraft.model.weights.gguf import read_checkpoint
    from redraft.model.weights.provide import base_path, ensure
    from redraft.model.weights.registry import info

    model = info(name)
    facts = {"base": model.base.name, "base_sha256": model.base.gguf_sha256}
    ours = read_checkpoint(base_path(name), tied=model.config.tied)[1]
    return _Base(model.config, ours, ensure(name) / "tokenizer.json", facts)


def _config_file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    from importlib.resources import files

    shipped = Path(str(files("redraft.model"))) / "configs" / f"{name}.toml"
    if not shipped.is_file():
        known = ", ".join(sorted(p.stem for p in shipped.parent.glob("*.toml")))
        raise SettingsError(f"No training config {name!r}; there are {known}, or give a TOML file.")
    return shipped
