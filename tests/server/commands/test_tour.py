"""The tour: each scene does what its comment says, by rule and with the real model."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redraft.model.errors import SettingsError
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ready_variants
from redraft.server.commands.tour import copy_tour
from support.command import RUN, call
from support.editors.lsp import LspClient, lsp_client
from support.editors.lsp_process import LspProcess

MODEL = "redraft-0.5b"
WITHIN_S = 60.0
READ_S = 1.0  # for the comment; the server reads the folder meanwhile


@dataclass(frozen=True)
class Scene:
    """Keys that a person types, and the lines that change when every offer is taken."""

    file: str
    before: str  # the text in front of the place
    old: str  # deleted there
    typed: str
    lines: tuple[tuple[str, ...], ...]  # file, old and new text of each line that changes

    def texts(self, folder: Path) -> dict[str, str]:
        """Return the texts of the files of a scene once every offer is taken."""
        found = {each: (folder / each).read_text("utf-8") for each, *_ in self.lines}
        changes = [(self.file, self.before + self.old, self.before + self.typed), *self.lines]
        for file, old, new in changes:
            assert found[file].count(old) == 1, old
            found[file] = found[file].replace(old, new)
        return found


def _scene(file: str, before: str, old: str, typed: str, *lines: tuple[str, ...]) -> Scene:
    """Return a scene; a line without a name is of the same file."""
    return Scene(file, before, old, typed, tuple((file, *each)[-3:] for each in lines))


SCENES = [
    _scene(
        *("tour1_parameter.py", "\ndef dose(", "amount", "litres"),
        ("if amount <=", "if litres <="),
        ("{amount} l", "{litres} l"),
        ("0.8 * amount", "0.8 * litres"),
        ("0.02 * amount", "0.02 * litres"),
        ("dose(amount=", "dose(litres="),
    ),
    _scene(
        *("tour2_tickets.py", "\ndef price(seats: int", "", ", discount: float"),
        ("{price(seats)", "{price(seats, discount)"),
        ("tour2_desk.py", "price(seats)", "price(seats, discount)"),
    ),
    _scene(
        *("tour3_colours.ts", "\nexport function ", "mix", "blend"),
        ("return mix(", "return blend("),
        ("tour3_theme.ts", "lighten, mix }", "lighten, blend }"),
        ("tour3_theme.ts", "button: mix(", "button: blend("),
        ("tour3_theme.ts", "panel: mix(", "panel: blend("),
    ),
    _scene(
        *("tour4_reminders.ts", "tour5_plants.py\n\n", "", "const HOUR_MS = 3_600_000;"),
        ("- 3_600_000", "- HOUR_MS"),
        ("/ 3_600_000", "/ HOUR_MS"),
        ("< 3_600_000", "< HOUR_MS"),
    ),
    _scene(
        *("tour5_plants.py", "\n    room: str", "", "\n    year: int"),
        (": self.room}", ': self.room, "year": self.year}'),
        (", room={self.room}", ", room={self.room}, year={self.year}"),
        ("room=plant.room)", "room=plant.room, year=plant.year)"),
    ),
]
LAST = _scene("tour6_next_line.py", 'fewest letters."""', "", "\n    return min(")


def _position(text: str, at: int) -> dict[str, int]:
    return {"line": text.count("\n", 0, at), "character": at - text.rfind("\n", 0, at) - 1}


def _index(text: str, at: dict[str, int]) -> int:
    return sum(len(line) + 1 for line in text.split("\n")[: at["line"]]) + at["character"]


