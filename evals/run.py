"""A run of an evaluation on disk: its description, then one line for each example.

A file that was made from another description is refused, so that no two models mix. A torn last
line, as a kill leaves it, is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from redraft.model.errors import InvalidRequest, SettingsError
from redraft.model.validation import read

from .example import Example, Row
from .spec import RunSpec, spec_fields

FORMAT = 2  # of the file

OnDone = Callable[[int, int], None]  # done, total


def quiet(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(slots=True)
class Run:
    """The examples so far, in memory and, if there is a file, on disk."""

    spec: RunSpec
    machine: dict[str, str] = field(default_factory=dict)
    examples: dict[str, Example] = field(default_factory=dict)  # by id
    file: TextIO | None = None

    def add(self, example: Example) -> None:
        """Keep an example, and write it."""
        self.examples[example.id] = example
        if self.file is not None:
            self.file.write(json.dumps(example.to_json()) + "\n")
            self.file.flush()

    def find_missing(self, ids: Iterable[str]) -> list[str]:
        """Return the ids that have no example yet."""
        return [each for each in ids if each not in self.examples]

    def rows(self) -> list[Row]:
        """Return all examples as tables read them."""
        return [each.row() for each in self.examples.values()]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.file is not None:
            self.file.close()


def open_run(path: Path | None, spec: RunSpec, machine: Mapping[str, str], resume: bool) -> Run:
    """Begin a run, or continue the one in ``path``.

    Args:
        path: None keeps the examples in memory alone.

    Raises:
        SettingsError: the file exists and ``resume`` is not given, is of another description, or
            cannot be written.
    """
    run = Run(spec, dict(machine))
    if path is None:
        return run
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not resume:
            raise SettingsError(
                f"{path} is there already. Name another --out, or continue an evaluation with "
                "--resume."
            )
        if path.exists() and _without_torn_line(path):
            before = read_run(path)
            _check_same(path, before.spec, spec)
            run.examples = before.examples
            run.file = path.open("a", encoding="utf-8")
            return run
        run.file = path.open("w", encoding="utf-8")
        write_header(run.file, run)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error
    return run


def write_header(file: TextIO, run: Run) -> None:
    """Write the first line of a run's file."""
    header = {"format": FORMAT, "run": run.spec.key_fields(), "machine": run.machine}
    file.write(json.dumps(header) + "\n")
    file.flush()


def read_run(path: Path) -> Run:
    """Return a run as it stands on disk.

    Raises:
        SettingsError: it is not the file of a run, or of another release.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        header = json.loads(lines[0])
        if "run" in header and header.get("format") != FORMAT:
            raise SettingsError(
                f"{path} is a run of another release (format {header.get('format', 1)}, not "
                f"{FORMAT}): its lines lack what this one needs. Make it again."
            )
        run = Run(read(RunSpec, spec_fields(dict(header["run"]))), dict(header["machine"]))
        for line in lines[1:-1]:  # what follows the last newline is torn or nothing
            example = Example.from_json(json.loads(line))
            run.examples[example.id] = example
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, IndexError, InvalidRequest) as error:
        raise SettingsError(
            f"{path} is not the file of an evaluation ({type(error).__name__}: {error}). Name one "
            "that 'redraft eval … --out' wrote."
        ) from error
    return run


def _without_torn_line(path: Path) -> int:
    """Remove what follows the last newline; return how many bytes are left."""
    with path.open("r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
    return whole


def _check_same(path: Path, before: RunSpec, now: RunSpec) -> None:
    was, wanted = before.key_fields(), now.key_fields()
    for name in was:
        if was[name] != wanted[name]:
            raise SettingsError(
                f"{path} was made with {name} = {was[name]!r}, not {wanted[name]!r}. Give the same "
                "options, or another --out."
            )
