"""The requests that ``editor-clients/http.md`` shows are answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from redraft.model.records import ModelStatus
from support.predictor import chatting, editing
from support.served import post

PAGE = Path(__file__).parent.parent / "editor-clients" / "http.md"

COMMANDS = re.findall(r"```sh\n(curl .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def request(command: str) -> tuple[str, dict[str, object]]:
    path = re.search(r"http://127\.0\.0\.1:7331(\S+)", command)
    body = re.search(r"-d '(.*)'", command, re.DOTALL)
    assert path and body, command
    return path[1], json.loads(body[1])


def test_the_page_shows_every_route() -> None:
    assert {request(one)[0] for one in COMMANDS} == {
        "/v1/fim/completions",
        "/v1/completions",
        "/v1/edit/completions",
        "/feedback",
        "/infill",
        "/api/generate",
        "/v1/chat/completions",
        "/v1/decisions",
        "/api/chat",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_request_of_the_page_is_answered(command: str) -> None:
    path, body = request(command)
    if "chat" in path or "decisions" in path:
        status, answer = post(path, body, chatting("Hello."))
        assert status == 200 and ("Hello." in json.dumps(answer) or "answers" in answer)
        return
    shown = ModelStatus("ready", "redraft-0.5b int8", "CPU")  # as the page calls it
    predictor = editing((4, 4, ["print(area(3, 4))"]))
    predictor.statuses = [shown]
    status, answer = post(path, body, predictor)
    if path == "/feedback":  # the page's id stands for one that an answer gave
        assert (status, answer["error"]["code"]) == (404, "unknown_request_id")
        return
    assert status == 200
    assert len(predictor.requests) == 1
    edit = "edit" in path or "<[fim-" in str(body.get("prompt"))
    assert ("print(area(3, 4))" if edit else "return a + b") in json.dumps(answer)
