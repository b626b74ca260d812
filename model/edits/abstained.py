"""Why nothing is suggested: a kind for programs, a sentence for people.

The one list of all kinds, whoever decides: the rules for what is proposed, the language server for
a document or a moment, the HTTP service for a prompt. Programs look at the kind and at nothing in
the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AbstentionKind = Literal[
    # of what the model proposes
    "nothing_to_do",  # it proposes nothing
    "wrong_place",  # ghost text for another place than the cursor
    "no_change",
    "whitespace_only",
    "repeats_what_follows",
    "half_block",  # it only opens a block
    "does_not_fit",  # before what follows the cursor, or as a statement
    "special_token",
    "half_character",
    "in_circles",
    "reversal",  # of what the user just did
    "far_away",
    "far_import",
    "below_threshold",
    "rejected_before",
    "syntax_errors",
    "leaves_undefined",  # it takes a binding away that is used
    "bound_again",  # a rename that would go on where another binding holds
    "just_changed",  # a line that a suggestion of the same chain changed
    "comment_last",  # of a comment, while places in code are asked about
    "body_first",  # beside a body that is still empty
    "unrelated",  # in another place than the cursor's, and without what led there
    # of a document
    "disabled",
    "snoozed",
    "language_disabled",
    "next_edits_disabled",
    "lost_track",
    "secret",
    "too_large",
    "binary",
    "long_line",
    "minified",
    # of a moment
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
    # of a question on its way
    "superseded",
    "document_changed",
    "document_closed",
    "target_changed",  # another document, which the question was about
    "failed",
    "prefetched",  # for later
]

#: The document has moved on: the answer was for another text.
_STALE = frozenset[AbstentionKind](("superseded", "document_changed", "document_closed"))

#: Typing will not change it.
_LASTING = frozenset[AbstentionKind](
    (
        "disabled",
        "snoozed",
        "language_disabled",
        "next_edits_disabled",
        "lost_track",
        "secret",
        "too_large",
        "binary",
        "long_line",
        "minified",
    )
)


@dataclass(frozen=True, slots=True)
class Abstained:
    """Show nothing."""

    kind: AbstentionKind
    reason: str  # for people; reads well after "No ghost text: "
    is_revealable: bool = False  # a gesture would show what is hidden

    @property
    def stale(self) -> bool:
        """Has the document moved on?"""
        return self.kind in _STALE

    @property
    def lasting(self) -> bool:
        """Will it stay so however one types: disabled, excluded, too large?"""
        return self.kind in _LASTING
