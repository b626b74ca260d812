"""Which onnxruntime is installed, and where and in which variant to run.

Answers questions about this machine; knows nothing of models or folders.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import psutil

from ..config import ModelConfig
from ..errors import InstallError, SettingsError
from ..network.quantize import HALF, check_variant
from ..release import RELEASE, how_to_install
from ..silence import import_silenced
from . import provider_speed, verdicts
from .provider_probe import PLAIN, network_like, provider_problem
from .providers import (
    CPU_NAME,
    CUDA_NAME,
    OTHERS,
    PROVIDERS,
    Provider,
    first_line,
    has_plugin,
    missing,
    name_of,
    open_on,
)

#: Distributions of onnxruntime, each of which overwrites the others' files.
_BUILDS = (
    "onnxruntime", "onnxruntime-gpu", "onnxruntime-windowsml", "onnxruntime-directml",
    "onnxruntime-openvino",
)  # fmt: skip

#: GroupQueryAttention has been able to look in both directions since this version.
OLDEST_ONNXRUNTIME = (1, 30)


def check_onnxruntime(installed: Callable[[str], str | None] | None = None) -> str:
    """The version of the one onnxruntime that is installed.

    Args:
        installed: version of a distribution, or None; for tests.

    Raises:
        InstallError: none, two that overwrite each other, or one too old; says what to do.
    """
    version_of = installed or _installed_version
    found = {kind: version for kind in _BUILDS if (version := version_of(kind)) is not None}
    if not found:
        raise InstallError(
            f"onnxruntime is not installed. Run {how_to_install('cpu')}, or with '.[gpu]' on a "
            "machine with an NVIDIA GPU."
        )
    if len(found) > 1:
        raise InstallError(
            f"{' and '.join(found)} are installed together and overwrite each other's files. "
            f"Run: pip uninstall -y {' '.join(found)}, then {how_to_install('cpu', 'gpu')}."
        )
    ((kind, version),) = found.items()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_ONNXRUNTIME:
        oldest = ".".join(map(str, OLDEST_ONNXRUNTIME))
        raise InstallError(
            f"{kind} {version} is too old: bidirectional attention needs {oldest} or newer. "
            f"Run: {_newer(kind, oldest)}."
        )
    return version


def _newer(kind: str, oldest: str) -> str:
    """What to do where a build is too old: what goes on is another, for two providers."""
    for provider, brought in OTHERS.items():
        if kind == brought.former:
            return f"pip uninstall -y {kind}, then {how_to_install(provider.lower(), 'cpu')}"
    return f"pip install -U '{kind}>={oldest}'"


def _installed_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def import_onnxruntime() -> ModuleType:
    """onnxruntime, checked, and kept from reporting (``silence.py``).

    Raises:
        InstallError: see :func:`check_onnxruntime`, or its native library does not load.
    """
    check_onnxruntime()
    try:
        return import_silenced("onnxruntime")
    except ImportError as error:
        raise InstallError(
            f"onnxruntime is installed but does not load: {error}. Reinstall it with: "
            "pip install --force-reinstall onnxruntime (or onnxruntime-gpu)."
        ) from error


@dataclass(frozen=True, slots=True)
class Device:
    """Where to run, the variant that suits it, and why it is nothing better."""

    provider: Provider
    variant: str
    notice: str = ""  # for people, to be said once; "" when there is nothing to say


#: Loads a provider, for a process that does nothing else.
_LOAD = (
    "from redraft.model.runtime import device, providers\n"
    "providers.missing(device.import_onnxruntime(), '{provider}')"
)
#: Of a provider and the variant that suits it, the one that a model is served in there; "": none.
Served = Callable[[Provider, str], str]


def _as_it_suits(provider: Provider, usual: str) -> str:
    return usual


def pick_device(
    wanted: str = "auto",
    variant: str = "auto",
    config: ModelConfig | None = None,
    served: Served = _as_it_suits,
    threads: int | None = None,
    notes: Path | None = None,
) -> Device:
    """CUDA where it works, else the CPU; another provider where it is asked for, or where its
    package is installed and it is faster than the CPU. Each is used only once it was tried.

    Args:
        wanted: "auto", or one of PROVIDERS in any case.
        variant: "auto" or one of ``quantize.VARIANTS``.
        config: of the model that is to run; None: no particular one.
        served: in which variants that model is to be had; asked where ``variant`` is "auto".
        threads: that will serve on the CPU; None: one per physical core.
        notes: the file that keeps what was found out between starts; None: none.

    Raises:
        InstallError: onnxruntime is unusable, or what was demanded does not work; says why.
        SettingsError: an unknown name, or a variant that the device cannot run.
    """
    if wanted != "auto" and wanted.upper() not in PROVIDERS:
        names = ", ".join(provider.lower() for provider in PROVIDERS)
        raise SettingsError(f"Unknown device {wanted!r}: choose auto, {names}.")
    runtime, network = import_onnxruntime(), network_like(config) if config else PLAIN
    if wanted == "auto":
        return _best(runtime, variant, network, served, threads or default_threads(), notes)
    provider = cast("Provider", wanted.upper())
    usual = _variant_for(runtime, provider, variant)
    chosen = (served(provider, usual) or usual) if variant == "auto" else usual
    check_runs(chosen, provider)
    check_provider(runtime, provider, chosen, network, notes)
    return Device(provider, chosen)


def _best(
    runtime: ModuleType,
    variant: str,
    network: ModelConfig,
    served: Served,
    threads: int,
    notes: Path | None,
) -> Device:
    """The device that is best for a variant, or the best of all for "auto"."""
    if variant != "auto":
        check_variant(variant)

    def chosen(provider: Provider) -> str:
        usual = _variant_for(runtime, provider, variant)
        return served(provider, usual) if variant == "auto" else usual

    if variant in HALF:
        check_provider(runtime, "CUDA", variant, network, notes)
        return Device("CUDA", variant)
    why_not = ""
    if variant == "auto":
        if half := chosen("CUDA"):
            why_not = problem_of(runtime, "CUDA", half, network, notes)
            if not why_not:
                return Device("CUDA", half)
        else:
            why_not = load_problem(runtime, "CUDA", notes)
            why_not = why_not or "the model is here neither in fp16 nor in q4f16"
    on_cpu = chosen("CPU") or _variant_for(runtime, "CPU", variant)
    if (other := installed_for()) is not None and (whole := chosen(other)):
        why_not = problem_of(runtime, other, whole, network, notes)
        why_not = why_not or slower(runtime, other, whole, on_cpu, threads, notes)
        if not why_not:
            return Device(other, whole)
    return Device("CPU", on_cpu, f"Running on the CPU: {why_not}." if why_not else "")


def _variant_for(runtime: ModuleType, provider: Provider, variant: str) -> str:
    if variant != "auto":
        return variant
    if provider == "CUDA":
        return "fp16"
    whole = provider in ("CPU", "OPENVINO")  # which takes half the time for int8 that q8 takes
    return "int8" if whole and int8_is_exact(runtime) else "q8"


def installed_for(version_of: Callable[[str], str | None] | None = None) -> Provider | None:
    """The provider for whose sake something is installed; None: no other's than the CPU's.

    Args:
        version_of: see :func:`check_onnxruntime`.
    """
    version_of = version_of or _installed_version
    for provider, brought in OTHERS.items():
        if brought.package and version_of(brought.package) is not None:
            return cast("Provider", provider)
    return None


def check_runs(variant: str, provider: Provider) -> None:
    """
    Raises:
        SettingsError: the provider is not for this variant.
    """
    check_variant(variant)
    if (variant in HALF) != (provider == "CUDA"):
        fitting = " or ".join(HALF) if provider == "CUDA" else "int8, q8, q4 or fp32"
        raise SettingsError(f"The variant {variant} does not run on {provider}: choose {fitting}.")


def check_provider(
    runtime: ModuleType,
    provider: Provider,
    variant: str,
    network: ModelConfig,
    notes: Path | None = None,
) -> None:
    """
    Args:
        network, notes: see :func:`problem_of`.

    Raises:
        InstallError: the provider cannot be used for this variant; says why.
    """
    if provider == "CPU":
        return
    if problem := problem_of(runtime, provider, variant, network, notes):
        also = ", with the variant int8, q8 or q4" if variant in HALF else ""
        raise InstallError(
            f"{provider} was asked for but {problem}. Choose the provider cpu{also}."
        )


def problem_of(
    runtime: ModuleType,
    provider: Provider,
    variant: str,
    network: ModelConfig = PLAIN,
    notes: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> str:
    """Why a provider cannot be used for a variant; "" when it computes what the CPU does.

    Tried once a process, or once in a while where ``notes`` keeps it (``verdicts.py``). What does
    not even run may be mended until the next start.

    Args:
        network: that is tried, see ``provider_probe.network_like``.
        notes: see :func:`pick_device`. clock: seconds since 1970.
    """
    if problem := load_problem(runtime, provider, notes, clock):
        return problem

    def tried() -> tuple[str, float]:
        on_cpu, on_other = opener(runtime, "CPU"), opener(runtime, provider)
        name = name_of(provider)
        try:
            said = verdicts.within(
                verdicts.MOST_S, lambda: provider_problem(on_cpu, on_other, name, variant, network)
            )
        except OSError as error:  # the networks that are tried have no place
            return f"{provider} could not be tried: {first_line(error)}", verdicts.NOT_KEPT
        if said is None:
            return _too_long(provider), verdicts.OF_TIME
        if not said.problem:
            return "", verdicts.THAT_IT_WORKS
        return said.problem, verdicts.WHILE_THE_SAME if said.lasts else verdicts.NOT_KEPT

    key = f"computes {_of(runtime, provider)} {variant} {network!r}"
    return verdicts.known(key, tried, notes, clock)


def load_problem(
    runtime: ModuleType,
    provider: Provider,
    notes: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> str:
    """Why a provider does not load; "" when it does. Asked once a process, as it then is loaded;
    only that it takes too long is kept. A plugin is loaded in a process of its own first, as
    nothing could end it here.

    Args:
        notes, clock: see :func:`problem_of`.
    """

    key = _installed(runtime, provider)

    def loaded_apart() -> tuple[str, float]:
        status = verdicts.apart(verdicts.MOST_S, _LOAD.format(provider=provider))
        if status is None:
            return _too_long(provider), verdicts.OF_TIME
        crashes = status not in (0, 1)  # what raises is told where it is loaded here
        problem = f"{provider} ends a process that loads it, with status {status}"
        return (problem, verdicts.NOT_KEPT) if crashes else ("", verdicts.THAT_IT_WORKS)

    def loaded() -> tuple[str, float]:
        if has_plugin(provider):
            problem = verdicts.known(f"loads apart {key}", loaded_apart, notes, clock)
            if problem:
                return problem, verdicts.NOT_KEPT
        load = cuda_problem if provider == "CUDA" else partial(missing, provider=provider)
        said = verdicts.within(verdicts.MOST_S, lambda: load(runtime))
        return (
            (_too_long(provider), verdicts.OF_TIME) if said is None else (said, verdicts.NOT_KEPT)
        )

    return verdicts.known(f"loads {key}", loaded, notes, clock)


def slower(
    runtime: ModuleType,
    provider: Provider,
    variant: str,
    on_cpu: str,
    threads: int,
    notes: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> str:
    """Why a provider in a variant is not worth being chosen where the CPU runs another, on as many
    threads as would serve; "". Kept for a while, see :func:`problem_of`."""

    def timed() -> tuple[str, float]:
        cpu = opener(runtime, "CPU", threads), on_cpu
        other = opener(runtime, provider, threads), variant
        try:
            said = verdicts.within(
                verdicts.MOST_S,
                lambda: provider_speed.slower(cpu, other, provider, time.perf_counter),
            )
        except Exception as error:  # whatever keeps it from being timed: the CPU serves
            return f"{provider} could not be timed: {first_line(error)}", verdicts.NOT_KEPT
        if said is None:
            return _too_long(provider), verdicts.OF_TIME
        named = f" (the provider {provider.lower()}, named, is used all the same)"
        return (f"{said}{named}" if said else ""), verdicts.OF_TIME

    key = f"is faster {_of(runtime, provider)} {variant} {on_cpu} {threads}"
    return verdicts.known(key, timed, notes, clock)


def _too_long(provider: Provider) -> str:
    return (
        f"{provider} was not tried to the end within {verdicts.MOST_S:.0f} s "
        "('redraft doctor' tries again)"
    )


def _of(runtime: ModuleType, provider: Provider) -> str:
    """What a verdict on a provider that is loaded holds for: what is installed, and its devices."""
    return f"{_installed(runtime, provider)} {verdicts.devices(runtime, name_of(provider))}"


def _installed(runtime: ModuleType, provider: Provider) -> str:
    """This release, onnxruntime, the provider's library or driver, system and machine."""
    package = OTHERS[provider].package if provider in OTHERS else ""
    library = _installed_version(package) if package else verdicts.driver()
    machine = f"{platform.platform()} {verdicts.processor()}"
    return f"{RELEASE} {runtime.__version__} {provider} {library} {machine}"


