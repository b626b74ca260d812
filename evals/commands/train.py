"""``redraft train``: pack data, look at rows, train an adapter, evaluate it, put it in place.

Torch is imported by ``run`` and ``evaluate`` alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
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
    from redraft.model.weights.adapter import Adapter

app = typer.Typer(  # not in the list of commands, but each command answers --help
    help="Pack training data and train the adapter.",
    no_args_is_help=True,
    hidden=True,
    add_completion=False,
)

MODEL = "redraft-0.5b"
MOST_BYTES = 36_000_000  # of a shipped adapter: it is part of the package
Data = Annotated[
    list[Path], typer.Argument(help="*.jsonl.zst files of commits or files, or folders of them.")
]
BaseName = Annotated[
    str,
    typer.Option(
        "--base",
        help="Model whose base is read: a built-in one, or a Hugging Face folder (Llama, Qwen2, "
        "Qwen3).",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Another seed draws other rows.")]


@app.command()
def pack(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the shards.")] = Path("shards"),
    rows: Annotated[int, typer.Option(min=1, help="Rows to make.")] = 36_000,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    lengths: Annotated[
        Literal["short", "long"],
        typer.Option(help="Length of prompts: short for CPU cores, long for a GPU."),
    ] = "short",
    base: BaseName = MODEL,
) -> None:
    """Render rows with the serving prompt and pack them into token shards, once."""
    from redraft.model.training.rows import RECIPES
    from redraft.model.training.shards import pack as make
    from redraft.server.commands.console import out as console
    from rich.progress import Progress

    found = _base(base)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("packing rows", total=rows)
        manifest = make(
            sources(data),
            out,
            found.tokenizer,
            found.config,
            RECIPES[lengths],
            rows=rows,
            seed=seed,
            jobs=jobs,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    facts = json.loads(manifest.read_text())
    console.print(f"{facts['rows']:,} rows, {facts['tokens']:,} tokens in {out}")
    console.print(", ".join(f"{count:,} {group}" for group, count in facts["groups"].items()))


@app.command()
def show(
    data: Data,
    count: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 5,
    seed: Seed = 0,
    base: BaseName = MODEL,
) -> None:
    """Print training rows as the model reads them, marks by name, the answer in ⟦ ⟧."""
    from redraft.model.prompts.tokenizer import Tokenizer
    from redraft.model.training.rows import RECIPES, RowMaker, show_row
    from redraft.model.training.shards import read_records
    from redraft.server.commands.console import out as console

    tokenizer = Tokenizer.from_file(_base(base).tokenizer)
    maker, rng, printed = RowMaker(tokenizer, RECIPES["short"]), random.Random(seed), 0
    for source in sources(data):
        for record in read_records(source):
            if rng.random() > 0.02:
                continue
            made = maker.of_commit if "files" in record else maker.of_file
            for row in made(record, rng):
                console.print(show_row(row, tokenizer), markup=False, highlight=False)
                printed += 1
                if printed == count:
                    return


@app.command()
def frequent(
    data: Data,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("frequent_qwen2.txt"),
    most: Annotated[int, typer.Option(min=256, help="Tokens to name.")] = 32_768,
    base: BaseName = MODEL,
) -> None:
    """Name the tokens that are most frequent in files, for the short head of next edits."""
    from redraft.model.network.frequent import count_tokens, write_frequent
    from redraft.model.prompts.tokenizer import Tokenizer
    from redraft.model.training.shards import read_records
    from redraft.server.commands.console import out as console

    found = _base(base)
    records = (record for source in sources(data) for record in read_records(source))
    texts = (str(record["text"]) for record in records if record.get("text"))
    tokenizer = Tokenizer.from_file(found.tokenizer)
    share = write_frequent(count_tokens(texts, tokenizer.encode, found.config), most, out)
    console.print(f"{most:,} tokens in {out}: {share:.1%} of those in the files.")


@app.command()
def run(
    shards: Annotated[Path, typer.Option(help="Packed rows; see 'redraft train pack'.")] = Path(
        "shards"
    ),
    held_out: Annotated[
        Path | None,
        typer.Option(help="Packed rows to evaluate on, of repositories not trained on."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Run folder; a run that it holds is resumed.")] = Path(
        "runs/default"
    ),
    config: Annotated[
        str, typer.Option(help="causal-cpu, masks-cpu, h100-causal, h100-masks, or a TOML file.")
    ] = "causal-cpu",
    start: Annotated[
        str,
        typer.Option(
            help="'shipped', 'fresh', or an adapter's .safetensors. Masks are trained over the "
            "causal part of this adapter."
        ),
    ] = "shipped",
    base: BaseName = MODEL,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Overrides the config.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Overrides the config.")] = None,
) -> None:
    """Train the adapter on a CPU or a CUDA device; Ctrl-C saves and stops."""
    loop = _torch_side()
    from redraft.model.training.checkpoints import RunFolder, TrainConfig
    from redraft.server.commands.console import out as console

    chosen = TrainConfig.read(_config_file(config))
    chosen = dataclasses.replace(
        chosen, minutes=minutes or chosen.minutes, steps=steps or chosen.steps
    )
    found = _base(base)
    shipped = _adapter("shipped", base)
    begin = None if start == "fresh" else shipped if start == "shipped" else _adapter(start, base)
    network, ground = _network(loop, chosen, found, begin, shipped, device)
    written = loop.run(
        chosen,
        network,
        RunFolder(out, ground, found.facts),
        shards,
        held_out,
        lambda line: console.print(line, markup=False, highlight=False),
    )
    console.print(f"wrote {written}")


@app.command()
def evaluate(
    held_out: Annotated[Path, typer.Option(help="Packed rows of repositories not trained on.")],
    adapter: Annotated[str, typer.Argument(help="'shipped' or a .safetensors file.")] = "shipped",
    rows: Annotated[int, typer.Option(min=2, help="Rows, about as many of each class.")] = 1_200,
    base: BaseName = MODEL,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Print loss, nats of an answer and exact answers on held-out rows, by class of row.

    Of masks, also print how often their drafts are what the model writes next, and tokens per pass.
    """
    loop = _torch_side()
    from redraft.model.training.checkpoints import TrainConfig
    from redraft.model.training.evaluate import evaluate as figures_of
    from redraft.model.training.shards import read_shards
    from redraft.server.commands.console import out as console

    found = _base(base)
    packed = read_shards(held_out, found.config)
    given = _adapter(adapter, base)
    if given is None:
        raise SettingsError(f"No adapter is shipped for {base}. Give an adapter's .safetensors.")
    config = TrainConfig(rank=_rank(given.ground or given.lora), evaluate_rows=rows)
    network, _ = _network(loop, config, found, given, None, device)
    figures = {"adapter": adapter, **figures_of(network, packed, config)}
    if masks := int(given.metadata.get("masks", "0")):
        sampler = int(given.metadata.get("sampler", "0"))
        config = dataclasses.replace(config, rank=_rank(given.lora), masks=masks, sampler=sampler)
        network, _ = _network(loop, config, found, given, None, device)
        figures |= figures_of(network, packed, config)
    console.print_json(json.dumps(figures))


