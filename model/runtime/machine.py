"""The installed onnxruntime and the machine that it runs on."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from types import ModuleType

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


#: Physical cores from which on one is left to the editor and its other servers.
MANY_CORES = 4


def default_threads() -> int:
    """Return the number of physical cores this process may use, within its container's quota.

    With :data:`MANY_CORES` or more, one is left free.
    """
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    usable = max(1, min(physical, allowed, *map(_cores_allowed, CORE_QUOTAS)))
    return usable - 1 if usable >= MANY_CORES else usable


#: Files with the time that a container may compute in each period, and with that period, of the
#: second and the first version of cgroups.
CORE_QUOTAS = (
    (Path("/sys/fs/cgroup/cpu.max"),),
    (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")),
)


def _cores_allowed(files: tuple[Path, ...]) -> int:
    """Return the whole cores that ``files`` allow, or a number above every machine's."""
    try:
        quota, period = (int(part) for file in files for part in file.read_text("ascii").split())
    except (OSError, ValueError):  # "max"
        return 1 << 16
    return quota // period if quota > 0 and period > 0 else 1 << 16


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


def free_memory() -> int:
    """Return the bytes of memory that programs can take without swapping."""
    return psutil.virtual_memory().available


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
