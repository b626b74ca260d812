"""Models on this machine: found, fetched, converted, verified, exported and removed.

Everything here blocks: call it in a thread. The cache (``REDRAFT_CACHE_DIR``, else the
platform's)::

    base/<start of SHA-256>.gguf            base weights; .part: the beginning of them
    ready/<model>/<version>/<variant>/      config.json, tokenizer.json, ONNX, manifest.json
    models/<model>/                         imported models: model.json and a folder per variant
    open/<model>/                           weights from the hub that a model was imported from

A ready folder is put in place when it is whole and never changed afterwards; ``manifest.json``
holds the SHA-256 of each file and of the recipe it was made by.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import filelock

from ..errors import UnknownModel, WeightsError
from ..network.layout import LAYOUT
from ..network.quantize import VARIANTS, variant_named
from .catalog import DESCRIPTION, Base, ModelInfo, cache_dir, info, list_models
from .convert import CHAT_TEMPLATE, convert, estimate_bytes, own_weights
from .download import (
    Progress,
    ProgressCallback,
    bytes_to_fetch,
    fetch_base,
    no_progress,
    part_of,
    take_base,
)
from .files import (
    MANIFEST,
    STAMPS,
    atomic_folder,
    delete,
    explain_errors,
    make_folder,
    problem_of,
    read_json,
    sha256_of,
    size_of,
    write_atomically,
)

#: Raise when the same weights give other files in a ready folder: all folders are made anew. A test
#: compares the files of a tiny model with those of this number.
READY_VERSION = 3
_log = logging.getLogger(__name__)

_LOCK_PATIENCE_S = 1_800.0
_LOCK_POLL_S = 1.0  # how often a waiting process reports


# --- looking --------------------------------------------------------------------------------------


def check_known(name: str, variant: str | None) -> None:
    """Refuse names that no waiting and no download would make right.

    Raises:
        UnknownModel: there is no model of this name.
        SettingsError: there is no such variant.
    """
    info(name)
    if variant is not None:
        variant_named(variant)


def ready_variants(model: ModelInfo) -> list[str]:
    """Return the variants that can be loaded at once, as far as names and sizes tell."""
    return [v for v in VARIANTS if is_ready(model, v)]


def is_ready(model: ModelInfo, variant: str) -> bool:
    """Return whether a variant can be loaded at once, as far as names and sizes tell."""
    return not problem_of(*_place(model, variant), thorough=None)


def is_here(model: ModelInfo, variant: str) -> bool:
    """Return whether a variant can be loaded without a download, as far as names and sizes tell."""
    return is_ready(model, variant) or (
        model.origin is not None and _base_file(model.origin).exists()
    )


def is_pulling() -> bool:
    """Return whether a process fetches or makes weights now."""
    lock = filelock.FileLock(cache_dir() / "pull.lock")
    try:
        lock.acquire(timeout=0)
    except OSError as error:  # a timeout is one; else the folder is read-only or missing
        return isinstance(error, filelock.Timeout)
    lock.release()
    return False


def names_with_template() -> list[str]:
    """Return the models that lie ready here and know conversations."""
    return [
        model.name
        for model in list_models()
        if any((_place(model, v)[0] / CHAT_TEMPLATE).is_file() for v in VARIANTS)
    ]


def bytes_to_pull(model: ModelInfo, variant: str) -> int:
    """Return about how much disk it takes to fetch the base and to make a variant, at its peak."""
    fetched = bytes_to_fetch(model.origin, _base_file(model.origin)) if model.origin else 0
    return fetched + estimate_bytes(model.config, variant)


@dataclass(frozen=True, slots=True)
class StoredFolder:
    """A ready folder as it lies on disk."""

    size: int  # bytes of its files
    digest: str  # SHA-256 of its manifest, which holds that of each file
    modified: datetime


def find_stored(name: str, variant: str) -> StoredFolder | None:
    """Return what of a model lies ready on this machine; None where nothing does."""
    try:
        model = info(name)
        manifest = _place(model, variant or model.default_variant)[0] / MANIFEST
        files = read_json(manifest).get("files", {})
        changed = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
    except (UnknownModel, WeightsError, OSError):
        return None
    size = sum(int(each["size"]) for each in files.values())
    return StoredFolder(size, sha256_of(manifest), changed)


def recipe_of(model: ModelInfo, variant: str) -> str:
    """Return a SHA-256 over everything a ready folder depends on."""
    parts = {
        "ready": READY_VERSION,
        "layout": LAYOUT,
        "base": model.base.gguf_sha256,
        "adapter": model.adapter_sha256,
        "config": model.config.to_dict(),
        "variant": variant,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _place(model: ModelInfo, variant: str) -> tuple[Path, str | None]:
    """Return where a variant lies, and its recipe; None: as exported or imported."""
    if model.folder is not None and (variant in model.prebuilt or model.origin is None):
        return model.folder / variant, None
    return cache_dir() / "ready" / model.name / model.version / variant, recipe_of(model, variant)


def _base_file(base: Base) -> Path:
    return cache_dir() / "base" / f"{base.gguf_sha256[:16]}.gguf"


def _layout(folder: Path) -> int:
    layout = read_json(folder / "graphs.json").get("layout")
    return layout if isinstance(layout, int) else 0


# --- providing ------------------------------------------------------------------------------------


def ensure(name: str, variant: str | None = None, progress: ProgressCallback = no_progress) -> Path:
    """Return a folder with the model, ready to load; fetch and make what is missing or damaged.

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
    drop_base: bool = False,
) -> Path:
    """Return a folder like :func:`ensure`, but hash everything.

    Args:
        source: a GGUF file at hand to take the base from, instead of the network.
        drop_base: delete the base weights once the folder stands; another variant, or a release
            that makes folders otherwise, fetches them again.
    """
    model = info(name)
    folder = _provide(model, variant, progress, thorough=True, source=source)
    if drop_base and model.origin is not None:
        with hold_lock(progress):
            delete(_base_file(model.origin))
    return folder


