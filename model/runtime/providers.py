"""The execution providers besides onnxruntime's own CPU: what brings each, whether it is here, and
a graph opened on it.

A provider is part of one build of onnxruntime, or a plugin that any build loads. Knows nothing of
models, of variants or of which provider is the best.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, get_args

from ..errors import InstallError
from ..release import how_to_install

Provider = Literal["CPU", "CUDA", "COREML", "DIRECTML", "OPENVINO"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)


@dataclass(frozen=True, slots=True)
class Brought:
    """What onnxruntime calls a provider, and where it comes from.

    Args:
        how: to have it, for people.
        package: what is installed for its sake alone; "" where every onnxruntime for a system
            brings it, which says nothing of what its user wants.
        former: what brought it once and is not made any more.
        plugin: the module that carries it beside any onnxruntime; "": it is part of a build.
    """

    name: str
    how: str
    package: str = ""
    former: str = ""
    plugin: str = ""


CPU_NAME, CUDA_NAME = "CPUExecutionProvider", "CUDAExecutionProvider"

#: Further providers. Builds of onnxruntime for DirectML and OpenVINO end at 1.24: the build for
#: Windows ML carries the one on, a plugin the other.
OTHERS: Mapping[str, Brought] = MappingProxyType(
    {
        "COREML": Brought("CoreMLExecutionProvider", "onnxruntime brings it on macOS"),
        "DIRECTML": Brought(
            "DmlExecutionProvider",
            f"on Windows: pip uninstall -y onnxruntime, then {how_to_install('directml')}",
            "onnxruntime-windowsml",
            "onnxruntime-directml",
        ),
        "OPENVINO": Brought(
            "OpenVINOExecutionProvider",
            how_to_install("openvino"),
            "onnxruntime-ep-openvino",
            "onnxruntime-openvino",
            "onnxruntime_ep_openvino",
        ),
    }
)

#: Kinds of devices of a plugin; the first that is there is used. NPUs take no shapes that change.
_DEVICES = ("GPU", "CPU")


_REGISTERING = threading.Lock()


def name_of(provider: Provider) -> str:
    """What onnxruntime calls it."""
    if provider in OTHERS:
        return OTHERS[provider].name
    return CUDA_NAME if provider == "CUDA" else CPU_NAME


def missing(runtime: ModuleType, provider: Provider) -> str:
    """Why a provider is not to be had in this installation; "" when it is there, which does not say
    that it works."""
    if provider not in OTHERS:
        there = name_of(provider) in runtime.get_available_providers()
        return "" if there else f"the installed onnxruntime has no {provider}"
    brought = OTHERS[provider]
    if brought.name in runtime.get_available_providers():
        return ""
    if has_plugin(provider):
        with _REGISTERING:  # one that is there already is refused as another
            return _register(runtime, brought)
    return f"the installed onnxruntime has no {brought.name} ({brought.how})"


def has_plugin(provider: Provider) -> bool:
    """Whether a plugin is installed that carries it."""
    plugin = OTHERS[provider].plugin if provider in OTHERS else ""
    return bool(plugin) and importlib.util.find_spec(plugin) is not None


@cache
def _register(runtime: ModuleType, brought: Brought) -> str:
    """Have onnxruntime load a plugin, once a process; why that fails, or ""."""
    try:
        library = importlib.import_module(brought.plugin).get_library_path()
        runtime.register_execution_provider_library(brought.plugin, library)
    except Exception as error:  # a library is missing, or it is made for another onnxruntime
        return f"its plugin {brought.package} does not load: {first_line(error)}"
    if not _device_of(runtime, brought):
        return f"its plugin {brought.package} finds no device that it can use"
    return ""


def open_on(runtime: ModuleType, path: Path, provider: Provider, options: Any, threads: int) -> Any:
    """onnxruntime's session of a graph on a provider; what that does not take runs on the CPU.

    Args:
        options: onnxruntime's SessionOptions.
        threads: for plugins that have threads of their own.

    Raises:
        InstallError: the provider is missing.
        Exception: whatever onnxruntime raises.
    """
    if problem := missing(runtime, provider):
        raise InstallError(f"{provider} cannot be used: {problem}.")
    brought = OTHERS.get(provider)
    if brought is not None and (device := _device_of(runtime, brought)) is not None:
        # It would compute in bfloat16 where a processor can: ten times the rounding of fp32.
        own = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        kind = device.device.type.name
        settings = {"load_config": json.dumps({kind: own})} if kind == "CPU" else {}
        options.add_provider_for_devices([device], settings)
        return runtime.InferenceSession(str(path), options)
    names = list(dict.fromkeys((name_of(provider), CPU_NAME)))
    return runtime.InferenceSession(str(path), options, providers=names)


def _device_of(runtime: ModuleType, brought: Brought) -> Any | None:
    """The device that a plugin is to run on; None for what is part of a build."""
    if not brought.plugin:
        return None
    here = {
        each.device.type.name: each
        for each in runtime.get_ep_devices()
        if each.ep_name == brought.name
    }
    return next((here[kind] for kind in _DEVICES if kind in here), None)


def first_line(error: Exception) -> str:
    """What an error of onnxruntime says first."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
