"""The choice of the model that runs if the settings name none.

``redraft model use`` stores a name beside the weights. Without one the largest of Redraft's own
models runs that is on this machine, fast enough and small enough. The speed of a model is measured
(``calibrate.py``). Until it is, it is predicted from that of the smallest one: the time of a pass
grows as the number of weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from .calibrate import Calibration, calibration_file, calibration_key, read_notes
from .config import AUTO
from .decode.pass_costs import PassPrices
from .errors import InvalidRequest, RedraftError, WeightsError
from .runtime.machine import free_memory, memory_of
from .weights.catalog import DEFAULT_MODEL, OWN_MODELS, ModelInfo, cache_dir, info
from .weights.convert import estimate_bytes
from .weights.files import explain_errors, make_folder, require_space, write_atomically
from .weights.store import bytes_to_pull, is_here, is_pulling, is_ready

#: The longest that a line of ghost text may take when the prompt is cached, and a next edit.
LINE_MS, EDIT_MS = 250.0, 800.0
#: The largest share of a machine's memory that a model may take; the smallest one takes what it
#: needs.
MEMORY_SHARE = 0.3
#: Bytes that an engine takes beside its weights: onnxruntime, tokenizer and cached prompts. With
#: redraft-1.5b in int8 the whole process takes 2.15 GB, 1.79 of them weights.
BESIDE_WEIGHTS = 360_000_000
#: Passes and their positions in a line, and in a next edit, whose region and typed tokens are read
#: besides. On the machines of evals/LOG.md these give 69 ms for 69 and 142 for 142 (a line), 524 ms
#: for 472 to 676 (a next edit).
LINE_PASSES, LINE_POSITIONS = 3.3, 4
EDIT_PASSES, EDIT_POSITIONS, EDIT_READ = 9.0, 9, 180


@dataclass(frozen=True, slots=True)
class Placement:
    """The device and the variant of models: see :func:`~redraft.model.load.choose_device`."""

    provider: str
    variant: str
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that runs, and why."""

    model: str
    reason: str
    larger: str = ""  # a model to offer: it suits this machine, is not on it and was not declined
    #: For people, one sentence: what ``larger`` brings and costs; without it, why a larger model
    #: that is on this machine does not run.
    about_larger: str = ""
    is_stored: bool = False  # named by 'redraft model use'


@dataclass(frozen=True, slots=True)
class Speed:
    """The time that answers take, in milliseconds."""

    line_ms: float
    edit_ms: float
    is_measured: bool  # with the model itself

    def __str__(self) -> str:
        how = "measured" if self.is_measured else f"predicted from {DEFAULT_MODEL}"
        return f"a line takes {self.line_ms:.0f} ms, a next edit {self.edit_ms:.0f} ms ({how})"


def usual_model(named: str) -> str:
    """Return the model that a setting probably means, without a look at the machine."""
    return named if named != AUTO else read_stored_model() or DEFAULT_MODEL


def choose_model(
    placement: Placement, failed: Mapping[str, str] = MappingProxyType({})
) -> ModelChoice:
    """Return the model that runs where the settings name none.

    Args:
        failed: why models do not run here, by name; they are not chosen.
    """
    if stored := read_stored_model():
        return ModelChoice(stored, "chosen by 'redraft model use'", is_stored=True)
    reason = larger = about_larger = ""
    for name in OWN_MODELS[:-1]:
        model = info(name)
        is_there = is_here(model, placement.variant)
        is_coming = is_there and not is_ready(model, placement.variant) and is_pulling()
        fits, why = fit(model, placement)
        if name in failed:
            fits, why = False, failed[name]
        if fits and is_there and not is_coming:
            return ModelChoice(name, f"the largest that suits this machine: {why}")
        if not fits:
            reason = f"{name} does not run: {why}"
            about_larger = reason if is_there else ""
            continue
        reason = f"{name} suits this machine, and is not on it"
        if is_coming:
            reason = f"{name} suits this machine, and is being made ready by another process"
        elif problem := _problem_of_pull(model, placement.variant):
            reason += f". {problem}"
        elif is_declined(name):
            reason += f". It was declined; 'redraft model use {AUTO}' takes that back"
        else:
            larger, about_larger = name, describe_offer(model, placement.variant, why)
    return ModelChoice(DEFAULT_MODEL, reason, larger, about_larger)


