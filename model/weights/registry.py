"""Finds and reads descriptions of models: the built-in ones and folders of the user.

Knows nothing of fetching or combining; reads small JSON files only.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs

from ..config import ModelConfig
from ..errors import SettingsError, UnknownModel, WeightsError
from ..network.quantize import VARIANTS
from .fetch import Base
from .hub import HubFile
from .packages import Wheel

#: Redraft's own models, the largest first.
OWN_MODELS = ("redraft-1.5b", "redraft-0.5b")
#: The model that runs where none is named, unless a larger one suits the machine.
DEFAULT_MODEL = OWN_MODELS[-1]
#: Models of earlier releases, with the model to use instead.
REMOVED = {"redraft-135m": DEFAULT_MODEL}
#: The name that stands for the choice among them in settings.
AUTO = "auto"
#: Name of the file that makes a folder a model.
DESCRIPTION = "model.json"

#: Of the same folder, but no model.
GATE = "gate.json"

_BUILT_IN = Path(__file__).parents[1] / "shipped"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_REPO = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model: where it comes from and how it is run."""

    name: str
    version: str
    summary: str
    license: str
    origin: Base | None  # None: imported, so that there is nothing to fetch
    adapter: Path | None
    adapter_sha256: str  # "" without an adapter
    config: ModelConfig
    default_variant: str
    folder: Path | None = None  # of the user's models; None: built in
    prebuilt: tuple[str, ...] = ()  # variants that lie ready in ``folder``
    chat: str = ""  # name of the model that holds conversations in its place; "" itself

    @property
    def base(self) -> Base:
        """
        Raises:
            WeightsError: the model was imported.
        """
        if self.origin is None:
            raise WeightsError(
                f"{self.name} was imported and has no base to fetch. Run 'redraft model import' "
                f"with its folder, --name {self.name} and the --variant you want."
            )
        return self.origin

    def describe(self) -> dict[str, Any]:
        """The content of a ``model.json``."""
        adapter = None
        if self.adapter is not None:
            adapter = {"file": self.adapter.name, "sha256": self.adapter_sha256}
        config = self.config.to_dict()
        del config["name"]
        return {
            "name": self.name,
            "version": self.version,
            "summary": self.summary,
            "license": self.license,
            "base": None if self.origin is None else asdict(self.origin),
            "adapter": adapter,
            "default_variant": self.default_variant,
            "prebuilt": list(self.prebuilt),
            **({"chat": self.chat} if self.chat else {}),
            "config": config,
        }


def check_name(name: str) -> None:
    """
    Raises:
        SettingsError: a model cannot be called that.
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"A model cannot be called {name!r}: letters, digits and . _ + - only, 64 at most, a "
            "letter or digit first."
        )


def cache_dir() -> Path:
    """Where weights are kept: ``REDRAFT_CACHE_DIR`` or the platform's cache folder."""
    named = os.environ.get("REDRAFT_CACHE_DIR", "").strip()
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("redraft")


def list_models() -> list[ModelInfo]:
    """Every model that can be used here; a user's folder hides the built-in model of the same name.

    A folder whose description is broken is left out, with a warning in the log.
    """
    found: dict[str, ModelInfo] = {}
    for path in _descriptions():
        try:
            model = read_description(path)
        except WeightsError as error:
            _log.warning("%s", error)
            continue
        found.setdefault(model.name, model)
    return list(found.values())


def info(name: str) -> ModelInfo:
    """Return the model called ``name``.

    Raises:
        UnknownModel: there is none, or it was removed from Redraft.
        WeightsError: the folder of that name has a broken description.
    """
    check_not_removed(name)
    models = list_models()
    for model in models:
        if model.name == name:
            return model
    for path in _descriptions():
        if path.parent.name == name:
            read_description(path)  # raises what list_models only logged
    known = ", ".join(model.name for model in models)
    raise UnknownModel(
        f"There is no model {name!r}; known are {known}. Put the folder of a model of your own "
        "into REDRAFT_MODELS, or import one with 'redraft model import'."
    )


def check_not_removed(name: str) -> None:
    """
    Raises:
        UnknownModel: an earlier release had a model of this name.
    """
    if (instead := REMOVED.get(name)) is not None:
        raise UnknownModel(
            f"{name} is no longer part of Redraft; use {instead} (redraft model pull {instead})"
        )


