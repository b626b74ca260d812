"""Plays walks through the language server's session and asks for the next edit on the way.

The session is the one of the language server; only its clock is simulated. Steps are typed in
pieces, since what comes at once is taken for a paste.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range, units
from redraft.lsp.edit_choice import parts_of
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.journal import AnswerDecided
from redraft.lsp.question import Answer, LineRange
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.gates import Gates
from redraft.lsp.suggestions.suggestion import Suggestion
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import verdict
from redraft.model.gate.gate import Gate, Weighed, load_shipped
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, RecentEdit, Task

from ..replay.clock import SimulatedLoop
from ..replay.simulated_predictor import ReplayPredictor
from .walks import AskedWalk, Walk

BETWEEN_S = 4.0  # steps: the edit before has ended
_PIECE, _PIECE_S = 80, 0.8  # characters typed at once, and seconds until the next ones
_ASKED_AFTER_S = 0.02  # an editor has moved the cursor by then
_FLAGS = RequestFlags(other_documents=True, whole_renames=True)


@dataclass(frozen=True, slots=True)
class PlaceAnswer:
    """An answer of the model about one place, in parts."""

    answer: Answer
    parts: tuple[Candidate, ...]  # the best first
    barred: tuple[str, ...]  # of each part: the kind of rule that refuses it; "": none
    decided_ms: float  # from the user's last key to the decision on it; simulated
    is_first: bool  # no question of the walk before had one of its lines


@dataclass(slots=True)
class PlayedMoment:
    """A moment of a walk at which the next edit was asked for, and what came of it."""

    walk: Walk
    made: int  # steps until then
    file: int  # where the user is
    texts: list[str]  # of the files
    earlier: list[list[str]]  # texts of each file before its last steps, oldest first
    cursor: int  # index into the text of the user's file
    recent: tuple[RecentEdit, ...]
    answers: list[PlaceAnswer]  # in the order in which the model was asked
    shown: Suggestion | None
    changed: dict[int, str]  # texts that it makes, by number of the file; the user's comes last
    reason: str  # why nothing is shown, or where the suggestion comes from
    took_s: float  # simulated

    @property
    def id(self) -> str:
        return f"{self.walk.id}:{self.made}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A suggestion that was taken."""

    where: str  # path and line
    old: str  # "" for one in several places
    new: str  # what it does there, in words, for one in several places


@dataclass(slots=True)
class Tabs:
    """The texts of a scene once every suggestion was taken."""

    texts: list[str]
    taken: list[Taken] = field(default_factory=list)
    reason: str = ""  # why nothing more was shown


def play(
    asked: AskedWalk, predictor: ReplayPredictor, settings: LspSettings, *, asks_all: bool = False
) -> Iterator[PlayedMoment]:
    """Play a walk; yield each of its moments.

    Args:
        asks_all: ask about all places, since nothing that the model writes is good enough.

    Raises:
        RedraftError: the model is gone.
    """
    player = _Player(asked.walk, predictor, settings)
    moments = player.moments(asked.after, asks_all=asks_all)

    async def find_next() -> PlayedMoment | None:
        return await anext(moments, None)

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        while (found := runner.run(find_next())) is not None:
            yield found


def take_all(walk: Walk, predictor: ReplayPredictor, settings: LspSettings, most: int) -> Tabs:
    """Type the steps that need not be foreseen, and take what is offered then, at most ``most``.

    Raises:
        RedraftError: the model is gone.
    """
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(_Player(walk, predictor, settings).take_all(most))


class _NothingIsGood(Gates):
    """Gate that hides whatever a model writes, so that every place is asked about."""

    def gate(self) -> Gate:
        return _Hiding("none", super().gate().heads)


class _Hiding(Gate):
    def weigh(
        self, candidate: Candidate, task: Task, pace: Mapping[str, float] | None = None
    ) -> Weighed:
        return super().weigh(candidate, task, pace)._replace(score=0.0)