def describe_offer(model: ModelInfo, variant: str, speed: str) -> str:
    """Return a sentence that says what a model brings and what it costs on this machine."""
    fetched = model.base.gguf_size
    disk = fetched + estimate_bytes(model.config, variant)
    return (
        f"{model.name} suits this machine: {model.gain}; it takes a download of "
        f"{fetched / 1e6:,.0f} MB, {disk / 1e9:.1f} GB of disk and "
        f"{memory_needed(model, variant) / 1e9:.1f} GB of memory, and {speed}."
    )


def explain_answers(larger: str) -> str:
    """Return the commands that accept and decline an offered model."""
    return (
        f"'redraft model pull {larger}' gets it, 'redraft model decline {larger}' ends this hint."
    )


def _problem_of_pull(model: ModelInfo, variant: str) -> str:
    """Return why a model cannot be fetched to this machine, or ""."""
    if model.origin is None:
        return "It was imported in other formats."
    try:
        require_space(cache_dir(), bytes_to_pull(model, variant))
    except WeightsError as error:
        return str(error)
    return ""


def fit(model: ModelInfo, placement: Placement) -> tuple[bool, str]:
    """Return whether a model is fast and small enough here, and the figures that say so."""
    needed, there = memory_needed(model, placement.variant), memory_of(placement.provider)
    if needed > MEMORY_SHARE * there:
        return False, (
            f"it takes {needed / 1e9:.1f} GB of memory, and {MEMORY_SHARE:.0%} of "
            f"{there / 1e9:.1f} GB are the limit"
        )
    speed = speed_of(model, placement)
    if speed is None:
        return False, "this machine is measured when a model is loaded for the first time"
    if speed.line_ms >= LINE_MS or speed.edit_ms >= EDIT_MS:
        return False, f"{speed}; the limits are {LINE_MS:.0f} and {EDIT_MS:.0f} ms"
    return True, str(speed)


def memory_needed(model: ModelInfo, variant: str) -> int:
    """Return the bytes of memory that an engine with this model takes, about."""
    return estimate_bytes(model.config, variant) + BESIDE_WEIGHTS


def check_free_memory(model: ModelInfo, placement: Placement) -> None:
    """Refuse a model for which a CPU's memory is not free now; the system might end the engine.

    Raises:
        WeightsError: says how much is missing.
    """
    needed, free = memory_needed(model, placement.variant), free_memory()
    if placement.provider == "CPU" and needed > free:
        raise WeightsError(
            f"{needed / 1e9:.1f} GB of memory are needed, {free / 1e9:.1f} GB are free. Close "
            "other programs, then run 'redraft stop'"
        )


def speed_of(model: ModelInfo, placement: Placement) -> Speed | None:
    """Return how fast a model is here; None: neither it nor the smallest one was measured.

    Measurements of a larger model count for a week, those of the smallest one until it is measured
    again: so a larger model that was slow once gets another try.
    """
    notes = read_notes(calibration_file())

    def calibration_of(each: ModelInfo) -> Calibration | None:
        return notes.get(calibration_key(each, placement.variant, placement.provider, threads))

    threads = placement.threads
    own = calibration_of(model)
    if own is not None and own.is_fresh(time.time()):
        return _speed(own, 1.0, is_measured=True)
    smallest = info(DEFAULT_MODEL)
    found = calibration_of(smallest)
    if found is None:
        return None
    ratio = estimate_bytes(model.config, "fp32") / estimate_bytes(smallest.config, "fp32")
    return _speed(found, ratio, is_measured=False)