@app.command()
def ship(
    adapter: Annotated[Path, typer.Argument(help="adapter.safetensors of a run.")],
    version: Annotated[str, typer.Option(help="Of the model, such as 0.2.0.")],
    model: Annotated[str, typer.Option(help="The built-in model whose adapter it is.")] = MODEL,
    to: Annotated[Path, typer.Option(help="The checkout's folder of shipped weights.")] = Path(
        "model/shipped"
    ),
) -> None:
    """Replace the shipped adapter in a checkout: in 8 bits, with its checksum and version."""
    from redraft.model.weights.adapter import load_adapter, save_in_8_bits
    from redraft.server.commands.console import out as console

    description = to / f"{model}.json"
    if not description.is_file():
        raise SettingsError(f"No {description}. Run this in a checkout, or give --to.")
    facts = json.loads(description.read_text(encoding="utf-8"))
    found = load_adapter(adapter)
    _check_base(adapter, found.metadata, facts)
    target = to / facts["adapter"]["file"]
    made = target.with_suffix(".new")
    save_in_8_bits(found, made)
    if made.stat().st_size > MOST_BYTES:
        size = made.stat().st_size
        made.unlink()
        raise SettingsError(
            f"{adapter} takes {size:,} bytes in 8 bits; at most {MOST_BYTES:,} are shipped. Train "
            "it at a lower rank."
        )
    made.replace(target)
    facts["version"] = version
    facts["adapter"]["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
    _describe(facts["config"], found.metadata)
    description.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    console.print(f"{target} is now {model} {version}")


# --- what the commands read -------------------------------------------------------------------


@app.command()
def places(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for ranker.safetensors and its card.")] = Path(
        "places"
    ),
    commits: Annotated[int, typer.Option(min=1, help="Commits of each repository.")] = 200,
    seed: Seed = 0,
) -> None:
    """Train the ranker of places on commits: about five minutes of one core, no torch."""
    from redraft.model.training.places.train_ranker import train
    from redraft.server.commands.console import out as console
    from rich.progress import Progress

    found = sources(data)
    names = " ".join(path.name for path in found)
    command = f"redraft train places {names} --commits {commits} --seed {seed}"
    with Progress(console=console) as bar:
        task = bar.add_task("rows", total=None)

        def report(what: str, done: int, total: int | None) -> None:
            text = what if total else f"{what}, {done:,} moments"
            bar.update(task, description=text, completed=done, total=total)

        card = train(found, out, commits, seed, command, report)
    console.print(
        f"{out / 'ranker.safetensors'}: {card.moments:,} moments of {card.repositories} "
        f"repositories. On {card.validation_repositories} others: hit@1 {card.hit_at_1:.1%}, hit@3 "
        f'{card.hit_at_3:.1%}, AUC of "anything left" {card.auc_left:.3f}.'
    )


