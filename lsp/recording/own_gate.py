"""The user's own gate while an editor runs: read when it changes, fitted in the background.

A fit is a process at low priority (:mod:`redraft.lsp.learning.fit_gate`). It starts after every
:data:`EVERY` outcomes while recording is on and the setting ``learnGate`` allows it. A gate that
cannot be read leaves the shipped one in use, with a line in the log.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable

from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness
from redraft.model.gate.gate import Gate, is_outdated, load_shipped, read_gate
from redraft.model.records import Prediction

from ..suggestions.outcomes import Outcome
from .recordings_folder import Recordings

logger = logging.getLogger(__name__)

#: Outcomes from one fit to the next.
EVERY = 50
_LOOK_S = 2.0  # between two looks at the file
_COUNTED: frozenset[Outcome] = frozenset(("accepted", "rejected", "ignored"))

#: The state of a personal gate that another version fitted.
OUTDATED = (
    "yours was fitted by another version of Redraft, from other features: it is fitted again from "
    "your recordings, and the shipped one is in use meanwhile"
)

_FIT = "redraft.lsp.learning.fit_gate"


def fit_in_background(eagerness: Eagerness) -> subprocess.Popen[bytes]:
    """Start a fit. Nothing of the folder where the editor runs is imported: ``-P``."""
    command = [sys.executable, "-P", "-m", _FIT, eagerness]
    none = subprocess.DEVNULL
    no_window = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows a console would flash
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, creationflags=no_window)


class OwnGate:
    """The gate in use for a client, and when the user's own is fitted.

    Args:
        recordings: None: nothing is ever recorded, and nothing learned.
        allowed: returns whether the user allows it.
        fit: starts a fit, whose process has ``poll``.
    """

    def __init__(
        self,
        recordings: Recordings | None,
        allowed: Callable[[], bool],
        clock: Callable[[], float],
        fit: Callable[[Eagerness], subprocess.Popen[bytes]] = fit_in_background,
        eagerness: Callable[[], Eagerness] = lambda: "medium",
    ) -> None:
        self._recordings = recordings
        self._allowed = allowed
        self._clock = clock
        self._fit = fit
        self._eagerness = eagerness
        self._own: Gate | None = None
        self._weights = ""  # that the own gate was fitted for
        self._stamp: tuple[int, int] | None = None  # of the file
        self._looked_s = -_LOOK_S
        self._answers = ""  # weights that answer
        self._outcomes = 0
        self._fitting: subprocess.Popen[bytes] | None = None
        self.summary = ""  # of the own gate, for people

    def gate(self) -> Gate:
        """Return the gate in use."""
        if self._recordings is None or not self._allowed():
            return load_shipped()
        now_s = self._clock()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._look(self._recordings)
        is_other = self._answers and self._weights and self._answers != self._weights
        return load_shipped() if self._own is None or is_other else self._own

    def on_answer(self, prediction: Prediction) -> None:
        """Note the weights whose answers the gate weighs."""
        self._answers = f"{prediction.model} {prediction.weights}".strip()

    def count(self, outcome: Outcome) -> None:
        """Count an outcome that the user decided, and fit again after enough of them."""
        recordings = self._recordings
        if recordings is None or outcome not in _COUNTED or not recordings.is_on():
            return
        self._outcomes += 1
        if self._outcomes % EVERY == 0 and self._allowed():
            self._fit_again()

    def _fit_again(self) -> None:
        if self._fitting is not None and self._fitting.poll() is None:
            return  # the one before still runs
        try:
            self._fitting = self._fit(self._eagerness())
        except OSError as error:
            logger.warning("the gate cannot be fitted: %s", error)

    def _look(self, recordings: Recordings) -> None:
        """Read the gate if its file has changed."""
        try:
            status = recordings.learned.stat()
        except OSError:
            self._own, self._stamp, self.summary = None, None, ""
            return
        stamp = status.st_mtime_ns, status.st_size
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            gate, card = read_gate(recordings.learned)
        except SettingsError as error:
            logger.warning("%s The shipped gate stays.", error)
            self._own, self.summary = None, "yours cannot be read; the shipped one is in use"
            return
        if is_outdated(gate):
            logger.warning("the gate %s is of another version and is fitted again", gate.name)
            self._own, self.summary = None, OUTDATED
            self._fit_again()
            return
        self._own = gate if card.get("taken") is True else None
        self._weights, self.summary = str(card.get("weights", "")), str(card.get("told", ""))
        logger.info("the gate: %s", self.summary)