def _descriptions() -> Iterator[Path]:
    """Every description, the strongest first."""
    named = os.environ.get("REDRAFT_MODELS", "").split(os.pathsep)
    roots = [Path(root).expanduser() for root in named if root.strip()]
    for root in [*roots, cache_dir() / "models"]:
        if (root / DESCRIPTION).is_file():
            yield root / DESCRIPTION
        elif root.is_dir():
            try:
                yield from sorted(root.glob(f"*/{DESCRIPTION}"))
            except OSError as error:
                _log.warning("cannot look for models in %s: %s", root, error)
    yield from sorted(path for path in _BUILT_IN.glob("*.json") if path.name != GATE)


def read_description(path: Path) -> ModelInfo:
    """Read one description.

    Raises:
        WeightsError: which field is wrong, in which file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("it is not a JSON object")
        return _model(path, data)
    except KeyError as error:
        raise WeightsError(f"{path} lacks the field {error}. {_advice(path)}") from error
    except (OSError, ValueError, TypeError, RecursionError, WeightsError) as error:
        raise WeightsError(f"{path} does not describe a model: {error}. {_advice(path)}") from error


def _advice(path: Path) -> str:
    if path.parent == _BUILT_IN:
        return "Reinstall Redraft."
    return "Compare it with what 'redraft model export' writes, or remove its folder."


def _model(path: Path, data: Mapping[str, Any]) -> ModelInfo:
    adapter, folder = data["adapter"], path.parent
    variants = tuple(_variant(v) for v in data.get("prebuilt", ()))
    if data["base"] is None and not variants:
        raise ValueError("it names neither a base to fetch nor a variant that lies ready")
    return ModelInfo(
        name=_matching(_NAME, "name", data["name"]),
        version=_matching(_NAME, "version", data["version"]),
        summary=str(data.get("summary", "")),
        license=str(data.get("license", "")),
        origin=_base_of(path, data["base"]),
        adapter=folder / _matching(_NAME, "adapter.file", adapter["file"]) if adapter else None,
        adapter_sha256=_matching(_SHA256, "adapter.sha256", adapter["sha256"]) if adapter else "",
        config=ModelConfig.from_dict({**data["config"], "name": data["name"]}),
        default_variant=_variant(data["default_variant"]),
        folder=None if folder == _BUILT_IN else folder,
        prebuilt=variants,
        chat=_matching(_NAME, "chat", data["chat"]) if data.get("chat") else "",
    )


def _base_of(path: Path, data: Any) -> Base | None:
    """Return the base that a description at ``path`` names; None: it was imported.

    A name stands for the base of the model that is described beside it under that name.
    """
    if isinstance(data, str):
        named = path.with_name(f"{_matching(_NAME, 'base', data)}.json")
        data = json.loads(named.read_text(encoding="utf-8"))["base"]
    return None if data is None else _base(data)


def _base(data: Mapping[str, Any]) -> Base:
    hub = data["hub"]
    base = Base(
        gguf_sha256=_matching(_SHA256, "base.gguf_sha256", data["gguf_sha256"]),
        gguf_size=_bytes("base.gguf_size", data["gguf_size"]),
        hub=None if hub is None else HubFile(**hub),
        wheels=tuple(_wheel(each) for each in data["wheels"]),
    )
    if base.hub is not None:
        _matching(_REPO, "base.hub.repo", base.hub.repo)
        _matching(_NAME, "base.hub.file", base.hub.file)
    elif not base.wheels:
        raise ValueError("base names neither a hub nor wheels")
    if base.wheels and sum(wheel.part_size for wheel in base.wheels) != base.gguf_size:
        raise ValueError("the parts in base.wheels do not add up to base.gguf_size")
    return base


def _wheel(data: Mapping[str, Any]) -> Wheel:
    wheel = Wheel(**data)
    for field in ("sha256", "part_sha256"):
        _matching(_SHA256, f"base.wheels.{field}", getattr(wheel, field))
    for field in ("package", "version", "wheel"):
        _matching(_NAME, f"base.wheels.{field}", getattr(wheel, field))
    for field in ("size", "part_size"):
        _bytes(f"base.wheels.{field}", getattr(wheel, field))
    if not isinstance(wheel.member, str):
        raise ValueError(f"base.wheels.member is {wheel.member!r}, not a name")
    return wheel


def _bytes(field: str, value: object) -> int:
    if type(value) is not int or not 0 < value < 1 << 40:
        raise ValueError(f"{field} is {value!r}, not a number of bytes")
    return value


def _variant(value: object) -> str:
    if value not in VARIANTS:
        raise ValueError(f"{value!r} is not a variant; choose one of {', '.join(VARIANTS)}")
    return str(value)


def _matching(pattern: re.Pattern[str], field: str, value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{field} is {value!r}, which does not match {pattern.pattern}")
    return value
