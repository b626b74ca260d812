"""What was found out about a provider, kept between starts; and a limit of time for that.

Knows nothing of how a provider is tried. A file that cannot be read or written only means that it
is tried once more. ``redraft doctor`` forgets what is kept and tries anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
from collections.abc import Callable
from pathlib import Path

from ..errors import RedraftError
from ..weights.files import make_folder, write_atomically

#: The file in the cache folder.
FILE = "providers.json"
#: A provider that takes longer to be tried is not used: some compile for half a minute, one that
#: hangs would keep the model from loading for ever.
MOST_S = 120.0

#: Of this process.
_KNOWN: dict[str, str] = {}


def known(key: str, find: Callable[[], tuple[str, bool]], file: Path | None) -> str:
    """What ``find`` says of ``key``, asked where neither this process nor ``file`` knows.

    Args:
        find: returns what is to be known, and whether it holds for later starts as well.
    """
    if key in _KNOWN:
        return _KNOWN[key]
    kept = _read(file)
    if key in kept:
        return _KNOWN.setdefault(key, kept[key])
    said, lasts = find()
    _KNOWN[key] = said
    if lasts and file is not None:
        text = json.dumps(_read(file) | {key: said}, indent=1)
        with contextlib.suppress(RedraftError, OSError):
            make_folder(file.parent)
            write_atomically(file, text.encode("utf-8"))
    return said


def forget(file: Path | None = None) -> None:
    """Have everything tried anew: what this process knows, and what ``file`` keeps."""
    _KNOWN.clear()
    if file is not None:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def within(seconds: float, find: Callable[[], str]) -> str | None:
    """What ``find`` says; None where it takes longer, and is left to itself. What it raises is
    raised."""
    said: list[str] = []
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


def _read(file: Path | None) -> dict[str, str]:
    try:
        found = json.loads(file.read_text("utf-8")) if file is not None else {}
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: said for key, said in found.items() if isinstance(said, str)}
