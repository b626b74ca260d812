"""Asked at every key: the line being typed stays out of the history until it is finished."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from redraft.evals.recordings.format import Changed, Encountered, SetContent, TextEdit
from redraft.evals.replay.editor import Editor, unconnected
from redraft.evals.replay.timed_predictor import ReplayPredictor, run
from redraft.lsp.server import HANDLERS
from redraft.lsp.session.decisions import Ask, Show
from redraft.lsp.session.edit_state import REST_S
from redraft.lsp.settings import LspSettings
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction, RecentEdit
from support.predictor import READY, rewrite
from support.workbench import URI, Workbench, asking, showing

KEY_S = 0.2
CODE = "def area(r):\n    return 3 * r\n\n\ndef show(r):\n    print(area(r))\n"


class Typing(Workbench):
    """Somebody types a key every fifth of a second, and the client asks at each."""

    def __init__(self) -> None:
        super().__init__(CODE)
        self.cursor = self.text.index("):\n")
        self.asked: Ask | None = None

    def keys(self, text: str) -> Ask:
        """What is asked behind the last of these keys."""
        for key in text:
            self.clock.now += KEY_S
            self.type(key)
            self.asked = self.ask_edit()
        assert self.asked is not None
        return self.asked

    def answered(self, old: str = "", new: str = "", confidence: float = 0.9) -> Show | Abstain:
        """The model's answer to the last question; without ``old``, that there is no edit."""
        assert self.asked is not None
        said = rewrite(self.asked.request, old, new, confidence=confidence)
        if not old:
            said = replace(said, candidates=())
        return self.settle(self.asked, said)


def diffs(ask: Ask) -> list[str]:
    return [edit.diff.split("\n     ")[0] for edit in ask.request.edits]


def test_while_a_line_is_typed_the_history_stays_as_it_is() -> None:
    desk = Typing()
    before = desk.keys(", ").request.edits
    for key in "pi":
        ask = desk.keys(key)
        assert ask.unfinished
        assert ask.request.edits == before
    assert desk.session.history.in_progress(URI)


def test_once_the_keys_rest_the_question_is_asked_again_with_the_edit() -> None:
    desk = Typing()
    desk.keys(", pi")
    assert isinstance(desk.answered(), Abstain)
    again = asking(desk.consider_edit())
    assert not again.unfinished
    assert again.not_before_s == desk.clock.now + REST_S
    desk.clock.now += REST_S
    assert diffs(desk.ask_edit()) == ["-def area(r):\n+def area(r, pi):"]


@pytest.mark.parametrize(
    "fields",
    [
        {"invoked": True},  # a gesture
        {"cursor": CODE.index("print")},  # the line is left
        {"cursor": CODE.index("):\n") + len(", p")},  # the cursor moves without a key
    ],
)
def test_a_gesture_or_a_moved_cursor_finishes_the_line(fields: dict[str, Any]) -> None:
    desk = Typing()
    desk.keys(", pi")
    ask = desk.ask_edit(**fields)
    assert not ask.unfinished
    assert diffs(ask) == ["-def area(r):\n+def area(r, pi):"]


def test_a_finished_line_is_in_the_history_while_the_next_is_typed() -> None:
    desk = Typing()
    desk.cursor = desk.text.index("\n\n\ndef show")
    desk.keys(" * r")
    desk.keys("\n")
    ask = desk.keys("x = ")
    assert ask.unfinished
    [edit] = ask.request.edits
    assert "-    return 3 * r\n+    return 3 * r * r\n+\n \n" in edit.diff


def test_whoever_asks_at_pauses_only_shows_the_newest_edit_at_once() -> None:
    desk = Typing()
    for key in ", pi":
        desk.clock.now += KEY_S
        desk.type(key)
    ask = desk.ask_edit()
    assert not ask.unfinished
    assert diffs(ask) == ["-def area(r):\n+def area(r, pi):"]


def test_a_key_that_nobody_asks_about_is_one_of_a_client_that_asks_at_pauses() -> None:
    desk = Typing()
    desk.keys(", pi")
    desk.clock.now += 3
    desk.ask_edit()
    desk.clock.now += 3
    desk.type(",")
    desk.type(" e")
    assert not desk.ask_edit().unfinished


def test_a_client_known_to_ask_at_every_key_finishes_no_word_at_its_first_letter() -> None:
    desk = Typing()
    desk.keys(", pi")
    desk.clock.now += 3
    edits = desk.ask_edit().request.edits
    ask = desk.keys(",")
    assert ask.unfinished
    assert ask.request.edits == edits


def test_what_is_computed_ahead_knows_the_line_being_typed() -> None:
    desk = Typing()
    desk.keys(", pi")
    show = showing(desk.answered("3 * r", "pi * r"))
    ahead = desk.session.follow_up(desk.query(), show.suggestion)
    assert ahead is not None
    assert [edit.diff.count("+") for edit in ahead.request.edits][-2:] == [1, 1]
    assert any("+def area(r, pi):" in edit.diff for edit in ahead.request.edits)


def test_ghost_text_keeps_the_history_too() -> None:
    desk = Typing()
    before: tuple[RecentEdit, ...] = desk.keys(", ").request.edits
    desk.keys("pi")
    assert desk.session.complete(desk.ask(invoked=True)).request.edits == before


def typed(text: str, latency_ms: float) -> tuple[list[EditRequest], list[dict[str, Any]]]:
    """``text`` typed as another parameter, with a question at every key: what the model was asked,
    and what the client was answered. The model knows what follows once it sees the whole edit."""
    asked: list[EditRequest] = []

    def model(request: EditRequest) -> Prediction:
        asked.append(request)
        seen = any(f"+def area(r{text}):" in edit.diff for edit in request.edits)
        return rewrite(request, "area(r))", "area(r, 3))" if seen else "area(r))", confidence=0.95)

    async def session() -> list[dict[str, Any]]:
        clock = asyncio.get_running_loop().time
        predictor = ReplayPredictor(model, READY, latency_ms)
        client = unconnected(predictor, LspSettings(), clock)
        editor = Editor(client)
        await editor.begin()
        editor.tell(Encountered(0, 1, "a.py"))
        editor.tell(SetContent(0, 1, None, CODE))
        place = {"textDocument": {"uri": editor.uri(1)}, "position": {"line": 0, "character": 0}}
        answers = []
        for count, key in enumerate(text):
            await asyncio.sleep(KEY_S)
            at = CODE.index("):") + count
            editor.tell(Changed(0, 1, None, (TextEdit(at, at, key),)))
            place["position"] = {"line": 0, "character": at + 1}
            answers.append(asyncio.ensure_future(HANDLERS["redraft/nextEdit"](client, {**place})))
            await asyncio.sleep(0)
        found = await asyncio.gather(*answers, return_exceptions=True)
        return [each for each in found if isinstance(each, dict)]

    return asked, run(session())


@pytest.mark.parametrize("latency_ms", [30.0, 400.0])
def test_asked_at_every_key_the_answer_comes_when_the_keys_rest(latency_ms: float) -> None:
    asked, answers = typed(", pi, e", latency_ms)
    texts = [edit["text"] for answer in answers for edit in answer["edits"]]
    assert texts == ["    print(area(r, 3))"]
    *before, last = [request.edits for request in asked]
    assert len(set(before)) == 1  # typing changed nothing
    assert "+def area(r, pi, e):" in last[-1].diff
