"""What became of one's own candidates, shown or hidden, out of one's own recordings.

Kept text decides: what was accepted and is gone at rest was a mistake. What was hidden counts too,
as what was written next is known. Where another hand than the user's wrote, nothing is told. Reads
recordings with :mod:`redraft.evals.recordings`; knows nothing of gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redraft.lsp.positions import index_at
from redraft.lsp.recording.format import ANSWER, DECISION, DRAWN, OUTCOME
from redraft.model.edits.edit import Edit
from redraft.model.errors import RedraftError
from redraft.model.gate.decide import verdict
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.filters import Situation
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Task
from redraft.model.training.gate.fit import Sample

from ..metrics import kept
from ..recordings.documents import StreamDocuments
from ..recordings.format import Changed, FetchStarted, Note, RestoreContent, SetContent, Stream
from ..recordings.shown_and_outcome import candidate_of, confidence_of
from ..recordings.streams import read_stream
from ..replay.matchers import UNSEEN_S, DocumentChange, match, until_rest
from ..replay.script import plain, script_of

SEEN_S = 0.75  # on the screen, before letting it pass says anything
GLIMPSED_S = 0.3  # before turning it down does
AWAY_S = 600.0  # on the screen: nobody looked at it any more, or a clock jumped
KEPT_SHARE = 0.5  # of an accepted suggestion that has to be there at rest
_GONE = 0.1  # under which it was undone
#: How much a word on a candidate counts, beside an acceptance by a key.
_TYPED, _IGNORED, _HIDDEN_RIGHT, _HIDDEN_WRONG = 0.7, 0.4, 0.3, 0.1

_CHANGES = (Changed, SetContent, RestoreContent)

Label = tuple[bool, float]  # was showing it right, and how much that counts


def label_shown(
    outcome: str, seconds: float | None, kept_share: float | None, typed: bool
) -> Label | None:
    """Of a suggestion that was on the screen; None: it says nothing.

    Args:
        seconds: from the screen to the outcome; None: unknown.
        kept_share: of what it wrote and deleted, at rest; None: it cannot be told.
        typed: accepted by typing it.
    """
    if outcome == "accepted" and kept_share is not None:
        if kept_share >= KEPT_SHARE:
            return True, _TYPED if typed else 1.0
        return (False, 1.0) if kept_share < _GONE else (True, kept_share)
    if seconds is None or not GLIMPSED_S <= seconds <= AWAY_S:  # a clock may go back, too
        return None
    if outcome == "rejected":
        return False, 1.0
    return (False, _IGNORED) if outcome == "ignored" and seconds >= SEEN_S else None


def label_hidden(exact: bool | None, prefix: bool | None) -> Label | None:
    """Of a candidate that nobody saw, by whether it was written all the same."""
    if exact is None and prefix is None:
        return None
    return (True, _HIDDEN_RIGHT) if exact or prefix else (False, _HIDDEN_WRONG)


@dataclass(slots=True)
class RecordedMoments:
    """All that recordings tell, oldest first."""

    samples: dict[Task, list[Sample]] = field(
        default_factory=lambda: {task: [] for task in FEATURES}
    )
    weights: str = ""  # whose answers count
    shown: int = 0
    hidden: int = 0
    untold: int = 0  # candidates whose outcome cannot be told
    strange: int = 0  # answers of other weights
    unread: list[str] = field(default_factory=list)  # recordings that cannot be used, and why

    @property
    def count(self) -> int:
        return sum(map(len, self.samples.values()))


def read_own(paths: Sequence[Path], weights: str = "") -> RecordedMoments:
    """What recordings tell.

    Args:
        weights: outcomes of others are left out; "": those of the newest answer.
    """
    found = RecordedMoments()
    streams: list[Stream] = []
    for path in paths:
        try:
            streams.append(read_stream(path))
        except (RedraftError, OSError) as error:
            found.unread.append(f"{path.name}: {error}")
    streams.sort(key=lambda each: each.header.time_ms)
    wanted = found.weights = weights or _newest_weights(streams)
    for stream in streams:
        try:
            _read(stream, wanted, found)
        except (RedraftError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            found.unread.append(f"{Path(stream.path).name}: {type(error).__name__} {error}")
    return found


def _newest_weights(streams: Sequence[Stream]) -> str:
    for stream in reversed(streams):
        for event in reversed(stream.events):
            if isinstance(event, Note) and event.source_id == ANSWER:
                return _weights_of(event.data)
    return ""


def _weights_of(answer: Mapping[str, Any]) -> str:
    versions = answer.get("versions") or {}
    return f"{versions.get('model', '')} {versions.get('weights', '')}".strip()


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where a question was asked."""

    text: str
    done: int  # changes of the document before it


