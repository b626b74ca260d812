"""While a line is being typed, next edits wait until the keys rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redraft.evals.replay.clock import run
from redraft.evals.replay.simulated_predictor import ReplayPredictor
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.schedule import TYPING_ENDS_S
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.records import EditRequest, Prediction
from support.editors.predictor import READY, rewrite
from support.editors.workbench import FOLDER, URI, Workbench, showing

KEY_S = 0.2
CODE = "def area(r):\n    return 3 * r\n\n\ndef show(r):\n    print(area(r))\n"


def typing() -> Workbench:
    """Return a desk whose user is typing another parameter."""
    desk = Workbench(CODE)
    desk.cursor = desk.text.index("):\n")
    desk.type(", pi")
    return desk


@pytest.mark.parametrize(
    ("fields", "after_s", "delay_s"),
    [
        ({}, 0.0, TYPING_ENDS_S),
        ({}, 0.1, TYPING_ENDS_S - 0.1),
        ({"invoked": True}, 0.0, 0.0),  # a gesture
        ({"cursor": CODE.index("print")}, 0.0, 0.1),  # the line is left: the debounce alone
        ({}, 1.0, 0.1),  # a pause
    ],
)
def test_the_question_waits_until_the_keys_rest(
    fields: dict[str, Any], after_s: float, delay_s: float
) -> None:
    desk = typing()
    desk.clock.now += after_s
    ask = desk.ask_edit(**fields)
    assert ask.delay_ms == pytest.approx(1000 * delay_s, abs=0.01)
    assert "+def area(r, pi):" in ask.request.edits[-1].diff


def test_few_lines_above_a_typed_line_are_asked_about() -> None:
    above = "".join(f"value_{i} = {i}\n" for i in range(8))
    desk = Workbench(above + CODE)
    desk.cursor = desk.text.index("):\n")
    desk.type(", pi")
    first, last = desk.ask_edit().request.region or (0, 0)
    assert first == 6, "at most three lines above the typed one, which is the ninth"
    assert last > 12, "and all lines below"
    left = desk.ask_edit(cursor=desk.text.index("print")).request.region or (0, 0)
    assert left[0] == 0, "the line was left"


@pytest.mark.parametrize(("after_s", "delay_ms"), [(0.0, 0), (0.1, 0), (0.3, 80)])
def test_what_follows_an_acceptance_does_not_wait(after_s: float, delay_ms: float) -> None:
    desk = Workbench(CODE)
    desk.swap("area(r)", "area(r, s)")
    desk.accept(desk.edit("return 3 * r", "return s * r"))
    desk.cursor = desk.text.index("return")
    desk.clock.now += after_s
    assert desk.ask_edit().delay_ms == pytest.approx(delay_ms, abs=0.01)


@pytest.mark.parametrize(
    ("typed", "after_s", "waits_s", "fields"),
    [
        ("", 0.0, 0.0, {}),  # nothing is typed
        ("wo", 0.0, TYPING_ENDS_S, {}),
        ("wo", 0.1, TYPING_ENDS_S - 0.1, {}),
        ("wo", 1.0, 0.0, {}),  # a pause
        ("one(1)\ntw", 0.0, TYPING_ENDS_S, {}),  # of several lines
        ("wo", 0.0, 0.0, {"invoked": True}),  # a gesture
    ],
)
def test_a_known_edit_away_waits_for_the_typed_line(
    typed: str, after_s: float, waits_s: float, fields: dict[str, Any]
) -> None:
    desk = Workbench(CODE + "\n" * 10)
    desk.swap("area(r)", "area(r, s)")
    desk.pause()
    first = showing(desk.edit("print(area(r))", "print(area(r, 2))"))
    desk.cursor = len(desk.text)
    desk.type(typed)
    desk.clock.now += after_s
    desk.session.latest.delay_s = 0.0
    found = showing(desk.consider_edit(**fields))
    assert (found.suggestion.id, found.reason) == (first.suggestion.id, "still holds")
    assert desk.session.latest.delay_s == pytest.approx(waits_s)


def test_a_known_edit_beside_a_typed_line_waits_not() -> None:
    desk = Workbench(CODE)
    desk.swap("area(r)", "area(r, s)")
    desk.pause()
    desk.edit("print(area(r))", "print(area(r, 2))")
    desk.cursor = desk.text.index("show(r)") + 4
    desk.type("n")
    desk.session.latest.delay_s = 0.0
    assert showing(desk.consider_edit()).reason == "still holds"
    assert desk.session.latest.delay_s == 0.0


def typed(text: str, latency_ms: float) -> tuple[list[EditRequest], list[str]]:
    """Type ``text`` as another parameter, with a question at every key.

    Return what the model was asked, and the edits that were shown.
    """
    asked: list[EditRequest] = []

    def model(request: EditRequest) -> Prediction:
        asked.append(request)
        seen = any(f"+def area(r{text}):" in edit.diff for edit in request.edits)
        return rewrite(request, "area(r))", "area(r, 3))" if seen else "area(r))", confidence=0.95)

    async def session() -> list[str]:
        clock = asyncio.get_running_loop().time
        predictor = ReplayPredictor(model, READY, latency_ms)
        session = Session(predictor, LspSettings(), clock, reads=False)
        session.workspace.folders = [FOLDER.rstrip("/")]
        document = session.open(URI, CODE, 0, "python")
        answers = []
        for count, key in enumerate(text):
            await asyncio.sleep(KEY_S)
            at = CODE.index("):") + count
            place = Position(0, at)
            session.change(URI, [ContentChange(key, Range(place, place))], None)
            query = session.snapshot(document, at + 1, RequestFlags())
            answers.append(asyncio.ensure_future(session.next_edit(query)))
            await asyncio.sleep(0)
        found = await asyncio.gather(*answers)
        await session.leave()
        return [each.text for each in found if isinstance(each, Offer)]

    return asked, run(session())


@pytest.mark.parametrize("latency_ms", [30.0, 400.0])
def test_asked_at_every_key_the_model_is_asked_once(latency_ms: float) -> None:
    asked, texts = typed(", pi, e", latency_ms)
    assert texts == [", 3"]
    questions = [request for request in asked if "area(r, 3)" not in request.text]
    assert len(questions) == 1
    assert "+def area(r, pi, e):" in questions[0].edits[-1].diff
