"""``RemotePredictor`` and the JSON of the records: what goes in one side comes out of the other."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from redraft.model import errors, wire
from redraft.model.records import (
    CanvasState,
    EditRequest,
    ModelStatus,
    Prediction,
    RecentEdit,
    RelatedFile,
)
from redraft.model.remote import RemotePredictor
from redraft.model.validation import parse_json
from redraft.model.wire import (
    WIRE_VERSION,
    error_from_json,
    error_to_json,
    request_from_json,
    request_to_json,
)
from redraft.server.http.listen import listen
from redraft.server.settings import Settings
from support.command import python
from support.editors.predictor import READY, ScriptedPredictor
from support.served import eventually, served

REQUEST = EditRequest("infill", "a.py", "x = \n", 4)


def through(
    predictor: ScriptedPredictor,
    use: Callable[[RemotePredictor], Awaitable[Any]],
    settings: Settings | None = None,
    token: str | None = None,
) -> Any:
    async def run() -> Any:
        async with served(predictor, settings) as (url, _):
            remote = RemotePredictor(url, token)
            try:
                return await use(remote)
            finally:
                await remote.close()

    return asyncio.run(run())


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@st.composite
def edit_requests(draw: st.DrawFn) -> EditRequest:
    text = draw(TEXT)
    lines = st.integers(0, text.count("\n") + 1)
    return EditRequest(
        task=draw(st.sampled_from(["infill", "next_edit"])),
        path=draw(TEXT),
        text=text,
        cursor=draw(st.integers(0, len(text))),
        language=draw(TEXT),
        related=tuple(draw(st.lists(st.builds(RelatedFile, TEXT, TEXT, TEXT), max_size=2))),
        edits=tuple(
            draw(
                st.lists(
                    st.builds(RecentEdit, TEXT, st.integers(0, 99), TEXT, st.booleans()), max_size=2
                )
            )
        ),
        region=draw(st.none() | st.tuples(lines, lines).map(sorted).map(tuple)),
        context_tokens=draw(st.none() | st.integers(1, 32_768)),
        max_tokens=draw(st.integers(1, 10**6)),
        max_lines=draw(st.none() | st.integers(1, 100)),
        quality=draw(st.sampled_from(["low", "medium", "high"])),
        temperature=draw(st.floats(0, 2)),
        top_p=draw(st.floats(0, 1)),
        seed=draw(st.none() | st.integers(0, 2**53 - 1)),
        stop=tuple(draw(st.lists(TEXT, max_size=3))),
        candidates=draw(st.integers(1, 8)),
    )


@given(edit_requests(), st.booleans())
def test_a_request_survives_the_wire(request: EditRequest, steps: bool) -> None:
    body = json.dumps(request_to_json(request, steps)).encode()
    assert request_from_json(parse_json(body)) == (request, steps)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"text": 5}, "'request.text' must be a string"),
        ({"related": [{"path": "a"}]}, "'request.related[0].text' is missing"),
        ({"related": {"path": "a"}}, "'request.related' must be an array"),
        ({"edits": [7]}, "'request.edits[0]' must be an object"),
        ({"edits": [{"path": "a", "line": -1, "diff": ""}]}, "'request.edits[0].line'"),
        ({"region": [0]}, "'request.region[1]' is missing"),
        ({"stop": "x"}, "'request.stop' must be an array"),
        ({"surprise": 1}, "'request.surprise' is not a field"),
    ],
)
def test_a_wrong_field_of_a_request_is_named(change: dict[str, Any], says: str) -> None:
    body = request_to_json(REQUEST)
    body["request"].update(change)
    with pytest.raises(errors.InvalidRequest) as caught:
        request_from_json(body)
    assert says in str(caught.value)


def test_the_schema_changes_with_fields_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class RecentEdit:
        path: str

    assert wire._schema() == wire.SCHEMA
    monkeypatch.setattr(wire.records, "RecentEdit", RecentEdit)
    assert wire._schema() != wire.SCHEMA
    monkeypatch.undo()
    monkeypatch.setattr(wire.records, "Finish", Literal["end"])
    assert wire._schema() != wire.SCHEMA


def test_another_wire_version_is_refused_with_advice() -> None:
    body = request_to_json(REQUEST) | {"version": WIRE_VERSION + 1}
    with pytest.raises(errors.InvalidRequest, match="same release: run 'git pull'"):
        request_from_json(body)


def all_errors(root: type[errors.RedraftError]) -> list[type[errors.RedraftError]]:
    return [root] + [e for child in root.__subclasses__() for e in all_errors(child)]


def test_every_error_keeps_its_class_over_the_wire() -> None:
    ours = [e for e in all_errors(errors.RedraftError) if e.__module__ == errors.__name__]
    assert len({e.code for e in ours}) == len(ours)
    for kind in ours:
        back = error_from_json(json.loads(json.dumps(error_to_json(kind("what happened")))))
        assert type(back) is kind
        assert str(back) == "what happened"


@pytest.mark.usefixtures("spawn")
def test_every_error_is_known_without_other_imports() -> None:
    """A client that raises no such error itself still gets its class from a server."""
    told = "error_from_json({'error': {'code': 'context_length_exceeded', 'message': 'too long'}})"
    code = f"from redraft.model.wire import error_from_json; print({told}.http_status)"
    assert python(code).stdout.strip() == "400"


def test_a_prediction_comes_back_as_it_was() -> None:
    predictor = ScriptedPredictor()
    here = asyncio.run(ScriptedPredictor().predict(REQUEST))
    there: Prediction = through(predictor, lambda r: r.predict(REQUEST))
    assert there == here
    assert predictor.requests == [REQUEST]


def test_an_abstention_comes_back_with_its_reason() -> None:
    there = through(ScriptedPredictor([()]), lambda r: r.predict(REQUEST))
    assert (there.candidates, there.reason) == ((), "nothing to add")


def test_canvas_states_come_in_order_and_first() -> None:
    states: list[CanvasState] = []
    there = through(ScriptedPredictor(), lambda r: r.predict(REQUEST, states.append))
    assert [state.show() for state in states] == ["░░░ b", "░░ + b", "░ a + b"]
    assert there.candidates[0].text == "return a + b"


def test_a_long_canvas_state_is_not_cut() -> None:
    states: list[CanvasState] = []
    pieces = ("x" * 300_000, "y" * 300_000, "z")
    through(ScriptedPredictor([tuple(pieces)]), lambda r: r.predict(REQUEST, states.append))
    assert states[-1].pieces == (None, *pieces[1:])


def test_status_comes_back_as_it_was() -> None:
    for state in (READY, ModelStatus("downloading", "m int8", progress=0.25, message="6 of 24 MB")):
        assert through(ScriptedPredictor(statuses=[state]), lambda r: r.status()) == state


@pytest.mark.parametrize(
    "error",
    [
        errors.ModelNotReady("loading (40 %)"),
        errors.InvalidRequest("'text' is too long"),
        errors.EngineGone("it died"),
        errors.WeightsError("corrupt"),
        errors.Overloaded("full", retry_after_s=7.5),
    ],
)
@pytest.mark.parametrize("steps", [False, True])
def test_an_error_of_the_engine_is_raised_here(error: errors.RedraftError, steps: bool) -> None:
    on_step = (lambda state: None) if steps else None
    with pytest.raises(type(error)) as caught:
        through(ScriptedPredictor([error]), lambda r: r.predict(REQUEST, on_step))
    assert str(caught.value) == str(error)
    assert getattr(caught.value, "retry_after_s", None) == getattr(error, "retry_after_s", None)


def test_an_error_after_the_first_state_is_raised_here() -> None:
    error = errors.WeightsError("it broke on the way")
    failing = ScriptedPredictor([error], states=[(None,)] * 3)
    states: list[CanvasState] = []
    with pytest.raises(errors.WeightsError, match="on the way"):
        through(failing, lambda r: r.predict(REQUEST, states.append))
    assert len(states) == 3


def test_the_token_is_sent_and_a_wrong_one_refused() -> None:
    settings = Settings(api_key=SecretStr("right"), shutdown_s=0.1)
    there = through(ScriptedPredictor(), lambda r: r.predict(REQUEST), settings, "right")
    assert there.candidates
    for wrong in ("wrong", None):
        with pytest.raises(errors.Unauthorized):
            through(ScriptedPredictor(), lambda r: r.predict(REQUEST), settings, wrong)


@pytest.mark.parametrize("steps", [False, True])
def test_cancelling_here_stops_the_computation_there(steps: bool) -> None:
    predictor = ScriptedPredictor(hold=True)
    states: list[CanvasState] = []

    async def use(remote: RemotePredictor) -> None:
        asking = asyncio.create_task(remote.predict(REQUEST, states.append if steps else None))
        await eventually(lambda: predictor.running == 1)
        if steps:
            await eventually(lambda: len(states) == 3)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await eventually(lambda: len(predictor.cancelled) == 1)

    through(predictor, use)


async def test_nobody_there_is_engine_gone() -> None:
    remote = RemotePredictor("http://127.0.0.1:1")
    for call in (remote.predict(REQUEST), remote.status()):
        with pytest.raises(errors.EngineGone, match=r"127\.0\.0\.1:1.*redraft serve --port 1'"):
            await call
    await remote.close()
    with pytest.raises(errors.EngineGone, match="closed"):
        await remote.status()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "<html>a router's page</html>"),
        (502, "Bad Gateway"),
        (200, "{}"),
        (200, '{"version": 1, "prediction": {"request_id": 5}}'),
        (500, '{"error": "a string"}'),
        (302, ""),
    ],
)
async def test_another_program_on_the_port_is_engine_gone(status: int, body: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=body, headers={"Location": "http://example.org"})

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    async with listen(app, host="127.0.0.1", port=0, shutdown_s=0.1) as url:
        remote = RemotePredictor(url)
        for on_step in (None, lambda state: None):
            with pytest.raises(errors.EngineGone):
                await remote.predict(REQUEST, on_step)
        with pytest.raises(errors.EngineGone):
            await remote.status()
        await remote.close()


async def test_a_stream_that_breaks_off_is_engine_gone() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        state = {"version": 1, "state": {"step": 1, "pieces": [None]}}
        await response.write(json.dumps(state).encode() + b"\n")
        return response

    app = web.Application()
    app.router.add_post("/redraft/v1/predict", answer)
    async with listen(app, host="127.0.0.1", port=0, shutdown_s=0.1) as url:
        remote = RemotePredictor(url)
        states: list[CanvasState] = []
        with pytest.raises(errors.EngineGone, match="ended before"):
            await remote.predict(REQUEST, states.append)
        assert states == [CanvasState(1, (None,))]
        await remote.close()


@pytest.mark.parametrize(
    "url", ["", "localhost:7331", "ftp://x", "http://", "http://a:b", "http://["]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(errors.SettingsError, match=r"http://127\.0\.0\.1:7331"):
        RemotePredictor(url)


def test_the_servers_limits_hold_for_our_own_wire() -> None:
    predictor = ScriptedPredictor()
    greedy = dataclasses.replace(REQUEST, max_tokens=10**6)
    through(predictor, lambda r: r.predict(greedy))
    assert predictor.requests[0].max_tokens == 1024
    many = dataclasses.replace(REQUEST, candidates=9)
    with pytest.raises(errors.InvalidRequest, match="at most 8"):
        through(predictor, lambda r: r.predict(many))
