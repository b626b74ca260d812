"""Whole renames as clients get them: offered, applied, rejected, and refused once files changed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.outcomes import SuggestionEnded
from redraft.lsp.suggestions.suggestion import Offer
from support.editors.lsp import LspClient, lsp_client
from support.editors.predictor import ScriptedPredictor, rewrite

pytestmark = pytest.mark.usefixtures("spawn")

SHAPES = "def area(width):\n    return width\n\n\nprint(area(2), area(3))\n"
MAIN = "from shapes import area\n\nprint(area(1), 'area')\n"
LABEL = "rename area → surface in 4 places (2 files)"
CONTENT_MODIFIED = -32801


class User:
    """A user who renamed ``area`` to ``surface`` in ``shapes.py``.

    Args:
        capabilities: of the client.
    """

    def __init__(self, client: LspClient, folder: Path, capabilities: Any = None) -> None:
        self.client, self.folder, self.version = client, folder, 1
        client.initialize(rootUri=folder.as_uri(), capabilities=capabilities or {})
        client.open(SHAPES, uri=self.uri("shapes.py"))
        self.replace(0, 4, 8, "surface")

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def change(self, name: str, version: int, *edits: dict[str, Any]) -> None:
        changes = [{"range": each["range"], "text": each["newText"]} for each in edits]
        params = {"textDocument": {"uri": self.uri(name), "version": version}}
        self.client.notify("textDocument/didChange", {**params, "contentChanges": changes})

    def replace(self, line: int, start: int, end: int, text: str) -> None:
        self.version += 1
        at = [{"line": line, "character": each} for each in (start, end)]
        range_ = {"start": at[0], "end": at[1]}
        self.change("shapes.py", self.version, {"range": range_, "newText": text})

    def ask(self, **fields: Any) -> dict[str, Any]:
        params = {
            "textDocument": {"uri": self.uri("shapes.py"), "version": self.version},
            "position": {"line": 0, "character": 11},
            "context": {"triggerKind": 2},
            "wholeRenames": True,
            **fields,
        }
        found: dict[str, Any] = self.client.request("redraft/nextEdit", params)["result"]
        return found

    def until(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Ask until the index is ready and the answer is as wanted."""
        end = time.monotonic() + 60
        while not wanted(answer := self.ask(context={"triggerKind": 1})):
            assert time.monotonic() < end, answer
            time.sleep(0.05)
        return answer

    def offered(self, label: str = LABEL) -> str:
        """Wait for a rename and return its id."""
        answer = self.until(lambda found: found.get("rename", {}).get("label") == label)
        id_: str = answer["id"]
        return id_

    def accept(self, id_: str) -> dict[str, Any]:
        """Return the edit of a rename."""
        edit: dict[str, Any] = self.client.command("redraft.rename", id_)["result"]["edit"]
        return edit


@contextlib.contextmanager
def workspace(folder: Path, files: dict[str, str], capabilities: Any = None) -> Iterator[User]:
    (folder / ".git").mkdir()
    for name, text in {"shapes.py": SHAPES, **files}.items():
        (folder / name).write_text(text)
    with lsp_client() as client:
        yield User(client, folder, capabilities)


def texts(edit: dict[str, Any], name: str) -> list[tuple[int, int, str]]:
    """Return line, column and new text of each place of an edit in one file."""
    [file] = [one for one in edit["documentChanges"] if one["textDocument"]["uri"].endswith(name)]
    starts = [(each["range"]["start"], each["newText"]) for each in file["edits"]]
    return [(start["line"], start["character"], text) for start, text in starts]


