"""Gate of a session: the one in use, and the threshold at a moment."""

from __future__ import annotations

import secrets

from redraft.model.gate.explore import ExplorationDraw, draw_threshold
from redraft.model.gate.gate import Gate
from redraft.model.records import Task

from ..journal import AnswerReceived, Entry
from ..recording.own_gate import OwnGate
from ..recording.recordings_folder import Recordings
from ..snapshot import Snapshot
from ..workspace import Workspace
from .outcomes import SuggestionEnded


class Gates:
    """The gate in use for a client: the shipped one, or the user's own."""

    def __init__(self, recordings: Recordings | None, workspace: Workspace) -> None:
        self.own = OwnGate(
            recordings,
            lambda: workspace.settings.learn_gate,
            workspace.clock,
            eagerness=lambda: workspace.settings.eagerness,
        )
        self.seed = secrets.randbits(32)  # of what is drawn
        self.recordings = recordings

    def gate(self) -> Gate:
        """Return the gate in use."""
        return self.own.gate()

    def threshold_at(self, snapshot: Snapshot, task: Task) -> ExplorationDraw:
        """Return the threshold for suggestions without a gesture.

        It is random only while outcomes are recorded: the gate learns from no others.
        """
        settings, recordings = snapshot.settings, self.recordings
        explores = settings.explore_gate and recordings is not None and recordings.is_on()
        moment = f"{self.seed} {snapshot.uri} {snapshot.revision}"
        usual = settings.threshold_in(snapshot.language, task)
        return draw_threshold(usual, explores and not snapshot.is_invoked, moment)

    def hear(self, entry: Entry) -> None:
        """Take an entry of the journal."""
        if isinstance(entry, SuggestionEnded):
            self.own.count(entry.outcome)
        elif isinstance(entry, AnswerReceived):
            self.own.on_answer(entry.answer.prediction)