def sources(paths: list[Path]) -> list[Path]:
    """Return the given files, and of a folder the files called ``train-*``: others are held out."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.glob("train-*.jsonl.zst")) if path.is_dir() else [path]
    if not found:
        raise SettingsError(
            f"No train-*.jsonl.zst in {', '.join(map(str, paths))}. Name the files themselves, or "
            "a folder that holds them."
        )
    return found


class _Base(NamedTuple):
    """The weights an adapter is trained over."""

    config: ModelConfig
    tensors: Mapping[str, NDArray[np.float32]]
    tokenizer: Path
    facts: dict[str, str]  # for the adapter's metadata


def _base(name: str) -> _Base:
    """Return the base of a built-in model, or a dense Llama, Qwen2 or Qwen3 of a folder."""
    if (folder := Path(name)).is_dir():
        from redraft.model.weights import huggingface as hf

        config, tensors, *_ = hf.read_folder(folder)
        facts = {"base": folder.resolve().name, "base_sha256": hf.checkpoint_sha256(folder)}
        return _Base(config, tensors, hf.tokenizer_file(folder), facts)
    from redraft.model.weights.catalog import info
    from redraft.model.weights.gguf import GGUFFile, read_checkpoint
    from redraft.model.weights.store import base_path, ensure

    model = info(name)
    facts = {"base": model.base.name, "base_sha256": model.base.gguf_sha256}
    ours = read_checkpoint(GGUFFile(base_path(name)), tied=model.config.tied)[1]
    return _Base(model.config, ours, ensure(name) / "tokenizer.json", facts)


def _adapter(name: str, base: str) -> Adapter | None:
    """Return an adapter; None for 'shipped' where none is shipped for the base.

    Raises:
        SettingsError: there is no such file, or it was trained on canvases.
    """
    from redraft.model.weights.adapter import load_adapter
    from redraft.model.weights.catalog import info

    if name == "shipped":
        path = None if Path(base).is_dir() else info(base).adapter
        if path is None:
            return None
    else:
        path = Path(name)
    if not path.is_file():
        raise SettingsError(f"No adapter at {path}. Give its file, 'shipped' or 'fresh'.")
    adapter = load_adapter(path)
    if adapter.metadata.get("adapter", "canvas") == "canvas":
        raise SettingsError(
            f"{path} was trained on canvases, which this Redraft does not train. Train an adapter "
            "with --config causal-cpu or h100-causal."
        )
    return adapter


def _rank(lora: Mapping[str, NDArray[np.float32]]) -> int:
    return max([len(v) for name, v in lora.items() if name.endswith("lora_a")])


def _network(
    loop: ModuleType,
    config: Any,
    base: _Base,
    begin: Adapter | None,
    shipped: Adapter | None,
    device: str,
) -> tuple[Any, Mapping[str, NDArray[np.float32]]]:
    """Return the network to train, and the low-rank change that is merged into its base."""
    from redraft.model.training.checkpoints import start_of
    from redraft.model.weights.adapter import Adapter, with_ground

    start = start_of(begin, shipped, config)
    below = Adapter({}, {}, None, dict(start.ground))
    weights = dict(with_ground(base.config, base.tensors, below))
    return loop.build(config, base.config, weights, start, device), start.ground


def _config_file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    from importlib.resources import files

    shipped = Path(str(files("redraft.model"))) / "configs" / f"{name}.toml"
    if not shipped.is_file():
        known = ", ".join(sorted(p.stem for p in shipped.parent.glob("*.toml")))
        raise SettingsError(f"No training config {name!r}; there are {known}, or give a TOML file.")
    return shipped


def _torch_side() -> ModuleType:
    """Return ``redraft.model.training.loop``, or say what to do where torch is missing."""
    try:
        from redraft.model.training import loop
    except ModuleNotFoundError as error:
        raise InstallError(
            f"Training needs {error.name}, which is not installed. Run {how_to_install('lab')}."
        ) from error
    return loop


def _describe(config: dict[str, Any], metadata: Mapping[str, str]) -> None:
    """Put into a model's ``config`` what the metadata of its adapter say."""
    config["canvas_width"] = int(metadata.get("canvas", config["canvas_width"]))
    for name in ("adapter", "verifier"):
        config[name] = metadata.get(name, config[name])
    masks = int(metadata.get("masks", "0"))
    rank, sampler = int(metadata.get("rank", "0")), int(metadata.get("sampler", "0"))
    for name, value in (("masks", masks), ("mask_rank", rank), ("sampler", sampler)):
        config.pop(name, None)
        if masks and value:
            config[name] = value


def _check_base(adapter: Path, metadata: Mapping[str, str], facts: Mapping[str, Any]) -> None:
    """Raise SettingsError if the adapter was trained for other weights than the model's."""
    wanted = facts["base"]["gguf_sha256"]
    if metadata.get("base_sha256", wanted) != wanted:
        raise SettingsError(
            f"{adapter} was trained for weights of SHA-256 {metadata['base_sha256']}, "
            f"{facts['name']} is made from {wanted}. Give the model of these weights by --model."
        )
