"""Fits the user's own gate on their recordings: ``redraft gate fit``, and in the background.

The language server starts this module as a process at low priority.
"""

from __future__ import annotations

import os
import sys

from redraft.model.gate.eagerness import EAGERNESS, RATIOS, Eagerness
from redraft.model.gate.fit_own import fit_own
from redraft.model.gate.gate import load_shipped, write_gate
from redraft.model.gate.kto import Objective

from ..recording.recordings_folder import Recordings
from .own_samples import OwnSamples, own_samples


def fit_own_gate(eagerness: Eagerness) -> list[str]:
    """Fit and write the user's gate; return what came of it, in lines.

    It is used only if it beats the shipped one.
    """
    recordings = Recordings()
    own = own_samples([kept.path for kept in recordings.list_recordings()])
    if not own.count:
        recordings.forget()  # what it was fitted on is gone
        return ["Nothing to learn from yet: the shipped gate is in use.", *_left_out(own)]
    want = {task: Objective(ratios[eagerness]) for task, ratios in RATIOS.items()}
    made, trial = fit_own(load_shipped(), own.samples, want, own.other_model > 0)
    card = {
        "taken": trial.taken, "told": trial.sentence, "weights": own.weights,
        "outcomes": own.count, "shown": own.shown, "hidden": own.hidden,
        "shipped": load_shipped().name, "eagerness": eagerness, "left_out": _left_out(own),
    }  # fmt: skip
    write_gate(recordings.learned, made, card)
    return [trial.sentence, *_left_out(own)]


def _left_out(own: OwnSamples) -> list[str]:
    """Return lines that say what was not learned from, and why."""
    lines = []
    if own.other_model:
        lines.append(f"{own.other_model} answers of other weights are left out.")
    if own.unlabelled:
        lines.append(f"{own.unlabelled} candidates are left out: their outcome is unknown.")
    return lines + [f"Left out, as it cannot be read: {each}" for each in own.unreadable]


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)
    fit_own_gate(next(each for each in EAGERNESS if each == sys.argv[1]))
