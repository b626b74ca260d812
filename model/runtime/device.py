"""The provider and the variant that a model runs in on this machine.

A provider is named as onnxruntime names it, without "ExecutionProvider" and in capitals: CPU, CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from ..errors import InstallError, SettingsError
from ..network.quantize import HALF, variant_named
from ..release import how_to_install
from .machine import import_onnxruntime
from .onnx_session import check_runs

#: A graph that multiplies the uint8 matrix "a" by the int8 matrix "b". Stored as bytes so that a
#: start does not import onnx.
PROBE = (
    b'\x08\x0b:>\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01pZ\t\n\x01a\x12\x04\n\x02\x08'
    b"\x02Z\t\n\x01b\x12\x04\n\x02\x08\x03b\t\n\x01c\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\x17"
)


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
    served: Served = lambda _, usual: usual,
    on_cpu: Callable[[], str] = lambda: "int8",
) -> Device:
    """Return the device to run on: by default CUDA where it loads, else the CPU.

    Args:
        provider: auto, cpu or cuda, in any case.
        variant: "auto" or one of ``quantize.VARIANTS``.
        served: variants of the model that is to run; asked where ``variant`` is "auto".
        on_cpu: returns the usual variant of the CPU; asked where it decides.

    Raises:
        InstallError: onnxruntime cannot be used, or CUDA was asked for and does not load.
        SettingsError: an unknown name, or a variant that the provider does not run.
    """
    runtime, named, notice = import_onnxruntime(), provider.upper(), ""
    if named not in ("AUTO", "CPU", "CUDA"):
        raise SettingsError(f"There is no provider {provider!r}: choose auto, cpu or cuda.")
    if variant != "auto":
        variant_named(variant)
    if named == "AUTO" and variant != "auto":
        named = "CUDA" if variant in HALF else "CPU"
    if named == "AUTO":
        half = served("CUDA", "fp16")
        why_not = cuda_problem(runtime)
        if half and not why_not:
            return Device("CUDA", half)
        why_not = why_not or "the model is here neither in fp16 nor in q4f16"
        named, notice = "CPU", f"Running on the CPU: {why_not}."
    if variant == "auto":
        usual = "fp16" if named == "CUDA" else on_cpu()
        variant = served(named, usual) or usual
    check_runs(variant, named)
    if named == "CUDA" and (problem := cuda_problem(runtime)):
        raise InstallError(
            f"The provider cuda cannot be used: {problem}. Choose the provider cpu, with the "
            "variant int8 or q4."
        )
    return Device(named, variant, notice)


def cuda_problem(runtime: ModuleType) -> str:
    """Return why CUDA does not load, or "" where it does."""
    name = "CUDAExecutionProvider"
    if name not in runtime.get_available_providers():
        return f"the installed onnxruntime has no CUDA support ({how_to_install('gpu')} adds it)"
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # Redraft reports a failure itself
    try:
        runtime.preload_dlls()
        session = runtime.InferenceSession(PROBE, options, providers=[name])
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        (first, *_) = str(error).strip().splitlines() or [type(error).__name__]
        return f"CUDA does not load: {first}"
    if name not in session.get_providers():
        return "CUDA does not load: a driver or a CUDA library is missing"
    return ""
