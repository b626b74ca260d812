"""``redraft chat``: what it tells as it comes, and what it remembers."""

from __future__ import annotations

import asyncio
import io

import pytest
from redraft.model.engine.converse import NoTemplate
from redraft.server.commands.chat import ChatOptions, converse
from support.predictor import READY, ScriptedPredictor, chatting

HOW = ChatOptions("", 50, "medium", 0.0, None, watch=False)


def test_one_question_is_answered_and_nothing_else_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    predictor = chatting("Hello to you.")
    asyncio.run(converse(predictor, HOW, "hi"))
    assert capsys.readouterr().out == "Hello to you.\n"
    assert predictor.closed


def test_a_conversation_remembers_what_was_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("first\nsecond\n\nthird\n"))
    predictor = chatting("Hello to you.")
    asyncio.run(converse(predictor, ChatOptions("be brief", 50, "low", 0.0, 1, watch=False), None))
    assert capsys.readouterr().out == "Hello to you.\n" * 2
    said = predictor.requests[-1].conversation
    assert said is not None
    assert [(turn.role, turn.content) for turn in said.messages] == [
        ("system", "be brief"),
        ("user", "first"),
        ("assistant", "Hello to you."),
        ("user", "second"),
    ]


def test_watching_shows_each_state_beside_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(
        converse(chatting("Hello you."), ChatOptions("", 50, "low", 0.0, None, watch=True), "hi")
    )
    shown = capsys.readouterr()
    assert shown.out == "Hello you.\n"
    assert "'Hello ░'" in shown.err


def test_a_model_without_a_template_is_refused_before_anything_is_asked() -> None:
    predictor = ScriptedPredictor(statuses=[READY])
    with pytest.raises(NoTemplate, match="--model"):
        asyncio.run(converse(predictor, HOW, "hi"))
    assert predictor.requests == [] and predictor.closed