def _read(stream: Stream, weights: str, found: RecordedMoments) -> None:
    script = script_of(stream, stream.header.uuid or stream.path)
    decisions, outcomes, sources = _decisions(stream), _outcomes(stream), _sources(stream)
    documents, known, done = StreamDocuments(), set[int](), Counter[int]()
    asked: dict[int, _Asked] = {}
    for event in stream.events:
        if isinstance(event, _CHANGES):
            if event.document in known or isinstance(event, Changed):
                done[event.document] += 1
            known.add(event.document)
        elif isinstance(event, FetchStarted):
            text = plain(documents.text(event.document))
            asked[event.request] = _Asked(text, done[event.document])
        documents.apply(event)
        if not isinstance(event, Note) or event.source_id != ANSWER or event.document is None:
            continue
        if _weights_of(event.data) != weights:
            found.strange += 1
            continue
        where = asked.get(event.data["requestId"])
        if where is None or "after" in event.data:
            continue
        steps = script.following(event.document, where.done)
        at_s = script.seconds(event)
        hands = _Hands(
            steps,
            sources.get(event.document, [])[where.done :],
            at_s,
            script.ends_s - at_s >= UNSEEN_S,
        )
        path = documents.path(event.document)
        pace = event.data.get("pace")
        for candidate, right, weight in _samples(
            event.data, where.text, path, hands, decisions, outcomes, found
        ):
            features = features_of(candidate, pace)
            sample = Sample(features, right, weight, group=stream.header.uuid)
            found.samples[event.data["task"]].append(sample)


def _sources(stream: Stream) -> dict[int, list[str]]:
    """Return the source of each change of each document that a script has a step for."""
    found: dict[int, list[str]] = {}
    for event in stream.events:
        if isinstance(event, Changed):
            found.setdefault(event.document, []).append(event.source)
        elif isinstance(event, _CHANGES):
            if event.document in found:
                found[event.document].append("other")
            found.setdefault(event.document, [])
    return found


@dataclass(frozen=True, slots=True)
class _Hands:
    """What followed in a document, and who did it."""

    steps: Sequence[DocumentChange]
    sources: Sequence[str]
    at_s: float  # when the answer came
    told: bool  # does the recording go on for long enough to tell?

    def at_rest(self, text: str, at_s: float) -> tuple[str, bool] | None:
        """The text when it comes to rest, and was it typed alone? None: another hand wrote."""
        rest = until_rest(self.steps, at_s)
        hands = set(self.sources[: len(rest)])
        if hands - {"user", "suggestion", "undo"}:
            return None
        for step in rest:
            text = step.apply(text)
        return text, "suggestion" not in hands


