"""Options that several commands share, groups of them, and the file of ``--json``.

A command takes a group of options as one parameter, and the options of a run as its description.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_type_hints, runtime_checkable

import typer
from redraft.model.errors import SettingsError

if TYPE_CHECKING:
    from ..settings import Settings


def check_writable(path: Path | None) -> Path | None:
    """Return ``path``, checked before hours of measuring rather than after.

    Raises:
        SettingsError: ``path`` has no folder to be in.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise SettingsError(f"The folder of {path} does not exist. Make it first.")
    return path


def write_json(path: Path | None, content: dict[str, Any]) -> None:
    """Write ``content`` to ``path``, if there is one.

    Raises:
        SettingsError: ``path`` cannot be written.
    """
    if path is None:
        return
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error


Model = Annotated[str | None, typer.Option(help="Run this model (see 'redraft model list').")]
Variant = Annotated[
    str | None,
    typer.Option(
        help="Run the weights in this format: int8, q4 or fp32; fp16 or q4f16 on CUDA. "
        "Default: the best for the provider."
    ),
]
Provider = Annotated[
    str | None,
    typer.Option(help="Run on cpu or cuda. Default: CUDA where it works, else the CPU."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        help="Use this many CPU threads. Default: one per core, less one from four cores on.",
    ),
]


@dataclass(frozen=True, slots=True)
class Group:
    """Options that belong together; the fields of a subclass, annotated as a command's are."""


@runtime_checkable
class Described(Protocol):
    """A dataclass that says which of its fields are options."""

    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the arguments of ``typer.Option`` by field."""
        ...


@dataclass(frozen=True, slots=True)
class Running(Group):
    """Options about the model that runs."""

    model: Model = None
    variant: Variant = None
    provider: Provider = None
    threads: Threads = None

    def check_server(self, server: str | None) -> None:
        """Refuse options that a server has already decided.

        Raises:
            BadParameter: ``server`` is given together with an option of this group.
        """
        given = [each.name for each in fields(self) if getattr(self, each.name) is not None]
        if server is not None and given:
            option = given[0]
            raise typer.BadParameter(
                f"the server at {server} chooses its own {option}; leave out --{option}, or start "
                f"the server with 'redraft serve --{option} {getattr(self, option)}'",
                param_hint=f"--{option}",
            )

    def settings(self, **others: Any) -> Settings:
        """Return the settings with the options of the command line."""
        return load(**{each.name: getattr(self, each.name) for each in fields(self)}, **others)


RUNNING = Running()


def load(**options: Any) -> Settings:
    """Return the settings with the options of the command line."""
    from ..settings import load_settings

    return load_settings().with_options(**options)


def model_for(settings: Settings) -> str:
    """Return the name of the model that runs with these settings."""
    from redraft.model.load import which_model

    how = (settings.variant, settings.provider, settings.threads)
    return which_model(settings.model, *how).model


def options_of(default: object) -> dict[str, Any]:
    """Return the options of a parameter with this default, or {} for an ordinary parameter.

    A :class:`Group` has its fields as options; a :class:`Described` says which of its fields are.
    """
    if isinstance(default, Group):
        return get_type_hints(type(default), include_extras=True)
    found: dict[str, Any] = {}
    if isinstance(default, Described):
        hints = get_type_hints(type(default))
        for name, how in default.options().items():
            kind = list[str] if hints[name] == tuple[str, ...] else hints[name]
            found[name] = Annotated[kind, typer.Option(f"--{name.replace('_', '-')}", **how)]
    return found


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each parameter that groups options into these options."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, dict[str, Any]]] = {}
    for each in signature.parameters.values():
        options = options_of(each.default)
        if not options:
            parameters.append(each)
            continue
        groups[each.name] = each.default, options
        for name, option in options.items():
            default = getattr(each.default, name)
            parameters.append(each.replace(name=name, default=default, annotation=option))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, (default, options) in groups.items():
            values = {each: given.pop(each) for each in options}
            named = {each: tuple(v) if isinstance(v, list) else v for each, v in values.items()}
            given[name] = replace(default, **named)
        command(**given)

    parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run
