"""The record of an evaluation: a moment, the truth about it, and what each stage found out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redraft.model.records import EditRequest, Prediction, RecentEdit, Task
from redraft.model.validation import AnyText, Whole, read

#: One example as tables and comparisons read it: id, group, tags and scores side by side.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OtherFile:
    """Another open document at a moment."""

    path: AnyText
    language: AnyText
    text: AnyText
    cursor: Whole | None = None  # where its last edit ended; None: nothing was edited or viewed


@dataclass(frozen=True, slots=True)
class Moment:
    """A document, the cursor in it and the recent edits when a suggestion is wanted."""

    path: AnyText = ""
    language: AnyText = ""  # LSP language id
    text: AnyText = ""
    cursor: Whole = 0  # index into text
    edits: tuple[RecentEdit, ...] = ()  # oldest first
    others: tuple[OtherFile, ...] = ()  # the one edited last comes last

    @property
    def prefix(self) -> str:
        return self.text[: self.cursor]

    @property
    def suffix(self) -> str:
        return self.text[self.cursor :]


@dataclass(frozen=True, slots=True)
class Truth:
    """The right outcomes of a moment."""

    texts: tuple[AnyText, ...] = ()  # whole documents, each right; (): no change is
    final: AnyText = ""  # the whole document in the end, when all edits are made
    test: AnyText = ""  # Python that follows the filled program and tests it; "": none


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdicts of filters and gate on the candidates of a prediction."""

    objections: tuple[AnyText, ...] = ()  # of each candidate: why it is not shown; "": it may be
    text: AnyText = ""  # ghost text as it is shown

    @property
    def shown(self) -> int | None:
        """Index of the candidate that is shown, None if none is."""
        return self.objections.index("") if "" in self.objections else None


@dataclass(frozen=True, slots=True)
class Example:
    """A moment on its way through the stages; ``None`` where a stage has not run.

    Sources fill the first fields. ``predict`` fills request, prediction and measured, ``decide``
    the decision, ``score`` the score.
    """

    id: AnyText  # unique in a run, and the same on every machine
    group: AnyText = ""  # what is resampled together: a problem, a commit, a session
    task: Task = "infill"
    tags: dict[str, str] = field(default_factory=dict)  # that tables split by: language, kind
    moment: Moment = field(default_factory=Moment)
    truth: Truth = field(default_factory=Truth)
    request: EditRequest | None = None
    prediction: Prediction | None = None  # places are those of the moment's document
    #: What only the predict stage can measure, such as likelihoods and the size of prompts.
    measured: dict[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    score: dict[str, Any] | None = None

    @property
    def language(self) -> str:
        return self.tags.get("language", "")

    @property
    def kind(self) -> str:
        return self.tags.get("kind", "")

    @property
    def middle(self) -> str:
        """The text that is missing at the cursor, of a gap."""
        moment = self.moment
        return self.truth.texts[0][moment.cursor : len(self.truth.texts[0]) - len(moment.suffix)]

    def row(self) -> Row:
        """Return id, group, tags and numbers side by side."""
        return {"id": self.id, "group": self.group, "task": self.task, **self.tags,
                **self.measured, **(self.score or {})}  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the example for one line of a run's file, without fields that are empty."""
        return {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if value is not None and value not in _EMPTY
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Example:
        """Return the example of one line.

        Raises:
            InvalidRequest: it is none; names the field.
        """
        plain = {name: data[name] for name in ("measured", "score") if name in data}
        rest = {name: value for name, value in data.items() if name not in plain}
        return replace(read(cls, rest, whole="line"), **plain)


#: Fields that a line leaves out.
_EMPTY: tuple[Any, ...] = ({}, dataclasses.asdict(Moment()), dataclasses.asdict(Truth()))


def gap(
    name: str, group: str, tags: Mapping[str, str], path: str, texts: Sequence[str], test: str = ""
) -> Example:
    """Return an infill of the text between a prefix and a suffix.

    Args:
        name: id of the example.
        texts: prefix, missing middle and suffix.
        test: Python that tests the filled program.
    """
    prefix, middle, suffix = texts
    whole = prefix + middle + suffix
    moment = Moment(path, tags["language"], prefix + suffix, len(prefix))
    return Example(name, group, "infill", dict(tags), moment, Truth((whole,), whole, test))
