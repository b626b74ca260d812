"""One's own gate while an editor runs: read where it changes, fitted anew in the background.

Fitting is a process of its own at low priority (``redraft gate fit --quiet``), after every
:data:`EVERY` outcomes while recording is on and the setting ``learnGate`` allows it. What cannot be
read leaves the shipped gate in use, with a line in the log. Knows nothing of how a gate is fitted.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable

from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness
from redraft.model.gate.gate import Gate, is_outdated, read_gate, shipped
from redraft.model.records import Prediction

from ..outcomes import Outcome
from .folder import Recordings

logger = logging.getLogger(__name__)

#: Outcomes from one fit to the next.
EVERY = 50
#: Seconds between two looks at the file.
_LOOK_S = 2.0
_SAYING: frozenset[Outcome] = frozenset(("accepted", "rejected", "ignored"))


#: What is said of a personal gate that another version fitted.
OUTDATED = (
    "yours was fitted by another version of Redraft, from other features: it is fitted again from "
    "your recordings, and the shipped one is in use meanwhile"
)

#: Nothing of the folder where the editor runs is imported: ``-P``.
_FIT = "from redraft.server.commands.main import main; main()"


def fit_in_background(eagerness: Eagerness) -> subprocess.Popen[bytes]:
    """``redraft gate fit`` in a process of its own."""
    command = [sys.executable, "-P", "-c", _FIT, "gate", "fit", "--quiet", "--eagerness", eagerness]
    none = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none)


class Learning:
    """Which gate is in use for a client, and when the own one is fitted.

    Args:
        recordings: None: nothing is ever recorded, and nothing learned.
        allowed: does the user want it?
        fit: begins a fit, whose process has ``poll``.
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
        self._seen: tuple[int, int] | None = None  # of the file
        self._looked_s = -_LOOK_S
        self._answers = ""  # weights that answer
        self._outcomes = 0
        self._fitting: subprocess.Popen[bytes] | None = None
        self.told = ""  # of the own gate, for people

    def gate(self) -> Gate:
        """The one in use."""
        if self._recordings is None or not self._allowed():
            return shipped()
        now_s = self._clock()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._look(self._recordings)
        strange = self._answers and self._weights and self._answers != self._weights
        return shipped() if self._own is None or strange else self._own

    def answered(self, prediction: Prediction) -> None:
        """Whose answers the gate weighs."""
        self._answers = f"{prediction.model} {prediction.weights}".strip()

    def settled(self, outcome: Outcome) -> None:
        """The user has said something about a suggestion."""
        recordings = self._recordings
        if recordings is None or outcome not in _SAYING or not recordings.is_on():
            return
        self._outcomes += 1
        if self._outcomes % EVERY == 0 and self._allowed():
            self._fit_again()

    def _fit_again(self) -> None:
        if self._fitting is not None and self._fitting.poll() is None:
            return  # the one before takes its time
        try:
            self._fitting = self._fit(self._eagerness())
        except OSError as error:
            logger.warning("the gate cannot be fitted: %s", error)

    def _look(self, recordings: Recordings) -> None:
        try:
            found = recordings.learned.stat()
        except OSError:
            self._own, self._seen, self.told = None, None, ""
            return
        sign = found.st_mtime_ns, found.st_size
        if sign == self._seen:
            return
        self._seen = sign
        try:
            gate, card = read_gate(recordings.learned)
        except SettingsError as error:
            logger.warning("%s The shipped gate stays.", error)
            self._own, self.told = None, "yours cannot be read; the shipped one is in use"
            return
        if is_outdated(gate):
            logger.warning("the gate %s is of another version and is fitted again", gate.name)
            self._own, self.told = None, OUTDATED
            self._fit_again()
            return
        self._own = gate if card.get("taken") is True else None
        self._weights, self.told = str(card.get("weights", "")), str(card.get("told", ""))
        logger.info("the gate: %s", self.told)
