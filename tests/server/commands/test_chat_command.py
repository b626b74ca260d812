"""``redraft chat``: its output while it answers, and what it remembers."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.model.errors import NoChatTemplate
from redraft.server.commands import console
from redraft.server.commands.chat import ChatOptions, converse
from rich.console import Console
from support.editors.predictor import CHATTY, READY, ScriptedPredictor, chatting

HOW = ChatOptions("", 50, "medium", 0.0, None, watch=False)


def test_an_answer_is_all_that_is_written(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_model_without_a_template_is_refused_first() -> None:
    predictor = ScriptedPredictor(statuses=[READY])
    with pytest.raises(NoChatTemplate, match="--model"):
        asyncio.run(converse(predictor, HOW, "hi"))
    assert predictor.requests == [] and predictor.closed


@pytest.mark.parametrize(("is_local", "says"), [(True, True), (False, False)])
def test_the_first_chat_says_what_it_prepares(
    is_local: bool,
    says: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    predictor = chatting("Hello.")
    predictor.statuses = [replace(CHATTY, chat_model="qwen2.5-coder-0.5b")]
    asyncio.run(converse(predictor, HOW, "hi", is_local))
    shown = capsys.readouterr()
    assert shown.out == "Hello.\n"
    told = "The first chat prepares qwen2.5-coder-0.5b: about " in shown.err
    assert told == says
    assert (str(tmp_path) in shown.err) == says


def test_while_the_model_loads_the_terminal_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True))
    asyncio.run(converse(chatting("Hello."), HOW, "hi"))
    assert "waiting for the model" in shown.getvalue()
    assert capsys.readouterr().out == "Hello.\n"
