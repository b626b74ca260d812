"""Places in files that are not open: found, offered, and refused once the disk has changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.context import unopened_files
from redraft.lsp.context.ranked_places import CLEARLY, DocumentPlace, _open_first
from redraft.lsp.context.unopened_files import MOST_UNOPENED
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.edit_places import SURE_CHANCE, is_sure
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.places.ranker import RankedPlace
from redraft.model.records import EditRequest, Prediction
from support.editors.predictor import ScriptedPredictor, predicted, rewrite

pytestmark = pytest.mark.usefixtures("spawn")

PYTHON = {
    "shapes.py": "def area_of(width):\n    return width\n",
    "room.py": "from shapes import area_of\n\n\ndef floor(room):\n    return area_of(room.width)\n",
}
TYPESCRIPT = {
    "shapes.ts": "export function areaOf(width: number) {\n  return width\n}\n",
    "room.ts": "import { areaOf } from './shapes'\n\nexport const floor = areaOf(room.width)\n",
}


class Desk:
    """A user in the first of some files, whose function gets another parameter.

    Args:
        files: of the workspace; the first one is open.
        answer: of the model, to each question.
    """

    def __init__(
        self,
        folder: Path,
        files: dict[str, str],
        answer: Callable[[EditRequest], Prediction] | None = None,
        **settings: Any,
    ) -> None:
        self.folder, self.now_s = folder, 1_000.0
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode())
        self.model = ScriptedPredictor([answer or added])
        self.session = Session(self.model, LspSettings(**settings), lambda: self.now_s, reads=False)
        self.context = self.session.workspace.context
        self.session.workspace.folders = [folder.as_uri()]
        self.context.folders_changed()
        self.context.catch_up()
        self.name = next(iter(files))
        self.text = files[self.name]
        self.session.open(self.uri(self.name), self.text, 1, "")
        at = self.text.index("width") + len("width")
        self.cursor = at + len(", height")
        self.text = f"{self.text[:at]}, height{self.text[at:]}"
        self.session.change(self.uri(self.name), [ContentChange(self.text)], 2)
        self.now_s += 2

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def snapshot(self, **flags: bool) -> Any:
        known = {"other_documents": True, "unopened_files": True, **flags}
        return self.session.at(self.uri(self.name), self.cursor, RequestFlags(True, **known))

    def paths(self, **flags: bool) -> list[str]:
        """Return the paths of the ranked places, once the files are read."""
        self.context.places.rank(self.snapshot(**flags))
        self.context.catch_up()
        return [one.document.path for one in self.context.places.rank(self.snapshot(**flags))]

    def ask(self) -> Offer | Abstain:
        """Ask for the next edit, once the files are read."""
        self.paths()
        return asyncio.run(self.session.next_edit(self.snapshot()))


def added(request: EditRequest) -> Prediction:
    """Add an argument to the call."""
    if "room.width" not in request.text:
        return predicted(reason="nothing to change")
    return rewrite(request, "room.width", "room.width, 2")


@pytest.mark.parametrize("files", [PYTHON, TYPESCRIPT])
def test_the_call_in_an_unopened_file_is_offered(files: dict[str, str], tmp_path: Path) -> None:
    desk = Desk(tmp_path, files)
    decision = desk.ask()
    assert isinstance(decision, Offer), decision
    name = list(files)[1]
    assert decision.suggestion.uri == desk.uri(name)
    assert decision.suggestion.result == files[name].replace("room.width", "room.width, 2")


@pytest.mark.parametrize("files", [PYTHON, TYPESCRIPT])
@pytest.mark.parametrize("flag", ["other_documents", "unopened_files"])
def test_only_clients_that_open_files_get_their_places(
    files: dict[str, str], flag: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, files)
    assert set(desk.paths()) == set(files)
    assert set(desk.paths(**{flag: False})) == {desk.name}


def test_nothing_is_read_where_the_question_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, PYTHON)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the disk was read")

    for name in ("read_code", "stamp_of"):
        monkeypatch.setattr(unopened_files, name, refuse)
    assert {one.document.path for one in desk.context.places.rank(desk.snapshot())} == {"shapes.py"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("room.py", f"{'-----BEGIN RSA PRIVATE KEY-----'}\n{PYTHON['room.py']}"),
        ("secret/room.py", PYTHON["room.py"]),  # by the .redraftignore
        ("ignored/room.py", PYTHON["room.py"]),  # by the .gitignore
        ("node_modules/room.py", PYTHON["room.py"]),
        ("room_pb2.py", PYTHON["room.py"]),
        ("room.py", f"# generated, do not edit\n{PYTHON['room.py']}"),
        ("room.py", PYTHON["room.py"] + "x" * 300_000),
        ("room.py", PYTHON["room.py"].replace("\n\n\n", "\r\n\r")),  # a lone CR
        ("room.ts", PYTHON["room.py"]),  # another language
        ("room.py", PYTHON["room.py"] + "\0"),
    ],
)
def test_unreadable_and_uneditable_files_are_left_out(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_text("secret/\n")
    (tmp_path / ".gitignore").write_text("ignored/\n")
    desk = Desk(tmp_path, {"shapes.py": PYTHON["shapes.py"], name: text})
    assert set(desk.paths()) == {"shapes.py"}
    assert not isinstance(desk.ask(), Offer)
    assert all("room.width" not in request.text for request in desk.model.requests)


def test_a_file_excluded_after_reading_is_not_offered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PYTHON)
    assert set(desk.paths()) == {"shapes.py", "room.py"}
    desk.session.configure(LspSettings(secret_globs=("room.py",)))
    assert {one.document.path for one in desk.context.places.rank(desk.snapshot())} == {"shapes.py"}
    assert desk.context.unopened.get(desk.uri("room.py")) is None


@pytest.mark.parametrize("how", ["changed", "deleted", "secret", "read only"])
def test_a_file_changed_meanwhile_gets_no_edit(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "room.py"

    def answer(request: EditRequest) -> Prediction:
        found = added(request)
        if found.candidates and how == "changed":
            file.write_text("# new\n" + PYTHON["room.py"])
        elif found.candidates and how == "deleted":
            file.unlink()
        elif found.candidates and how == "secret":
            desk.session.configure(LspSettings(secret_globs=("room.py",)))
        elif found.candidates and how == "read only":
            monkeypatch.setattr(os, "access", lambda *_: False)
        return found

    desk = Desk(tmp_path, PYTHON, answer)
    decision = desk.ask()
    assert isinstance(decision, Abstain) and decision.kind == "target_changed", decision
    word = "changed" if how == "changed" else "was closed or deleted"
    assert decision.reason == f"room.py {word} while the model was working"


def test_a_file_that_changed_on_the_disk_is_read_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PYTHON)
    desk.paths()
    (tmp_path / "room.py").write_text("# new\n" + PYTHON["room.py"])
    desk.context.on_save(desk.uri("room.py"))
    desk.context.catch_up()
    decision = desk.ask()
    assert isinstance(decision, Offer)
    assert decision.suggestion.text.startswith("# new\n")


def test_a_change_seen_in_the_answer_is_read_anew(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, PYTHON)
    desk.paths()
    snapshot, unopened = desk.snapshot(), desk.context.unopened
    unopened.find(snapshot)
    desk.context.catch_up()
    assert [one.text for one in unopened.find(snapshot)] == [PYTHON["room.py"]]
    (tmp_path / "room.py").write_text("# new\n" + PYTHON["room.py"])
    asyncio.run(unopened.read_again(desk.uri("room.py")))
    unopened.find(snapshot)
    desk.context.catch_up()
    assert [one.text for one in unopened.find(snapshot)] == ["# new\n" + PYTHON["room.py"]]


@pytest.mark.parametrize("is_same", [True, False])
def test_an_edit_stays_while_its_file_opens_unchanged(is_same: bool, tmp_path: Path) -> None:
    desk = Desk(tmp_path, PYTHON)
    offer = desk.ask()
    assert isinstance(offer, Offer)
    text, uri = PYTHON["room.py"], desk.uri("room.py")
    desk.session.open(uri, (text if is_same else f"\n{text}").replace("\n", "\r\n"), 7, "python")
    shown = desk.session.memory.outcomes.find_shown(uri)
    assert (shown is not None) == is_same
    if is_same:
        there = desk.session.at(uri, 0, RequestFlags())
        again = asyncio.run(desk.session.next_edit(there))
        assert isinstance(again, Offer) and again.suggestion.id == offer.suggestion.id
        desk.session.change(uri, [ContentChange(offer.suggestion.result)], 8)
        assert desk.session.memory.outcomes.find_shown(uri) is None


def test_few_files_are_read_and_importers_first(tmp_path: Path) -> None:
    call = "print(area_of(1))\n"
    others = {f"a{number}.py": call for number in range(MOST_UNOPENED + 1)}
    files = {**PYTHON, **others, "far/z.py": f"from shapes import area_of\n{call}"}
    found = set(Desk(tmp_path, files).paths())
    assert {"room.py", "far/z.py"} <= found
    assert len(found) <= 1 + MOST_UNOPENED


def test_places_in_open_documents_need_no_other_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PYTHON)
    desk.paths()
    found = desk.context.places.rank(desk.snapshot())
    alone = desk.context.places.rank(desk.snapshot(unopened_files=False))
    assert [one for one in found if one.is_open] == alone
    assert any(not one.is_open for one in found)


def place(chance: float, *, is_open: bool) -> DocumentPlace:
    ranked = RankedPlace(0, 0, chance, 0.9, 1.0, 0.9, "", is_far=True)
    return DocumentPlace(None, ranked, is_open)  # type: ignore[arg-type]


def test_unopened_places_are_first_if_clearly_likelier() -> None:
    a, b = place(0.2, is_open=True), place(0.05, is_open=True)
    near, far = place(0.3, is_open=False), place(CLEARLY * 0.2 + 0.01, is_open=False)
    assert _open_first([near, a, b]) == [a, near, b]
    assert _open_first([far, near, a, b]) == [far, a, near, b]
    assert _open_first([a, b]) == [a, b]
    assert is_sure(place(SURE_CHANCE, is_open=True))
    assert not is_sure(place(SURE_CHANCE, is_open=False))
    assert is_sure(place(CLEARLY * SURE_CHANCE, is_open=False))


def test_an_opened_file_is_ranked_as_an_open_document(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PYTHON)
    desk.paths()
    desk.session.open(desk.uri("room.py"), PYTHON["room.py"], 7, "python")
    [there] = {
        one.document
        for one in desk.context.places.rank(desk.snapshot())
        if one.document.path == "room.py"
    }
    assert there.version == 7
