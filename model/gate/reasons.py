"""Reasons for suggesting nothing: a kind for programs, and a sentence for people.

Programs look at the kind alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AbstentionKind = Literal[
    # a prediction
    "nothing_to_do",  # the model proposes nothing
    "wrong_place",  # ghost text for another place than the cursor
    "no_change",
    "whitespace_only",
    "repeats_what_follows",
    "half_block",  # it only opens a block
    "does_not_fit",  # before what follows the cursor, or as a statement
    "special_token",
    "half_character",
    "in_circles",
    "reversal",  # of a recent change of the user
    "far_away",
    "far_import",
    "below_threshold",
    "rejected_before",
    "syntax_errors",
    "leaves_undefined",  # it deletes a binding that is still used, or passes a name without one
    "destroys",  # it drops or doubles a definition, or deletes without a reason
    "bound_again",  # it renames another binding of the same name
    "just_changed",  # in a line that a suggestion of the same chain changed
    "body_first",  # beside a body that is still empty
    "unrelated",  # elsewhere, without the names that led there
    # a document
    "disabled",
    "snoozed",
    "language_disabled",
    "scope_disabled",  # in comments or strings
    "saving",  # on battery, or under load
    "next_edits_disabled",
    "lost_track",
    "secret",
    "too_large",
    "binary",
    "long_line",
    "minified",
    # a moment
    "selection",
    "several_cursors",
    "snippet",
    "unfocused",
    "bulk_change",
    "undoing",
    "cooling_down",
    "dismissed",  # the user hid a suggestion here
    "half_typed",
    "renaming",  # ghost text would lengthen the new name
    "ghost_text_shown",
    "next_edit_shown",
    "nothing_edited",
    "no_recent_edit",
    # a request that is under way
    "superseded",
    "document_changed",
    "document_closed",
    "target_changed",  # the other document that the request was about
    "not_ready",  # the model loads, or its engine is gone
    "overloaded",
    "timeout",
    "failed",
    "prefetched",  # computed ahead
]

#: The document has changed since the question: the answer was for another text.
_STALE = frozenset[AbstentionKind](("superseded", "document_changed", "document_closed"))

#: Reasons that hold until the settings or the document are others, whatever the user types.
_LASTING = frozenset[AbstentionKind](
    (
        *("disabled", "snoozed", "language_disabled", "next_edits_disabled", "lost_track"),
        *("saving", "secret", "too_large", "binary", "long_line", "minified"),
    )
)


#: The model gave no answer.
_FAILURES = frozenset[AbstentionKind](("not_ready", "overloaded", "timeout", "failed"))


@dataclass(frozen=True, slots=True)
class Abstain:
    """Show nothing."""

    kind: AbstentionKind
    reason: str  # for people; completes "No ghost text: "
    is_revealable: bool = False  # a gesture would show what is hidden

    @property
    def is_stale(self) -> bool:
        """Return whether the document has changed since the question."""
        return self.kind in _STALE

    @property
    def is_failure(self) -> bool:
        """Return whether the model gave no answer."""
        return self.kind in _FAILURES

    @property
    def is_lasting(self) -> bool:
        """Return whether typing will not change the reason."""
        return self.kind in _LASTING
