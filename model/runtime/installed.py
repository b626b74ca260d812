"""The installed onnxruntime: one build, recent enough, and the providers it has."""

from __future__ import annotations

import importlib.metadata
from types import ModuleType

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


def offered(runtime: ModuleType) -> dict[str, str]:
    """Return the name onnxruntime gives to each provider it has, by our name.

    Azure's provider is left out: it calls a remote service and runs no graph here.
    """
    names = runtime.get_available_providers()
    found = {name.removesuffix("ExecutionProvider").upper(): name for name in names}
    return {ours: name for ours, name in found.items() if ours != "AZURE"}
