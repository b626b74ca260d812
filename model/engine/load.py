"""Loads a model for the engine: weights from the registry, onnxruntime, tokenizer, budget.

The one place where serving's parts are put together. onnxruntime is imported when a load begins,
so that an engine can be made, and say what is wrong, where it is not installed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import WeightsError
from ..prompt.tokens import Tokenizer
from ..runtime.device import Device, pick_device
from ..runtime.prefix_cache import PrefixCache
from ..weights.fetch import Progress
from ..weights.provide import ensure
from ..weights.registry import cache_dir, info
from .answer import Loader, LoadProgress, Model, warm_up
from .budget import CHOICES, best_known, pick_budget

if TYPE_CHECKING:
    from ..runtime.onnx_backend import OnnxBackend

#: Memory for the keys and values of cached prompts.
KV_BYTES = 1 << 30


def onnx_loader(
    model: str, variant: str | None, provider: str | None, threads: int | None
) -> Loader:
    """A loader for :class:`~redraft.model.engine.engine.Engine` over onnxruntime; it fetches the
    weights first where they are missing.

    Args:
        variant: precision of the weights; None: the best one for the provider.
        provider: "CPU" or "CUDA"; None: CUDA where it works, else CPU.
        threads: for the CPU; None: one per physical core.

    Raises (from the loader):
        UnknownModel, SettingsError, WeightsError, InstallError: each says what to do.
    """

    def load(report: LoadProgress) -> Model:
        from ..runtime.block_backend import open_backend

        def fetching(progress: Progress) -> None:
            fetches = progress.stage in ("wait", "download")
            report("downloading" if fetches else "loading", progress.fraction, progress.stage)

        device, chosen = _choose(model, variant, provider)
        folder = ensure(model, chosen, fetching)
        report("loading", None, "")
        backend = open_backend(folder, device.provider, threads, KV_BYTES)
        try:
            if backend.config.attention == "canvas" and not backend.config.logit_shift:
                raise WeightsError(
                    f"The model {model} predicts without the shift by one position, which this "
                    "Redraft does not run. Convert it with logit_shift, or choose another model."
                )
            warm_up(backend)
            budget = _budget(backend, model, threads)
            backend.prepare(budget + 1)
            return Model(
                name=model,
                backend=backend,
                tokenizer=Tokenizer.from_file(folder / "tokenizer.json"),
                cache=PrefixCache(backend, KV_BYTES),
                context_tokens=budget,
                notice=device.notice,
                version=info(model).version,
            )
        except BaseException:
            backend.close()
            raise

    return load


def _budget(backend: OnnxBackend, model: str, threads: int | None) -> int:
    """Tokens of context where a request names none."""
    if backend.config.attention == "bidirectional":  # every step reads all of it, not the first
        return CHOICES[2] if backend.provider == "CUDA" else CHOICES[0]
    speed = best_known(backend, model, cache_dir() / "speed.json", threads or 0, time.perf_counter)
    return pick_budget(speed, KV_BYTES // backend.bytes_per_token)


def _choose(model: str, variant: str | None, provider: str | None) -> tuple[Device, str]:
    """Where to run which variant: what is asked for, or what suits the device, or the finer one
    that the model's description asks for; of an imported model one that was made."""
    device = pick_device((provider or "auto").lower(), variant or "auto")
    if variant is not None:
        return device, variant
    found = info(model)
    wanted = found.default_variant
    chosen = wanted if device.provider == "CPU" and wanted in ("q8", "fp32") else device.variant
    if found.origin is not None or chosen in found.prebuilt:
        return device, chosen
    fitting = [v for v in found.prebuilt if (v == "fp16") == (device.provider == "CUDA")]
    if fitting:
        return device, wanted if wanted in fitting else fitting[0]
    if provider is None and device.provider == "CUDA":
        why = f"Running on the CPU: {model} was imported as {wanted}; fp16 would use CUDA."
        return replace(pick_device("cpu", wanted), notice=why), wanted
    return device, chosen