def base_path(name: str, progress: ProgressCallback = no_progress) -> Path:
    """Return the base of a model as a verified GGUF file, fetched where missing or damaged."""
    with hold_lock(progress):
        return _provide_base(info(name).base, None, progress, room=0)


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
                f"'redraft model pull' with its folder, --name {model.name} and --variant "
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
    with hold_lock(progress):
        # Another process may have made it while this one waited.
        if source is not None or problem_of(folder, recipe, thorough):
            room = estimate_bytes(model.config, variant)
            base = _provide_base(model.base, source, progress, room)
            if problem_of(folder, recipe, thorough):
                convert(own_weights(model, base), variant, folder, recipe, progress)
                _remove_outdated(model)
    return folder


def _provide_base(base: Base, source: Path | None, progress: ProgressCallback, room: int) -> Path:
    target = _base_file(base)
    if source is not None:
        take_base(base, source, target, progress)
    elif not target.exists() or sha256_of(target) != base.gguf_sha256:
        fetch_base(base, target, progress, room=room)
    return target


def _earlier(model: ModelInfo, variant: str) -> Path | None:
    """Return a whole ready folder of this model by another recipe or version, the newest."""
    if model.origin is None:
        return None
    found = (cache_dir() / "ready" / model.name).glob(f"*/{variant}/config.json")
    newest = sorted((path.parent for path in found), key=lambda p: p.stat().st_mtime, reverse=True)
    fit = (folder for folder in newest if _layout(folder) == LAYOUT)
    return next((folder for folder in fit if not problem_of(folder, None, False)), None)


def _remove_outdated(model: ModelInfo) -> None:
    """Delete ready folders of other versions of a model, and those that only others can run."""
    for about in (cache_dir() / "ready" / model.name).glob("*/*/graphs.json"):
        folder, version = about.parent, about.parent.parent.name
        is_known = folder.name in VARIANTS and _layout(folder) >= LAYOUT
        if version == model.version and is_known:
            continue
        size = size_of(folder)
        with contextlib.suppress(WeightsError):  # Windows: an engine has it open; next time
            delete(folder)
            _log.warning(
                "Removed %s %s (%s, %.0f MB): %s takes its place.",
                *(model.name, version, folder.name, size / 1e6, model.version),
            )


@contextlib.contextmanager
def hold_lock(progress: ProgressCallback) -> Iterator[None]:
    """Let one process at a time fetch, convert and remove; the system frees a dead one's lock.

    Raises:
        WeightsError: another process has held the lock for half an hour.
    """
    folder = cache_dir()
    make_folder(folder)
    lock = filelock.FileLock(folder / "pull.lock")
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        # A timeout is an OSError too, but not one of the disk.
        with explain_errors("lock", folder), contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=_LOCK_POLL_S)
            break
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


# --- copying and removing -------------------------------------------------------------------------


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
    with explain_errors("read", out_dir):
        occupied = out_dir.exists() and any(out_dir.iterdir())
    before = read_json(out_dir / DESCRIPTION)
    if occupied and (before.get("name"), before.get("version")) != (model.name, model.version):
        raise WeightsError(
            f"{out_dir} is not empty and not an export of {model.name} {model.version}. Name a "
            "new folder, or empty it."
        )
    ready = ensure(name, variant, progress)
    with atomic_folder(out_dir / ready.name) as place:
        shutil.copytree(ready, place, ignore=shutil.ignore_patterns(STAMPS), dirs_exist_ok=True)
    prebuilt = sorted({ready.name, *before.get("prebuilt", ())})
    content = model.describe() | {"adapter": None, "prebuilt": prebuilt}
    if model.default_variant not in prebuilt:
        content["default_variant"] = ready.name
    write_atomically(out_dir / DESCRIPTION, json.dumps(content, indent=1).encode())
    return out_dir


def remove(name: str, progress: ProgressCallback = no_progress) -> int:
    """Delete a model from this machine and return the bytes that this freed.

    The base stays where another model that lies ready is made from it.

    Raises:
        UnknownModel: there is no model of this name.
        WeightsError: it lies in a folder of the user's, or cannot be deleted.
    """
    model, cache = info(name), cache_dir()
    paths = [cache / "ready" / name, cache / "open" / name]
    if model.folder is not None and model.origin is None:
        if model.folder.parent != cache / "models":
            raise WeightsError(
                f"{name} lies in {model.folder}, outside Redraft's cache. Delete that folder."
            )
        paths.append(model.folder)
    others = (other for other in list_models() if other.name != name)
    if model.origin and not any(o.origin == model.origin and ready_variants(o) for o in others):
        base = _base_file(model.origin)
        paths += [base, part_of(model.origin, base)]
    with hold_lock(progress):
        freed = sum(map(size_of, paths))
        for path in paths:
            delete(path)
    return freed
