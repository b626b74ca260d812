"""Import of open weights at hand: a Hugging Face folder or one GGUF file becomes a model.

The result lies below ``models`` in the cache: a ready folder per variant and the description by
which the catalog lists it. The original is not needed any more.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import NamedTuple

import psutil

from ..config import ModelConfig, tensor_shapes
from ..errors import SettingsError, WeightsError
from ..network.quantize import VARIANTS, variant_named
from ..prompts.registry import IN_PLACE, check_format, native_format
from ..prompts.tokenizer import Tokenizer
from ..records import MAX_ANSWER_TOKENS
from .adapter import Adapter, check_adapter, load_adapter, merge
from .catalog import DESCRIPTION, ModelInfo, cache_dir, check_name, list_models, read_description
from .convert import CHAT_TEMPLATE, Weights, convert, estimate_bytes
from .download import Progress, ProgressCallback, no_progress
from .families import EXPAND, conventions, family_of
from .files import explain_errors, read_json, sha256_of, write_atomically
from .gguf import GGUFFile, read_checkpoint, stores_tied
from .huggingface import checkpoint_sha256, model_name, read_folder
from .store import hold_lock
from .tensors import FloatArray, tensors_in
from .vocabularies import gguf_tokenizer, token_fields

#: The variant made for a CPU.
DEFAULT_VARIANT = "int8"
#: What is made where that does not fit in memory, or fp16 on a GPU.
SMALLER = {"int8": "q4", "fp16": "q4f16"}

#: Of the memory, what a model may take.
_MOST_MEMORY = 0.9
#: Positions of one verifying pass of weights that only write from left to right: where they repeat
#: text, so many tokens come at once.
_VERIFIED_WIDTH = 32
#: What GGUF calls a family, where its config.json calls it otherwise.
_GGUF_TYPES = {"dream": "Dream"}
#: The adapter beside Nemotron-Labs-Diffusion's weights that acts while a canvas drafts.
_DRAFTING_FILE = "linear_spec_lora/adapter_model.safetensors"
_DRAFTING_TENSOR = re.compile(
    r"base_model\.model\.encoder\.layers\.(\d+)\.self_attn\.o_proj\.lora_([AB])\.weight"
)


class Source(NamedTuple):
    """Weights at hand, read but for the tensors themselves."""

    config: ModelConfig
    tensors: Mapping[str, FloatArray]  # by our names; each access reads one
    tokenizer: Tokenizer
    digest: str  # SHA-256 of all that decides them
    family: str  # for people
    license: str  # "" where unknown
    names: tuple[str, ...]  # of the weights, here and by themselves
    template: str  # of conversations, in Jinja; "" where unknown


def import_weights(  # noqa: PLR0913 - all but the first are optional
    path: Path,
    name: str | None = None,
    variant: str | None = None,
    *,
    adapter: Path | None = None,
    prompt_format: str | None = None,
    license_: str = "",
    called: str = "",
    memory: int | None = None,
    gpu: bool = False,
    progress: ProgressCallback = no_progress,
) -> ModelInfo:
    """Convert the weights at ``path`` and register them as ``name``.

    Importing the same weights again adds a variant that is missing; other weights of the same name
    replace what was imported.

    Args:
        path: a Hugging Face folder, or a GGUF file.
        name: None: the folder's or file's.
        variant: None: that of those for where it is to run that fits in memory.
        adapter: trained for exactly these weights with 'redraft train run', to be merged.
        prompt_format: of causal weights; None: what they were most likely trained on.
        license_: where the weights themselves state none.
        called: a further name of the weights, which may tell what they were trained on.
        memory: bytes where it is to run; None: this machine's.
        gpu: it is to run on CUDA.

    Raises:
        SettingsError: the name is taken, or there is no such variant or format.
        WeightsError: the weights cannot be read, do not fit in memory, or the result cannot be
            written.
    """
    if variant is not None:
        variant_named(variant)
    source = read_source(path, name)
    check_name(source.config.name)
    source = source._replace(license=source.license or license_, names=(*source.names, called))
    weights, digest = _weights(source, path, adapter, prompt_format)
    config = weights.config
    variant = find_fitting(config, variant, memory or psutil.virtual_memory().total, gpu)
    target = cache_dir() / "models" / config.name
    before = _existing(config.name, target)
    progress(Progress("combine", 0, 0))
    made = {variant}
    if before is not None and (before.version, before.config) == (digest[:16], config):
        made |= {kept for kept in before.prebuilt if (target / kept).is_dir()}
    count = sum(prod(shape) for shape in tensor_shapes(config.to_dict()).values())
    adapted = "" if config.adapter == "none" else ", adapted"
    model = ModelInfo(
        name=config.name,
        version=digest[:16],
        summary=f"{source.family} of {_size(count)} weights{adapted}, imported",
        license=source.license,
        origin=None,
        adapter=None,
        adapter_sha256="",
        config=config,
        default_variant=variant,
        folder=target,
        prebuilt=tuple(each for each in VARIANTS if each in made),
    )
    with hold_lock(progress):
        convert(weights, variant, target / variant, f"{digest} {variant}", progress)
        write_atomically(target / DESCRIPTION, json.dumps(model.describe(), indent=1).encode())
        for stale in set(VARIANTS) - made:
            shutil.rmtree(target / stale, ignore_errors=True)
    return model


def find_fitting(config: ModelConfig, variant: str | None, memory: int, gpu: bool) -> str:
    """Return ``variant``, or the one to make where none is named.

    Raises:
        WeightsError: it would not fit in ``memory`` bytes.
    """
    room = _MOST_MEMORY * memory
    usual = "fp16" if gpu else DEFAULT_VARIANT
    advice = "" if variant in (None, SMALLER[usual]) else " or another --variant"
    if variant is None:
        variant = usual if estimate_bytes(config, usual) <= room else SMALLER[usual]
    if (needed := estimate_bytes(config, variant)) > room:
        raise WeightsError(
            f"{config.name} takes {needed / 1e9:.1f} GB as {variant}, "
            f"{'this GPU' if gpu else 'this machine'} has {memory / 1e9:.1f} GB of memory. Choose "
            f"smaller weights{advice}."
        )
    return variant


def _existing(name: str, target: Path) -> ModelInfo | None:
    """Return what was imported under this name before."""
    for model in list_models():
        if model.name == name and (model.folder != target or model.origin is not None):
            raise SettingsError(
                f"There is a model {name!r} already, in {model.folder or 'Redraft itself'}. Choose "
                "another name with --name."
            )
    if (target / DESCRIPTION).is_file():
        with contextlib.suppress(WeightsError):  # damaged: written anew
            return read_description(target / DESCRIPTION)
    return None


def _size(weights: int) -> str:
    return f"{weights / 1e9:.1f}B" if weights >= 1e9 else f"{weights / 1e6:.0f}M"


# --- how they are served --------------------------------------------------------------------------


def _weights(
    source: Source, path: Path, adapter: Path | None, prompt_format: str | None
) -> tuple[Weights, str]:
    """Return the weights to convert, and the SHA-256 of all they come from.

    An adapter that is named is merged, else the one for drafts that lies beside the weights.
    """
    config, changes, digest = source.config, None, source.digest
    if adapter is not None:
        changes = load_adapter(adapter)
        config = _adapted(config, changes, adapter)
        check_adapter(changes, config, digest)
        digest = f"{sha256_of(adapter)[:8]}{digest}"
    else:
        config = config_to_serve(source, prompt_format)
        if config.verifier == "ar" and (path / _DRAFTING_FILE).is_file():
            config, changes = replace(config, adapter="canvas"), _drafting_adapter(path)
            digest = f"{sha256_of(path / _DRAFTING_FILE)[:8]}{digest}"
    context, canvas = merge(config, source.tensors, changes)
    return Weights(config, context, canvas, source.tokenizer, source.template), digest


def config_to_serve(source: Source, prompt_format: str | None) -> ModelConfig:
    """Return the configuration to serve weights by that nothing of ours was trained on.

    The causal pass of autoregressive weights writes and verifies, and their prompt is the one they
    were trained on. DreamOn's canvases grow and shrink, between the text before and behind them.

    Raises:
        SettingsError: their vocabulary cannot write ``prompt_format``, or they denoise.
    """
    config, tokenizer = source.config, source.tokenizer
    if config.attention != "canvas":
        if prompt_format is not None:
            raise SettingsError(
                f"{config.name} is a diffusion model and reads Redraft's own prompt. Leave "
                "--format out."
            )
        expand = tokenizer.special_id(EXPAND)
        if expand is None or config.attention != "bidirectional":
            return config
        return replace(config, expand_token=expand, prompt_format=IN_PLACE)
    special = set(tokenizer.special.values())
    chosen = prompt_format or native_format(special, (config.name, *source.names))
    check_format(chosen, special)
    config = replace(config, specials_end=True, prompt_format=chosen)
    if config.verifier == "ar":  # trained to draft on canvases for the causal pass
        return config
    return replace(
        config, verifier="ar", draft_after=MAX_ANSWER_TOKENS, canvas_width=_VERIFIED_WIDTH
    )


def _adapted(config: ModelConfig, adapter: Adapter, path: Path) -> ModelConfig:
    """Return the configuration under which an adapter was trained for these weights."""
    if config.attention != "canvas":
        raise SettingsError(
            f"{config.name} is a diffusion model already; an adapter of Redraft changes only plain "
            "Llama, Qwen2 and Qwen3 weights. Leave --adapter out."
        )
    stated = {"adapter": "canvas", "canvas": str(config.canvas_width), **adapter.metadata}
    where, verifier, width = stated["adapter"], stated.get("verifier", "none"), stated["canvas"]
    if (where, verifier) != ("all", "ar") or not width.isdecimal():
        raise WeightsError(
            f"{path} says adapter = {where!r}, verifier = {verifier!r}, canvas = {width!r}; this "
            "Redraft serves adapters of the causal pass (adapter = 'all', verifier = 'ar'). Train "
            "one with 'redraft train run --config causal-cpu'."
        )
    return replace(
        config,
        adapter="all",
        verifier="ar",
        draft_after=MAX_ANSWER_TOKENS,
        logit_shift=stated.get("logit_shift", "1") == "1",
        canvas_width=int(width),
    )


def _drafting_adapter(folder: Path) -> Adapter:
    """Return the adapter for canvases alone that lies beside the weights."""
    path = folder / _DRAFTING_FILE
    about = read_json(path.with_name("adapter_config.json"))
    rank, alpha = about.get("r"), about.get("lora_alpha")
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise WeightsError(
            f"{path.with_name('adapter_config.json')} says r = {rank!r}, lora_alpha = {alpha!r}. "
            f"Download it again, or remove {path.parent} to draft without it."
        )
    lora: dict[str, FloatArray] = {}
    for name, tensor in tensors_in(path).items():
        found = _DRAFTING_TENSOR.fullmatch(name)
        if found is None:
            raise WeightsError(
                f"{path} holds {name!r}, which this Redraft does not know. "
                f"Remove {path.parent} to draft without it."
            )
        lora[f"blocks.{found[1]}.attn.o.lora_{found[2].lower()}"] = tensor.read()
    return Adapter({"scale": str(alpha / rank)}, lora, None)


# --- reading --------------------------------------------------------------------------------------


def read_source(path: Path, name: str | None = None) -> Source:
    """Return the weights in a folder or a file.

    Args:
        name: of the model; None: the folder's or file's.

    Raises:
        WeightsError: it cannot be read, or is of no kind Redraft runs.
    """
    if path.is_dir():
        return _read_folder(path, name)
    if not path.exists():
        raise WeightsError(f"There is nothing at {path}. Name a folder, or a GGUF file.")
    return _read_gguf(path, name)


def _read_folder(folder: Path, name: str | None) -> Source:
    config, tensors, tokenizer, family = read_folder(folder)
    if name is not None:
        config = replace(config, name=name)
    template: object = _text_of(folder / CHAT_TEMPLATE)
    if not template:  # in tokenizer_config.json, alone or as the one called "default"
        template = read_json(folder / "tokenizer_config.json").get("chat_template")
        if isinstance(template, list):
            named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
            template = named.get("default")
    # The model card states the license at its top.
    card = _text_of(folder / "README.md")[:20_000].partition("\n---")[0] + "\n"
    stated = re.search(r"\A---\n(?:.*\n)*?license: *['\"]?([\w.+-]+)", card)
    return Source(
        config=config,
        tensors=tensors,
        tokenizer=tokenizer,
        digest=checkpoint_sha256(folder),
        family=family.name,
        license=stated[1] if stated else "",
        names=(folder.resolve().name,),
        template=template if isinstance(template, str) else "",
    )


def _text_of(path: Path) -> str:
    if not path.is_file():
        return ""
    with explain_errors("read", path):
        return path.read_text(encoding="utf-8", errors="replace")


def _read_gguf(path: Path, name: str | None) -> Source:
    file = GGUFFile(path)
    fields, tensors = read_checkpoint(file, tied=stores_tied(file))
    tokenizer = gguf_tokenizer(file)
    kind = file.get("general.architecture", str)
    family = family_of({"model_type": _GGUF_TYPES.get(kind, kind)}, tokenizer.special)
    if tokenizer.size != fields["vocab"]:
        raise WeightsError(
            f"{path} has {fields['vocab']:,} rows for its {tokenizer.size:,} tokens. It is "
            "damaged: download it again."
        )
    fields |= conventions({}, family) | token_fields(tokenizer, family.plain)
    if (mask := "tokenizer.ggml.mask_token_id") in file:
        fields["mask_token"] = file.get(mask, int)
    called, stated = file.value("general.name"), file.value("general.license")
    return Source(
        config=ModelConfig(name=name or model_name(path.stem), **fields),
        tensors=tensors,
        tokenizer=tokenizer,
        digest=sha256_of(path),
        family=family.name,
        license=stated if isinstance(stated, str) else "",
        names=(path.stem, called if isinstance(called, str) else ""),
        template=file.chat_template(),
    )