def default_threads() -> int:
    """Physical cores this process may use."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))


def opener(runtime: ModuleType, provider: Provider, threads: int = 1) -> Callable[[Path], Any]:
    def opened(path: Path) -> Any:
        options = _quiet(runtime, threads)
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return open_on(runtime, path, provider, options, threads)

    return opened


def has_cuda() -> bool:
    """Whether CUDA loads; whether it computes what the CPU does is :func:`problem_of`'s to say.

    Raises:
        InstallError: onnxruntime is unusable.
    """
    return not load_problem(import_onnxruntime(), "CUDA")


def cuda_problem(runtime: ModuleType) -> str:
    """Why CUDA does not load, or "" when it does."""
    if missing(runtime, "CUDA"):
        return f"the installed onnxruntime has no CUDA support ({how_to_install('gpu')} adds it)"
    try:
        runtime.preload_dlls()
        probe = runtime.InferenceSession(_probe_model(), _quiet(runtime), providers=[CUDA_NAME])
    except Exception as error:  # whatever keeps CUDA from working: the CPU serves
        return f"CUDA does not load: {first_line(error)}"
    if CUDA_NAME not in probe.get_providers():
        return "CUDA does not load: a driver or a CUDA library is missing"
    return ""


def memory_of(provider: Provider) -> int:
    """Bytes of memory that weights can take there: the machine's, or of its largest NVIDIA GPU as
    the driver's own tool says; where that is silent, the machine's."""
    if provider == "CUDA":
        asked = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
            said = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
            return max(int(line) << 20 for line in said.stdout.split())
    return psutil.virtual_memory().total


def int8_is_exact(runtime: ModuleType) -> bool:
    """Whether this processor multiplies unsigned by signed bytes without saturating.

    Without VNNI, x86 adds pairs of products in 16 bits: 2 · 255 · 127 overflows, and the variant
    int8 would be quietly wrong.
    """
    session = runtime.InferenceSession(_probe_model(), _quiet(runtime), providers=[CPU_NAME])
    # Large enough for the kernel that the model uses, not the one for single vectors.
    left, right = np.full((8, 64), 255, np.uint8), np.full((64, 32), 127, np.int8)
    (product,) = session.run(None, {"left": left, "right": right})
    return bool(np.all(product == 64 * 255 * 127))


def _probe_model() -> bytes:
    from onnx import TensorProto, helper  # here: most processes never probe

    info = helper.make_tensor_value_info
    node = helper.make_node("MatMulInteger", ["left", "right"], ["product"])
    graph = helper.make_graph(
        [node],
        "probe",
        [info("left", TensorProto.UINT8, [8, 64]), info("right", TensorProto.INT8, [64, 32])],
        [info("product", TensorProto.INT32, [8, 32])],
    )
    opsets = [helper.make_opsetid("", 23)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString()
    return data


def _quiet(runtime: ModuleType, threads: int = 1) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # a failure is reported by us, once
    options.intra_op_num_threads = threads
    return options
