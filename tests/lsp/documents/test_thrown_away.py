"""Edits that are thrown away leave the history, and what is done in two steps is one change."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path

from redraft.lsp.documents.history_edits import PAUSE_S
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.model.edits.hunks import merge_edits
from redraft.model.prompts.diffs import write_unified_diffs
from redraft.model.records import RecentEdit
from support.editors.predictor import ScriptedPredictor
from support.editors.workbench import URI, Workbench
from support.histories import CODE, snapshot


def put(bench: Workbench, line: int, start: int, end: int, text: str) -> None:
    bench.put(line, start, end, text)
    bench.pause(PAUSE_S + 1)


def read(bench: Workbench, text: str) -> None:
    """Read the file as ``:e!`` does: close it and open it again."""
    bench.history.on_close(URI)
    bench.document = bench.open(text)


def changed(bench: Workbench) -> list[str]:
    """Return the changed lines of each edit."""
    return [
        "".join(each for each in diff.splitlines(True) if each[0] != " ") for diff in bench.diffs()
    ]


FIRST = "-value_3 = compute(3)\n+total_3 = compute(3)\n"
SECOND = "-value_30 = compute(30)\n+total_30 = compute(30)\n"
THIRD = "-value_50 = compute(50)\n+total_50 = compute(50)\n"


def edited() -> Workbench:
    desk = Workbench(CODE)
    for line in (3, 30, 50):
        put(desk, line, 0, 5, "total")
    assert changed(desk) == [FIRST, SECOND, THIRD]
    return desk


def test_reading_anew_forgets_what_was_not_saved() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 5, "total")
    saved = desk.document.text
    put(desk, 30, 0, 5, "total")
    put(desk, 50, 0, 5, "total")
    read(desk, saved)
    assert changed(desk) == [FIRST]


def test_reading_anew_forgets_an_edit_in_progress() -> None:
    desk = Workbench(CODE)
    desk.change(ContentChange("total", Range(Position(3, 0), Position(3, 5))))
    read(desk, CODE)
    assert changed(desk) == []


def test_reading_anew_unchanged_forgets_nothing() -> None:
    desk = edited()
    read(desk, desk.document.text)
    assert changed(desk) == [FIRST, SECOND, THIRD]


def test_reading_what_others_wrote_forgets_nothing() -> None:
    desk = edited()
    read(desk, CODE.replace("compute", "reckon"))
    assert changed(desk) == [FIRST, SECOND, THIRD]


def test_reverting_in_one_change_forgets_its_edits() -> None:
    desk = edited()
    assert desk.change(ContentChange(CODE)) == "undo"
    assert changed(desk) == []
    put(desk, 3, 0, 5, "total")
    assert changed(desk) == [FIRST]


def test_reverting_part_keeps_what_came_before() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 5, "total")
    between = desk.document.text
    put(desk, 30, 0, 5, "total")
    put(desk, 50, 0, 5, "total")
    assert desk.change(ContentChange(between)) == "undo"
    assert changed(desk) == [FIRST]


def test_a_word_deleted_and_rewritten_is_one_change() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 7, "")  # cw, and a while to think
    put(desk, 3, 0, 0, "total_3")
    assert changed(desk) == [FIRST]


def test_a_word_in_progress_joins_its_deletion() -> None:
    desk = Workbench(CODE)
    put(desk, 3, 0, 7, "")
    desk.change(ContentChange("tot", Range(Position(3, 0), Position(3, 0))))
    [edit] = desk.history.view().with_pending
    assert "-value_3 = compute(3)\n+tot = compute(3)\n" in edit.diff


def test_two_continuing_diffs_of_a_client_are_one() -> None:
    text = (
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def area(width, height):\n+def (width, height):\n     return width * height\n"
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n"
        "-def (width, height):\n+def area_of(width, height):\n     return width * height\n"
    )
    [edit] = write_unified_diffs(text)
    assert edit.diff == (
        "-def area(width, height):\n+def area_of(width, height):\n     return width * height\n"
    )


def test_what_a_second_diff_takes_back_is_no_change() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    assert merge_edits([one, RecentEdit("a.py", 4, "-b\n+a\n")]) == ()


def test_edits_of_other_places_and_people_stay_apart() -> None:
    one = RecentEdit("a.py", 4, "-a\n+b\n")
    for other in (
        RecentEdit("b.py", 4, "-b\n+c\n"),
        RecentEdit("a.py", 5, "-b\n+c\n"),
        RecentEdit("a.py", 4, "-b\n+c\n", accepted=True),
        RecentEdit("a.py", 4, "-x\n+c\n"),
    ):
        assert merge_edits([one, other]) == (one, other)


def opened(
    tmp_path: Path, saved: str, text: str, after_s: float = 0.0, name: str = "a.py"
) -> Session:
    """Return a session whose editor opened a file with unsaved edits after some time."""
    now = [1000.0]

    session = Session(ScriptedPredictor(), LspSettings(), lambda: now[0])
    now[0] += after_s
    file = tmp_path / name
    file.write_text(saved, encoding="utf-8")
    session.open(file.as_uri(), text, 0, "python")
    wait(session.workspace.readings(file.as_uri()))
    session._take_read()
    return session


def test_an_edit_made_before_the_server_is_known(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "))
    [edit] = session.workspace.history.view().finished
    assert FIRST in edit.diff
    assert edit.line == 0
    uri = (tmp_path / "a.py").as_uri()
    assert session.workspace.history.view().last_edit(uri) == (1000.0, 3)
    assert snapshot(session.workspace.history, uri) == CODE.split("\n")


def test_what_cannot_have_been_typed_is_no_edit(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value", "total"))
    assert session.workspace.history.view().finished == ()


def test_unsaved_edits_of_a_file_opened_later_are_none(tmp_path: Path) -> None:
    session = opened(tmp_path, CODE, CODE.replace("value_3 ", "total_3 "), after_s=60)
    assert session.workspace.history.view().finished == ()


def test_a_secret_file_is_not_compared(tmp_path: Path) -> None:
    session = opened(tmp_path, "TOKEN=a\nPORT=1\n", "TOKEN=b\nPORT=1\n", name=".env")
    assert session.workspace.history.view().finished == ()
