"""Edits that are thrown away leave the history, and what is done in two steps is one change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from redraft.lsp.connection.client import Client
from redraft.lsp.connection.documents_sync import HANDLERS
from redraft.lsp.editor.documents import ContentChange, Document
from redraft.lsp.editor.history import PAUSE_S, History
from redraft.lsp.editor.positions import Position, Range
from redraft.lsp.settings import LspSettings
from redraft.model.edits.hunks import joined
from redraft.model.records import RecentEdit
from redraft.server.wires.prompts.diffs import unified_diffs
from support.predictor import ScriptedPredictor

URI = "file:///w/a.py"
CODE = "".join(f"value_{i} = compute({i})\n" for i in range(60))


class Desk:
    """One document typed in, with a clock to turn."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.history = History(lambda: self.now)
        self.read(CODE)

    def read(self, text: str) -> None:
        """The file is read, as with ``:e!``: closed and opened again."""
        self.history.closed(URI)
        self.document = Document(URI, text)
        self.history.opened(URI, "a.py", self.document.lines)

    def put(self, line: int, start: int, end: int, text: str) -> None:
        here = Range(Position(line, start), Position(line, end))
        self._change(ContentChange(text, here))
        self.now += PAUSE_S + 1

    def becomes(self, text: str) -> str:
        return self._change(ContentChange(text))

    def _change(self, change: ContentChange) -> str:
        return self.history.changed(URI, self.document.apply([change], None))

    def diffs(self) -> list[str]:
        return [
            "".join(line for line in edit.diff.splitlines(True) if line[0] != " ")
            for edit in self.history.edits()
        ]


FIRST = "-value_3 = compute(3)\n+total_3 = compute(3)\n"
SECOND = "-value_30 = compute(30)\n+total_30 = compute(30)\n"
THIRD = "-value_50 = compute(50)\n+total_50 = compute(50)\n"


def edited() -> Desk:
    desk = Desk()
    for line in (3, 30, 50):
        desk.put(line, 0, 5, "total")
    assert desk.diffs() == [FIRST, SECOND, THIRD]
    return desk


def test_reading_the_file_again_forgets_what_was_not_saved() -> None:
    desk = Desk()
    desk.put(3, 0, 5, "total")
    saved = desk.document.text
    desk.put(30, 0, 5, "total")
    desk.put(50, 0, 5, "total")
    desk.read(saved)
    assert desk.diffs() == [FIRST]


def test_reading_it_again_forgets_the_edit_in_progress_too() -> None:
    desk = Desk()
    desk._change(ContentChange("total", Range(Position(3, 0), Position(3, 5))))
    desk.read(CODE)
    assert desk.diffs() == []


def test_reading_it_again_as_it_was_left_forgets_nothing() -> None:
    desk = edited()
    desk.read(desk.document.text)
    assert desk.diffs() == [FIRST, SECOND, THIRD]


def test_reading_what_others_wrote_forgets_nothing() -> None:
    desk = edited()
    desk.read(CODE.replace("compute", "reckon"))
    assert desk.diffs() == [FIRST, SECOND, THIRD]


def test_reverting_in_one_change_forgets_what_it_throws_away() -> None:
    desk = edited()
    assert desk.becomes(CODE) == "undo"
    assert desk.diffs() == []
    desk.put(3, 0, 5, "total")
    assert desk.diffs() == [FIRST]


def test_reverting_to_a_state_in_between_keeps_what_came_before() -> None:
    desk = Desk()
    desk.put(3, 0, 5, "total")
    between = desk.document.text
    desk.put(30, 0, 5, "total")
    desk.put(50, 0, 5, "total")
    assert desk.becomes(between) == "undo"
    assert desk.diffs() == [FIRST]


# --- two steps, one change -----------------------------------------------------------------------


def test_a_word_deleted_and_another_written_is_one_change() -> None:
    desk = Desk()
    desk.put(3, 0, 7, "")  # cw, and a while to think
    desk.put(3, 0, 0, "total_3")
    assert desk.diffs() == [FIRST]


def test_the_word_that_is_still_being_written_is_one_change_with_the_deletion() -> None:
    desk = Desk()
    desk.put(3, 0, 7, "")
    desk._change(ContentChange("tot", Range(Position(3, 0), Position(3, 0))))
    [edit] = desk.history.edits(unfinished=True)
    assert "-value_3 = compute(3)\n+tot = compute(3)\n" in edit.diff


def test_two_diffs_of_a_client_that_go_on_from_each_other_are_one() -> None:
    text = (
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def area(width, height):\n+def (width, height):\n     return width * height\n"
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def (width, height):\n+def area_of(width, height):\n     return width * height\n"
    )
    [edit] = unified_diffs(text)
    assert edit.diff == (
        "-def area(width, height):\n+def area_of(width, height):\n     return width * height\n"
    )


def test_what_a_second_diff_takes_back_is_no_change() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    assert joined([one, RecentEdit("a.py", 4, "-b\n+a\n")]) == ()


def test_edits_of_other_places_files_and_people_stay_apart() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    for other in (
        RecentEdit("b.py", 4, "-b\n+c\n"),
        RecentEdit("a.py", 5, "-b\n+c\n"),
        RecentEdit("a.py", 4, "-b\n+c\n", accepted=True),
        RecentEdit("a.py", 4, "-x\n+c\n"),
    ):
        assert joined([one, other]) == (one, other)


# --- before the server was there -----------------------------------------------------------------


def opened(
    tmp_path: Path, saved: str, text: str, after_s: float = 0.0, name: str = "a.py"
) -> Client:
    """A client whose editor opens a file with edits in it, so long after it came."""
    now = [1000.0]

    async def unanswered(method: str, params: Any) -> None:
        return None

    client = Client(
        ScriptedPredictor(), LspSettings(), lambda: now[0], lambda method, params: None, unanswered
    )
    now[0] += after_s
    file = tmp_path / name
    file.write_text(saved, encoding="utf-8")
    item = {"uri": file.as_uri(), "languageId": "python", "version": 0, "text": text}
    HANDLERS["textDocument/didOpen"](client, {"textDocument": item})
    return client


def test_an_edit_made_before_the_server_was_there_is_known(tmp_path: Path) -> None:
    client = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "))
    [edit] = client.session.history.edits()
    assert FIRST in edit.diff
    assert edit.line == 0
    uri = (tmp_path / "a.py").as_uri()
    assert client.session.history.last_edit(uri) == (1000.0, 3)
    assert list(client.session.history.snapshot(uri)) == CODE.split("\n")


def test_what_a_person_could_not_have_typed_meanwhile_is_none(tmp_path: Path) -> None:
    client = opened(tmp_path, CODE, CODE.replace("value", "total"))
    assert client.session.history.edits() == ()


def test_unsaved_edits_of_a_file_opened_later_are_none(tmp_path: Path) -> None:
    client = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "), after_s=60)
    assert client.session.history.edits() == ()


def test_a_secret_file_is_not_compared(tmp_path: Path) -> None:
    client = opened(tmp_path, "TOKEN=a\nPORT=1\n", "TOKEN=b\nPORT=1\n", name=".env")
    assert client.session.history.edits() == ()
