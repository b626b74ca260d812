"""What a person asks the language server for by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.desk import Desk, reason, shown
from support.lsp import LspClient, insert_texts, lsp_client


def command(client: LspClient, name: str, *arguments: Any) -> dict[str, Any]:
    params = {"command": name, "arguments": list(arguments)}
    return client.request("workspace/executeCommand", params)


def test_a_pause_silences_what_comes_by_itself_and_not_what_is_asked_for() -> None:
    with lsp_client("total") as client:
        client.initialize()
        client.open("x = ")
        assert command(client, "redraft.snooze", 15)["result"] == {"snoozedS": 900}
        assert client.status("paused for another 15 min")["kind"] == "Inactive"
        by_itself = client.complete(0, 4, context={"triggerKind": 2})
        assert insert_texts(by_itself) == []
        assert client.asked() == []
        assert insert_texts(client.complete(0, 4)) == ["total"]
        assert command(client, "redraft.snooze", 0)["result"] == {"snoozedS": 0}
        assert insert_texts(client.complete(0, 4, context={"triggerKind": 2})) == ["total"]


def test_a_pause_ends_by_itself() -> None:
    desk = Desk()
    desk.session.snooze(300)
    assert reason(desk.consider()) == "paused for another 5 min"
    desk.clock.now += 299
    assert reason(desk.consider_edit()) == "paused for another 1 min"
    desk.clock.now += 1
    assert shown(desk.answer("pass")) == "pass"


def test_a_pause_of_no_length_is_refused_by_name() -> None:
    with lsp_client("total") as client:
        client.initialize()
        for wrong in ("soon", -1, 100_000):
            message = command(client, "redraft.snooze", wrong)["error"]["message"]
            assert message == f"redraft.snooze takes minutes from 0 to 1440, got {str(wrong)!r}"


def test_how_things_stand_tells_model_settings_and_the_last_reason() -> None:
    with lsp_client("", settings={"eagerness": "low"}) as client:
        client.initialize()
        client.open("x = ")
        client.complete(0, 4)
        told = command(client, "redraft.status")["result"]
        assert (told["kind"], told["message"]) == ("Normal", "No ghost text: nothing to add.")
        assert (told["ghost_text"], told["next_edit"]) == ("No ghost text: nothing to add.", "")
        assert told["model"]["state"] == "ready"
        assert (told["model"]["name"], told["model"]["contextTokens"]) == ("fake-1m int8", 4096)
        assert (told["settings"]["eagerness"], told["settings"]["enabled"]) == ("low", True)
        assert told["snoozedS"] == 0


def test_how_things_stand_tells_which_folders_are_not_read_and_why(tmp_path: Path) -> None:
    with lsp_client("total") as client:
        folders = [{"uri": "file:///x%00y", "name": "bad"}, {"uri": tmp_path.as_uri(), "name": "w"}]
        client.initialize(workspaceFolders=folders)
        client.open("x = ")
        assert insert_texts(client.complete(0, 4)) == ["total"]
        told = command(client, "redraft.status")["result"]
        assert told["unreadFolders"] == {"file:///x%00y": "it is no folder on this machine"}
