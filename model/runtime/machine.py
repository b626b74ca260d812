"""The installed onnxruntime and the machine that it runs on."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil

from ..errors import InstallError
from ..release import how_to_install
from ..silence import import_silenced

#: Distributions of onnxruntime, each of which overwrites the files of the others.
_BUILDS = (
    "onnxruntime", "onnxruntime-gpu", "onnxruntime-windowsml", "onnxruntime-directml",
    "onnxruntime-openvino",
)  # fmt: skip

#: The first version whose GroupQueryAttention looks in both directions.
OLDEST_ONNXRUNTIME = (1, 30)
#: A graph that multiplies the uint8 matrix "a" by the int8 matrix "b". Stored as bytes so that a
#: start does not import onnx.
PROBE = (
    b'\x08\x0b:>\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01pZ\t\n\x01a\x12\x04\n\x02\x08'
    b"\x02Z\t\n\x01b\x12\x04\n\x02\x08\x03b\t\n\x01c\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\x17"
)


def check_onnxruntime() -> str:
    """Return the version of the one onnxruntime that is installed.

    Raises:
        InstallError: none is installed, or two that overwrite each other, or one that is too old.
    """
    found = {kind: version for kind in _BUILDS if (version := _installed_version(kind)) is not None}
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
            f"Run: pip install -U '{kind}>={oldest}'."
        )
    return version


def _installed_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def import_onnxruntime() -> ModuleType:
    """Return onnxruntime, checked, and kept from reporting (``silence.py``).

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


def offered(runtime: ModuleType) -> dict[str, str]:
    """Return the name onnxruntime gives to each provider it has, by our name.

    Azure's provider is left out: it calls a remote service and runs no graph here.
    """
    names = runtime.get_available_providers()
    found = {name.removesuffix("ExecutionProvider").upper(): name for name in names}
    return {ours: name for ours, name in found.items() if ours != "AZURE"}


def default_threads() -> int:
    """Return the number of physical cores this process may use."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))


def memory_of(provider: str) -> int:
    """Return the bytes of memory for weights on a provider.

    On CUDA that is the memory of the largest GPU, as the driver's tool reports it, else the
    machine's, or what its container may use.
    """
    if provider == "CUDA":
        asked = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
            said = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
            return max(int(line) << 20 for line in said.stdout.split())
    limits = [_control_group_limit(path) for path in CONTROL_GROUP_LIMITS]
    return min(psutil.virtual_memory().total, *limits)


#: Files with the memory that a container may use, of the second and the first version of cgroups.
CONTROL_GROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


def _control_group_limit(file: Path) -> int:
    """Return the bytes that ``file`` allows, or a number above every memory."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):  # "max"
        return 1 << 62


def processor() -> str:
    """Return the name of the processor, where the system knows it, and its number of cores."""
    name = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    # platform.processor() starts a process on Linux.
    return f"{name or platform.processor() or platform.machine()} x{os.cpu_count()}"


def int8_is_exact(runtime: ModuleType) -> bool:
    """Return whether this processor multiplies unsigned by signed bytes without saturating.

    Without VNNI, x86 adds pairs of products in 16 bits: 2 · 255 · 127 overflows, and the variant
    int8 would give wrong results.
    """
    session = open_probe(runtime, "CPUExecutionProvider")
    # Large enough for the kernel that the model uses, not the one for single vectors.
    left, right = np.full((8, 64), 255, np.uint8), np.full((64, 32), 127, np.int8)
    (product,) = session.run(None, {"a": left, "b": right})
    return bool(np.all(product == 64 * 255 * 127))


def open_probe(runtime: ModuleType, provider: str) -> Any:
    """Return a session of :data:`PROBE` on a provider, by onnxruntime's name for it."""
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # Redraft reports a failure itself
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(PROBE, options, providers=[provider])
