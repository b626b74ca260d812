"""The language server, driven by a client that writes raw JSON-RPC."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from redraft.evals.latency.bench_editing import keystroke_overhead
from redraft.lsp.documents.uris import display_path
from redraft.lsp.protocol.status import TimeLeft
from support.editors.lsp import CODE, URI, insert_texts, lsp_client, opened


def test_a_suggestion_comes_for_the_text_as_typed() -> None:
    with lsp_client("return 3.14 * r ** 2") as client:
        capabilities = client.initialize()["capabilities"]
        assert capabilities["inlineCompletionProvider"] == {}
        assert capabilities["textDocumentSync"] == {"openClose": True, "change": 2, "save": True}
        client.open("def area(r):\n", version=1)
        client.insert(1, 0, "    ", 2)
        [item] = client.complete(1, 4)["result"]["items"]
        assert item["insertText"] == "return 3.14 * r ** 2"
        at = {"line": 1, "character": 4}
        assert item["range"] == {"start": at, "end": at}
        assert item["command"]["command"] == "redraft.accept"
        assert client.asked() == [{"event": "asked", "cursor": 17}]
        assert client.end() == 0
        assert client.asked()[-1]["event"] == "closed"


def test_positions_are_utf16_in_both_directions() -> None:
    with lsp_client("é😀 ok") as client:
        client.initialize()
        client.open("s = '😀😀")
        [item] = client.complete(0, 9)["result"]["items"]
        assert item["range"]["start"] == {"line": 0, "character": 9}
        assert client.asked()[0]["cursor"] == 7


def test_the_documents_line_end_is_kept() -> None:
    with lsp_client("if r:\n        return r") as client:
        client.initialize()
        client.open("def area(r):\r\n    \r\n")
        assert insert_texts(client.complete(1, 4)) == ["if r:\r\n        return r"]


def test_the_selected_completion_counts_as_typed() -> None:
    with lsp_client("end(x)") as client:
        client.initialize()
        client.open("items.ap\n")
        chosen = {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 8}}
        info = {"text": "app", "range": chosen}
        context = {"triggerKind": 2, "selectedCompletionInfo": info}
        [item] = client.complete(0, 8, context=context)["result"]["items"]
        assert item["insertText"] == "append(x)"
        assert item["range"] == chosen
        assert client.asked()[0]["cursor"] == 9


def test_the_status_is_sent_only_when_it_changed() -> None:
    with opened("return r") as client:
        for _ in range(3):
            client.complete(1, 4)
        client.end()
        told = [m["params"] for m in client.messages if m.get("method") == "didChangeStatus"]
        normal = {"kind": "Normal", "revealable": False}
        # A gesture repeated where ghost text is shown asks for others, once.
        assert told.count({"message": "thinking", "busy": True, **normal}) == 2
        assert {"message": "Ghost text shown.", "busy": False, **normal} in told
        assert all(one != other for one, other in itertools.pairwise(told))


def test_trap_2_the_version_is_kept_and_checked() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.open(CODE, version=5)
        stale = client.complete(1, 4, document={"version": 4})
        assert stale["error"]["code"] == -32801
        assert "version 5" in stale["error"]["message"]
        assert insert_texts(client.complete(1, 4, document={"version": 5})) == ["return r"]


@pytest.mark.parametrize("fields", [{"context": {"triggerKind": 0}}, {"context": None}, {}])
def test_trap_3_no_context_or_kind_0_is_answered(fields: dict[str, Any]) -> None:
    with opened("return r") as client:
        params = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 4}, **fields}
        response = client.request("textDocument/inlineCompletion", params)
        assert insert_texts(response) == ["return r"]
        assert client.popups() == []


def test_trap_5_the_encoding_is_utf16_in_any_case() -> None:
    with lsp_client() as client:
        general = {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}
        result = client.initialize(capabilities={"general": general})
        assert result["capabilities"]["positionEncoding"] == "utf-16"


def test_trap_6_cancelling_a_request_stops_the_model() -> None:
    with opened("return r", delay_s=600) as client:
        id_ = client.ask_completion(1, 4)
        client.await_event("asked")
        client.notify("$/cancelRequest", {"id": id_})
        assert client.answer(id_)["error"]["code"] == -32800
        client.await_event("cancelled")
        assert client.status("idle")["busy"] is False


def test_a_newer_request_stops_the_documents_older_one() -> None:
    with opened("return r", delay_s=600) as client:
        older = client.ask_completion(1, 4)
        client.await_event("asked")
        client.ask_completion(0, 12)
        assert client.answer(older)["error"]["code"] == -32801
        client.await_event("cancelled")
        client.await_event("asked", times=2)


def test_two_documents_are_answered_side_by_side() -> None:
    with lsp_client("return r", delay_s=0.3) as client:
        client.initialize()
        other = "untitled:Untitled-1"
        client.open(CODE)
        client.open(CODE, uri=other)
        first = client.ask_completion(1, 4)
        second = client.ask_completion(1, 4, uri=other)
        client.await_event("asked", times=2)
        assert insert_texts(client.answer(first)) == ["return r"]
        assert insert_texts(client.answer(second)) == ["return r"]
        assert "cancelled" not in [entry["event"] for entry in client.asked()]


def test_a_change_while_thinking_makes_answers_stale() -> None:
    with opened("return r", delay_s=0.5) as client:
        id_ = client.ask_completion(1, 4)
        client.await_event("asked")
        client.insert(0, 0, "# ", 2)
        assert client.answer(id_)["error"]["code"] == -32801


def test_only_the_last_automatic_request_is_asked() -> None:
    with opened(" = r", settings={"delay_ms": 300}) as client:
        ids = []
        for version, character in ((2, 4), (3, 5), (4, 6)):
            client.insert(1, character, "x", version)
            ids.append(client.ask_completion(1, character + 1, context={"triggerKind": 2}))
        assert insert_texts(client.answer(ids[-1])) == [" = r"]
        assert [client.answer(id_)["error"]["code"] for id_ in ids[:-1]] == [-32801, -32801]
        assert len(client.asked()) == 1


def test_closing_while_thinking_gives_an_empty_answer() -> None:
    with opened("return r", delay_s=600) as client:
        id_ = client.ask_completion(1, 4)
        client.await_event("asked")
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert insert_texts(client.answer(id_)) == []
        client.await_event("cancelled")


def loading(progress: float) -> dict[str, Any]:
    return {"state": "loading", "model": "fake", "progress": progress}


READY = {"state": "ready", "model": "fake", "provider": "CPU"}


def test_a_loading_model_shows_progress_if_possible() -> None:
    with lsp_client(statuses=[loading(0.4), loading(0.8), READY]) as client:
        client.initialize(capabilities={"window": {"workDoneProgress": True}})
        assert client.status("loading 40 %")["kind"] == "Warning"
        create = client.until("window/workDoneProgress/create")
        client.send(id=create["id"], result=None)
        begin = client.until("$/progress")["params"]
        assert begin["token"] == create["params"]["token"]
        assert (begin["value"]["kind"], begin["value"]["percentage"]) == ("begin", 40)
        assert client.until("$/progress")["params"]["value"]["percentage"] == 80
        client.status("ready")
        assert client.until("$/progress")["params"]["value"]["kind"] == "end"


def test_a_download_says_its_megabytes() -> None:
    at = [{**loading(share), "state": "downloading"} for share in (0.2, 0.3, 0.4)]
    for status, done in zip(at, (100, 150, 200), strict=True):
        status["message"] = f"download {done} of 500 MB"
    with lsp_client(statuses=[*at, READY]) as client:
        client.initialize(capabilities={"window": {"workDoneProgress": True}})
        client.status("model still downloading 20 % (100 of 500 MB)")
        create = client.until("window/workDoneProgress/create")
        client.send(id=create["id"], result=None)
        client.until("$/progress")
        assert "(150 of 500 MB" in client.until("$/progress")["params"]["value"]["message"]
        client.status("ready")


def test_the_time_left_follows_the_last_half_minute() -> None:
    left = TimeLeft()
    assert [left.text(at_s, share) for at_s, share in ((0, 0.1), (1, 0.2))] == ["", ""]
    assert left.text(10, 0.2) == "80 s left"
    assert left.text(20, 0.25) == "2 min left"
    assert left.text(25, None) == ""
    assert left.text(30, 0.05) == ""  # of the next state
    slow = [left.text(30 + at_s, 0.05 + at_s * 1e-4) for at_s in (10, 100, 200, 230)]
    assert slow == ["more than an hour left"] * 4
    assert left.text(270, 0.9) == "2 s left"


def test_an_unready_model_says_how_far_it_is() -> None:
    failing = {"error": "ModelNotReady", "message": "the model is loading"}
    with opened(failing, statuses=[loading(0.4)]) as client:
        client.status("loading 40 %")
        assert insert_texts(client.complete(1, 4)) == []
        assert client.is_alive()
        assert client.statuses() == ["model still loading 40 %"]
        assert "$/progress" not in [message.get("method") for message in client.messages]
        assert client.popups() == []


def test_no_other_reason_stands_beside_a_loading_model() -> None:
    with opened("return r", statuses=[loading(0.4)]) as client:
        client.status("loading 40 %")
        assert client.edits(1, 4, 1) == []  # nothing was edited
        assert client.statuses() == ["model still loading 40 %"]


def test_settings_come_with_initialize_and_change() -> None:
    with lsp_client("return r") as client:
        client.initialize(initializationOptions={"disabledLanguages": ["python"]})
        client.open(CODE)
        assert insert_texts(client.complete(1, 4)) == []
        assert client.status("switched off for python")["kind"] == "Inactive"
        settings: dict[str, Any] = {"redraft": {"disabledLanguages": []}}
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
        assert insert_texts(client.complete(1, 4)) == ["return r"]


def test_settings_are_fetched_when_said_to_change() -> None:
    with lsp_client("return r") as client:
        client.initialize(capabilities={"workspace": {"configuration": True}})
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        pull = client.until("workspace/configuration")
        client.send(id=pull["id"], result=[{"enabled": False}])
        client.open(CODE)
        assert insert_texts(client.complete(1, 4)) == []
        client.status("enabled")


def test_a_bad_setting_is_logged_and_opens_no_popup() -> None:
    with lsp_client("return r") as client:
        client.initialize(initializationOptions={"maxLines": "many", "nonsense": 1})
        client.until("window/logMessage")
        told = [m["params"]["message"] for m in client.messages if "window/log" in str(m)]
        assert any("nonsense" in message for message in told)
        client.open(CODE)
        assert insert_texts(client.complete(1, 4)) == ["return r"]
        assert client.popups() == []


def test_notebook_cells_are_documents_of_their_own() -> None:
    with lsp_client("x.sum()") as client:
        notebook: dict[str, Any] = {"synchronization": {}}
        result = client.initialize(capabilities={"notebookDocument": notebook})
        assert result["capabilities"]["notebookDocumentSync"]["notebookSelector"]
        cell, other = "vscode-notebook-cell:/w/n.ipynb#1", "vscode-notebook-cell:/w/n.ipynb#2"
        document = {"uri": cell, "languageId": "python", "version": 1, "text": "x = 1\n"}
        book: dict[str, Any] = {"uri": "file:///w/n.ipynb", "version": 1}
        book["cells"] = [{"kind": 2, "document": cell}]
        client.notify(
            "notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": [document]}
        )
        at = {"line": 1, "character": 0}
        typed = {
            "document": {"uri": cell, "version": 2},
            "changes": [{"range": {"start": at, "end": at}, "text": "y = "}],
        }
        added = {"start": 1, "deleteCount": 0, "cells": [{"kind": 2, "document": other}]}
        opened_cell = {**document, "uri": other}
        structure = {"array": added, "didOpen": [opened_cell], "didClose": []}
        change = {"cells": {"textContent": [typed], "structure": structure}}
        client.notify("notebookDocument/didChange", {"notebookDocument": book, "change": change})
        assert insert_texts(client.complete(1, 4, uri=cell)) == ["x.sum()"]
        assert insert_texts(client.complete(1, 0, uri=other)) == ["x.sum()"]
        assert [entry["cursor"] for entry in client.asked()] == [10, 6]
        client.notify(
            "notebookDocument/didClose",
            {"notebookDocument": book, "cellTextDocuments": [{"uri": cell}, {"uri": other}]},
        )
        assert client.complete(1, 0, uri=cell)["error"]["code"] == -32602


def test_a_renamed_file_takes_its_edits_along() -> None:
    with lsp_client("return r") as client:
        result = client.initialize()
        assert result["capabilities"]["workspace"]["fileOperations"]["didRename"]["filters"]
        client.open(CODE)
        client.insert(1, 4, "pass", 2)
        new = "file:///w/project/sub/new.py"
        files = [{"oldUri": URI, "newUri": new}]
        client.notify("workspace/didRenameFiles", {"files": files})
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        client.open("def area(r):\n    pass\n", uri=new)
        client.complete(1, 8, uri=new)
        assert client.asked()[-1]["edits"][0][0] == "sub/new.py"


FOLDERS = ("file:///w/project", "file:///w/project/inner", "file:///C%3A/code")


@pytest.mark.parametrize(
    ("uri", "language", "expected"),
    [
        ("file:///w/project/src/a%20b.py", "python", "src/a b.py"),
        ("file:///w/project/inner/x/y.go", "go", "x/y.go"),
        ("file:///w/projector/y.go", "go", "y.go"),
        ("file:///c:/code/lib/z.rs", "rust", "lib/z.rs"),
        ("file://server/share/q.c", "c", "q.c"),
        ("untitled:Untitled-1", "python", "Untitled-1.py"),
        ("vscode-notebook-cell:/w/project/n.ipynb#W1", "python", "n.ipynb.py"),
        ("file:///w/project/n.ipynb", "python", "n.ipynb.py"),
        ("file:///w/project/n.ipynb", "json", "n.ipynb"),
        ("file:///w/project/Makefile", "makefile", "Makefile"),
        ("git:/w/project/src/a.py?ref=HEAD", "python", "src/a.py"),
        ("file://[broken", "", "[broken"),
        ("file:///w/project/caf%E9\ud83d.py", "python", "caf\ufffd\ufffd.py"),
        ("", "", "untitled"),
    ],
)
def test_paths_are_relative_to_the_innermost_folder(uri: str, language: str, expected: str) -> None:
    assert display_path(uri, FOLDERS, language) == expected


def test_all_reports_of_clients_are_understood() -> None:
    with opened("return r") as client:
        client.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
        client.notify("textDocument/didFocus", {})
        [item] = client.complete(1, 4)["result"]["items"]
        client.notify("textDocument/didShowCompletion", {"item": item})
        client.notify(
            "textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 3}
        )
        assert "result" in client.request("workspace/executeCommand", item["command"])
        accepted = {**item["command"], "command": "github.copilot.didAcceptCompletionItem"}
        assert "result" in client.request("workspace/executeCommand", accepted)
        assert client.popups() == []


def test_the_bench_times_every_keystroke() -> None:
    spent = keystroke_overhead(lines=100, keystrokes=20)
    assert len(spent.wall_ms) == len(spent.processor_ms) == len(spent.question_ms) == 20
    assert all(ms > 0 for ms in [*spent.wall_ms, *spent.question_ms])
