"""The language server as a process over stdio: each kind of message once, and its ends.

The answers themselves are tested with the server in this process, see ``support/lsp.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.lsp import URI, insert_texts
from support.lsp_process import LspProcess

CODE = "def area(r):\n    return r\n\n\nprint(area(2))\n"
GHOST = {"ghost": "* 2", "edits": [["area(2)", "area(2, 3.14)"]]}
Start = Callable[..., LspProcess]


def test_each_kind_of_message_is_answered_over_stdio(lsp_process: Start) -> None:
    client = lsp_process(GHOST, settings={"prefetch": False})
    options = {"completionItems": True}
    capabilities = client.initialize(initializationOptions=options)["capabilities"]
    assert capabilities["inlineCompletionProvider"] == {}

    client.open(CODE)
    [ghost] = client.complete(1, 12)["result"]["items"]
    client.notify("textDocument/didShowCompletion", {"item": ghost})
    assert "result" in client.request("workspace/executeCommand", ghost["command"])
    at = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 12}}
    assert client.request("textDocument/completion", at)["result"]["items"]
    assert client.request("getCompletions", {"doc": {"uri": URI, **at}})["result"]["completions"]

    client.insert(0, 10, ", pi", 2)
    client.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
    [edit] = client.edits(0, 14, 2)
    assert edit["text"] == "print(area(2, 3.14))"
    own = client.answer(client.ask_edit(0, 14, 2, method="redraft/nextEdit"))["result"]
    assert len(own["edits"]) == 1
    line = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    action = {"textDocument": {"uri": URI}, "range": line, "context": {"diagnostics": []}}
    assert client.request("textDocument/codeAction", action)["result"]

    client.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    client.notify("workspace/didChangeConfiguration", {"settings": {"redraft": {"enabled": False}}})
    client.open(CODE)
    assert insert_texts(client.complete(1, 12)) == []
    client.status("switched off")

    client.raw(b"hello\r\n\r\n")
    client.body(b"{not json")
    assert client.popups() == []
    assert client.end() == 0
    assert client.asked()[-1]["event"] == "closed"
    assert "Traceback" not in client.log_text()


def test_output_of_libraries_does_not_reach_the_client(lsp_process: Start) -> None:
    client = lsp_process("return r")
    client.initialize()
    client.open("def area(r):\n    \n")
    assert insert_texts(client.complete(1, 4)) == ["return r"]
    assert client.end() == 0
    assert "a stray line" in client.log_text()


@pytest.mark.parametrize("leave", ["exit", "hang up"])
def test_an_end_without_shutdown_is_a_failure(lsp_process: Start, leave: str) -> None:
    client = lsp_process()
    client.initialize()
    if leave == "exit":
        client.notify("exit")
    else:
        client.hang_up()
    assert client.wait() == 1


def test_leaving_stops_the_model_and_closes_it(lsp_process: Start) -> None:
    client = lsp_process("return r", delay_s=600)
    client.initialize()
    client.open(CODE)
    cancelled = client.ask_completion(0, 12)
    client.await_event("asked")
    client.notify("$/cancelRequest", {"id": cancelled})
    assert client.answer(cancelled)["error"]["code"] == -32800
    client.ask_completion(1, 4)
    client.await_event("asked", times=2)
    assert client.end() == 0
    events = [entry["event"] for entry in client.asked()]
    assert events == ["asked", "cancelled", "asked", "cancelled", "closed"]
