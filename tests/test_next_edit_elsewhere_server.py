"""Next edits at other places and in other documents, as clients get them."""

from __future__ import annotations

from typing import Any

from support.lsp import URI, LspClient, lsp_client

OTHER = "file:///w/project/b.py"
FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))
CODE = f"def area(r):\n    return r\n\n{FILLER}print(area(2))\n"
EDIT = {"edit": ["area(2)", "area(2, 3.14)"]}


def edited(client: LspClient, text: str = CODE, other: str | None = None) -> LspClient:
    """The user has just given ``area`` another parameter; ``other`` is open beside it."""
    client.initialize()
    client.open(text, version=0)
    if other is not None:
        client.open(other, uri=OTHER, version=7)
    client.insert(0, 10, ", pi", 1)
    return client


def next_edit(client: LspClient, version: int = 1, **fields: Any) -> dict[str, Any]:
    """Our own request, from a client that can show edits of other documents."""
    id_ = client.ask_edit(
        0, 14, version, method="redraft/nextEdit", **{"otherDocuments": True, **fields}
    )
    result: dict[str, Any] = client.answer(id_)["result"]
    return result


def apply(client: LspClient, edit: dict[str, Any], version: int, uri: str = URI) -> None:
    change = {"range": edit["range"], "text": edit["text"]}
    document = {"uri": uri, "version": version}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def test_an_edit_far_below_names_its_line() -> None:
    with lsp_client(EDIT, settings={"prefetch": False}) as client:
        edited(client)
        [edit] = client.edits(0, 14, 1)
        assert (edit["targetLine"], edit["text"]) == (63, "print(area(2, 3.14))")
        regions = [entry["region"] for entry in client.asked()]
        assert regions[0][0] == 0
        assert regions[1][0] <= 63 < regions[1][1]
        client.status("Next edit shown.")


def test_our_own_request_leads_to_another_document_at_its_version() -> None:
    other = "from a import area\r\n\r\nx = '😀' + area(2)\r\n"
    with lsp_client(EDIT, settings={"prefetch": False}) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), other)
        result = next_edit(client)
        [edit] = result["edits"]
        assert edit["textDocument"] == {"uri": OTHER, "version": 7}
        assert edit["targetLine"] == 2
        assert edit["range"] == {
            "start": {"line": 2, "character": 0},
            "end": {"line": 2, "character": 18},
        }
        assert edit["text"] == "x = '😀' + area(2, 3.14)"
        assert result["jump"] == {"uri": OTHER, "position": {"line": 2, "character": 17}}
        assert result["reason"] == "from the model (area: its parameters changed)"
        there = next_edit(client, 7, uri=OTHER)
        assert (there["id"], there["reason"]) == (result["id"], "still holds")


def test_clients_written_for_another_server_get_edits_of_their_document_alone() -> None:
    with lsp_client(EDIT) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), "print(area(2))\n")
        assert client.edits(0, 14, 1, otherDocuments=True) == []
        assert next_edit(client, otherDocuments=False)["edits"] == []
        assert len(client.asked()) == 1


def test_only_open_documents_are_asked_about() -> None:
    with lsp_client(EDIT) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), "print(area(2))\n")
        client.notify("textDocument/didClose", {"textDocument": {"uri": OTHER}})
        assert next_edit(client)["edits"] == []
        assert len(client.asked()) == 1


def test_a_change_of_the_other_document_while_thinking_makes_the_edit_one_of_the_new_version() -> (
    None
):
    settings = {"eagerness": "low", "prefetch": False}
    sure = {**EDIT, "confidence": 0.96}
    with lsp_client(sure, delays_s=[0, 0.5, 0], settings=settings) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), "print(area(2))\n")
        id_ = client.ask_edit(0, 14, 1, method="redraft/nextEdit", otherDocuments=True)
        client.await_event("asked", times=2)
        client.insert(0, 0, "# head\n", 8, uri=OTHER)
        [edit] = client.answer(id_)["result"]["edits"]
        assert edit["textDocument"] == {"uri": OTHER, "version": 8}
        assert edit["range"]["start"] == {"line": 1, "character": 0}


def test_the_other_document_closed_while_thinking_is_a_reason_and_no_error() -> None:
    with lsp_client(EDIT, delays_s=[0, 0.5]) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), "print(area(2))\n")
        id_ = client.ask_edit(0, 14, 1, method="redraft/nextEdit", otherDocuments=True)
        client.await_event("asked", times=2)
        client.notify("textDocument/didClose", {"textDocument": {"uri": OTHER}})
        result = client.answer(id_)["result"]
        assert result == {
            "edits": [],
            "reason": "No next edit: the model would change nothing here.",
            "revealable": False,
        }


def test_a_document_closed_while_its_edit_is_computed_ahead_is_no_trouble() -> None:
    with lsp_client(EDIT, delays_s=[0, 0, 0, 600]) as client:
        edited(client, CODE, "print(area(2))\n")
        assert next_edit(client)["edits"]
        client.await_event("asked", times=4)  # ahead: near the far call, then the other document
        client.notify("textDocument/didClose", {"textDocument": {"uri": OTHER}})
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        client.await_event("cancelled")
        assert client.is_alive()
        assert "Traceback" not in client.log_text()


def test_tab_tab_tab_through_three_far_call_sites() -> None:
    text = "def show(total):\n    pass\n" + "".join(f"{FILLER}use(total)\n" for _ in range(3))
    rename = {"edit": ["use(total)", "use(amount)"]}
    with lsp_client(rename) as client:
        client.initialize()
        client.open(text, version=0)
        start, end = {"line": 0, "character": 9}, {"line": 0, "character": 14}
        apply(client, {"range": {"start": start, "end": end}, "text": "amount"}, 1)
        line, chains = 0, set()
        for version in (1, 2, 3):
            id_ = client.ask_edit(line, 10, version, method="redraft/nextEdit")
            result = client.answer(id_)["result"]
            [edit] = result["edits"]
            assert edit["targetLine"] == 62 + 61 * (version - 1)
            chains.add(result["chain"])
            if version < 3:
                client.await_event("asked", times=2 + 2 * version)  # the next one, ahead of time
            apply(client, edit, version + 1)
            line = edit["targetLine"]
        assert len(chains) == 1
        id_ = client.ask_edit(line, 10, 4, method="redraft/nextEdit")
        assert client.answer(id_)["result"]["edits"] == []
        assert client.popups() == []


def test_ghost_text_asked_for_meanwhile_stops_the_search() -> None:
    with lsp_client(EDIT, delays_s=[0, 600, 0]) as client:
        edited(client)
        id_ = client.ask_edit(0, 14, 1)
        client.await_event("asked", times=2)
        client.ask_completion(0, 14)
        assert client.answer(id_)["error"]["code"] == -32801
        client.await_event("cancelled")


def test_ghost_text_stops_what_is_computed_ahead_for_another_document() -> None:
    with lsp_client(EDIT, delays_s=[0, 0, 600, 0]) as client:
        edited(client, CODE.replace("print(area(2))\n", ""), "print(area(2))\n")
        assert next_edit(client)["jump"]["uri"] == OTHER
        client.await_event("asked", times=3)
        client.ask_completion(0, 14)
        client.await_event("cancelled")
