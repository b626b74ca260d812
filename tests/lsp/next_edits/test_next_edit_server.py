"""Next edits as clients get them: several requests, reports, and ghost text beside them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.editors.lsp import URI, LspClient, insert_texts, lsp_client

CODE = "def area(r):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"
EDIT = {"edit": ["area(2)", "area(2, 3.14)"]}
OTHER = "file:///w/project/b.py"
FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))
APART = f"def area(r):\n    return r\n\n{FILLER}"  # the call is in another document
FAR = f"{APART}print(area(2))\n"


@contextlib.contextmanager
def edited(
    *answers: Any, text: str = CODE, beside: str = "", capabilities: Any = None, **script: Any
) -> Iterator[LspClient]:
    """Yield a client that gave ``area`` another parameter, while ``beside`` is open as well."""
    with lsp_client(*answers, **script) as client:
        client.initialize(capabilities=capabilities or {})
        client.open(text, version=0)
        if beside:
            client.open(beside, uri=OTHER, version=7)
        client.insert(0, 10, ", pi", 1)
        yield client


def replace_line(client: LspClient, edit: dict[str, Any], version: int) -> None:
    """Apply an edit as clients do, in one change."""
    change = {"range": edit["range"], "text": edit["text"]}
    document = {"uri": URI, "version": version}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def test_the_following_edit_is_offered_in_its_place() -> None:
    with edited(EDIT) as client:
        [edit] = client.edits(0, 14, 1)
        assert edit == {
            "text": "print(area(2, 3.14))",
            "textDocument": {"uri": URI, "version": 1},
            "range": {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 14}},
            "command": {
                "title": "Accept suggestion",
                "command": "redraft.accept",
                "arguments": ["redraft-1"],
            },
            "targetLine": 4,
        }
        [asked, *_] = client.asked()
        assert asked["task"] == "next_edit"
        assert asked["edits"][0][1].startswith("-def area(r):\n+def area(r, pi):\n")
        client.status("Next edit shown.")
        assert client.end() == 0
    with edited({"edit": ["r, pi", "r, factor"]}) as client:
        [edit] = client.edits(0, 14, 1)
        assert "targetLine" not in edit, "it is at the cursor"


def test_a_stale_version_is_refused() -> None:
    with edited(EDIT) as client:
        error = client.answer(client.ask_edit(0, 14, 0))["error"]
        assert error["code"] == -32801
        assert "version 1" in error["message"]


def test_positions_are_utf16_with_the_documents_ends() -> None:
    with edited(
        {"edit": ["'😀' + x", "'😀' + x\ny"]},
        text=CODE.replace("\n", "\r\n") + "z = '😀' + x  # 😀",
    ) as client:
        [edit] = client.edits(0, 14, 1)
        assert edit["text"] == "z = '😀' + x\r\ny  # 😀"
        assert edit["range"]["end"] == {"line": 5, "character": 18}


def test_an_answer_on_its_way_is_not_asked_for_twice() -> None:
    answers = [EDIT, {"edit": ["return 3.14", "return pi"]}, {"edit": ["nothing", "left"]}]
    with edited(*answers, delay_s=0.6) as client:
        [first] = client.edits(0, 14, 1)
        client.await_event("asked", times=2)
        replace_line(client, first, 2)
        [second] = client.edits(4, 19, 2)
        assert second["text"] == "    return pi * r * r"
        assert "cancelled" not in [entry["event"] for entry in client.asked()]


def test_a_rejection_stops_what_is_computed_ahead() -> None:
    with edited(EDIT, delay_s=0.3) as client:
        [first] = client.edits(0, 14, 1)
        client.await_event("asked", times=2)
        name = "github.copilot.didRejectNextEditSuggestionItem"
        assert "result" in client.command(name, *first["command"]["arguments"])
        client.await_event("cancelled")
        assert client.edits(0, 14, 1) == []
        client.status("you rejected a suggestion here")


def test_a_next_edit_waits_for_ghost_text() -> None:
    with edited(", e", EDIT, delay_s=0.3) as client:
        ghost = client.ask_completion(0, 14, context={"triggerKind": 2})
        edit = client.ask_edit(0, 14, 1)
        assert insert_texts(client.answer(ghost)) == [", e"]
        assert client.answer(edit)["result"] == {"edits": []}
        client.status("Ghost text shown.")
        assert len(client.asked()) == 1


def test_without_ghost_text_the_next_edit_comes() -> None:
    with edited(EDIT, delay_s=0.2) as client:
        ghost = client.ask_completion(0, 14, context={"triggerKind": 2})
        edit = client.ask_edit(0, 14, 1)
        assert insert_texts(client.answer(ghost)) == []
        assert len(client.answer(edit)["result"]["edits"]) == 1


def next_edit(client: LspClient, version: int = 1, **fields: Any) -> dict[str, Any]:
    """Our own request, from a client that can show edits of other documents."""
    id_ = client.ask_edit(
        0, 14, version, method="redraft/nextEdit", **{"otherDocuments": True, **fields}
    )
    result: dict[str, Any] = client.answer(id_)["result"]
    return result


def test_our_request_leads_to_a_versioned_document() -> None:
    other = "from a import area\r\n\r\nx = '😀' + area(2)\r\n"
    with edited(EDIT, settings={"prefetch": False}, text=APART, beside=other) as client:
        result = next_edit(client)
        [edit] = result["edits"]
        assert edit["textDocument"] == {"uri": OTHER, "version": 7}
        assert edit["targetLine"] == 2
        assert edit["range"] == {
            "start": {"line": 2, "character": 0},
            "end": {"line": 2, "character": 18},
        }
        assert edit["text"] == "x = '😀' + area(2, 3.14)"
        assert result["reason"] == 'from the model (area: Argument missing for parameter "pi")'
        there = next_edit(client, 7, uri=OTHER)
        assert (there["id"], there["reason"]) == (result["id"], "still holds")


@pytest.mark.usefixtures("spawn")
def test_an_unopened_file_has_no_version_until_opened(
    tmp_path: Path,
) -> None:
    text = "from a import area\r\n\r\nx = '😀' + area(2)\r\n"
    (tmp_path / "b.py").write_bytes(text.encode())
    uri, other = ((tmp_path / name).as_uri() for name in ("a.py", "b.py"))
    with lsp_client(EDIT, settings={"prefetch": False}) as client:
        client.initialize(rootUri=tmp_path.as_uri())
        client.open(APART, uri=uri, version=0)
        client.insert(0, 10, ", pi", 1, uri=uri)
        gesture = {"uri": uri, "context": {"triggerKind": 1}, "unopenedFiles": True}
        end = time.monotonic() + 60
        while not (result := next_edit(client, **gesture))["edits"]:
            assert time.monotonic() < end, result
            time.sleep(0.05)
        [edit] = result["edits"]
        assert edit["textDocument"] == {"uri": other, "version": None}
        assert (edit["targetLine"], edit["text"]) == (2, "x = '😀' + area(2, 3.14)")
        assert edit["range"]["end"] == {"line": 2, "character": 18}
        sentence = client.request("redraft/describe", place(uri))["result"]["text"]
        assert sentence.startswith("In b.py, line 3: ")
        client.open(text, uri=other, version=7)
        there = next_edit(client, 7, uri=other, unopenedFiles=True)
        assert (there["id"], there["reason"]) == (result["id"], "still holds")
        assert there["edits"][0]["textDocument"]["version"] == 7


def place(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 14}}


def test_other_clients_get_edits_of_one_document() -> None:
    with edited(EDIT, text=APART, beside="print(area(2))\n") as client:
        assert client.edits(0, 14, 1, otherDocuments=True) == []
        assert next_edit(client, otherDocuments=False)["edits"] == []
        assert len(client.asked()) == 1


def test_closing_a_document_computed_ahead_is_safe() -> None:
    with edited(EDIT, delays_s=[0, 0, 0, 600], text=FAR, beside="print(area(2))\n") as client:
        assert next_edit(client)["edits"]
        client.await_event("asked", times=4)  # ahead: near the far call, then the other document
        client.notify("textDocument/didClose", {"textDocument": {"uri": OTHER}})
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        client.await_event("cancelled")
        assert client.is_alive()
        assert "Traceback" not in client.log_text()


@pytest.mark.parametrize(
    ("text", "delays_s", "asked"),
    [(CODE, [600], 1), (FAR, [0, 600, 0], 2)],
    ids=["at the cursor", "elsewhere"],
)
def test_ghost_text_stops_a_search_for_edits(text: str, delays_s: list[float], asked: int) -> None:
    with edited(EDIT, delays_s=delays_s, text=text) as client:
        id_ = client.ask_edit(0, 14, 1)
        client.await_event("asked", times=asked)
        client.ask_completion(0, 14)
        assert client.answer(id_)["error"]["code"] == -32801
        client.await_event("cancelled")


def test_our_own_request_says_all_there_is_to_say() -> None:
    with edited(EDIT, settings={"prefetch": False}) as client:
        result = client.answer(client.ask_edit(0, 14, 1, method="redraft/nextEdit"))["result"]
        [edit] = result.pop("edits")
        assert (edit["text"], edit["targetLine"]) == ("print(area(2, 3.14))", 4)
        assert result == {
            "id": "redraft-1",
            "reason": "from the model",
            "why": "`pi` was added to `area`",
            "cursor": {"line": 4, "character": 18},
        }
        again = client.answer(client.ask_edit(4, 0, 1, method="redraft/nextEdit"))["result"]
        assert again["reason"] == "still holds"
        assert "targetLine" not in again["edits"][0]


def test_our_own_request_says_why_there_is_nothing() -> None:
    with edited({"error": "Overloaded", "message": "too much to do"}) as client:
        more: dict[str, Any]
        for more, expected in (
            ({"cursors": 2}, "No next edit: there are 2 cursors."),
            ({"inSnippet": True}, "No next edit: you are filling in a snippet."),
            ({}, "No next edit: too much to do (again in 1 s)."),
        ):
            told = client.answer(client.ask_edit(0, 14, 1, method="redraft/nextEdit", **more))
            assert told["result"] == {"edits": [], "reason": expected, "revealable": False}


def code_action(client: LspClient, line: int, **context: Any) -> list[dict[str, Any]]:
    at = {"line": line, "character": 0}
    params = {
        "textDocument": {"uri": URI},
        "range": {"start": at, "end": at},
        "context": {"diagnostics": [], **context},
    }
    found: list[dict[str, Any]] = client.request("textDocument/codeAction", params)["result"]
    return found


def test_the_predicted_edit_is_a_code_action() -> None:
    with edited(EDIT) as client:
        assert code_action(client, 0, triggerKind=2) == []  # a light bulb asks no model
        assert client.asked() == []
        [action] = code_action(client, 0, triggerKind=1)
        assert action["title"] == "Apply predicted edit (line 5: `pi` was added to `area`)"
        [change] = action["edit"]["changes"][URI]
        assert change["newText"] == "print(area(2, 3.14))"
        assert action["command"]["command"] == "redraft.accept"
        assert len(code_action(client, 0, triggerKind=2)) == 1
        assert code_action(client, 0, triggerKind=1, only=["source.organizeImports"]) == []
        assert len(code_action(client, 0, triggerKind=1, only=["refactor"])) == 1
    versions = {"workspace": {"workspaceEdit": {"documentChanges": True}}}
    with edited(EDIT, capabilities=versions) as client:
        [action] = code_action(client, 0, triggerKind=1)
        [change] = action["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": URI, "version": 1}


def test_leaving_the_editor_is_noticed() -> None:
    with edited(EDIT) as client:
        client.notify("textDocument/didFocus", {})
        assert client.edits(0, 14, 1) == []
        client.status("the editor window is not active")
        client.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
        assert len(client.edits(0, 14, 1)) == 1


def test_settings_are_fetched_at_the_beginning() -> None:
    capabilities = {
        "workspace": {
            "configuration": True,
            "didChangeConfiguration": {"dynamicRegistration": True},
        }
    }
    with lsp_client(EDIT) as client:
        client.initialize(capabilities=capabilities)
        register = client.until("client/registerCapability")
        [wanted] = register["params"]["registrations"]
        assert wanted["method"] == "workspace/didChangeConfiguration"
        client.send(id=register["id"], error={"code": -32601, "message": "not here"})
        pull = client.until("workspace/configuration")
        client.send(id=pull["id"], result=[{"nextEdits": False}])
        client.open(CODE, version=0)
        client.insert(0, 10, ", pi", 1)
        assert client.edits(0, 14, 1) == []
        client.status("next_edits")
        settings = {"redraft": {"nextEdits": True, "eagerness": "high"}}
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
        assert len(client.edits(0, 14, 1)) == 1
        assert client.popups() == []


def test_a_client_without_settings_is_served() -> None:
    with lsp_client(EDIT) as client:
        client.initialize(capabilities={"workspace": {"configuration": True}})
        pull = client.until("workspace/configuration")
        client.send(id=pull["id"], error={"code": -32603, "message": "no"})
        client.open(CODE, version=0)
        client.insert(0, 10, ", pi", 1)
        assert len(client.edits(0, 14, 1)) == 1
        assert "Traceback" not in client.log_text()


def test_an_edit_hidden_twice_is_rejected() -> None:
    with edited(EDIT) as client:
        endings = ["hidden; it may come back", "rejected; it does not come back"]
        for place, how in zip([(0, 14), (3, 0)], endings, strict=True):
            [edit] = client.edits(*place, 1)
            client.command("redraft.dismiss", *edit["command"]["arguments"])
            assert client.status(f"Next edit {how}.")["revealable"] is False
            assert client.edits(*place, 1) == []
        assert client.edits(4, 0, 1) == [], "it was hidden twice"
        assert client.end() == 0
