"""Two models behind one seam: edits go to one, conversations to the other, which comes and goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest
from redraft.model.conversation import ChatEngine, Companion
from redraft.model.errors import ModelNotReady, WeightsError
from redraft.model.records import Conversation, EditRequest, Grammar, Message, ModelStatus, ToolCall
from redraft.model.weights.catalog import DEFAULT_MODEL, info
from redraft.model.wire import request_from_json, request_to_json
from redraft.server.engine_process.open import CHAT_IDLE_S, open_engine
from redraft.server.settings import Settings
from support.editors.predictor import CHATTY, ScriptedPredictor, chatting

EDIT = EditRequest("infill", "a.py", "x = ", 4)
TALKER = Companion("talker", 9000, ("tools",))
TALK = EditRequest("chat", "", "", 0, conversation=Conversation((Message("user", "hello"),)))


async def test_conversations_load_their_own_model_when_asked() -> None:
    opened: list[ScriptedPredictor] = []

    def open_chat(name: str) -> ScriptedPredictor:
        opened.append(chatting("hi"))
        loading = ModelStatus("loading", "talker")
        opened[-1].statuses = [loading, loading, CHATTY]
        return opened[-1]

    edits = ScriptedPredictor()
    both = ChatEngine(edits, lambda name: TALKER, open_chat)
    status = await both.status()
    assert (status.chat_model, status.longest_tokens) == ("talker", 9000)
    assert status.chat_abilities == ("tools",) and "next_edit" in status.abilities
    assert (await both.predict(EDIT)).candidates[0].text == "return a + b"
    assert opened == []
    for _ in range(2):
        assert (await both.predict(TALK)).candidates[0].text == "hi"
    assert len(opened) == 1 and edits.requests == [EDIT]
    await both.close()
    assert edits.closed and opened[0].closed


async def test_a_freed_model_slow_to_come_back_is_waited_for() -> None:
    chat = chatting("hi")
    chat.answers.insert(0, ModelNotReady("The model talker is loading. Try again in a moment."))
    both = ChatEngine(ScriptedPredictor(), lambda name: TALKER, lambda name: chat)
    assert (await both.predict(TALK)).candidates[0].text == "hi"
    chat.answers = [ModelNotReady("It is never ready.")]
    with pytest.raises(ModelNotReady):
        await both.predict(TALK)
    await both.close()


async def test_a_conversation_model_that_fails_leaves_edits() -> None:
    failed = chatting("hi")
    failed.statuses = [replace(CHATTY, state="failed", message="no space")]
    both = ChatEngine(ScriptedPredictor(), lambda name: TALKER, lambda name: failed)
    with pytest.raises(WeightsError, match="no space"):
        await both.predict(TALK)
    assert (await both.predict(EDIT)).candidates
    assert failed.closed
    await both.close()


async def test_conversations_follow_the_model_of_edits() -> None:
    opened: dict[str, ScriptedPredictor] = {}

    def open_chat(name: str) -> ScriptedPredictor:
        opened[name] = chatting(f"hi from {name}")
        return opened[name]

    def companion_of(name: str) -> Companion | None:
        return None if name == "own" else Companion(f"{name}-base", 9000, ())

    edits = chatting("hi from edits")
    both = ChatEngine(edits, companion_of, open_chat)
    for name, says in (("a", "a-base"), ("b", "b-base"), ("own", "edits"), ("a", "a-base")):
        edits.statuses = [replace(CHATTY, model=f"{name} int8")]
        assert (await both.predict(TALK)).candidates[0].text == f"hi from {says}"
    assert (await both.status()).chat_model == "a-base"
    await both.close()
    assert [*opened] == ["a-base", "b-base"] and all(each.closed for each in opened.values())


async def test_a_conversation_keeps_its_first_model() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    def open_chat(name: str) -> ScriptedPredictor:
        async def answer(_request: EditRequest) -> str:
            begun.set()
            await go_on.wait()
            return f"hi from {name}"

        return ScriptedPredictor([answer])

    edits = ScriptedPredictor(statuses=[replace(CHATTY, model="a int8")])
    both = ChatEngine(edits, lambda name: Companion(name, 9000, ()), open_chat)
    first = asyncio.create_task(both.predict(TALK))
    await begun.wait()
    edits.statuses = [replace(CHATTY, model="b int8")]
    second = asyncio.create_task(both.predict(TALK))
    await asyncio.sleep(0)
    assert (await both.status()).chat_model == "b"
    go_on.set()
    texts = [(await each).candidates[0].text for each in (first, second)]
    assert texts == ["hi from a", "hi from b"]
    await both.close()


async def test_an_opened_conversation_model_frees_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[str, float | None] = {}

    class Noted(ScriptedPredictor):
        def __init__(self, _loader: object, label: str, _length: int, *, unload_s: float | None):
            super().__init__(chatting("hi").answers, statuses=[replace(CHATTY, model=label)])
            made[label] = unload_s

    monkeypatch.setattr("redraft.model.engine.Engine", Noted)
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    engine = open_engine(Settings(model=DEFAULT_MODEL))
    await engine.predict(TALK)
    await engine.close()
    assert made == {DEFAULT_MODEL: None, info(DEFAULT_MODEL).chat: CHAT_IDLE_S}


def test_a_conversation_crosses_the_wire_whole() -> None:
    call = ToolCall("c", "add", '{"a": 1}')
    turns = (Message("user", "add"), Message("assistant", "", tool_calls=(call,)))
    request = replace(
        TALK,
        grammar=Grammar("regex", "a+"),
        conversation=Conversation(turns, "[]", False, "<tool_call>", ("yes", "no")),
    )
    body = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(body) == (request, False)


async def test_the_default_model_has_a_chat_companion(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def no_weights(model: str, *how: object) -> Callable[[object], NoReturn]:
        def load(report: object) -> NoReturn:
            loaded.append(model)
            raise WeightsError(f"{model} is not loaded in this test")

        return load

    monkeypatch.setattr("redraft.model.load.onnx_loader", no_weights)
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    chat = info(DEFAULT_MODEL).chat
    engine = open_engine(Settings(model=DEFAULT_MODEL))
    status = await engine.status()
    assert (status.chat_model, status.longest_tokens) == (chat, 32_768)
    assert status.chat_abilities == ("grammar", "decide", "tools")
    with pytest.raises(WeightsError, match=chat):
        await engine.predict(TALK)
    await engine.close()
    assert set(loaded) == {DEFAULT_MODEL, chat}
