"""The model that is measured, and its decoding settings.

The model is the shipped one, another adapter, the bare base, or a ready folder. A folder of an
adapter is made by the same step as for serving.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from redraft.model.config import ModelConfig
from redraft.model.decode.completion import Plan, plan_for
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.load import KV_BYTES, choose_device, template_in, which_model
from redraft.model.predict import Model, warm_up
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.runtime.device import choose
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.weights.adapter import load_adapter
from redraft.model.weights.catalog import ModelInfo, cache_dir, info
from redraft.model.weights.convert import convert, own_weights
from redraft.model.weights.download import Progress
from redraft.model.weights.files import MANIFEST, problem_of, read_json, sha256_of
from redraft.model.weights.store import base_path, ensure, recipe_of

from .spec import BARE, SHIPPED, RunSpec


def plan_of(spec: RunSpec) -> Plan:
    """Return the decoding settings of a run: those of its quality, with its changes.

    Raises:
        SettingsError: a change is not FIELD=VALUE of such a setting.
    """
    from pydantic import TypeAdapter, ValidationError

    plan = asdict(plan_for(spec.quality))
    changes = {field: value for field, _, value in (each.partition("=") for each in spec.set)}
    if unknown := sorted(changes.keys() - plan.keys()):
        raise SettingsError(
            f"There is no decoding setting {', '.join(unknown)}. Choose among {', '.join(plan)}."
        )
    try:
        return TypeAdapter(Plan).validate_python(plan | changes)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(
            f"--set {first['loc'][0]}={first['input']}: {first['msg'].lower()}."
        ) from error


def check_plan(plan: Plan, config: ModelConfig) -> None:
    """Refuse to let weights write causally that were not trained to.

    Raises:
        SettingsError: they were not.
    """
    if not plan.drafts and config.verifier == "none":
        raise SettingsError(
            "These weights were not trained to write autoregressively (verifier none); their "
            "control is --set threshold=inf, one token a step."
        )


OnProgress = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A folder ready to load, and what to call it."""

    label: str
    folder: Path
    variant: str
    provider: str
    identity: str  # SHA-256 of what makes its answers: adapter, or the folder's manifest


def find_model(spec: RunSpec, report: OnProgress = ignore_progress) -> MeasuredModel:
    """Return the folder of the model to measure, made if it is missing.

    Raises:
        SettingsError: there is no such file, or the variant does not run here.
        WeightsError: the adapter does not fit the base.
    """
    variant, provider = spec.variant or None, spec.provider or None
    if spec.weights is not None:
        return _ready_folder(spec.weights, provider)
    model = which_model(spec.model, variant, provider, None).model
    described = info(model)
    if spec.adapter == SHIPPED:
        device = choose_device(described, variant, provider)
        folder = ensure(model, device.variant, report)
        identity = described.adapter_sha256 or sha256_of(folder / MANIFEST)
        label = f"{described.name} {described.version}"
        return MeasuredModel(label, folder, device.variant, device.provider, identity)
    is_bare = spec.adapter == BARE
    changed = bare(described) if is_bare else with_adapter(described, Path(spec.adapter))
    device = choose_device(changed, variant, provider)
    identity = changed.adapter_sha256 or described.base.gguf_sha256
    folder = cache_dir() / "judged" / identity[:16] / device.variant
    _make(changed, model, folder, device.variant, report)
    label = "bare base" if is_bare else f"{Path(spec.adapter).name} ({identity[:8]})"
    return MeasuredModel(label, folder, device.variant, device.provider, identity)


def _ready_folder(folder: Path, provider: str | None) -> MeasuredModel:
    variant = read_json(folder / "graphs.json").get("variant")
    if variant is None:
        raise SettingsError(
            f"{folder} holds no ready model: it has no graphs.json. Name a folder that "
            "'redraft model pull' printed."
        )
    if provider is None or provider.upper() != "CPU":  # the CPU reads every variant here
        provider = choose(provider or "auto", str(variant)).provider
    named = folder / (MANIFEST if (folder / MANIFEST).is_file() else "config.json")
    return MeasuredModel(folder.name, folder, str(variant), provider, sha256_of(named))


def bare(model: ModelInfo) -> ModelInfo:
    """Return the model without its adapter, which writes causally."""
    config = replace(model.config, adapter="none", verifier="ar", masks=0, mask_rank=0, sampler=0)
    return replace(model, adapter=None, adapter_sha256="", config=config)


def with_adapter(model: ModelInfo, path: Path) -> ModelInfo:
    """Return the model with another adapter, run as that adapter says it was trained."""
    if not path.is_file():
        raise SettingsError(f"No adapter at {path}. Give its file, '{SHIPPED}' or '{BARE}'.")
    config = _config(model.config, load_adapter(path).metadata, path)
    return replace(model, adapter=path, adapter_sha256=sha256_of(path), config=config)


def _config(config: ModelConfig, says: Mapping[str, str], path: Path) -> ModelConfig:
    adapter, verifier = says.get("adapter", config.adapter), says.get("verifier", config.verifier)
    if adapter not in ("all", "masks") or verifier != "ar":
        raise WeightsError(
            f"{path} says adapter = {adapter!r} and verifier = {verifier!r}; this Redraft serves "
            "adapters of the causal pass (adapter = 'all') and of masks over it ('masks'), both "
            "with verifier = 'ar'. Train one with 'redraft train run --config causal-cpu'."
        )
    numbers = {"canvas": str(config.canvas_width), "masks": "0", "sampler": "0", "rank": "0"}
    for name in numbers:
        numbers[name] = says.get(name, numbers[name])
        if not numbers[name].isdecimal():
            raise WeightsError(f"{path} says {name} = {numbers[name]!r}, not a whole number.")
    masks = int(numbers["masks"])
    return replace(
        config,
        adapter="masks" if adapter == "masks" else "all",
        verifier="ar",
        canvas_width=int(numbers["canvas"]),
        masks=masks,
        mask_rank=int(numbers["rank"]) if masks else 0,
        sampler=int(numbers["sampler"]),
    )


def _make(model: ModelInfo, name: str, folder: Path, variant: str, report: OnProgress) -> None:
    recipe = recipe_of(model, variant)
    if problem_of(folder, recipe, thorough=False):
        weights = own_weights(model, base_path(name, report))
        convert(weights, variant, folder, recipe, report)


def load(chosen: MeasuredModel, context_tokens: int, threads: int | None) -> Model:
    """Return the model in memory.

    Raises:
        WeightsError: the folder does not load.
    """
    from redraft.model.runtime.onnx_backend import OnnxBackend

    backend = OnnxBackend(chosen.folder, chosen.provider, threads, KV_BYTES)
    try:
        warm_up(backend)
        tokenizer = Tokenizer.from_file(chosen.folder / "tokenizer.json")
        return Model(
            name=chosen.label,
            backend=backend,
            tokenizer=tokenizer,
            cache=PrefixCache(backend, KV_BYTES),
            context_tokens=context_tokens,
            template=template_in(chosen.folder, tokenizer),
        )
    except BaseException:
        backend.close()
        raise
