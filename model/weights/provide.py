"""The registry of models and the combine step: base weights + adapter → a folder ready to run.

Two models are built in; adapters ship with the package, their base is fetched once.
Further models are folders with a ``model.json`` like ``shipped/redraft-0.5b.json``, below
``REDRAFT_MODELS`` or ``models`` in the cache. Knows nothing of running them. It blocks: call it in
a thread.

The cache (``REDRAFT_CACHE_DIR``, else the platform's)::

    base/<start of SHA-256>.gguf                    base weights; .part: the beginning of them
    ready/<model>/<version>/<variant>/              config.json, tokenizer.json, ONNX, manifest.json
    models/<any name>/model.json                    models of the user

A folder is put in place when it is whole and never changed afterwards; ``manifest.json`` holds the
SHA-256 of each file and of the recipe it was made by.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import filelock

from ..errors import SettingsError, UnknownModel, WeightsError
from ..network.layout import LAYOUT
from ..network.quantize import VARIANTS
from .combine import CHAT_TEMPLATE, combine, expected_bytes
from .fetch import (
    Base,
    Progress,
    ProgressCallback,
    bytes_to_fetch,
    fetch_base,
    no_progress,
    take_base,
)
from .files import (
    MANIFEST,
    STAMPS,
    explaining,
    make_folder,
    problem_of,
    read_json,
    replace_folder,
    sha256_of,
    sync_files,
    write_atomically,
)
from .registry import DESCRIPTION, ModelInfo, cache_dir, info, list_models

#: Raise when the same weights give other files in a ready folder: all folders are made anew. A test
#: compares the files of a tiny model with those of this number.
READY_VERSION = 1
_log = logging.getLogger(__name__)

_LOCK_PATIENCE_S = 1_800.0
_LOCK_POLL_S = 1.0  # how often a waiting process reports


def check_known(name: str, variant: str | None) -> None:
    """Refuse names that no waiting and no download would make right.

    Raises:
        UnknownModel: there is no model of this name.
        SettingsError: there is no such variant.
    """
    info(name)
    if variant is not None and variant not in VARIANTS:
        raise SettingsError(f"Unknown variant {variant!r}; choose one of {', '.join(VARIANTS)}.")


def ready_variants(model: ModelInfo) -> list[str]:
    """The variants that can be loaded at once, as far as names and sizes tell."""
    return [v for v in VARIANTS if not problem_of(*_place(model, v), thorough=None)]


def is_here(model: ModelInfo, variant: str) -> bool:
    """Return whether a variant can be loaded without a download, as far as names and sizes tell."""
    if not problem_of(*_place(model, variant), thorough=None):
        return True
    return model.origin is not None and _raw_path(model.origin).exists()


def names_with_template() -> list[str]:
    """Models that lie ready here and know conversations."""
    return [
        model.name
        for model in list_models()
        if any((_place(model, v)[0] / CHAT_TEMPLATE).is_file() for v in VARIANTS)
    ]


def bytes_to_pull(model: ModelInfo, variant: str) -> int:
    """About how much disk it takes at its peak to fetch the base and to make a variant."""
    fetched = bytes_to_fetch(model.origin, _raw_path(model.origin)) if model.origin else 0
    return fetched + expected_bytes(model.config, variant)


def ensure(name: str, variant: str | None = None, progress: ProgressCallback = no_progress) -> Path:
    """A folder with the model, ready to load; fetches and makes only what is missing or damaged.

    Files whose size and time are as when they were last compared are not hashed again. Where a
    folder cannot be made anew, one that an earlier release made of this model is used as it is.

    Raises:
        UnknownModel: there is no model of this name.
        SettingsError: there is no such variant.
        WeightsError: what is missing cannot be fetched, made or written; says what to do.
    """
    model = info(name)
    try:
        return _provide(model, variant, progress, thorough=False)
    except WeightsError as error:
        earlier = _earlier(model, variant or model.default_variant)
        if earlier is None:
            raise
        _log.warning("%s Meanwhile %s is used as an earlier release made it.", error, name)
        return earlier


def pull(
    name: str,
    source: Path | None = None,
    variant: str | None = None,
    progress: ProgressCallback = no_progress,
    drop_raw: bool = False,
) -> Path:
    """Like :func:`ensure`, but hashes everything, and takes the base from ``source`` if given.

    Args:
        source: a GGUF file at hand instead of the network.
        drop_raw: delete the base weights once the folder stands; another variant, or a release
            that makes folders otherwise, fetches them again.
    """
    model = info(name)
    folder = _provide(model, variant, progress, thorough=True, source=source)
    if drop_raw and model.origin is not None:
        raw = _raw_path(model.origin)
        with _locked(progress), explaining("delete", raw):
            raw.unlink(missing_ok=True)
    return folder


def base_path(name: str, progress: ProgressCallback = no_progress) -> Path:
    """The base weights of a model as a verified GGUF file, fetched where missing or damaged."""
    with _locked(progress):
        return _provide_base(info(name).base, None, progress, room=0)


@dataclass(frozen=True, slots=True)
class Stored:
    """A ready folder as it lies on disk."""

    size: int  # bytes of its files
    digest: str  # SHA-256 of its manifest, which holds that of each file
    modified: datetime


def stored(name: str, variant: str) -> Stored | None:
    """What of a model lies ready on this machine; None where nothing does."""
    try:
        model = info(name)
        folder = _place(model, variant or model.default_variant)[0]
        manifest = folder / MANIFEST
        files = read_json(manifest).get("files", {})
        changed = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
    except (UnknownModel, WeightsError, OSError):
        return None
    size = sum(int(each["size"]) for each in files.values())
    return Stored(size, sha256_of(manifest), changed)


def export(
    name: str,
    variant: str | None,
    out_dir: Path,
    progress: ProgressCallback = no_progress,
) -> Path:
    """Copy a ready model to ``out_dir``, a folder that ``REDRAFT_MODELS`` may name elsewhere.

    Raises:
        WeightsError: ``out_dir`` holds something else, or cannot be written.
    """
    model = info(name)
    with explaining("read", out_dir):
        occupied = out_dir.exists() and any(out_dir.iterdir())
    before = read_json(out_dir / DESCRIPTION)
    if occupied and (before.get("name"), before.get("version")) != (model.name, model.version):
        raise WeightsError(
            f"{out_dir} is not empty and not an export of {model.name} {model.version}. Name a "
            "new folder, or empty it."
        )
    ready = ensure(name, variant, progress)
    _copy_folder(ready, out_dir / ready.name)
    prebuilt = sorted({ready.name, *before.get("prebuilt", ())})
    content = model.describe() | {"adapter": None, "prebuilt": prebuilt}
    if model.default_variant not in prebuilt:
        content["default_variant"] = ready.name
    write_atomically(out_dir / DESCRIPTION, json.dumps(content, indent=1).encode())
    return out_dir


def _copy_folder(source: Path, target: Path) -> None:
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with explaining("write", temporary):
            shutil.copytree(source, temporary, ignore=shutil.ignore_patterns(STAMPS))
        sync_files(temporary)
        replace_folder(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# ------------------------------------------------------------------------------ providing


def _place(model: ModelInfo, variant: str) -> tuple[Path, str | None]:
    """Where a variant lies, and the recipe it must be made by; None: as exported or imported."""
    if model.folder is not None and (variant in model.prebuilt or model.origin is None):
        return model.folder / variant, None
    return cache_dir() / "ready" / model.name / model.version / variant, recipe_of(model, variant)


def recipe_of(model: ModelInfo, variant: str) -> str:
    """A SHA-256 over everything a ready folder depends on."""
    parts = {
        "ready": READY_VERSION,
        "layout": LAYOUT,
        "base": model.base.gguf_sha256,
        "adapter": model.adapter_sha256,
        "config": model.config.to_dict(),
        "variant": variant,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _earlier(model: ModelInfo, variant: str) -> Path | None:
    """A whole ready folder of this model by another recipe or version, the newest first."""
    if model.origin is None:
        return None
    found = (cache_dir() / "ready" / model.name).glob(f"*/{variant}/config.json")
    newest = sorted((path.parent for path in found), key=lambda p: p.stat().st_mtime, reverse=True)
    fit = (folder for folder in newest if _layout(folder) == LAYOUT)
    return next((folder for folder in fit if not problem_of(folder, None, False)), None)


def _layout(folder: Path) -> int:
    layout = read_json(folder / "graphs.json").get("layout")
    return layout if isinstance(layout, int) else 0


def _remove_outdated(model: ModelInfo) -> None:
    """Remove ready folders of a model that only earlier releases can run."""
    for about in (cache_dir() / "ready" / model.name).glob("*/*/graphs.json"):
        if _layout(about.parent) < LAYOUT:
            shutil.rmtree(about.parent, ignore_errors=True)


def _provide(
    model: ModelInfo,
    variant: str | None,
    progress: ProgressCallback,
    thorough: bool,
    source: Path | None = None,
) -> Path:
    check_known(model.name, variant)
    variant = variant or model.default_variant
    folder, recipe = _place(model, variant)
    problem = problem_of(folder, recipe, thorough)
    if recipe is None and problem:
        if variant not in model.prebuilt:
            raise WeightsError(
                f"{model.name} was imported as {', '.join(model.prebuilt)}, not as {variant}. Run "
                f"'redraft model import' with its folder, --name {model.name} and --variant "
                f"{variant}."
            )
        raise WeightsError(
            f"{folder} is damaged: {problem}. Copy the exported model anew, or import it again."
        )
    if not problem and source is None:
        return folder
    if recipe is None or (model.prebuilt and model.adapter is None):
        raise WeightsError(
            f"{model.name} in {model.folder} was exported as {', '.join(model.prebuilt)} and "
            "cannot be made anew from other files. Choose one of these variants and name no source."
        )
    with _locked(progress):
        # Another process may have made it while this one waited.
        if source is not None or problem_of(folder, recipe, thorough):
            room = expected_bytes(model.config, variant)
            base = _provide_base(model.base, source, progress, room)
            if problem_of(folder, recipe, thorough):
                combine(model, base, variant, folder, recipe, progress)
                _remove_outdated(model)
    return folder


@contextlib.contextmanager
def _locked(progress: ProgressCallback) -> Iterator[None]:
    """One process at a time fetches and combines; the system frees the lock of a dead one."""
    folder = cache_dir()
    make_folder(folder)
    lock = filelock.FileLock(folder / "pull.lock")
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while not _acquired(lock, folder):
        if time.monotonic() > deadline:
            raise WeightsError(
                f"another Redraft has been fetching weights into {folder} for "
                f"{_LOCK_PATIENCE_S / 60:.0f} minutes. End it, then try again."
            )
        progress(Progress("wait", 0, 0))
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: filelock.BaseFileLock, folder: Path) -> bool:
    with explaining("lock", folder):
        try:
            lock.acquire(timeout=_LOCK_POLL_S)
        except filelock.Timeout:  # an OSError too, but not one of the disk
            return False
    return True


def _raw_path(base: Base) -> Path:
    return cache_dir() / "base" / f"{base.gguf_sha256[:16]}.gguf"


def _provide_base(
    base: Base,
    source: Path | None,
    progress: ProgressCallback,
    room: int,
) -> Path:
    target = _raw_path(base)
    if source is not None:
        take_base(base, source, target, progress)
    elif not target.exists() or sha256_of(target) != base.gguf_sha256:
        fetch_base(base, target, progress, room=room)
    return target
