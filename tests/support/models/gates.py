"""Gates for tests: one that goes by the mean probability of a token alone, whatever ships."""

from __future__ import annotations

from pathlib import Path

from redraft.model.gate import gate
from redraft.model.gate.gate import Gate, Head

#: Sureness and chance are the mean probability of a token.
PLAIN_HEAD = Head(("mean",), (0.0,), (1.0,), (0.0, 1.0), (0.0, 1.0), (0.01, 0.01))
PLAIN = Gate("plain", {"infill": PLAIN_HEAD, "next_edit": PLAIN_HEAD})

SHIPPED = gate.SHIPPED  # the real one


def write_plain(folder: Path) -> Path:
    path = folder / "gate.json"
    gate.write_gate(path, PLAIN, {})
    return path
