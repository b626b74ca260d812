"""A run's episodes on disk: one JSON object a line, written as they come, taken up again later.

The first line says how the run was made; a file made otherwise is refused, so that no two models
mix. A torn last line, as a kill leaves it, is dropped. Knows nothing of what an episode means.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from redraft.model.errors import SettingsError
from redraft.model.gate.gate import shipped
from redraft.model.records import Candidate, Prediction, Task

Episode = dict[str, Any]  # at least "id" and "group"
OnDone = Callable[[int, int], None]  # done, total


class Identified(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Identified)
Settings = Mapping[str, str | int | float | bool | None]


@dataclass
class RunFile:
    """The episodes so far, in memory and, where there is a path, on disk."""

    settings: dict[str, Any]
    machine: dict[str, str] = field(default_factory=dict)
    episodes: dict[str, Episode] = field(default_factory=dict)  # by id
    file: TextIO | None = None

    def add(self, episode: Episode) -> None:
        self.episodes[episode["id"]] = episode
        if self.file is not None:
            self.file.write(json.dumps(episode) + "\n")
            self.file.flush()

    def fill(
        self,
        items: Sequence[Item],
        make: Callable[[Item], Episode],
        progress: OnDone = lambda done, total: None,
    ) -> list[Episode]:
        """Make the episodes that are not there yet; those of all ``items``, in their order."""
        for done, item in enumerate(items, 1):
            if item.id not in self.episodes:
                self.add(make(item))
            progress(done, len(items))
        return [self.episodes[item.id] for item in items]

    def missing(self, ids: Iterable[str]) -> list[str]:
        return [one for one in ids if one not in self.episodes]

    def __enter__(self) -> RunFile:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.file is not None:
            self.file.close()


def said_of(said: Prediction, task: Task) -> Episode:
    """What every benchmark keeps of an answer: the likeliest candidate's end, and what it cost."""
    first, stats = (said.candidates[0] if said.candidates else None), said.stats
    return {
        "ended": first.finish == "end" if first is not None else None,
        "confidence": shipped().score(first, task) if first is not None else None,
        **(_judged(first) if first is not None else {}),
        "reason": said.reason,
        "tokens": stats.canvas_tokens,
        "steps": stats.denoise_steps,
        "prompt_tokens": stats.prompt_tokens,
        "cut": stats.cut,
        "denoise_ms": round(stats.denoise_ms, 1),
        "total_ms": round(stats.total_ms, 1),
    }


def _judged(first: Candidate) -> Episode:
    """What the gate may weigh besides: natural logs, and the chance of a repetition."""
    sure = first.confidence
    return {
        "source": first.source,
        "family": first.family,
        "mean": sure.mean,
        "total_log": sure.total,
        "place_log": sure.place,
        "nothing_log": sure.nothing,
        "repeat": sure.repeat,
    }


def open_run(
    path: Path | None, settings: Settings, machine: Mapping[str, str], resume: bool
) -> RunFile:
    """Begin a run, or go on with the one in ``path``.

    Args:
        path: None keeps the episodes in memory alone.

    Raises:
        SettingsError: the file is there and ``resume`` is not given, was made otherwise, or cannot
            be written.
    """
    run = RunFile(dict(settings), dict(machine))
    if path is None:
        return run
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not resume:
            raise SettingsError(
                f"{path} is there already. Give --resume to go on with it, or another --out."
            )
        if path.exists() and _without_torn_line(path):
            before = read_run(path)
            _check_same(path, before.settings, run.settings)
            run.episodes = before.episodes
            run.file = path.open("a", encoding="utf-8")
            return run
        run.file = path.open("w", encoding="utf-8")
        header = {"run": run.settings, "machine": run.machine}
        run.file.write(json.dumps(header) + "\n")
        run.file.flush()
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error
    return run


def read_run(path: Path) -> RunFile:
    """A run as it stands on disk.

    Raises:
        SettingsError: it is not the file of a run.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        header = json.loads(lines[0])
        run = RunFile(dict(header["run"]), dict(header["machine"]))
        for line in lines[1:-1]:  # what follows the last newline is torn or nothing
            episode = json.loads(line)
            run.episodes[episode["id"]] = episode
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SettingsError(
            f"{path} is not the file of an evaluation ({type(error).__name__}: {error}). Name one "
            "that 'redraft eval … --out' wrote."
        ) from error
    return run


def _without_torn_line(path: Path) -> int:
    """Cut what follows the last newline; the bytes that stay."""
    with path.open("r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
    return whole


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            raise SettingsError(
                f"{path} was made with {key} = {before.get(key)!r}, not {now.get(key)!r}. Give the "
                "same options, or another --out."
            )
