"""What was found out about a provider, kept between starts; and a limit of time for that.

A verdict holds for what its key names, and for a while: a driver or a setting may change that no
key tells of. Knows nothing of how a provider is tried. A file that cannot be read or written only
means that it is tried once more. ``redraft doctor`` forgets what is kept and tries anew.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from ..weights.files import write_notes

_T = TypeVar("_T")

#: The file in the cache folder.
FILE = "providers.json"
#: A provider that takes longer to be tried is not used: some compile for half a minute, one that
#: hangs would keep the model from loading for ever.
MOST_S = 120.0

#: How long a verdict holds for later starts, in seconds: for this process alone; what was timed,
#: which a busy machine may have made slow; that a provider works; for as long as its key is so.
NOT_KEPT = 0.0
OF_TIME = 7 * 86_400.0
THAT_IT_WORKS = 30 * 86_400.0
WHILE_THE_SAME = math.inf

#: Verdicts that the file holds at most: each new system or driver brings others.
_MOST = 64
#: What onnxruntime tells of a device that stays the same from one start to the next.
_OF_DEVICE, _OF_PROVIDER = ("Description", "DxgiVideoMemory"), ("version", "os_driver_version")

#: Of this process.
_KNOWN: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Kept:
    said: str
    at: float  # seconds since 1970
    lasts: float | None  # seconds; None: for as long as its key is so

    def holds(self, now: float) -> bool:
        """Whether it is not too old; one of the future is no better."""
        return 0 <= now - self.at < (math.inf if self.lasts is None else self.lasts)


def known(
    key: str,
    find: Callable[[], tuple[str, float]],
    file: Path | None,
    clock: Callable[[], float] = time.time,
) -> str:
    """What ``find`` says of ``key``, asked where neither this process nor ``file`` knows.

    Args:
        find: returns what is to be known, and for how many seconds it holds for later starts.
        clock: seconds since 1970.
    """
    if key in _KNOWN:
        return _KNOWN[key]
    kept = _read(file).get(key)
    if kept is not None and kept.holds(clock()):
        return _KNOWN.setdefault(key, kept.said)
    said, lasts = find()
    _KNOWN[key] = said
    if lasts > 0 and file is not None:
        others = {other: each for other, each in _read(file).items() if other != key}
        newest = dict([*others.items()][1 - _MOST :])
        newest[key] = _Kept(said, clock(), None if math.isinf(lasts) else lasts)
        write_notes(file, {key: asdict(each) for key, each in newest.items()})
    return said


def forget(*files: Path) -> None:
    """Have everything tried anew: what this process knows, and what ``files`` keep."""
    _KNOWN.clear()
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def within(seconds: float, find: Callable[[], _T]) -> _T | None:
    """What ``find`` says; None where it takes longer, and is left to itself. What it raises is
    raised.

    Nothing ends what holds Python's lock meanwhile. Opening a session does not (onnxruntime 1.32);
    loading a library does, a plugin's among them: for that there is :func:`apart`.
    """
    said: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            said.append(find())
        except BaseException as error:  # raised again where it was asked
            raised.append(error)

    thread = threading.Thread(target=run, name="provider probe", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    return said[0] if said else None


def apart(seconds: float, program: str) -> int | None:
    """The exit status of a process of its own that runs ``program``; None where it takes longer,
    and is ended if it can be. 0 where none can be started."""
    command = [sys.executable, "-P", "-c", program]
    nowhere = subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return 0
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may keep it for ever
            process.wait(1.0)
        return None


def processor() -> str:
    """The processor's name and number of cores, as far as the system tells."""
    name = platform.processor()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name or platform.machine()} x{os.cpu_count()}"


def driver() -> str:
    """The version of NVIDIA's driver, where the system tells."""
    with contextlib.suppress(OSError):
        said = Path("/proc/driver/nvidia/version").read_text("utf-8", "replace")
        return said.split("\n", 1)[0]
    return ""


def devices(runtime: ModuleType, name: str) -> str:
    """What a provider runs on, with the drivers, as far as onnxruntime tells.

    Args:
        name: of the provider, as onnxruntime calls it.
    """
    found: list[str] = []
    with contextlib.suppress(Exception):  # it cannot list them: the key goes without
        for each in runtime.get_ep_devices():
            if each.ep_name == name:
                device = each.device
                parts = [device.type.name, f"{device.vendor_id:x}:{device.device_id:x}"]
                parts += [device.metadata[key] for key in _OF_DEVICE if key in device.metadata]
                parts += [each.ep_metadata[key] for key in _OF_PROVIDER if key in each.ep_metadata]
                found.append(" ".join(parts))
    return f"[{', '.join(sorted(found))}]"


def _read(file: Path | None) -> dict[str, _Kept]:
    try:
        found = json.loads(file.read_text("utf-8")) if file is not None else {}
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    kept = {key: _kept(each) for key, each in found.items()}
    return {key: each for key, each in kept.items() if each is not None}


def _kept(found: object) -> _Kept | None:
    """A verdict as it was written; None: it is none."""
    match found:
        case {"said": str(said), "at": int() | float() as at, "lasts": None | int() | float() as s}:
            return _Kept(said, at, s)
    return None
