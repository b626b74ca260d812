"""Prompts that the engine reads before they are asked about, while the user types or rests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import pytest
from redraft.evals.replay.clock import run
from redraft.evals.replay.simulated_predictor import ReplayPredictor
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.policy.machine_load import Reading
from redraft.lsp.read_ahead import PAUSE, RESTS_S
from redraft.lsp.refusals import AFTER_EDIT_S
from redraft.lsp.schedule import TYPING_ENDS_S
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.model.errors import Overloaded
from redraft.model.predict import predict
from redraft.model.prompts.redraft3 import render_edit, render_infill
from redraft.model.records import EditRequest, Prediction
from redraft.model.text.common import common_head
from support.editors.predictor import READY, infill, rewrite
from support.editors.workbench import FOLDER, URI
from support.models.engines_of import Clock
from support.models.rewriting import model_of
from support.models.tiny import tiny_tokenizer

CODE = (
    "".join(f"value_{number} = {number}\n" for number in range(40))
    + "\ndef area(r):\n    return 3 * r\n\n\ndef show(r):\n    print(area(r))\n\n\n"
    + "".join(f"other_{number} = {number}\n" for number in range(40))
    + "\n\ndef main():\n    print(area(2))\n    show(area(3))\n"
)
LINE = CODE[: CODE.index("area(r)")].count("\n")
KEY_S, LATENCY_S = 0.15, 0.05
TOKENIZER = tiny_tokenizer()


@dataclass
class Asked:
    """A request to the model."""

    at_s: float  # simulated
    request: EditRequest

    @property
    def part(self) -> str:
        return self.request.read_ahead


class Desk:
    """A user of one document, and what the model is asked meanwhile, in simulated time."""

    def __init__(
        self, can: bool = True, uri: str = URI, latency_s: float = LATENCY_S, **settings: Any
    ) -> None:
        self.clock = asyncio.get_running_loop().time
        self.asked: list[Asked] = []
        self.answer: Callable[[EditRequest], Prediction] = lambda request: rewrite(request, "", "")
        self.cancelled: list[EditRequest] = []
        self.model = ReplayPredictor(self._ask, READY, 1000 * latency_s)
        self.session = Session(self, LspSettings(**settings), self.clock, reads=False)
        self.session.workspace.folders = [FOLDER.rstrip("/")]
        self.session.workspace.reads_ahead = can
        self.uri, self.document = uri, self.session.open(uri, CODE, 0, "python")
        self.tasks: list[asyncio.Task[object]] = []

    async def predict(self, request: EditRequest) -> Prediction:
        try:
            return await self.model.predict(request)
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise

    def _ask(self, request: EditRequest) -> Prediction:
        self.asked.append(Asked(self.clock(), request))
        return infill(request, "x") if request.task == "infill" else self.answer(request)

    def at(self, line: int, column: int, *, ghost: bool = False, invoked: bool = False) -> None:
        """Ask for the next edit at a place, as clients do when the cursor moves."""
        cursor = self.document.index(Position(line, column))
        query = self.session.snapshot(self.document, cursor, RequestFlags(invoked))
        asking = self.session.next_edit(query)
        self.tasks.append(asyncio.ensure_future(asking))
        if ghost:
            self.tasks.append(asyncio.ensure_future(self.session.ghost_text(query)))

    async def type(self, text: str, line: int, column: int, key_s: float = KEY_S) -> None:
        for number, key in enumerate(text, column):
            place = Position(line, number)
            self.session.change(self.uri, [ContentChange(key, Range(place, place))], None)
            self.at(line, number + 1)
            await asyncio.sleep(key_s)

    def ahead(self) -> list[Asked]:
        return [each for each in self.asked if each.part]

    def questions(self) -> list[Asked]:
        return [each for each in self.asked if not each.part]


def played(work: Callable[[Desk], Coroutine[Any, Any, None]], **how: Any) -> Desk:
    async def all_of_it() -> Desk:
        desk = Desk(**how)
        await work(desk)
        await asyncio.gather(*desk.tasks)
        await desk.session.leave()
        return desk

    return run(all_of_it())


async def typing(desk: Desk) -> None:
    await desk.type(", pi, e", LINE, len("def area(r"))
    await asyncio.sleep(2)


def test_the_questions_prompt_is_read_before_asking() -> None:
    desk = played(typing)
    first = desk.questions()[0]
    whole = next(each for each in desk.ahead() if each.part == "all")
    assert replace(whole.request, read_ahead="") == first.request
    assert first.at_s - whole.at_s == pytest.approx((1 - PAUSE) * TYPING_ENDS_S, abs=0.01)


def test_while_a_line_is_typed_its_file_is_read_once() -> None:
    desk = played(typing)
    first = desk.questions()[0]
    parts = [each.part for each in desk.ahead() if each.at_s < first.at_s]
    assert parts == ["stable", "all", "all"], "once for all keys, and two places in the pause"
    stable, asked = desk.ahead()[0].request, first.request
    prompts = [render_edit(each, TOKENIZER, 2_048) for each in (stable, asked)]
    head = common_head(prompts[0].tokens, prompts[1].tokens)
    assert head >= prompts[0].stable > 0.5 * len(prompts[1].tokens)


def test_keys_do_not_stop_reading_that_stays_valid() -> None:
    desk = played(typing, latency_s=2.5 * KEY_S)
    assert [each.part for each in desk.ahead()].count("stable") == 1


def test_slow_keys_have_few_prompts_read_in_vain() -> None:
    async def work(desk: Desk) -> None:
        await desk.type(", some_name", LINE, len("def area(r"), key_s=0.28)

    ahead = played(work, latency_s=0.1).cancelled
    assert [each.read_ahead for each in ahead].count("all") <= 2


def test_the_second_place_is_read_in_the_pause() -> None:
    desk = played(typing)
    own, other = (each.request for each in desk.ahead() if each.part == "all")
    assert own.text == other.text
    assert other.text.count("\n", 0, other.cursor) > LINE + 30
    assert replace(other, read_ahead="") in [each.request for each in desk.questions()]


def test_little_is_left_to_read_for_the_question() -> None:
    desk = played(typing)
    first = desk.questions()[0].request
    model = model_of({"": 1.0}, first)
    for each in desk.ahead():
        if replace(each.request, read_ahead="") == first or each.part == "stable":
            predict(model, each.request, Clock())
    stats = predict(model, first, Clock()).stats
    assert stats.reused_tokens == stats.prompt_tokens - 1


# --- at rest -------------------------------------------------------------------------------------


async def resting(desk: Desk) -> None:
    await asyncio.sleep(1)
    desk.at(LINE, len("def area(r"))
    await asyncio.sleep(1)


def test_a_resting_cursors_first_key_is_read_ahead() -> None:
    async def work(desk: Desk) -> None:
        await resting(desk)
        assert [each.part for each in desk.asked] == ["stable"]
        assert desk.asked[0].at_s == pytest.approx(1 + RESTS_S + LATENCY_S, abs=0.01)
        await typing(desk)

    desk = played(work)
    ahead, question = desk.asked[0].request, desk.questions()[0].request
    assert ahead.region == question.region
    prompts = [render_edit(each, TOKENIZER, 2_048) for each in (ahead, question)]
    head = common_head(prompts[0].tokens, prompts[1].tokens)
    assert head >= prompts[0].stable > 0.5 * len(prompts[1].tokens)


def test_ghost_text_is_read_first_for_its_clients() -> None:
    async def work(desk: Desk) -> None:
        desk.at(3, 0, ghost=True)
        await asyncio.sleep(1)
        await resting(desk)
        ahead = desk.ahead()[-2:]
        assert [(each.request.task, each.part) for each in ahead] == [
            ("infill", "all"),
            ("next_edit", "stable"),
        ]
        await desk.type(",", LINE, len("def area(r"))
        desk.at(LINE, len("def area(r,"), ghost=True)

    desk = played(work)
    read = next(each for each in desk.ahead()[2:] if each.request.task == "infill")
    asked = [each for each in desk.questions() if each.request.task == "infill"][-1]
    prompts = [render_infill(each.request, TOKENIZER, 2_048).tokens for each in (read, asked)]
    assert len(prompts[1]) - common_head(*prompts) <= 3


def test_who_moves_on_is_followed() -> None:
    async def work(desk: Desk) -> None:
        for line in range(10):
            desk.at(line, 0)
            await asyncio.sleep(RESTS_S / 2)
        await asyncio.sleep(1)

    (one,) = played(work).asked
    assert one.request.text.count("\n", 0, one.request.cursor) == 9


def test_a_place_that_was_read_is_not_read_again() -> None:
    async def work(desk: Desk) -> None:
        for _ in range(3):
            await resting(desk)
            desk.at(0, 0)
            await asyncio.sleep(1)

    assert len(played(work).asked) == 2


def test_a_vain_question_prepares_for_the_first_key() -> None:
    async def work(desk: Desk) -> None:
        await desk.type(",", 0, 0)
        await asyncio.sleep(1)
        desk.at(LINE, 0)
        await asyncio.sleep(2)
        last = desk.asked[-1]
        assert last.part == "stable"
        assert last.request.text.count("\n", 0, last.request.cursor) == LINE
        assert last.request.edits[-1].diff.endswith("+def area(r):_\n     return 3 * r\n \n \n")

    played(work)


# --- when nothing is read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {"can": False},
        {"prefetch": False},
        {"next_edits": False},
        {"enabled": False},
        {"uri": FOLDER + "app/.env"},
        {"disabled_languages": ("python",)},
    ],
)
@pytest.mark.parametrize("work", [typing, resting])
def test_nothing_is_read_where_nothing_may_be(
    how: dict[str, Any], work: Callable[[Desk], Coroutine[Any, Any, None]]
) -> None:
    assert not played(work, **how).ahead()


@pytest.mark.parametrize("effort", ["calm", "off"])
def test_nothing_is_read_while_power_is_saved(effort: str) -> None:
    async def work(desk: Desk) -> None:
        desk.session.workspace.load.look = lambda: Reading(on_battery=True, others=None)
        desk.session.workspace.load.now()
        await asyncio.sleep(0.01)
        while desk.session.workspace.load.now().effort != effort:
            await asyncio.sleep(0.01)
        await typing(desk)
        await asyncio.sleep(AFTER_EDIT_S)
        await resting(desk)

    assert not played(work, on_battery=effort).ahead()


def test_a_gesture_is_answered_at_once() -> None:
    async def work(desk: Desk) -> None:
        desk.at(LINE, 4, invoked=True)
        await asyncio.sleep(1)

    desk = played(work)
    assert desk.questions() and not desk.ahead()


def test_an_engine_without_time_for_it_is_left_alone() -> None:
    def busy(request: EditRequest) -> Prediction:
        if request.read_ahead:
            raise Overloaded("full", retry_after_s=1.0)
        return rewrite(request, "", "")

    async def work(desk: Desk) -> None:
        desk.answer = busy
        await typing(desk)

    assert played(work).questions()


def test_a_document_that_is_closed_is_read_no_further() -> None:
    async def work(desk: Desk) -> None:
        desk.at(LINE, 4)
        await asyncio.sleep(RESTS_S / 2)
        desk.session.close(desk.uri)
        await asyncio.sleep(1)

    assert not played(work).asked


@pytest.mark.parametrize("column", [4, -1])
def test_a_document_excluded_meanwhile_is_not_read(column: int) -> None:
    """At rest in column 4; else in the pause after a key."""

    async def work(desk: Desk) -> None:
        if column > 0:
            desk.at(LINE, column)
        else:
            await desk.type(",", LINE, len("def area(r"), key_s=RESTS_S / 4)
        desk.session.workspace.settings = LspSettings(disabled_languages=("python",))
        await asyncio.sleep(1)
        # What stays while a line is typed was read at once, before.
        assert not [one for one in desk.ahead() if column > 0 or one.part == "all"]

    played(work)
