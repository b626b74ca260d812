"""Snapshot: everything that one question depends on, as it is at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from redraft.model.records import Diagnostic, RecentEdit
from redraft.model.rules.touched_names import Touched, names_of

from .context.index import IndexGeneration
from .documents.cells_above import CellsAbove
from .documents.history import RecentEdits
from .documents.history_edits import as_accepted
from .documents.open_documents import OpenText
from .editor_settings import LspSettings
from .policy.exclusions import Exclusions
from .policy.machine_load import Load
from .suggestions.suggestion import Suggestion

#: Tokens of a prompt about a place whose text was not read before. On 200 moments of held-out
#: commits 384 make the true edit as likely as 1,024 where its words stand in the prompt and one of
#: them in a recent edit; reading fewer tokens takes half the time.
COLD_TOKENS = 448
_REPORTS, _MESSAGE = 20, 300  # diagnostics of a document that are used, and characters of each


@dataclass(frozen=True, slots=True)
class RequestFlags:
    """State of the user and the client, as a request names it."""

    is_invoked: bool = False  # by a key, not by typing or moving about
    selected: int = 0  # characters the user has selected
    cursors: int = 1
    in_snippet: bool = False  # between the fields of a snippet
    other_documents: bool = False  # the client can show an edit of another document
    unopened_files: bool = False  # the client can open a file for an edit of it
    whole_renames: bool = False  # the client can apply a rename in several files


@dataclass(frozen=True, eq=False)
class OpenTexts:
    """All open documents at one moment."""

    all: tuple[OpenText, ...]
    folders: tuple[str, ...]  # URIs of the workspace
    exclusions: Exclusions

    @cached_property
    def readable(self) -> tuple[OpenText, ...]:
        """The files that may be read; the cells of a notebook would all have one path."""
        return tuple(
            one
            for one in self.all
            if not (one.excluded or one.out_of_step)
            and one.uri.startswith(("file:", "untitled:"))
            and not one.secret
        )

    @cached_property
    def editable(self) -> tuple[OpenText, ...]:
        """The files in which an edit may be offered to a user who is elsewhere."""
        return tuple(one for one in self.readable if one.is_editable)

    def get(self, uri: str) -> OpenText | None:
        """Return a document in which an edit may be offered, or None."""
        return next((one for one in self.editable if one.uri == uri), None)

    def with_text(self, changed: OpenText) -> OpenTexts:
        """Return the same documents with another text of one of them."""
        texts = (changed if one.uri == changed.uri else one for one in self.all)
        return replace(self, all=tuple(texts))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that one question depends on. Nothing of it changes.

    Properties are computed when they are first asked for, from what the snapshot holds.
    """

    document: OpenText  # where the user is, or would be
    cursor: int  # index into its text
    line: int  # of the cursor, 0-based
    flags: RequestFlags
    settings: LspSettings
    at_s: float  # by the session's clock
    edits: RecentEdits
    reported: Mapping[str, tuple[Diagnostic, ...]]  # by the editor, by URI; never changed
    above: CellsAbove | None  # the cells above, in a notebook
    opened: OpenTexts
    index: IndexGeneration
    budget: int  # tokens of a prompt
    is_focused: bool  # the editor's window
    snoozed_s: float  # until suggestions come by themselves again
    load: Load  # of the machine
    accepted: Suggestion | None = None  # assumed to be: the text does not exist yet
    visited_from: Snapshot | None = None  # see :meth:`at`
    foreseen_from: Snapshot | None = None  # see :meth:`after`

    # --- the document --------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def path(self) -> str:
        """The path as the model is shown it."""
        return self.document.path

    @property
    def language(self) -> str:
        return self.document.language

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def lines(self):  # type: ignore[no-untyped-def]
        return self.document.lines

    @property
    def revision(self) -> int:
        return self.document.revision

    @property
    def is_invoked(self) -> bool:
        return self.flags.is_invoked

    @property
    def asked_from(self) -> Snapshot:
        """The snapshot of the place where the user is, or would be."""
        return self.visited_from or self

    @property
    def user(self) -> Snapshot:
        """The snapshot of the place where the user is."""
        return self.asked_from.foreseen_from or self.asked_from

    # --- the edits -----------------------------------------------------------------------------

    @property
    def recent(self) -> tuple[RecentEdit, ...]:
        """The recent edits with the one in progress, oldest first."""
        return self.edits.with_pending

    @cached_property
    def reports(self) -> tuple[Diagnostic, ...]:
        """The reports of the editor on the document, errors first; none for a future text."""
        found = () if self.accepted is not None else self.reported.get(self.uri, ())
        return tuple(
            Diagnostic(one.line, _clean(one.message[:_MESSAGE]), max(one.severity, 0))
            for one in sorted(found, key=lambda one: one.severity)[:_REPORTS]
        )

    @cached_property
    def names(self) -> tuple[Touched, ...]:
        """The names that the edits affect elsewhere, and those reported to be undefined."""
        return names_of(self.recent, self.reports)

    @cached_property
    def since_edit_s(self) -> float | None:
        """Seconds since the user's last edit, None if there was none."""
        last_s = self.edits.last_edit_s
        return None if last_s is None else self.at_s - last_s

    @cached_property
    def typed_at_s(self) -> float | None:
        """The time at which the cursor's line was last typed in, None unless it is being typed."""
        return self.edits.when_typed_s(self.uri, self.line)

    @cached_property
    def context_hash(self) -> int:
        """Hash of the other documents that the user has edited, and of the cells above."""
        if self.edits.last_edit_s is None:
            return 0
        changed = self.accepted.uri if self.accepted is not None else ""
        texts = {
            one.uri: hash(one.text)
            for one in self.opened.editable
            if one.uri != self.uri
            and (one.uri == changed or self.edits.last_edit(one.uri) is not None)
        }
        if above := self.above_hash:
            texts[""] = above
        return hash(frozenset(texts.items())) if texts else 0

    @cached_property
    def above_hash(self) -> int:
        """Hash of the cells above, 0 if there are none."""
        return 0 if self.above is None else hash(self.above.text)

    # --- other snapshots -----------------------------------------------------------------------

    def at(self, document: OpenText, cursor: int) -> Snapshot:
        """Return the snapshot as if the user were at another place."""
        flags = RequestFlags(self.is_invoked, other_documents=self.flags.other_documents)
        here = document.uri == self.uri
        return replace(
            self,
            document=document,
            cursor=cursor,
            line=document.text.count("\n", 0, cursor),
            flags=flags,
            above=self.above if here else None,
            budget=min(self.budget, COLD_TOKENS),
            visited_from=self.asked_from,
        )

    def with_key(self, *, is_invoked: bool) -> Snapshot:
        """Return the snapshot as if the user had asked by a key, or had not."""
        return replace(self, flags=replace(self.flags, is_invoked=is_invoked))

    def with_text(self, text: str, cursor: int) -> Snapshot:
        """Return the snapshot with another text, which the client shows but has not sent."""
        document = self.document.with_text(text)
        return replace(self, document=document, cursor=cursor, line=text.count("\n", 0, cursor))

    def after(self, accepted: Suggestion) -> Snapshot | None:
        """Return the snapshot once a suggestion is accepted, None if its document is gone."""
        here = accepted.uri == self.uri
        document = self.document if here else self.opened.get(accepted.uri)
        if document is None:
            return None
        result = document.with_text(accepted.result)
        made = as_accepted(document.path, accepted.edit, result.lines)
        return replace(
            self,
            document=result,
            cursor=accepted.landing,
            line=result.text.count("\n", 0, accepted.landing),
            flags=replace(self.flags, is_invoked=False),
            edits=self.edits.after(made),
            above=self.above if here else None,
            opened=self.opened.with_text(result),
            accepted=accepted,
            foreseen_from=self.user,
        )


def _clean(message: str) -> str:
    """Return ``message`` without characters that no text holds."""
    return message.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