def _speed(found: Calibration, ratio: float, is_measured: bool) -> Speed | None:
    """Return the speed of a model whose passes take ``ratio`` times as long as those measured."""
    if found.prefill is None or found.passes is None:
        return None
    passes = PassPrices.from_probe(found.passes.widths)
    line_ms = LINE_PASSES * passes.of(LINE_POSITIONS)
    edit_ms = EDIT_PASSES * passes.of(EDIT_POSITIONS) + 1e3 * EDIT_READ * found.prefill.token_s
    return Speed(ratio * line_ms, ratio * edit_ms, is_measured)


# --- what the user has decided --------------------------------------------------------------------


def _stored_file() -> Path:
    return cache_dir() / "model-in-use"


def _declined_file() -> Path:
    return cache_dir() / "model-declined"


def _read_name(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def read_stored_model() -> str:
    """Return the name that 'redraft model use' stored, or ""."""
    return _read_name(_stored_file())


def is_declined(name: str) -> bool:
    """Return whether the user does not want to be offered a model."""
    return name != "" and _read_name(_declined_file()) == name


def decline_model(name: str) -> None:
    """Offer a model of Redraft's no more, in any editor, until :data:`AUTO` is stored.

    Raises:
        InvalidRequest: it is never offered.
        WeightsError: the name cannot be stored.
    """
    if name not in OWN_MODELS[:-1]:
        offered = ", ".join(OWN_MODELS[:-1])
        raise InvalidRequest(f"{name!r} is not offered; what can be declined is {offered}.")
    make_folder(cache_dir())
    write_atomically(_declined_file(), f"{name}\n".encode())


def store_model(name: str, variant: str | None) -> None:
    """Have ``name`` run from now on, in running engines too.

    :data:`AUTO` forgets the last name, and which model was declined.

    Raises:
        UnknownModel: there is no model of this name.
        WeightsError: it is not on this machine, or the name cannot be stored.
    """
    file = _stored_file()
    if name == AUTO:
        for each in (file, _declined_file()):
            with explain_errors("delete", each):
                each.unlink(missing_ok=True)
        return
    model = info(name)
    check_here(model, variant or model.default_variant)
    make_folder(file.parent)
    write_atomically(file, f"{name}\n".encode())


def check_here(model: ModelInfo, variant: str) -> None:
    """Refuse a model that would have to be downloaded first.

    Raises:
        WeightsError: says how to get it.
    """
    if not is_here(model, variant):
        raise WeightsError(
            f"{model.name} is not on this machine in the format {variant}. Get it with 'redraft "
            f"model pull {model.name}', or let Redraft choose with 'redraft model use {AUTO}'."
        )


def watch_choice(
    chosen: ModelChoice, placement: Placement, failed: Mapping[str, str]
) -> Callable[[], str]:
    """Return a check whether another model is to run than ``chosen``; it returns why, or "".

    It looks at the stored name and at the folders of Redraft's models, and chooses again only when
    one of them has changed.
    """
    ready = [cache_dir() / "ready" / name / info(name).version for name in OWN_MODELS[:-1]]
    watched = (_stored_file(), *ready)
    seen = [*map(_changed_ns, watched)]

    def check() -> str:
        nonlocal seen
        if (now := [*map(_changed_ns, watched)]) == seen:
            return ""
        seen = now
        try:
            found = choose_model(placement, failed)
        except RedraftError:  # a folder that is being written
            return ""
        if found.model == chosen.model:
            return ""
        is_sure = found.is_stored or found.model == DEFAULT_MODEL
        if not is_sure and not is_ready(info(found.model), placement.variant):
            return ""  # a pull is still making it
        return f"{found.model} runs in the place of {chosen.model}"

    return check


def _changed_ns(path: Path) -> int:
    """Return when a file or folder changed, nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
