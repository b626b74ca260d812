"""Commands, menus, status line and errors: the language server beside its suggestions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.protocol.status import StatusLine, sentence
from redraft.model.gate.reasons import Abstain
from redraft.model.records import ModelStatus, Task
from support.editors.lsp import URI, insert_texts, lsp_client, unconnected
from support.editors.lsp_process import LspProcess
from support.editors.predictor import ScriptedPredictor
from support.editors.workbench import Workbench, reason, shown


def test_a_pause_silences_all_but_what_is_asked_for() -> None:
    with lsp_client("total") as client:
        client.initialize()
        client.open("x = ")
        assert client.command("redraft.snooze", 15)["result"] == {"snoozedS": 900}
        assert client.status("paused for another 15 min")["kind"] == "Inactive"
        by_itself = client.complete(0, 4, context={"triggerKind": 2})
        assert insert_texts(by_itself) == []
        assert client.asked() == []
        assert insert_texts(client.complete(0, 4)) == ["total"]
        assert client.command("redraft.snooze", 0)["result"] == {"snoozedS": 0}
        assert insert_texts(client.complete(0, 4, context={"triggerKind": 2})) == ["total"]


def test_a_pause_ends_by_itself() -> None:
    desk = Workbench()
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
            message = client.command("redraft.snooze", wrong)["error"]["message"]
            assert message == f"redraft.snooze takes minutes from 0 to 1440, got {str(wrong)!r}"


def test_the_state_has_model_settings_and_last_reason() -> None:
    with lsp_client("", settings={"eagerness": "low"}) as client:
        client.initialize()
        client.open("x = ")
        client.complete(0, 4)
        told = client.command("redraft.status")["result"]
        assert (told["kind"], told["message"]) == ("Normal", "No ghost text: nothing to add.")
        assert (told["ghost_text"], told["next_edit"]) == ("No ghost text: nothing to add.", "")
        assert told["model"]["state"] == "ready"
        assert (told["model"]["name"], told["model"]["contextTokens"]) == ("fake-1m int8", 4096)
        assert (told["settings"]["eagerness"], told["settings"]["enabled"]) == ("low", True)
        assert told["snoozedS"] == 0


LARGE = "redraft-1.5b"
OFFER = f"{LARGE} suits this machine: it takes a download."


def offering(**more: str) -> list[dict[str, str]]:
    """Return the statuses of a model that is ready."""
    return [{"state": "ready", "model": "redraft-0.5b int8", "about_larger": OFFER, **more}]


def test_a_larger_model_is_offered_once_until_declined(cache: Path) -> None:
    with lsp_client("total", statuses=offering(larger=LARGE)) as client:
        client.initialize()
        told = client.status("ready: redraft-0.5b int8")
        assert OFFER in told["message"] and f"redraft model pull {LARGE}" in told["message"]
        assert (told["kind"], told["larger"]["name"]) == ("Normal", LARGE)
        assert told["larger"]["offer"] == OFFER
        client.open("x = ")
        assert insert_texts(client.complete(0, 4)) == ["total"]
        assert sum(OFFER in each for each in client.statuses()) == 1
        assert OFFER in client.command("redraft.status")["result"]["model"]["aboutLarger"]
        assert client.popups() == []
        assert "error" in client.command("redraft.declineModel", "redraft-0.5b")
        assert "error" not in client.command("redraft.declineModel", LARGE)
        assert client.command("redraft.status")["result"]["model"]["aboutLarger"] == ""
    with lsp_client("total", statuses=offering(larger=LARGE)) as client:  # another editor
        client.initialize()
        assert client.status("ready")["message"] == "ready: redraft-0.5b int8"


def test_the_status_says_why_no_larger_model_runs() -> None:
    with lsp_client("total", statuses=offering()) as client:
        client.initialize()
        told = client.status("ready")
        assert told["message"].endswith(f"; {OFFER}") and "larger" not in told
        assert client.command("redraft.status")["result"]["model"]["aboutLarger"] == OFFER


def test_a_model_for_another_machine_is_not_offered() -> None:
    watch = unconnected(ScriptedPredictor(["total"]), lambda: 0.0).watch
    assert watch.find_larger_model(ModelStatus(**offering(larger=LARGE)[0])) is None


@pytest.mark.usefixtures("spawn")
def test_the_state_names_unread_folders_and_why(tmp_path: Path) -> None:
    with lsp_client("total") as client:
        folders = [{"uri": "file:///x%00y", "name": "bad"}, {"uri": tmp_path.as_uri(), "name": "w"}]
        client.initialize(workspaceFolders=folders)
        client.open("x = ")
        assert insert_texts(client.complete(0, 4)) == ["total"]
        told = client.command("redraft.status")["result"]
        assert told["unreadFolders"] == {"file:///x%00y": "it is no folder on this machine"}


def test_ghost_text_is_in_the_menu_where_set_so() -> None:
    params = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 4}}
    with lsp_client("return r") as client:
        assert "completionProvider" not in client.initialize()["capabilities"]
        client.open("def area(r):\n    \n")
        assert client.request("textDocument/completion", params)["result"]["items"] == []
    with lsp_client("return r\n    # done") as client:
        result = client.initialize(initializationOptions={"completionItems": True})
        assert "completionProvider" in result["capabilities"]
        client.open("def area(r):\n    \n")
        answer = client.request("textDocument/completion", params)["result"]
        [item] = answer["items"]
        assert item["label"] == "return r …"
        assert item["textEdit"]["newText"] == "return r\n    # done"
        assert item["command"]["arguments"] == ["redraft-1"]


@pytest.mark.parametrize(
    "command",
    [
        "redraft.accept",
        "redraft.reject",
        "redraft.ignore",
        "redraft.dismiss",
        "github.copilot.didAcceptCompletionItem",
        "github.copilot.didAcceptNextEditSuggestionItem",
        "github.copilot.didRejectNextEditSuggestionItem",
        "github.copilot.didIgnoreNextEditSuggestionItem",
    ],
)
def test_every_clients_command_is_understood(command: str) -> None:
    with lsp_client() as client:
        client.initialize()
        params = {"command": command, "arguments": ["no-such-id"]}
        assert client.command(command, "no-such-id")["result"] is None
        client.notify("workspace/executeCommand", params)
        assert client.is_alive()
        assert client.popups() == []


def test_the_requests_of_one_old_client_are_answered() -> None:
    with lsp_client("return r") as client:
        client.initialize()
        client.open("def area(r):\n    \n", version=3)
        doc = {"uri": URI, "version": 3, "position": {"line": 1, "character": 4}}
        [found] = client.request("getCompletions", {"doc": doc})["result"]["completions"]
        assert found == {
            "uuid": "redraft-1",
            "text": "    return r",
            "displayText": "return r",
            "position": {"line": 1, "character": 4},
            "range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 4}},
            "docVersion": 3,
        }
        uuid = {"uuid": found["uuid"]}
        assert client.request("notifyShown", uuid)["result"] == "OK"
        assert client.request("notifyAccepted", {**uuid, "acceptedLength": 3})["result"] == "OK"
        assert client.request("notifyAccepted", uuid)["result"] == "OK"
        assert client.request("notifyRejected", {"uuids": ["redraft-1"]})["result"] == "OK"
        assert client.request("checkStatus", {})["result"]["status"] == "OK"
        assert client.request("getVersion", {})["result"]["version"]
        assert client.request("setEditorInfo", {"editorInfo": {}})["result"] == "OK"
        assert client.request("getCompletions", {})["error"]["code"] == -32602


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


HERE, ELSEWHERE = ("file:///w/a.py", 1, 4), ("file:///w/a.py", 1, 9)
HIDDEN = Abstain("below_threshold", "8 % likely to be kept (medium shows from 25 %)")
REVEALABLE = Abstain(HIDDEN.kind, HIDDEN.reason, is_revealable=True)
NOTHING = Abstain("nothing_to_do", "The model would change nothing here.")


def line() -> tuple[StatusLine, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []
    return StatusLine(lambda method, params: sent.append(params)), sent


@pytest.mark.parametrize(
    ("task", "abstained", "expected"),
    [
        ("infill", HIDDEN, f"Ghost text hidden: {HIDDEN.reason}."),
        ("next_edit", HIDDEN, f"Next edit hidden: {HIDDEN.reason}."),
        ("next_edit", NOTHING, "No next edit: the model would change nothing here."),
        ("infill", Abstain("selection", "text is selected"), "No ghost text: text is selected."),
        (
            "next_edit",
            Abstain("nothing_to_do", "A reason. With a second sentence."),
            "No next edit: a reason. With a second sentence.",
        ),
        (
            "infill",
            Abstain("snoozed", "paused for another 5 min"),
            "No suggestions: paused for another 5 min.",
        ),
    ],
)
def test_a_reason_is_one_sentence_with_task(task: Task, abstained: Abstain, expected: str) -> None:
    assert sentence(task, abstained) == expected


def test_while_typing_the_reason_is_of_ghost_text() -> None:
    status, sent = line()
    status.abstain("infill", HERE, HIDDEN)
    status.abstain("next_edit", HERE, NOTHING)
    assert [each["message"] for each in sent] == [f"Ghost text hidden: {HIDDEN.reason}."]
    assert status.message_of("next_edit") == "No next edit: the model would change nothing here."


def test_a_next_edit_question_has_its_own_reason() -> None:
    status, sent = line()
    status.abstain("infill", HERE, HIDDEN)
    status.abstain("next_edit", ELSEWHERE, NOTHING)
    assert sent[-1]["message"] == "No next edit: the model would change nothing here."


def test_what_a_gesture_would_show_comes_first() -> None:
    status, sent = line()
    status.abstain("infill", HERE, NOTHING)
    status.abstain("next_edit", HERE, REVEALABLE)
    assert sent[-1]["message"] == f"Next edit hidden: {HIDDEN.reason}."
    assert [each["revealable"] for each in sent] == [False, True]


@pytest.mark.parametrize(("shown", "other"), [("infill", "next_edit"), ("next_edit", "infill")])
def test_what_is_shown_comes_before_what_is_not(shown: Task, other: Task) -> None:
    status, sent = line()
    status.show(shown, HERE, "")
    status.abstain(other, HERE, REVEALABLE)
    assert [each["message"] for each in sent] == [
        "Ghost text shown." if shown == "infill" else "Next edit shown."
    ]


def test_what_is_shown_on_request_says_how_likely() -> None:
    status, sent = line()
    status.show("infill", HERE, HIDDEN.reason)
    assert sent[-1]["message"] == f"Ghost text shown, though unsure: {HIDDEN.reason}."


@pytest.mark.parametrize(("ended", "other"), [("infill", "next_edit"), ("next_edit", "infill")])
def test_one_suggestions_end_says_nothing_of_another(ended: Task, other: Task) -> None:
    status, sent = line()
    status.show(other, ELSEWHERE, "")
    status.show(ended, HERE, "")
    status.end(ended, "accepted")
    name = "Ghost text" if ended == "infill" else "Next edit"
    assert sent[-1]["message"] == f"{name} accepted."
    assert status.message_of(other).endswith("shown.")


def test_the_end_of_what_is_not_shown_is_not_told() -> None:
    status, sent = line()
    status.abstain("infill", HERE, NOTHING)
    status.end("infill", "accepted")
    status.end("next_edit", "accepted")
    assert len(sent) == 1


def test_nothing_to_change_names_the_places_asked() -> None:
    code = "def f(a):\n    return a\n" + "x = 1\n" * 60 + "f(1)\n" + "y = 2\n" * 60 + "f(2)\n"
    with lsp_client({"edit": ["nothing", "left"]}) as client:
        client.initialize()
        client.open(code)
        client.insert(0, 7, ", b", 2)
        assert client.edits(0, 10, 2) == []
        where = "No next edit: the model would change nothing here, nor in line 124 or line 63."
        client.status(where)
