"""Loads a model for the engine: weights from the registry, onnxruntime, tokenizer, budget.

The one place where serving's parts are put together. onnxruntime is imported when a load begins,
so that an engine can be made, and say what is wrong, where it is not installed.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..decoding.prices import PassPrices
from ..errors import InvalidRequest
from ..network.quantize import HALF
from ..prompt.chat import ChatTemplate
from ..prompt.tokens import Tokenizer
from ..runtime.backend import Backend
from ..runtime.device import Device, Served, choose
from ..runtime.huge_pages import collapse
from ..runtime.installed import import_onnxruntime
from ..runtime.kv_memory import return_freed, size_class
from ..runtime.machine import processor
from ..runtime.prefix_cache import PrefixCache
from ..weights.combine import CHAT_TEMPLATE
from ..weights.fetch import Progress
from ..weights.provide import ensure
from ..weights.registry import ModelInfo, cache_dir, info
from .answer import Loader, LoadProgress, Model, warm_up
from .budget import CHOICES, best_known, pick_budget
from .pass_notes import FILE as PASSES
from .pass_notes import PassCosts, usual_costs

if TYPE_CHECKING:
    from ..runtime.onnx_backend import OnnxBackend

_log = logging.getLogger(__name__)

#: Memory for the keys and values of cached prompts at most.
KV_BYTES = 1 << 30
#: Prompts of the budget's size that are kept: an infill and a next edit in each of two files.
KEPT_PROMPTS = 4


def onnx_loader(
    model: str,
    variant: str | None,
    provider: str | None,
    threads: int | None,
) -> Loader:
    """A loader for :class:`~redraft.model.engine.engine.Engine` over onnxruntime; it fetches the
    weights first where they are missing.

    Args:
        variant: precision of the weights; None: the best one for the provider.
        provider: of the installed onnxruntime, in any case; None: CUDA where it works, else CPU.
        threads: for the CPU; None: one per physical core.

    Raises (from the loader):
        UnknownModel, SettingsError, WeightsError, InstallError: each says what to do.
    """

    def load(report: LoadProgress) -> Model:
        def fetching(progress: Progress) -> None:
            fetches = progress.stage in ("wait", "download")
            report("downloading" if fetches else "loading", progress.fraction, progress.label)

        device = choose_device(info(model), variant, provider)
        folder = ensure(model, device.variant, fetching)
        report("loading", None, "")
        return _open(model, folder, device, threads)

    return load


def _open(name: str, folder: Path, device: Device, threads: int | None) -> Model:
    """Return the model in memory, warm, with its budget measured."""
    from ..runtime.onnx_backend import OnnxBackend

    backend = OnnxBackend(folder, device.provider, threads, KV_BYTES)
    try:
        warm_up(backend)
        budget = _budget(backend, name, threads)
        kept = kept_bytes(backend, budget)
        backend.keep(kept)
        backend.prepare(budget + 1)
        tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
        return_freed()
        prices = _prices(backend, f"{name} {info(name).version}", threads)
        if backend.provider == "CPU":  # takes half a second, which nobody has to wait for
            threading.Thread(target=collapse, name="huge pages", daemon=True).start()
        return Model(
            name=name,
            backend=backend,
            tokenizer=tokenizer,
            cache=PrefixCache(backend, kept),
            context_tokens=budget,
            notice=device.notice,
            version=info(name).version,
            prices=prices,
            template=template_in(folder, tokenizer) if not info(name).chat else None,
            changed=backend.changed,
        )
    except BaseException:
        backend.close()
        raise


def template_in(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """How these weights read conversations; None where they came without a template. One that
    cannot be read is no reason not to complete code."""
    file = folder / CHAT_TEMPLATE
    if not file.is_file():
        return None
    try:
        return ChatTemplate(file.read_text("utf-8"), tokenizer, datetime.now)
    except InvalidRequest as error:
        _log.warning("%s", error)
        return None


def _prices(backend: Backend, weights: str, threads: int | None) -> PassPrices | None:
    """What causal passes cost here; None where drafts are not judged. The first few starts measure
    it, for about half a second, or three times that where masks draft.

    Args:
        weights: name and version.
    """
    from ..runtime.onnx_backend import OnnxBackend
    from ..runtime.pass_costs import measure_masks, measure_passes

    if backend.config.verifier != "ar" or not isinstance(backend, OnnxBackend):
        return None
    how = f"{backend.variant} {backend.provider} {threads or 0} {processor()}"
    costs = usual_costs(
        f"{weights} {how} onnxruntime {import_onnxruntime().__version__}",
        lambda: PassCosts(measure_passes(backend), measure_masks(backend)),
        costs_noted(),
        time.time,
    )
    return PassPrices.measured(costs.widths, costs.masks.any_ms, costs.masks.each_ms)


def kept_bytes(backend: Backend, budget: int) -> int:
    """Memory for the keys and values of cached prompts of ``budget`` tokens."""
    return min(KV_BYTES, KEPT_PROMPTS * size_class(budget + 1) * backend.bytes_per_token)


def _budget(backend: OnnxBackend, model: str, threads: int | None) -> int:
    """Tokens of context where a request names none."""
    if backend.config.attention == "bidirectional":  # every step reads all of it, not the first
        return CHOICES[2] if backend.provider == "CUDA" else CHOICES[0]
    speed = best_known(backend, model, cache_dir() / "speed.json", threads or 0, time.perf_counter)
    return pick_budget(speed, KV_BYTES // backend.bytes_per_token)


def choose_device(found: ModelInfo, variant: str | None, provider: str | None) -> Device:
    """Return where to run which variant of a model: what is asked for, or what suits the device, or
    the finer variant that the model's description asks for; of an imported model one that was made.

    Raises:
        InstallError: what was asked for does not work.
        SettingsError: an unknown name, or a variant that the provider does not run.
    """
    return choose(provider or "auto", variant or "auto", found.config, served_by(found))


def served_by(found: ModelInfo) -> Served:
    """In which variants a model is to be had."""

    def served(provider: str, usual: str) -> str:
        wanted = found.default_variant
        chosen = wanted if provider == "CPU" and wanted in ("q8", "fp32", "q4") else usual
        if found.origin is not None or chosen in found.prebuilt:
            return chosen
        fitting = [v for v in found.prebuilt if (v in HALF) == (provider == "CUDA")]
        return wanted if wanted in fitting else next(iter(fitting), "")

    return served


def costs_noted() -> Path:
    """Where the costs of passes are kept between starts."""
    return cache_dir() / PASSES