class _Player:
    def __init__(self, walk: Walk, predictor: ReplayPredictor, settings: LspSettings) -> None:
        self._walk, self._predictor, self._settings = walk, predictor, settings
        self._folder = TemporaryDirectory(prefix="redraft-walk-", ignore_cleanup_errors=True)
        self._texts = ["\n".join(file.before) for file in walk.files]
        self._earlier: list[list[str]] = [[] for _ in walk.files]
        self._file, self._cursor = 0, 0
        self._answers = list[PlaceAnswer]()
        self._asked = list[LineRange]()
        self._key_s = 0.0  # when the user typed last

    async def moments(
        self, after: frozenset[int], *, asks_all: bool
    ) -> AsyncIterator[PlayedMoment]:
        await self._begin()
        if asks_all:
            self._session.memory.gates = _NothingIsGood(None, self._session.workspace)
        for made, step in enumerate(self._walk.steps, 1):
            await self._make(step.file, step.change.first, step.change.last, step.change.new)
            if made in after:
                yield await self._ask(made)
            if made == max(after):
                break
        await self._end()

    async def take_all(self, most: int) -> Tabs:
        await self._begin()
        typed = [step for step in self._walk.steps if step.is_typed]
        for step in typed:
            await self._make(step.file, step.change.first, step.change.last, step.change.new)
        found = Tabs(self._texts)
        while len(found.taken) < most:
            moment = await self._ask(len(typed))
            found.reason = moment.reason
            if moment.shown is None:
                break
            found.taken.append(self._take(moment.shown, moment.changed))
        await self._end()
        return found

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._session = Session(self._predictor, self._settings, loop.time, reads=False)
        self._session.journal.subscribe(self._hear)
        workspace = self._session.workspace
        workspace.context_tokens = (await self._predictor.status()).context_tokens
        workspace.folders = [Path(self._folder.name).as_uri()]
        for at, text in enumerate(self._texts):  # what is renamed is looked up on the disk
            path = self._path(at)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        workspace.context.start()
        for at, file in reversed([*enumerate(self._walk.files)]):
            self._session.open(self._uri(at), self._texts[at], None, file.language or "plaintext")
        workspace.context.catch_up()

    def _hear(self, entry: object) -> None:
        if not isinstance(entry, AnswerDecided):
            return
        answer, gate = entry.answer, load_shipped()
        situation = replace(self._session.edits.situation_of(answer.question), threshold=0.0)
        parts = parts_of(answer.question, answer.prediction)
        verdicts = (verdict(part, situation, gate) for part in parts)
        barred = tuple(one.kind if isinstance(one, Abstain) else "" for one in verdicts)
        decided_ms = 1000 * (asyncio.get_running_loop().time() - self._key_s)
        place = answer.question.reach
        is_first = not any(place.meets(other) for other in self._asked)
        self._asked.append(place)
        self._answers.append(PlaceAnswer(answer, tuple(parts), barred, decided_ms, is_first))

    async def _end(self) -> None:
        await self._session.leave()
        self._folder.cleanup()

    def _path(self, file: int) -> Path:
        return Path(self._folder.name) / self._walk.files[file].path

    def _uri(self, file: int) -> str:
        return self._path(file).as_uri()

    def _changed(self, shown: Suggestion) -> dict[int, str]:
        """Return the texts that a suggestion makes, by the number of the file."""
        numbers = {self._uri(at): at for at in range(len(self._texts))}
        own = numbers[shown.uri]
        if shown.rename is None:
            return {own: shown.result}
        found = {numbers[each.source.uri]: each.result for each in shown.rename.files}
        return dict(sorted(found.items(), key=lambda one: one[0] == own))

    # --- the user --------------------------------------------------------------------------------

    async def _make(self, file: int, first: int, last: int, new: tuple[str, ...]) -> None:
        """Make a step, as a person types it."""
        await asyncio.sleep(BETWEEN_S)
        if file != self._file:
            self._file = file
            self._session.focus(self._uri(file))
        text = self._texts[file]
        self._earlier[file] = [*self._earlier[file][-2:], text]
        lines = text.split("\n")
        wanted = "\n".join([*lines[:first], *new, *lines[last:]])
        edit = Edit(text, 0, len(text), wanted).least()
        end = edit.end
        while end - edit.start > _PIECE:  # deleted from behind
            self._change(Edit(self._texts[file], end - _PIECE, end, ""))
            end -= _PIECE
            await asyncio.sleep(_PIECE_S)
        for at in range(0, max(1, len(edit.new)), _PIECE):
            piece, begin = edit.new[at : at + _PIECE], edit.start + at
            self._change(Edit(self._texts[file], begin, end if at == 0 else begin, piece))
            await asyncio.sleep(_PIECE_S if at + _PIECE < len(edit.new) else 0)
        assert self._texts[file] == wanted

    def _change(self, edit: Edit, file: int | None = None) -> None:
        """Change the text of a file, the user's by default, and move the cursor behind it."""
        file = self._file if file is None else file
        where = Range(_position(edit.text, edit.start), _position(edit.text, edit.end))
        self._key_s = asyncio.get_running_loop().time()
        self._session.change(self._uri(file), (ContentChange(edit.new, where),), None)
        self._file, self._texts[file] = file, edit.result
        self._cursor = edit.start + len(edit.new)

    def _take(self, shown: Suggestion, changed: dict[int, str]) -> Taken:
        """Press Tab."""
        edit = shown.edit.least()
        path = self._walk.files[[*changed][-1]].path
        taken = Taken(f"{path}:{edit.lines[0] + 1}", edit.old, edit.new)
        if shown.rename is not None:
            taken = replace(taken, old="", new=shown.rename.label)
        self._session.report_accepted(shown.id)
        for file, text in changed.items():
            self._change(Edit(self._texts[file], 0, len(self._texts[file]), text).least(), file)
        return taken

    # --- the question ----------------------------------------------------------------------------

    async def _ask(self, made: int) -> PlayedMoment:
        """Ask for the next edit where the last one ended."""
        loop, session, file = asyncio.get_running_loop(), self._session, self._file
        await asyncio.sleep(_ASKED_AFTER_S)
        self._answers.clear()
        began_s, document = loop.time(), session.workspace.documents.get(self._uri(file))
        assert document is not None
        snapshot = session.snapshot(document, self._cursor, _FLAGS)
        decision = await session.next_edit(snapshot)
        if self._predictor.failure is not None:
            raise self._predictor.failure
        shown = None if isinstance(decision, Abstain) else decision.suggestion
        return PlayedMoment(
            walk=self._walk,
            made=made,
            file=file,
            texts=[*self._texts],
            earlier=[[*texts] for texts in self._earlier],
            cursor=self._cursor,
            recent=snapshot.recent,
            answers=[*self._answers],
            shown=shown,
            changed=self._changed(shown) if shown is not None else {},
            reason=decision.reason,
            took_s=loop.time() - began_s,
        )


def _position(text: str, index: int) -> Position:
    start = text.rfind("\n", 0, index) + 1
    return Position(text.count("\n", 0, index), units(text[start:index]))