def _samples(
    answer: Mapping[str, Any],
    text: str,
    path: str,
    hands: _Hands,
    decisions: Mapping[str, Mapping[str, Any]],
    outcomes: Mapping[str, tuple[str, float | None]],
    found: RecordedMoments,
) -> Iterator[tuple[Candidate, bool, float]]:
    shown = answer["shown"]
    decision = decisions.get(shown)
    origin, shown_at = candidate_of(decision, [answer]) if decision else (None, 0)
    for at, told in enumerate(answer["candidates"]):
        candidate = _candidate(told, text)
        edit = Edit(text, candidate.start, candidate.end, candidate.text)
        if _is_barred(answer, candidate, text, path):
            continue
        if shown is not None and origin is None:
            found.untold += 1  # which of them was shown is not recorded
            continue
        if shown is not None and at == shown_at:
            said, seconds = outcomes.get(shown, ("", None))
            rest = hands.at_rest(text, hands.at_s + (seconds or 0.0))
            share = None if rest is None else kept_share(text, edit.result, rest[0])
            label = label_shown(said, seconds, share, rest is not None and rest[1])
            found.shown += 1
        else:
            least = edit.least()
            seen = match(text, least.start, least.end, least.new, hands.steps, hands.told)
            label = label_hidden(seen.exact, seen.prefix)
            found.hidden += 1
        if label is None:
            found.untold += 1
        else:
            yield candidate, *label


def _is_barred(answer: Mapping[str, Any], candidate: Candidate, text: str, path: str) -> bool:
    """Return whether a filter keeps a candidate from being shown, whatever its score."""
    cursor = _index(text, *answer["cursor"])
    language = str((answer.get("features") or {}).get("language", ""))
    situation = Situation(answer["task"], path, language, text, cursor, threshold=0.0)
    return isinstance(verdict(replace(candidate, features={}), situation), Abstain)


def kept_share(base: str, candidate: str, final: str) -> float | None:
    """Return how much of what a suggestion writes and deletes is in ``final``, 0 … 1.

    None: too much differs to tell. Indentation does not count: every line has some, so a wrong
    suggestion of several lines would share a third of its characters with the right one.

    Args:
        base: the document before the suggestion.
        candidate: the document with the suggestion accepted.
    """
    found = kept(
        *("\n".join(map(str.lstrip, each.split("\n"))) for each in (base, candidate, final))
    )
    return None if found is None else found.kept_rate


def _decisions(stream: Stream) -> dict[str, Mapping[str, Any]]:
    """Return the decision that showed each suggestion first, by the suggestion's id."""
    found: dict[str, Mapping[str, Any]] = {}
    for event in stream.events:
        if isinstance(event, Note) and event.source_id == DECISION and event.data["shown"]:
            found.setdefault(str(event.data["shown"]), event.data)
    return found


def _outcomes(stream: Stream) -> dict[str, tuple[str, float | None]]:
    """By suggestion: what became of it, and after how many seconds on the screen."""
    drawn: dict[str, int] = {}
    found: dict[str, tuple[str, float | None]] = {}
    for event in stream.events:
        if not isinstance(event, Note):
            continue
        if event.source_id == ANSWER and event.data.get("shown"):
            drawn.setdefault(str(event.data["shown"]), event.time_ms)
        elif event.source_id == DRAWN:
            drawn[str(event.data["suggestion"])] = event.time_ms
        elif event.source_id == OUTCOME:
            name = str(event.data["suggestion"])
            began = drawn.get(name)
            seconds = None if began is None else (event.time_ms - began) / 1000
            found[name] = str(event.data["outcome"]), seconds
    return found


# --- reading entries -----------------------------------------------------------------------------


def _candidate(told: Mapping[str, Any], text: str) -> Candidate:
    first, last, new = told["edit"]
    return Candidate(
        start=_index(text, *first),
        end=_index(text, *last),
        text=str(new),
        confidence=confidence_of(told["confidence"]),
        tokens=int(told["tokens"]),
        steps=int(told["steps"]),
        finish=told["finish"],
        source=told["source"],
        features=dict(told.get("features") or {}),
    )


def _index(text: str, line: int, character: int) -> int:
    lines = text.split("\n")
    start = sum(len(each) + 1 for each in lines[:line])
    return start + index_at(lines[line], character)
