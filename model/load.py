"""Loading a model for the engine: weights from the registry, onnxruntime, tokenizer, calibration.

onnxruntime is imported when a load begins, so that an engine without it can report the problem.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from .calibrate import (
    CHOICES,
    Calibration,
    calibrate,
    calibration_file,
    calibration_key,
    product_times,
    read_calibration,
    usual_threads,
)
from .choice import (
    ModelChoice,
    Placement,
    check_free_memory,
    check_here,
    choose_model,
    fit,
    usual_model,
    watch_choice,
)
from .config import AUTO
from .decode.next_edit import WIDEST
from .decode.pass_costs import PassPrices
from .errors import InvalidRequest, RedraftError, UnknownModel
from .network.quantize import HALF
from .predict import Chore, Loader, LoadProgress, Model, warm_up
from .prompts.chat_template import ChatTemplate
from .prompts.redraft3 import REGION_TOKENS, ROOM_TO_GROW
from .prompts.tokenizer import Tokenizer
from .runtime.backend import Backend, Cancelled
from .runtime.device import Device, Served, choose
from .runtime.huge_pages import collapse
from .runtime.kv_memory import return_freed, size_class
from .runtime.prefix_cache import PrefixCache
from .weights.catalog import DEFAULT_MODEL, ModelInfo, info
from .weights.convert import CHAT_TEMPLATE
from .weights.download import Progress
from .weights.store import ensure

if TYPE_CHECKING:
    from .runtime.onnx_backend import OnnxBackend

_log = logging.getLogger(__name__)

#: Memory for the keys and values of cached prompts at most.
KV_BYTES = 1 << 30
#: Prompts of the budget's size that are kept: an infill and a next edit in each of two files.
KEPT_PROMPTS = 4
#: Tokens that a next edit in a region of the largest size needs behind its prompt at most, see
#: :func:`.predict.room_for`.
BEHIND = 2 * (REGION_TOKENS + ROOM_TO_GROW + WIDEST)
#: Seconds without a request before memory is joined into large pages, and before the costs of this
#: machine are measured for the next start.
JOIN_IDLE_S, MEASURE_IDLE_S = 0.5, 5.0
#: Seconds that onnxruntime has before the tokenizer is read.
HEAD_START_S = 0.1


def onnx_loader(
    model: str,
    variant: str | None,
    provider: str | None,
    threads: int | None,
) -> Loader:
    """Return a loader over onnxruntime for an engine; it fetches missing weights first.

    Args:
        model: a name, or :data:`AUTO` for what suits this machine. A first load measures the
            machine, and may show that another model suits it, which is then loaded instead.
        variant: precision of the weights; None: the best one for the provider.
        provider: cpu or cuda, in any case; None: CUDA if it loads, else CPU.
        threads: for the CPU; None: see :func:`.runtime.machine.default_threads`.

    Raises (from the loader):
        UnknownModel, SettingsError, WeightsError, InstallError: each says what to do.
    """

    def load(report: LoadProgress) -> Model:
        if model != AUTO:
            return _load(model, choose_device(info(model), variant, provider), threads, report)
        return _load_chosen(variant, provider, threads, report)

    return load


def which_model(
    named: str, variant: str | None, provider: str | None, threads: int | None
) -> ModelChoice:
    """Return the model that :func:`onnx_loader` loads with these settings, and why."""
    if named != AUTO:
        return ModelChoice(named, "named by the settings")
    try:
        device = choose_device(info(DEFAULT_MODEL), variant, provider)
    except RedraftError as error:  # no onnxruntime: nothing runs here
        return ModelChoice(usual_model(AUTO), str(error))
    return choose_model(Placement(device.provider, device.variant, threads))


def _load_chosen(
    variant: str | None, provider: str | None, threads: int | None, report: LoadProgress
) -> Model:
    """Load the model that suits this machine, or that 'redraft model use' stored.

    A larger one that cannot be loaded, or is measured to be slow, gives way to the next.
    """
    ours = choose_device(info(DEFAULT_MODEL), variant, provider)
    placement = Placement(ours.provider, ours.variant, threads)
    failed: dict[str, str] = {}
    while True:
        choice = choose_model(placement, failed)
        gives_way = not choice.is_stored and choice.model != DEFAULT_MODEL
        device = _stored_device(choice.model, variant, provider) if choice.is_stored else ours
        try:
            if gives_way:
                check_free_memory(info(choice.model), placement)
            loaded = _load(choice.model, device, threads, report)
        except Cancelled:
            raise
        except Exception as error:  # onnxruntime without memory raises undocumented kinds
            if not gives_way:
                raise
            failed[choice.model] = f"it cannot be loaded: {error}"
            _log.warning("%s cannot be loaded; a smaller model runs. %s", choice.model, error)
            continue
        again = choose_model(placement, failed)  # the load has measured this machine
        if again.model == choice.model:
            return replace(
                loaded,
                larger=again.larger,
                about_larger=again.about_larger,
                why_outdated=watch_choice(again, placement, failed),
            )
        loaded.backend.close()
        if gives_way and not again.is_stored:
            _, failed[choice.model] = fit(info(choice.model), placement)  # slower than predicted
            _log.warning("%s runs from now on. %s", again.model, again.reason)


def _stored_device(name: str, variant: str | None, provider: str | None) -> Device:
    """Return the device of the model that 'redraft model use' stored.

    Raises:
        UnknownModel, WeightsError: it is no longer on this machine; says what to do.
    """
    try:
        model = info(name)
    except UnknownModel as error:
        raise UnknownModel(
            f"{error} 'redraft model use' chose it; 'redraft model use {AUTO}' undoes that."
        ) from error
    device = choose_device(model, variant, provider)
    check_here(model, device.variant)
    return device


def _load(name: str, device: Device, threads: int | None, report: LoadProgress) -> Model:
    """Return a model in memory, fetched first where it is missing."""

    def report_fetch(progress: Progress) -> None:
        fetches = progress.stage in ("wait", "download")
        report("downloading" if fetches else "loading", progress.fraction, progress.label)

    folder = ensure(name, device.variant, report_fetch)
    report("loading", None, "")
    return _open(name, folder, device, threads)


def _open(name: str, folder: Path, device: Device, threads: int | None) -> Model:
    """Return the model in memory, calibrated; what can wait for a pause is among its chores."""
    from .runtime.onnx_backend import OnnxBackend

    # Its library holds the interpreter; onnxruntime does so only until it has begun.
    reading = ThreadPoolExecutor(1, "tokenizer").submit(_read_tokenizer, folder, HEAD_START_S)
    usual = usual_threads() if threads is None and device.provider == "CPU" else threads
    backend = OnnxBackend(folder, device.provider, usual, KV_BYTES)
    try:
        key = calibration_key(info(name), backend.variant, backend.provider, threads)
        file = calibration_file()
        known = read_calibration(backend.config, key, file)
        warming = Chore(0.0, partial(warm_up, backend))
        chores = [warming, Chore(MEASURE_IDLE_S, partial(calibrate, backend, key, file))]
        if known is None:
            warm_up(backend)
            known, chores = calibrate(backend, key, file), []
        budget, prices = _budget_and_prices(backend, known)
        kept = estimate_kept_bytes(backend, budget)
        backend.keep(kept)
        backend.prepare(budget + 1)
        tokenizer = reading.result()
        return_freed()
        if backend.provider == "CPU":
            chores.insert(1, Chore(JOIN_IDLE_S, _join_pages))
        return Model(
            name=name,
            backend=backend,
            tokenizer=tokenizer,
            cache=PrefixCache(backend, kept),
            context_tokens=budget,
            notice=device.notice,
            version=info(name).version,
            prices=prices,
            chores=tuple(chores),
            template=template_in(folder, tokenizer) if not info(name).chat else None,
        )
    except BaseException:
        backend.close()
        raise


def _join_pages() -> None:
    """Begin to join pages of memory, which takes up to a second and cannot be interrupted."""
    threading.Thread(target=collapse, name="huge pages", daemon=True).start()


def _read_tokenizer(folder: Path, delay_s: float = 0.0) -> Tokenizer:
    """Return the tokenizer of a model, with the tables that the first request needs.

    The last one stays in memory (60 MB) when its model is unloaded: the library reads it for up to
    a second in which no other thread runs, so clients would take an engine that loads its model
    again for one that hangs.
    """
    time.sleep(delay_s)
    file = folder / "tokenizer.json"
    changed_ns = file.stat().st_mtime_ns if file.is_file() else 0
    return _tokenizer_of(file, changed_ns)


@lru_cache(maxsize=1)
def _tokenizer_of(file: Path, changed_ns: int) -> Tokenizer:
    del changed_ns
    tokenizer = Tokenizer.from_file(file)
    _ = tokenizer.sorted_vocab
    return tokenizer


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


def _budget_and_prices(backend: OnnxBackend, found: Calibration) -> tuple[int, PassPrices | None]:
    """Return the context budget in tokens, and the prices of passes if drafts are verified."""
    if found.prefill is None:  # each step reads the whole prompt
        budget = CHOICES[2] if backend.provider == "CUDA" else CHOICES[0]
    else:
        budget = found.context_tokens(KV_BYTES // backend.bytes_per_token)
    passes = found.passes
    if passes is None:
        return budget, None
    return budget, PassPrices.from_probe(passes.widths, passes.masks_ms, passes.mask_ms)


def estimate_kept_bytes(backend: Backend, budget: int) -> int:
    """Return the memory for keys and values of cached prompts of ``budget`` tokens.

    Each has room for its answer, of which little is ever touched.
    """
    return min(KV_BYTES, KEPT_PROMPTS * size_class(budget + BEHIND) * backend.bytes_per_token)


def choose_device(found: ModelInfo, variant: str | None, provider: str | None) -> Device:
    """Return the device and the variant of a model: as requested, or as suits device and model.

    Of an imported model a variant is chosen that exists.

    Raises:
        InstallError: what was asked for does not work.
        SettingsError: an unknown name, or a variant that the provider does not run.
    """
    return choose(provider or "auto", variant or "auto", choose_served(found), usual_on_cpu)


def usual_on_cpu() -> str:
    """Return the variant that this processor multiplies fastest, of those it multiplies right."""
    return next(iter(product_times()))


def choose_served(found: ModelInfo) -> Served:
    """Return which variant of a model is available for a provider."""

    def choose_variant(provider: str, usual: str) -> str:
        wanted = found.default_variant
        chosen = wanted if provider == "CPU" and wanted in ("fp32", "q4") else usual
        if found.origin is not None or chosen in found.prebuilt:
            return chosen
        fitting = [v for v in found.prebuilt if (v in HALF) == (provider == "CUDA")]
        return wanted if wanted in fitting else next(iter(fitting), "")

    return choose_variant
