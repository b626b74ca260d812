"""Loading a model for the engine: weights from the registry, onnxruntime, tokenizer, calibration.

onnxruntime is imported when a load begins, so that an engine without it can report the problem.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .calibrate import CHOICES, calibrate
from .decode.pass_costs import PassPrices
from .errors import InvalidRequest
from .network.quantize import HALF
from .predict import Loader, LoadProgress, Model, warm_up
from .prompts.chat import ChatTemplate
from .prompts.tokenizer import Tokenizer
from .runtime.backend import Backend
from .runtime.device import Device, Served, choose
from .runtime.huge_pages import collapse
from .runtime.kv_memory import return_freed, size_class
from .runtime.machine import import_onnxruntime, processor
from .runtime.prefix_cache import PrefixCache
from .weights.combine import CHAT_TEMPLATE
from .weights.fetch import Progress
from .weights.provide import ensure
from .weights.registry import ModelInfo, cache_dir, info

if TYPE_CHECKING:
    from .runtime.onnx_backend import OnnxBackend

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
    """Return a loader over onnxruntime for an engine; it fetches missing weights first.

    Args:
        variant: precision of the weights; None: the best one for the provider.
        provider: of the installed onnxruntime, in any case; None: CUDA if it works, else CPU.
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
    """Return the model in memory, warm and calibrated."""
    from .runtime.onnx_backend import OnnxBackend

    backend = OnnxBackend(folder, device.provider, threads, KV_BYTES)
    try:
        warm_up(backend)
        budget, prices = _calibrated(backend, f"{name} {info(name).version}", threads)
        kept = kept_bytes(backend, budget)
        backend.keep(kept)
        backend.prepare(budget + 1)
        tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
        return_freed()
        if backend.provider == "CPU":  # takes half a second beside the first requests
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
        )
    except BaseException:
        backend.close()
        raise


def template_in(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """Return how these weights read conversations; None without a readable template."""
    file = folder / CHAT_TEMPLATE
    if not file.is_file():
        return None
    try:
        return ChatTemplate(file.read_text("utf-8"), tokenizer, datetime.now)
    except InvalidRequest as error:
        _log.warning("%s", error)
        return None


def _calibrated(
    backend: OnnxBackend, weights: str, threads: int | None
) -> tuple[int, PassPrices | None]:
    """Return the context budget in tokens, and the prices of passes if drafts are verified.

    Args:
        weights: name and version.
    """
    key = (
        f"{weights} {backend.variant} {backend.provider} {threads or 0} {processor()} "
        f"onnxruntime {import_onnxruntime().__version__}"
    )
    found = calibrate(backend, key, calibration_file())
    if found.prefill is None:  # each step reads the whole prompt
        budget = CHOICES[2] if backend.provider == "CUDA" else CHOICES[0]
    else:
        budget = found.context_tokens(KV_BYTES // backend.bytes_per_token)
    passes = found.passes
    if passes is None:
        return budget, None
    return budget, PassPrices.measured(passes.widths, passes.masks_ms, passes.mask_ms)


def kept_bytes(backend: Backend, budget: int) -> int:
    """Return the memory for keys and values of cached prompts of ``budget`` tokens."""
    return min(KV_BYTES, KEPT_PROMPTS * size_class(budget + 1) * backend.bytes_per_token)


def choose_device(found: ModelInfo, variant: str | None, provider: str | None) -> Device:
    """Return the device and the variant of a model: as requested, or as suits device and model.

    Of an imported model a variant is chosen that exists.

    Raises:
        InstallError: what was asked for does not work.
        SettingsError: an unknown name, or a variant that the provider does not run.
    """
    return choose(provider or "auto", variant or "auto", found.config, served_by(found))


def served_by(found: ModelInfo) -> Served:
    """Return which variant of a model is available for a provider."""

    def served(provider: str, usual: str) -> str:
        wanted = found.default_variant
        chosen = wanted if provider == "CPU" and wanted in ("q8", "fp32", "q4") else usual
        if found.origin is not None or chosen in found.prebuilt:
            return chosen
        fitting = [v for v in found.prebuilt if (v in HALF) == (provider == "CUDA")]
        return wanted if wanted in fitting else next(iter(fitting), "")

    return served


def calibration_file() -> Path:
    """Return the file with the measurements of earlier starts."""
    return cache_dir() / "calibration.json"
