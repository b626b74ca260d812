"""A language server under clients, documents and models that misbehave."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.editors.lsp import CODE, URI, LspClient, insert_texts, lsp_client, opened


def survives(client: LspClient, *, is_quiet: bool = True) -> None:
    """Whatever just happened: the server answers and opened no popup.

    Args:
        is_quiet: it logged no traceback either.
    """
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    client.open(CODE)
    assert insert_texts(client.complete(1, 4)) == ["return r"]
    assert client.popups() == []
    assert not is_quiet or "Traceback" not in client.log_text()
    assert client.end() == 0


SEVEN = b'{"jsonrpc": "2.0", "id": 7, "method": '


UNREADABLE = (
    b"{not json",
    b"\xff\xfe\xfd",
    b"[" * 100_000,
    b"[]",
    b"null",
    b'{"jsonrpc": "1.0", "id": 7, "method": "shutdown"}',
    b'{"id": 7, "method": "shutdown"}',
    b'{"jsonrpc": "2.0"}',
)

REFUSED: list[tuple[bytes, int]] = [
    (b'"no/such/method"}', -32601),
    (b'"workspace/executeCommand"}', -32602),
    (b'"workspace/executeCommand", "params": {"command": "rm"}}', -32602),
    (b'"textDocument/inlineCompletion"}', -32602),
    (b'"textDocument/inlineCompletion", "params": []}', -32602),
]


def test_an_unanswerable_request_gets_an_rpc_error() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        for rest, code in REFUSED:
            client.body(SEVEN + rest)
            answer = client.next_answer()
            assert (answer["id"], answer["error"]["code"]) == (7, code), rest
            assert answer["error"]["message"]
        survives(client)


def test_a_message_that_cannot_be_read_ends_nothing() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.body(b"")
        for body in UNREADABLE:
            client.body(body)
        survives(client, is_quiet=False)


HERE = {"line": 0, "character": 0}
TURNED = {"start": {"line": 5, "character": 3}, "end": {"line": 0, "character": 1}}
DOCUMENT = {"uri": URI}


def selected(**info: Any) -> dict[str, Any]:
    return {"selectedCompletionInfo": {"text": "x", **info}}


#: Fields of a request for ghost text at the start of the document, and the error about them.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"textDocument": 5}, "'textDocument' must be an object, not number"),
    ({"textDocument": {}}, "'textDocument.uri' is missing"),
    ({"textDocument": {"uri": 5}}, "'textDocument.uri' must be a string"),
    (
        {"textDocument": {**DOCUMENT, "version": "x"}},
        "'textDocument.version' must be a whole number, not 'x'",
    ),
    ({"position": {"line": "0"}}, "'position.line' must be a whole"),
    ({"position": {**HERE, "line": -1}}, "'position.line' must be between 0 and 2147483647"),
    ({"position": {**HERE, "line": True}}, "'position.line' must be"),
    ({"context": 1}, "'context' must be an object"),
    ({"context": selected()}, "'context.selectedCompletionInfo.range' is missing"),
    ({"context": selected(range=TURNED)}, "must begin and end on one line, got 5:3 to 0:1"),
]
#: Other requests, with all their parameters.
SENSELESS: list[tuple[str, Any, str]] = [
    ("textDocument/inlineCompletion", {"position": HERE}, "'textDocument' is missing"),
    ("textDocument/inlineCompletion", {"textDocument": DOCUMENT}, "'position' is missing"),
    ("textDocument/copilotInlineEdit", {}, "'textDocument' is missing"),
    ("redraft/nextEdit", {"textDocument": DOCUMENT}, "'position' is missing"),
    ("redraft/nextEdit", [], "'params' must be an object"),
    (
        "redraft/nextEdit",
        {"textDocument": DOCUMENT, "position": HERE, "cursors": "x"},
        "'cursors' must be a whole number",
    ),
    ("textDocument/codeAction", {"textDocument": DOCUMENT}, "'range' is missing"),
    ("notifyShown", {}, "'uuid' is missing"),
    ("notifyRejected", {"uuids": 5}, "'uuids' must be an array"),
    ("workspace/executeCommand", {"command": "rm"}, "unknown command 'rm'"),
]


def test_wrong_types_are_named_in_the_error() -> None:
    usual = {"textDocument": DOCUMENT, "position": HERE}
    cases = [("textDocument/inlineCompletion", {**usual, **wrong}, said) for wrong, said in WRONG]
    with opened("return r") as client:
        for method, params, expected in cases + SENSELESS:
            error = client.request(method, params)["error"]
            assert error["code"] == -32602
            assert expected in error["message"]
        survives(client)


def test_a_position_outside_the_document_is_clamped() -> None:
    with opened("return r") as client:
        for line, character in ((10**9, 0), (0, 10**9), (10**40, 10**40), (1, 4)):
            position = {"line": line, "character": character}
            params = {"textDocument": {"uri": URI}, "position": position}
            assert "result" in client.request("textDocument/inlineCompletion", params)
        assert [entry["cursor"] for entry in client.asked()] == [len(CODE), 12, len(CODE) - 1]
        survives(client)


def test_numbers_that_are_none_are_refused() -> None:
    with opened("return r") as client:
        for number in (b"NaN", b"Infinity", b"1e999", b"1.5"):
            params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": "HERE"}}
            body = {"jsonrpc": "2.0", "id": 90, "method": "textDocument/inlineCompletion"}
            raw = json.dumps({**body, "params": params}).encode().replace(b'"HERE"', number)
            client.body(raw)
            assert client.next_answer()["error"]["code"] == -32602
        survives(client)


def test_initialize_takes_whatever_it_gets() -> None:
    with lsp_client("return r") as client:
        odd = {
            "processId": "x",
            "clientInfo": 5,
            "rootUri": None,
            "workspaceFolders": [None, {"uri": 5}, {"uri": "file:///w"}],
            "capabilities": {"general": {"positionEncodings": [7]}, "window": []},
            "initializationOptions": [1, 2],
            "trace": "loud",
        }
        assert client.request("initialize", odd)["result"]["capabilities"]
        client.notify("initialized")
        survives(client)
    for params in (None, [], "x", {}):
        with lsp_client("return r") as client:
            assert client.request("initialize", params)["result"]["capabilities"]
            survives(client)


def test_answers_to_no_question_are_passed_over() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.send(id="nobody", result={"a": 1})
        client.send(id=5, error={"code": "x"})
        client.send(id=None, error="x")
        client.notify("$/cancelRequest", {"id": 999})
        client.notify("$/cancelRequest", {"id": {}})
        client.notify("$/cancelRequest")
        survives(client, is_quiet=False)


def test_notifications_with_nonsense_are_passed_over() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        nonsense: list[Any] = [None, [], "x", 5, {}, {"textDocument": 5, "item": [], "event": 1}]
        for method in (
            "textDocument/didOpen",
            "textDocument/didClose",
            "textDocument/didFocus",
            "textDocument/didShowCompletion",
            "textDocument/didPartiallyAcceptCompletion",
            "workspace/executeCommand",
            "workspace/didChangeConfiguration",
            "workspace/didChangeWorkspaceFolders",
            "notebookDocument/didOpen",
            "notebookDocument/didChange",
            "notebookDocument/didClose",
            "no/such/notification",
        ):
            for params in nonsense:
                client.notify(method, params)
        survives(client)


def test_a_message_ending_too_soon_ends_the_connection() -> None:
    with lsp_client() as client:
        client.initialize()
        client.raw(b"Content-Length: 9\r\n\r\n{")
        client.hang_up()
        assert client.wait() == 1


@pytest.mark.parametrize(
    "changes",
    [
        [{"text": 5}],
        [{"range": {"start": 1}, "text": "x"}],
        [5],
        "x",
        [{"range": TURNED, "text": "x"}],
    ],
)
def test_after_an_unreadable_change_whole_texts_count(changes: Any) -> None:
    with opened("return r") as client:
        document = {"uri": URI, "version": 2}
        client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": changes}
        )
        assert insert_texts(client.complete(1, 4)) == []
        assert "reopen" in client.status("lost track")["message"]
        whole = {"textDocument": {**document, "version": 3}, "contentChanges": [{"text": CODE}]}
        client.notify("textDocument/didChange", whole)
        assert insert_texts(client.complete(1, 4)) == ["return r"]
        survives(client)


def test_invalid_utf8_gets_suggestions_and_is_followed() -> None:
    """As ``nvim -b`` sends a Latin-1 file; each invalid byte is a character there."""

    def send(client: LspClient, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        client.body(json.dumps(message).encode().replace(b"BAD", b"\xe9\xe8"))

    with lsp_client("return r") as client:
        client.initialize()
        text = "def area(r):\n    # cafBAD\n    \n"
        document = {"uri": URI, "languageId": "python", "version": 1, "text": text}
        send(client, "textDocument/didOpen", {"textDocument": document})
        assert insert_texts(client.complete(2, 4)) == ["return r"]
        at = {"line": 1, "character": 11}
        change = {"range": {"start": at, "end": at}, "text": "!BAD\n    "}
        whole = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [change]}
        send(client, "textDocument/didChange", whole)
        assert insert_texts(client.complete(3, 4)) == ["return r"]
        survives(client)


def test_requests_for_documents_never_opened_say_so() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.insert(0, 0, "x", 2, uri="file:///never.py")
        error = client.complete(0, 0, uri="file:///never.py")["error"]
        assert error["code"] == -32602
        assert "didOpen" in error["message"]
        survives(client)


def test_odd_texts_are_served() -> None:
    odd = ["\ud83d alone \ude00\n", "\u2028\u2029\x0b\x0c\x85\n", "\r\r\n\n\r", "", "👩\u200d💻"]
    with lsp_client("return r") as client:
        client.initialize()
        for number, text in enumerate(odd):
            client.open(text, uri=f"{URI}{number}")
            answer = client.complete(9, 9, uri=f"{URI}{number}")
            assert insert_texts(answer) == ["return r"], text
        survives(client)


def test_a_line_of_five_megabytes_gets_a_reason() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.open("x" * 5_000_000)
        for version in range(2, 7):
            client.insert(0, 2_500_000, "y", version)
        assert insert_texts(client.complete(0, 2_500_000)) == []
        client.status("file is too large")
        survives(client)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("Overloaded", "Warning"),
        ("EngineGone", "Warning"),
        ("ModelNotReady", "Warning"),
        ("InvalidRequest", "Error"),
        ("WeightsError", "Error"),
        ("RuntimeError", "Error"),
    ],
)
def test_a_failing_model_gives_nothing_and_a_status(error: str, kind: str) -> None:
    failure = {"error": error, "message": "out of cheese"}
    with opened(failure, "return r") as client:
        assert insert_texts(client.complete(1, 4)) == []
        assert client.status("out of cheese")["kind"] == kind
        assert client.popups() == []
        assert insert_texts(client.complete(1, 4)) == ["return r"]


def test_a_hanging_model_is_given_up_and_stopped() -> None:
    settings = {"timeout_ms": 300}
    with opened("return r", delay_s=600, settings=settings) as client:
        assert insert_texts(client.complete(1, 4)) == []
        client.status("longer than 0.3 s")
        client.await_event("cancelled")


def test_documents_stay_in_step_while_the_model_thinks() -> None:
    with opened("return r", delay_s=600) as client:
        thinking = client.ask_completion(1, 4)
        client.await_event("asked")
        for version in range(2, 102):
            client.insert(1, 4, "x", version)
        assert client.is_alive()
        client.notify("$/cancelRequest", {"id": thinking})
        client.ask_completion(1, 104)
        client.await_event("asked", times=2)
        assert client.asked()[-1]["cursor"] == len("def area(r):\n    ") + 100
