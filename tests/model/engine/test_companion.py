"""Two models behind one seam: edits go to one, conversations to the other, which comes and goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest
from redraft.model.conversation import ChatEngine, Companion
from redraft.model.errors import WeightsError
from redraft.model.records import Conversation, EditRequest, Grammar, Message, ModelStatus, ToolCall
from redraft.model.weights.catalog import DEFAULT_MODEL, info
from redraft.model.wire import request_from_json, request_to_json
from redraft.server.engine_process.open import open_engine
from redraft.server.settings import Settings
from support.editors.predictor import CHATTY, ScriptedPredictor, chatting
from support.served import eventually

EDIT = EditRequest("infill", "a.py", "x = ", 4)
TALKER = Companion("talker", 9000, ("tools",))
TALK = EditRequest("chat", "", "", 0, conversation=Conversation((Message("user", "hello"),)))


async def test_conversations_go_to_their_own_model_which_is_loaded_when_somebody_talks() -> None:
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


async def test_the_model_for_conversations_is_given_back_when_nobody_talks() -> None:
    opened: list[ScriptedPredictor] = []

    def open_chat(name: str) -> ScriptedPredictor:
        opened.append(chatting("hi"))
        return opened[-1]

    both = ChatEngine(ScriptedPredictor(), lambda name: TALKER, open_chat, idle_s=0.01)
    await both.predict(TALK)
    await eventually(lambda: opened[0].closed)
    await both.predict(TALK)
    assert len(opened) == 2
    await both.close()


async def test_a_model_for_conversations_that_cannot_be_loaded_leaves_edits_alone() -> None:
    failed = chatting("hi")
    failed.statuses = [replace(CHATTY, state="failed", message="no space")]
    both = ChatEngine(ScriptedPredictor(), lambda name: TALKER, lambda name: failed)
    with pytest.raises(WeightsError, match="no space"):
        await both.predict(TALK)
    assert (await both.predict(EDIT)).candidates
    await both.close()
    assert failed.closed


async def test_conversations_follow_the_model_that_answers_edits() -> None:
    opened: dict[str, ScriptedPredictor] = {}

    def open_chat(name: str) -> ScriptedPredictor:
        opened[name] = chatting(f"hi from {name}")
        return opened[name]

    def companion_of(name: str) -> Companion | None:
        return None if name == "own" else Companion(f"{name}-base", 9000, ())

    edits = chatting("hi from edits")
    both = ChatEngine(edits, companion_of, open_chat)
    for name, says in (("a", "a-base"), ("b", "b-base"), ("own", "edits")):
        edits.statuses = [replace(CHATTY, model=f"{name} int8")]
        assert (await both.predict(TALK)).candidates[0].text == f"hi from {says}"
    assert opened["a-base"].closed and list(opened) == ["a-base", "b-base"]
    assert (await both.status()).chat_model == CHATTY.chat_model
    await both.close()


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