class Person:
    """A person who plays the tour in a folder; every text that they change is of ASCII."""

    def __init__(self, client: LspClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.file, self.at = "", 0
        client.initialize(rootUri=folder.as_uri())

    def open(self, file: str) -> None:
        path, self.versions[file] = self.folder / file, 1
        self.texts[file] = path.read_text("utf-8")
        language = {".py": "python", ".ts": "typescript"}[path.suffix]
        self.client.open(self.texts[file], path.as_uri(), languageId=language)

    def change(self, file: str, start: int, end: int, new: str) -> None:
        text = self.texts[file]
        self.versions[file] += 1
        self.texts[file] = text[:start] + new + text[end:]
        self.file, self.at = file, start + len(new)
        range_ = {"start": _position(text, start), "end": _position(text, end)}
        document = {"uri": (self.folder / file).as_uri(), "version": self.versions[file]}
        changes = [{"range": range_, "text": new}]
        params = {"textDocument": document, "contentChanges": changes}
        self.client.notify("textDocument/didChange", params)

    def type(self, scene: Scene) -> None:
        """Type what the comment of a scene says, key by key."""
        if scene.file not in self.texts:
            self.open(scene.file)
        time.sleep(READ_S)
        self.at = self.texts[scene.file].index(scene.before) + len(scene.before)
        for _ in scene.old:
            self.change(scene.file, self.at, self.at + 1, "")
        for key in scene.typed:
            self.change(scene.file, self.at, self.at, key)

    def ask(self, method: str) -> dict[str, Any]:
        uri = (self.folder / self.file).as_uri()
        params = {
            "textDocument": {"uri": uri, "version": self.versions[self.file]},
            "position": _position(self.texts[self.file], self.at),
            "context": {"triggerKind": 2},
            **dict.fromkeys(("otherDocuments", "unopenedFiles", "wholeRenames"), True),
        }
        result: dict[str, Any] = self.client.request(method, params)["result"]
        return result

    def press_tab(self) -> bool:
        """Take the next edit; return whether one was offered."""
        answer = self.ask("redraft/nextEdit")
        if not answer["edits"]:
            return False
        [edit] = answer["edits"]
        if "rename" in answer:
            made = self.client.command("redraft.rename", answer["id"])["result"]["edit"]
            for each in made["documentChanges"]:
                self._apply(each["textDocument"]["uri"], each["edits"])
        elif self._name(edit["textDocument"]["uri"]) in self.texts:
            self.client.command(edit["command"]["command"], *edit["command"]["arguments"])
            edits = [{"range": edit["range"], "newText": edit["text"]}]
            self._apply(edit["textDocument"]["uri"], edits)
        else:  # open the file and ask again
            self.open(self._name(edit["textDocument"]["uri"]))
        return True

    def _name(self, uri: str) -> str:
        return uri.rpartition("/")[2]

    def _apply(self, uri: str, edits: Sequence[dict[str, Any]]) -> None:
        name = self._name(uri)
        if name not in self.texts:
            self.open(name)
        text = self.texts[name]
        for each in sorted(edits, key=lambda one: -_index(text, one["range"]["start"])):
            start, end = (_index(text, each["range"][side]) for side in ("start", "end"))
            self.change(name, start, end, each["newText"])


def play(person: Person, scene: Scene) -> None:
    """Type what a scene says, and take what is offered until all of its lines are changed."""
    wanted = scene.texts(person.folder)
    person.type(scene)
    end = time.monotonic() + WITHIN_S
    while (texts := {each: person.texts.get(each) for each in wanted}) != wanted:
        assert time.monotonic() < end, texts
        if not person.press_tab():
            time.sleep(0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy_tour(tmp_path / "tour")
    return tmp_path / "tour"


@pytest.fixture
def real_client(
    tmp_path: Path, spawn: type[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[LspProcess]:
    """Yield the client of a language server with the real model."""
    described = info(MODEL)
    if described.default_variant not in ready_variants(described):
        pytest.skip(f"no weights of {MODEL} here; 'redraft model pull {MODEL}' gets them")
    monkeypatch.setenv("REDRAFT_RUNTIME_DIR", str(tmp_path / "run"))
    command = [sys.executable, "-c", RUN, "lsp", "--model", MODEL]
    client = LspProcess({}, tmp_path, spawn, command)
    yield client
    client.end()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.file)
@pytest.mark.usefixtures("spawn")
def test_a_scene_is_carried_through_by_rule(folder: Path, scene: Scene) -> None:
    with lsp_client({"rules": True}) as client:
        play(Person(client, folder), scene)


def test_the_real_model_plays_all_scenes(folder: Path, real_client: LspProcess) -> None:
    person = Person(real_client, folder)
    for scene in SCENES:
        play(person, scene)
    person.type(LAST)
    end = time.monotonic() + WITHIN_S
    while not (items := person.ask("textDocument/inlineCompletion")["items"]):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert items[0]["insertText"] == "words, key=len)"


def test_each_file_names_the_next_one(folder: Path) -> None:
    names = sorted(each.name for each in folder.iterdir())
    firsts = [scene.file for scene in (*SCENES, LAST)]
    assert sorted({*firsts, *(file for scene in SCENES for file, *_ in scene.lines)}) == names
    for number, (name, following) in enumerate(zip(firsts, [*firsts[1:], ""], strict=True), 1):
        first, second = (folder / name).read_text("utf-8").split("\n")[:2]
        assert first[2:].lstrip().startswith(f"Scene {number} of {len(firsts)}. ")
        assert second[2:].lstrip().startswith("Offered: ") and second.endswith(following)


@pytest.mark.usefixtures("spawn")
def test_the_command_prints_the_first_file(tmp_path: Path) -> None:
    code, out, err = call("tour", str(tmp_path / "new" / "tour"))
    assert (code, out) == (0, f"{tmp_path / 'new' / 'tour' / 'tour1_parameter.py'}\n")
    assert "its first lines" in err


def test_changed_files_stay_and_lost_ones_return(folder: Path) -> None:
    (folder / "tour1_parameter.py").write_text("mine\n", "utf-8")
    (folder / "tour2_desk.py").unlink()
    assert copy_tour(folder) == (folder / "tour1_parameter.py", ["tour1_parameter.py"])
    assert (folder / "tour1_parameter.py").read_text("utf-8") == "mine\n"
    assert "price(seats)" in (folder / "tour2_desk.py").read_text("utf-8")


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("mine\n", "utf-8")
    for each in (tmp_path, tmp_path / "mine.py"):
        with pytest.raises(SettingsError, match=r"(another|new) folder"):
            copy_tour(each)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.py"]
