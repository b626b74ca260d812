"""The provider and the variant that a model runs in on this machine.

A provider is named as onnxruntime names it, without "ExecutionProvider" and in capitals: CPU, CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..config import ModelConfig
from ..errors import InstallError, SettingsError
from ..network.quantize import HALF, check_variant
from ..release import how_to_install
from .machine import import_onnxruntime, int8_is_exact, offered, open_probe
from .onnx_backend import OnnxBackend
from .onnx_session import check_runs
from .provider_check import PLAIN, first_line, how_it_differs


@dataclass(frozen=True, slots=True)
class Device:
    """A provider, the variant that runs there, and why it is not a better one."""

    provider: str
    variant: str
    notice: str = ""  # for people, shown once


#: Returns the variant of a model to serve on a provider, given the usual one; "" where the model
#: has none for it.
Served = Callable[[str, str], str]


def choose(
    provider: str = "auto",
    variant: str = "auto",
    config: ModelConfig = PLAIN,
    served: Served = lambda _, usual: usual,
) -> Device:
    """Return the device to run on: by default CUDA where it works, else the CPU.

    Args:
        provider: "auto", or a provider that the installed onnxruntime offers, in any case.
        variant: "auto" or one of ``quantize.VARIANTS``.
        config: configuration of the model that is to run.
        served: variants of that model; asked where ``variant`` is "auto".

    Raises:
        InstallError: onnxruntime cannot be used, or the named provider does not work.
        SettingsError: an unknown name, or a variant that the provider does not run.
    """
    runtime, named = import_onnxruntime(), provider.upper()
    if variant != "auto":
        check_variant(variant)
    if named == "AUTO" and variant == "auto":
        return _best(runtime, config, served)
    if named == "AUTO":
        named = "CUDA" if variant in HALF else "CPU"
    known = {*offered(runtime), "CUDA"}  # CUDA has another error
    if named not in known:
        names = ", ".join(sorted(name.lower() for name in known))
        raise SettingsError(
            f"The installed onnxruntime has no provider {named.lower()!r}: choose auto, {names}."
        )
    if variant == "auto":
        usual = _usual_variant(runtime, named)
        variant = served(named, usual) or usual
    check_runs(variant, named)
    if named != "CPU" and (problem := problem_of(runtime, named, variant, config)):
        also = ", with the variant int8, q8 or q4" if variant in HALF else ""
        raise InstallError(
            f"The provider {named.lower()} cannot be used: {problem}. "
            f"Choose the provider cpu{also}."
        )
    return Device(named, variant)


def _best(runtime: ModuleType, config: ModelConfig, served: Served) -> Device:
    half = served("CUDA", "fp16")
    if half:
        why_not = problem_of(runtime, "CUDA", half, config)
    else:
        why_not = cuda_problem(runtime) or "the model is here neither in fp16 nor in q4f16"
    if not why_not:
        return Device("CUDA", half)
    usual = _usual_variant(runtime, "CPU")
    return Device("CPU", served("CPU", usual) or usual, f"Running on the CPU: {why_not}.")


def _usual_variant(runtime: ModuleType, provider: str) -> str:
    if provider == "CUDA":
        return "fp16"
    return "int8" if provider == "CPU" and int8_is_exact(runtime) else "q8"


def problem_of(runtime: ModuleType, provider: str, variant: str, config: ModelConfig) -> str:
    """Return why a provider cannot be used for a variant of a model, or "" where it can."""
    if provider == "CUDA" and (problem := cuda_problem(runtime)):
        return problem

    def opened(folder: Path) -> Any:
        return OnnxBackend(folder, provider, 1)

    problem = how_it_differs(opened, variant, config)
    return f"{provider} {problem}" if problem else ""


def cuda_problem(runtime: ModuleType) -> str:
    """Return why CUDA does not load, or "" where it does."""
    if "CUDA" not in offered(runtime):
        return f"the installed onnxruntime has no CUDA support ({how_to_install('gpu')} adds it)"
    name = offered(runtime)["CUDA"]
    try:
        runtime.preload_dlls()
        probe = open_probe(runtime, name)
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        return f"CUDA does not load: {first_line(error)}"
    if name not in probe.get_providers():
        return "CUDA does not load: a driver or a CUDA library is missing"
    return ""
