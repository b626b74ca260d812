"""Scenes: the first steps of a change are typed, and whatever is offered then is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.lsp.editor_settings import LspSettings
from redraft.model.edits.hunks import hunks_of

from ..predictors import ReadyPredictor
from ..replay.simulated_predictor import ReplayPredictor
from ..run import OnDone, quiet
from ..spec import RunSpec
from .walk_player import Tabs, take_all
from .walks import Walk


@dataclass(frozen=True, slots=True)
class SceneResult:
    """Outcome of a scene."""

    name: str
    places: int  # that were left after the typed steps: hunks of all files
    left: int  # of these in the end
    wrong: int  # hunks that lead elsewhere than to the texts wanted
    offered: tuple[str, ...]  # each suggestion that was taken, in a line
    reason: str  # why nothing more was offered

    @property
    def is_carried_through(self) -> bool:
        return not self.left and not self.wrong


def play_scenes(
    walks: Sequence[Walk],
    ready: ReadyPredictor,
    spec: RunSpec,
    most: int,
    progress: OnDone = quiet,
) -> list[SceneResult]:
    """Play scenes, each with ``most`` suggestions at most.

    Raises:
        RedraftError: the model is gone.
    """
    settings = LspSettings(
        eagerness=spec.eagerness, quality=spec.quality, context_tokens=spec.context_tokens
    )
    found = []
    for done, walk in enumerate(walks, 1):
        predictor = ReplayPredictor(ready.ask, ready.status, spec.latency_ms)
        found.append(_result(walk, take_all(walk, predictor, settings, most)))
        progress(done, len(walks))
    return found


def _result(walk: Walk, tabs: Tabs) -> SceneResult:
    goals = [list(file.after) for file in walk.files]
    typed = [list(file.before) for file in walk.files]
    for step in walk.steps:
        if step.is_typed:
            typed[step.file][step.change.first : step.change.last] = step.change.new
    ended = [text.split("\n") for text in tabs.texts]
    left = wrong = places = 0
    for begun, now, goal in zip(typed, ended, goals, strict=True):
        wanted = {(hunk.old, hunk.new) for hunk in hunks_of(begun, goal)}
        remaining = hunks_of(now, goal)
        places += len(wanted)
        left += sum((hunk.old, hunk.new) in wanted for hunk in remaining)
        wrong += sum((hunk.old, hunk.new) not in wanted for hunk in remaining)
    offered = tuple(f"{each.where}: {_short(each.old)} → {_short(each.new)}" for each in tabs.taken)
    return SceneResult(walk.id, places, left, wrong, offered, tabs.reason)


def _short(text: str) -> str:
    line = " ⏎ ".join(part.strip() for part in text.split("\n"))
    return repr(line if len(line) <= 60 else line[:57] + "…")
