"""Is a line still being typed while its client asks at every key?

Then the prompt leaves that line's own edit out of the history, as training rows of lines being
typed do: with it, each key would change the middle of the prompt, and half of it would be computed
again for every key. Where that question finds nothing and the keys pause, the edit is finished and
the question asked again with it. Pure; knows nothing of the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..editor.history import PAUSE_S, History
from .questions import Query

#: Seconds without a key that end what is being typed, for a client that asks at every key: more
#: than there mostly are between two keys, and little beside the time that the model takes.
REST_S = 0.5


@dataclass(slots=True)
class Rhythm:
    """How the questions about a document follow its keys."""

    by_key: bool = False  # a key came soon after a question, and each since then was asked about
    has_moved: bool = False  # the cursor did, since the last key and by itself
    _cursor: int = 0
    _revision: int = -1
    _asked_s: float = -math.inf

    def asked(self, query: Query, key_s: float, now_s: float) -> None:
        """The next edit is wanted now; the last key was pressed at ``key_s``."""
        if query.revision != self._revision:
            soon = self._asked_s < key_s <= self._asked_s + PAUSE_S
            self.by_key = soon or (self.by_key and query.revision == self._revision + 1)
            self._revision, self._cursor, self.has_moved = query.revision, query.cursor, False
        self.has_moved = self.has_moved or query.cursor != self._cursor
        self._asked_s = now_s


def rests_at_s(history: History, rhythm: Rhythm, query: Query, now_s: float) -> float | None:
    """When, by the clock, a line that is being typed counts as finished; None: it does already.

    Finished are edits that a gesture asks about, that the cursor has left (as it does with the end
    of Vim's insert mode), that reach over several lines or came from a suggestion, and all where
    the client asks at pauses only.
    """
    last = history.last_edit(query.uri)
    if last is None or query.invoked or query.visiting:
        return None
    if rhythm.has_moved or not rhythm.by_key:
        return None
    key_s, line = last
    going_on = now_s < key_s + REST_S and query.line == line
    typed = history.happened(query.uri) == "edit" and history.is_within_line(query.uri)
    return key_s + REST_S if going_on and typed else None
