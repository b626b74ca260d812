"""Which onnxruntime is installed, and where and in which variant to run.

Answers questions about this machine; knows nothing of models or folders.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, Literal, cast, get_args

import numpy as np
import psutil

from ..errors import InstallError, SettingsError
from ..network.quantize import HALF, check_variant
from ..silence import import_silenced
from .provider_probe import provider_problem

Provider = Literal["CPU", "CUDA", "COREML", "DIRECTML", "OPENVINO"]

#: Further providers: what onnxruntime calls each, and what brings it.
OTHERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "COREML": ("CoreMLExecutionProvider", "onnxruntime on macOS"),
        "DIRECTML": ("DmlExecutionProvider", "onnxruntime-directml"),
        "OPENVINO": ("OpenVINOExecutionProvider", "onnxruntime-openvino"),
    }
)
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
#: Packages that somebody installs for one provider's sake, which is tried where none is named.
#: CoreML comes with every onnxruntime for macOS and says nothing of what its user wants.
_FOR_ITS_SAKE: Mapping[str, Provider] = MappingProxyType(
    {"onnxruntime-directml": "DIRECTML", "onnxruntime-openvino": "OPENVINO"}
)

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
    kinds = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")
    found = {kind: version for kind in kinds if (version := version_of(kind)) is not None}
    if not found:
        raise InstallError(
            "onnxruntime is not installed. Run: pip install 'redraft[cpu]', or 'redraft[gpu]' on a "
            "machine with an NVIDIA GPU."
        )
    if len(found) > 1:
        raise InstallError(
            f"{' and '.join(found)} are installed together and overwrite each other's files. "
            f"Run: pip uninstall -y {' '.join(found)}, then pip install 'redraft[cpu]' or "
            "'redraft[gpu]'."
        )
    ((kind, version),) = found.items()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_ONNXRUNTIME:
        oldest = ".".join(map(str, OLDEST_ONNXRUNTIME))
        until = (
            f" Until there is one: pip uninstall -y {kind}, then pip install 'redraft[cpu]'."
            if kind in _FOR_ITS_SAKE
            else ""
        )
        raise InstallError(
            f"{kind} {version} is too old: bidirectional attention needs {oldest} or newer. "
            f"Run: pip install -U '{kind}>={oldest}'.{until}"
        )
    return version


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
    """Where to run, the variant that suits it, and why it is not CUDA."""

    provider: Provider
    variant: str
    notice: str = ""  # for people, to be said once; "" when there is nothing to say


def pick_device(wanted: str = "auto", variant: str = "auto") -> Device:
    """CUDA when its provider loads, else the CPU; another provider where it is asked for or its
    package is installed, runs, and computes what the CPU does.

    Args:
        wanted: "auto", or one of PROVIDERS in any case.
        variant: "auto" or one of ``quantize.VARIANTS``.

    Raises:
        InstallError: onnxruntime is unusable, or CUDA was demanded and does not load.
        SettingsError: an unknown name, or a variant that the device cannot run.
    """
    if wanted != "auto" and wanted.upper() not in PROVIDERS:
        names = ", ".join(provider.lower() for provider in PROVIDERS)
        raise SettingsError(f"Unknown device {wanted!r}: choose auto, {names}.")
    runtime = import_onnxruntime()
    if wanted.upper() in OTHERS:
        other = cast("Provider", wanted.upper())
        check_other(runtime, other)
        chosen = "q8" if variant == "auto" else variant
        _check_runs(chosen, other)
        return Device(other, chosen)
    why_not = "the device setting asks for the CPU" if wanted == "cpu" else cuda_problem(runtime)
    if wanted == "cuda" and why_not:
        raise InstallError(f"CUDA was asked for but {why_not}. Run 'redraft doctor' for details.")
    if wanted == "auto" and why_not and (installed := installed_for()) is not None:
        if not (problem := _problem_of(runtime, installed)):
            chosen = "q8" if variant == "auto" else variant
            _check_runs(chosen, installed)
            return Device(installed, chosen)
        why_not = problem
    provider: Provider = "CPU" if why_not else "CUDA"
    chosen = _default_variant(runtime, provider) if variant == "auto" else variant
    _check_runs(chosen, provider)
    notice = f"Running on the CPU: {why_not}." if why_not and wanted == "auto" else ""
    return Device(provider, chosen, notice)


def installed_for(version_of: Callable[[str], str | None] | None = None) -> Provider | None:
    """The provider for whose sake the installed onnxruntime was chosen; None: no other's.

    Args:
        version_of: see :func:`check_onnxruntime`.
    """
    version_of = version_of or _installed_version
    here = (each for kind, each in _FOR_ITS_SAKE.items() if version_of(kind) is not None)
    return next(here, None)


@cache  # tried once a process
def _problem_of(runtime: ModuleType, provider: str) -> str:
    return provider_problem(runtime, OTHERS[provider][0])


def check_other(runtime: ModuleType, provider: str) -> None:
    """
    Raises:
        InstallError: one of :data:`OTHERS` cannot be used; says why.
    """
    _, package = OTHERS[provider]
    if problem := _problem_of(runtime, provider):
        raise InstallError(
            f"{provider} was asked for but {problem} ({package} brings it, from version "
            f"{'.'.join(map(str, OLDEST_ONNXRUNTIME))} on). Choose the provider cpu."
        )


def _default_variant(runtime: ModuleType, provider: Provider) -> str:
    if provider == "CUDA":
        return "fp16"
    return "int8" if int8_is_exact(runtime) else "q8"


def _check_runs(variant: str, provider: Provider) -> None:
    check_variant(variant)
    if (variant in HALF) != (provider == "CUDA"):
        fitting = " or ".join(HALF) if provider == "CUDA" else "int8, q8, q4 or fp32"
        raise SettingsError(f"The variant {variant} does not run on {provider}: choose {fitting}.")


def cuda_problem(runtime: ModuleType) -> str:
    """Why CUDA cannot be used, or "" when it can."""
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        return "the installed onnxruntime has no CUDA support (pip install 'redraft[gpu]' has)"
    try:
        runtime.preload_dlls()
        probe = runtime.InferenceSession(
            _probe_model(), _quiet(runtime), providers=["CUDAExecutionProvider"]
        )
    except Exception as error:  # whatever keeps CUDA from working: the CPU serves
        return f"CUDA does not load: {str(error).strip().splitlines()[0]}"
    if "CUDAExecutionProvider" not in probe.get_providers():
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
    session = runtime.InferenceSession(
        _probe_model(), _quiet(runtime), providers=["CPUExecutionProvider"]
    )
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


def _quiet(runtime: ModuleType) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # a failure is reported by us, once
    options.intra_op_num_threads = 1
    return options
