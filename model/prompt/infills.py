"""Ready-made answers of an infill: the regular expressions of a line, a name, a text's inside."""

from __future__ import annotations

#: By their names on the wire.
INFILLS = {
    "line": r"[^\r\n]*",
    "identifier": r"[A-Za-z_$][A-Za-z0-9_$]*",
    "string": r"([^\r\n\"'`\\]|\\[^\r\n])*",
    "comment": r"([^\r\n*]|\*[^\r\n/*])*",
}