def test_one_answer_renames_open_and_unopened_files(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        answer = user.until(lambda found: "rename" in found)
        about = {"old": "area", "new": "surface", "places": 4, "files": 2}
        ends = [{"line": 0, "character": each} for each in (4, 11)]
        definition = {"start": ends[0], "end": ends[1]}
        assert answer["rename"] == {**about, "label": LABEL, "range": definition}
        edit = user.accept(answer["id"])
        assert texts(edit, "shapes.py") == [(4, 6, "surface"), (4, 15, "surface")]
        assert texts(edit, "main.py") == [(0, 19, "surface"), (2, 6, "surface")]
        versions = [each["textDocument"]["version"] for each in edit["documentChanges"]]
        assert versions == [user.version, None]
        user.version += 1
        user.change("shapes.py", user.version, *reversed(edit["documentChanges"][0]["edits"]))
        assert "rename" not in user.ask()


def test_documents_that_a_rename_changes_are_no_edits() -> None:
    """The client reports the acceptance in one case, and the texts alone tell it in the other."""

    async def follow(reported: bool) -> None:
        session = Session(ScriptedPredictor(), LspSettings(), time.monotonic, reads=False)
        outcomes: list[SuggestionEnded] = []
        session.memory.outcomes.listener = outcomes.append
        session.open("file:///w/main.py", MAIN, 1, "python")
        document = session.open("file:///w/shapes.py", SHAPES, 1, "python")
        renamed = SHAPES.replace("def area", "def surface")
        session.change(document.uri, [ContentChange(renamed)], 2)
        query = session.at(document.uri, 11, RequestFlags(True, whole_renames=True))
        decision = await session.next_edit(query)
        assert isinstance(decision, Offer) and decision.suggestion.rename is not None
        if reported:
            await session.edits.renames.accept(decision.suggestion.id)
            session.report_accepted(decision.suggestion.id)
        for each in reversed(decision.suggestion.rename.files):
            session.change(each.source.uri, [ContentChange(each.result)], 3)
        session.report_accepted(decision.suggestion.id)
        edits = session.workspace.history.view().with_pending
        found = list(dict.fromkeys((each.path, each.accepted) for each in edits))
        assert found == [("shapes.py", False), ("main.py", True), ("shapes.py", True)]
        [settled] = outcomes
        saved = 4 * len("surface") - 1
        assert (settled.outcome, settled.means, settled.saved) == ("accepted", "whole", saved)

    asyncio.run(follow(True))
    asyncio.run(follow(False))


def test_an_edit_elsewhere_gives_way_to_a_users_rename() -> None:
    text = SHAPES + "\n" * 30 + "x = 1\n"

    async def follow() -> None:
        model = ScriptedPredictor([lambda request: rewrite(request, "x = 1", "x = 2")])
        session = Session(model, LspSettings(), time.monotonic, reads=False)
        document = session.open("file:///w/shapes.py", text, 1, "python")
        flags = RequestFlags(True, whole_renames=True)
        now = text.replace("x = 1", "y = x = 1")
        session.change(document.uri, [ContentChange(now)], 2)
        session.change(document.uri, [ContentChange(now := now.replace("return", " return"))], 3)
        far = await session.next_edit(session.at(document.uri, 25, flags))
        assert isinstance(far, Offer) and far.suggestion.rename is None
        now = now.replace("def area", "def surface")
        session.change(document.uri, [ContentChange(now)], 4)
        found = await session.next_edit(session.at(document.uri, 11, flags))
        assert isinstance(found, Offer) and found.suggestion.rename is not None
        again = await session.next_edit(session.at(document.uri, 11, flags))
        assert isinstance(again, Offer) and again.suggestion.rename is not None

    asyncio.run(follow())


def test_the_next_question_waits_for_all_documents() -> None:
    async def follow() -> None:
        session = Session(ScriptedPredictor(), LspSettings(), time.monotonic, reads=False)
        session.open("file:///w/main.py", MAIN, 1, "python")
        document = session.open("file:///w/shapes.py", SHAPES, 1, "python")
        renamed = SHAPES.replace("def area", "def surface")
        session.change(document.uri, [ContentChange(renamed)], 2)
        decision = await session.next_edit(
            session.at(document.uri, 11, RequestFlags(True, whole_renames=True))
        )
        assert isinstance(decision, Offer)
        renames = session.edits.renames
        rename = await renames.accept(decision.suggestion.id)
        waiting = asyncio.ensure_future(renames.until_applied())
        for each in reversed(rename.files):  # a client sends one document after another
            await asyncio.sleep(0.05)
            assert not waiting.done()
            session.change(each.source.uri, [ContentChange(each.result)], 3)
        await asyncio.wait_for(waiting, 0.3)
        await renames.until_applied()  # once

    asyncio.run(follow())


def test_nothing_is_renamed_before_every_file_was_seen(tmp_path: Path) -> None:
    async def ask() -> list[bool]:
        session = Session(ScriptedPredictor(), LspSettings(), time.monotonic, reads=False)
        session.workspace.context.indexer.watch([tmp_path])
        document = session.open("file:///w/shapes.py", SHAPES, 1, "python")
        renamed = SHAPES.replace("def area", "def surface")
        session.change(document.uri, [ContentChange(renamed)], 2)
        query = session.at(document.uri, 11, RequestFlags(True, whole_renames=True))
        found = [isinstance(await session.next_edit(query), Offer)]
        session.workspace.context.indexer.has_looked = True
        query = session.at(document.uri, 11, RequestFlags(True, whole_renames=True))
        return [*found, isinstance(await session.next_edit(query), Offer)]

    assert asyncio.run(ask()) == [False, True]


def test_other_clients_get_one_place_at_a_time(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        user.offered()
        assert "rename" not in user.ask(wholeRenames=False)
        assert user.client.asked()[-1]["task"] == "next_edit"


def test_the_setting_turns_whole_renames_off(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        user.offered()
        settings = {"settings": {"redraft": {"wholeRenames": False}}}
        user.client.notify("workspace/didChangeConfiguration", settings)
        user.replace(4, 0, 0, " ")
        user.replace(4, 0, 1, "")
        assert "rename" not in user.ask()


def test_a_changed_file_refuses_the_rename_until_anew(
    tmp_path: Path,
) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        id_ = user.offered()
        (tmp_path / "main.py").write_text("import os\n" + MAIN)
        params = {"command": "redraft.rename", "arguments": [id_]}
        error = user.client.request("workspace/executeCommand", params)["error"]
        assert error["code"] == CONTENT_MODIFIED and "has changed" in error["message"]
        edit = user.accept(user.offered())
        assert texts(edit, "main.py") == [(1, 19, "surface"), (3, 6, "surface")]


def test_a_rename_follows_typing_in_another_document(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        user.client.open(MAIN, uri=user.uri("main.py"), version=5)
        user.offered()
        at = {"line": 2, "character": 0}
        typed = {"range": {"start": at, "end": at}, "newText": "area(7)\n"}
        user.change("main.py", 6, typed)
        edit = user.accept(user.offered("rename area → surface in 5 places (2 files)"))
        places = texts(edit, "main.py")
        assert places == [(0, 19, "surface"), (2, 0, "surface"), (3, 6, "surface")]


def test_excluded_and_secret_files_are_not_touched(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
    files = {
        "main.py": MAIN,
        "ignored.py": MAIN,
        "secrets.py": MAIN,
        "held.py": f"{key}\n{MAIN}",
        ".redraftignore": "ignored.py\n",
    }
    with workspace(tmp_path, files) as user:
        edit = user.accept(user.offered())
        names = [each["textDocument"]["uri"] for each in edit["documentChanges"]]
        assert names == [user.uri("shapes.py"), user.uri("main.py")]


def test_a_file_with_a_lone_cr_is_left_out(tmp_path: Path) -> None:
    odd = "from shapes import area\n\nSEP = 'x\ry'\nprint(area(1), area(2))\n"
    with workspace(tmp_path, {"main.py": MAIN, "odd.py": odd}) as user:
        edit = user.accept(user.offered())
        names = {one["textDocument"]["uri"].rpartition("/")[2] for one in edit["documentChanges"]}
        assert names == {"shapes.py", "main.py"}


def test_a_rejected_rename_does_not_come_back(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}) as user:
        user.client.command("redraft.reject", user.offered())
        assert "rename" not in user.ask(context={"triggerKind": 1})


def test_a_rename_that_is_not_shown_cannot_be_accepted(tmp_path: Path) -> None:
    with workspace(tmp_path, {}) as user:
        params = {"command": "redraft.rename", "arguments": ["redraft-77"]}
        message = user.client.request("workspace/executeCommand", params)["error"]["message"]
        assert "redraft-77" in message and "ask for the next edit again" in message


def test_other_clients_get_the_rename_as_a_code_action(tmp_path: Path) -> None:
    versions = {"workspace": {"workspaceEdit": {"documentChanges": True}}}
    with workspace(tmp_path, {"main.py": MAIN}, versions) as user:
        user.offered()
        at = {"line": 0, "character": 4}
        for kind in (1, 2):  # by a gesture, and for a light bulb
            params = {
                "textDocument": {"uri": user.uri("shapes.py")},
                "range": {"start": at, "end": at},
                "context": {"diagnostics": [], "triggerKind": kind},
            }
            [action] = user.client.request("textDocument/codeAction", params)["result"]
            assert action["title"] == LABEL.replace("rename", "Rename", 1)
            assert [each["textDocument"]["version"] for each in action["edit"]["documentChanges"]]
            assert texts(action["edit"], "main.py") == [(0, 19, "surface"), (2, 6, "surface")]
        assert action["command"]["command"] == "redraft.accept"


LATE = {
    "workspace": {"workspaceEdit": {"documentChanges": True}},
    "textDocument": {
        "codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}
    },
}


def actions(user: User, kind: int) -> list[dict[str, Any]]:
    at = {"line": 0, "character": 4}
    params = {
        "textDocument": {"uri": user.uri("shapes.py")},
        "range": {"start": at, "end": at},
        "context": {"diagnostics": [], "triggerKind": kind},
    }
    found: list[dict[str, Any]] = user.client.request("textDocument/codeAction", params)["result"]
    return found


def test_rename_action_is_checked_again(tmp_path: Path) -> None:
    with workspace(tmp_path, {"main.py": MAIN}, LATE) as user:
        user.offered()
        [action] = actions(user, 1)
        assert "edit" not in action
        edit = user.client.request("codeAction/resolve", action)["result"]["edit"]
        assert texts(edit, "main.py") == [(0, 19, "surface"), (2, 6, "surface")]
        (tmp_path / "main.py").write_text(f"import os\n\n# head\n{MAIN}")
        stale = user.client.request("codeAction/resolve", action)["error"]
        assert "has changed" in stale["message"]


def test_a_light_bulb_has_no_rename_of_changed_files(tmp_path: Path) -> None:
    versions = {"workspace": {"workspaceEdit": {"documentChanges": True}}}
    with workspace(tmp_path, {"main.py": MAIN}, versions) as user:
        user.offered()
        assert [each["title"] for each in actions(user, 2)] != []
        (tmp_path / "main.py").write_text(f"import os\n{MAIN}")
        assert actions(user, 2) == []
