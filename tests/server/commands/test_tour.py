"""The tour: each scene does what its comment says, by rule and with the real model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from redraft.model.edits.edit import Edit
from support.editors.lsp import LspClient, lsp_client
from support.editors.lsp_process import LspProcess

TOUR = Path(__file__).parents[3] / "server" / "tour"
WITHIN_S = 8.0


@dataclass(frozen=True)
class Scene:
    """What a person types in a scene, and the lines that change when every offer is taken."""

    file: str
    before: str  # the text in front of the place
    old: str  # deleted there
    typed: str
    lines: tuple[tuple[str, str, str], ...]  # file, old and new text of each line that changes


SCENES = [
    Scene(
        "tour1_parameter.py",
        "\ndef dose(",
        "amount",
        "litres",
        tuple(
            ("tour1_parameter.py", old, new)
            for old, new in [
                ("if amount <=", "if litres <="),
                ("{amount} l", "{litres} l"),
                ("0.8 * amount", "0.8 * litres"),
                ("0.02 * amount", "0.02 * litres"),
                ("dose(amount=", "dose(litres="),
            ]
        ),
    ),
    Scene(
        "tour2_tickets.py",
        "\ndef price(seats: int",
        "",
        ", discount: float",
        (
            ("tour2_tickets.py", "{price(seats)", "{price(seats, discount)"),
            ("tour2_desk.py", "price(seats)", "price(seats, discount)"),
        ),
    ),
    Scene(
        "tour3_colours.ts",
        "\nexport function ",
        "mix",
        "blend",
        (
            ("tour3_colours.ts", "return mix(", "return blend("),
            ("tour3_theme.ts", "lighten, mix }", "lighten, blend }"),
            ("tour3_theme.ts", "button: mix(", "button: blend("),
            ("tour3_theme.ts", "panel: mix(", "panel: blend("),
        ),
    ),
    Scene(
        "tour4_reminders.ts",
        "tour5_plants.py\n\n",
        "",
        "const HOUR_MS = 3_600_000;",
        tuple(
            ("tour4_reminders.ts", f"{before} 3_600_000", f"{before} HOUR_MS")
            for before in ("-", "/", "<")
        ),
    ),
    Scene(
        "tour5_plants.py",
        "\n    room: str",
        "",
        "\n    year: int",
        (
            ("tour5_plants.py", ' self.room}', ' self.room, "year": self.year}'),
            ("tour5_plants.py", ', room={self.room}', ', room={self.room}, year={self.year}'),
            ("tour5_plants.py", "room=plant.room)", "room=plant.room, year=plant.year)"),
        ),
    ),
]


def _position(text: str, at: int) -> dict[str, int]:
    start = text.rfind("\n", 0, at) + 1
    return {"line": text.count("\n", 0, at), "character": at - start}


def _index(text: str, at: dict[str, int]) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: at["line"]]) + at["character"]


class Person:
    """A person who plays the tour in a folder of their own."""

    def __init__(self, client: LspClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.file, self.at = "", 0
        client.initialize(rootUri=folder.as_uri())

    def open(self, file: str) -> None:
        path, self.versions[file] = self.folder / file, 1
        self.texts[file] = path.read_text("utf-8")
        language = "python" if path.suffix == ".py" else "typescript"
        self.client.open(self.texts[file], path.as_uri(), languageId=language)

    def change(self, file: str, start: int, end: int, new: str) -> None:
        text = self.texts[file]
        self.versions[file] += 1
        self.texts[file] = text[:start] + new + text[end:]
        self.file, self.at = file, start + len(new)
        change = {
            "range": {"start": _position(text, start), "end": _position(text, end)},
            "text": new,
        }
        document = {"uri": (self.folder / file).as_uri(), "version": self.versions[file]}
        params = {"textDocument": document, "contentChanges": [change]}
        self.client.notify("textDocument/didChange", params)

    def type(self, scene: Scene) -> None:
        """Do what the comment of a scene says, key by key."""
        self.open(scene.file)
        self.at = self.texts[scene.file].index(scene.before) + len(scene.before)
        for _ in scene.old:
            self.change(scene.file, self.at, self.at + 1, "")
            time.sleep(0.02)
        for key in scene.typed:
            self.change(scene.file, self.at, self.at, key)
            time.sleep(0.02)

    def ask(self, method: str = "redraft/nextEdit") -> dict[str, Any]:
        uri = (self.folder / self.file).as_uri()
        params = {
            "textDocument": {"uri": uri, "version": self.versions[self.file]},
            "position": _position(self.texts[self.file], self.at),
            "context": {"triggerKind": 2},
            **dict.fromkeys(("otherDocuments", "unopenedFiles", "wholeRenames"), True),
        }
        answer = self.client.request(method, params)
        found: dict[str, Any] = answer.get("result") or {"edits": [], "reason": str(answer)}
        if os.environ.get("SHOW"):
            print(f"{time.monotonic() - T0:6.2f}", str(found.get("rename") or found)[:300])
        return found

    def take(self) -> bool:
        """Take what is offered; return whether anything was."""
        answer = self.ask()
        if not answer["edits"]:
            return False
        [edit] = answer["edits"]
        if "rename" in answer:
            made = self.client.command("redraft.rename", answer["id"])["result"]["edit"]
            for document in made["documentChanges"]:
                self.make(document["textDocument"]["uri"], document["edits"])
            return True
        name = unquote(urlsplit(edit["textDocument"]["uri"]).path).rpartition("/")[2]
        if name not in self.texts:
            self.open(name)  # and ask again, as the protocol says
            return True
        self.client.command(edit["command"]["command"], *edit["command"]["arguments"])
        self.make(edit["textDocument"]["uri"], [{"range": edit["range"], "newText": edit["text"]}])
        return True

    def make(self, uri: str, edits: list[dict[str, Any]]) -> None:
        name = unquote(urlsplit(uri).path).rpartition("/")[2]
        if name not in self.texts:
            self.open(name)
        text = self.texts[name]
        places = [[_index(text, each["range"][end]) for end in ("start", "end")] for each in edits]
        for (start, end), each in sorted(zip(places, edits, strict=True), key=lambda one: one[0], reverse=True):
            self.change(name, start, end, each["newText"])


T0 = time.monotonic()


def play(client: LspClient, folder: Path, scene: Scene) -> None:
    wanted = {scene.file: (folder / scene.file).read_text("utf-8")}
    at = wanted[scene.file].index(scene.before) + len(scene.before)
    wanted[scene.file] = wanted[scene.file][:at] + scene.typed + wanted[scene.file][at + len(scene.old) :]
    for file, old, new in scene.lines:
        wanted.setdefault(file, (folder / file).read_text("utf-8"))
        assert wanted[file].count(old) == 1, old
        wanted[file] = wanted[file].replace(old, new)
    person = Person(client, folder)
    time.sleep(float(os.environ.get('READ','0')))
    person.type(scene)
    end = time.monotonic() + WITHIN_S
    while person.texts != wanted:
        assert time.monotonic() < end, person.texts
        if not person.take():
            time.sleep(0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(TOUR, tmp_path / "tour")
    return tmp_path / "tour"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.file)
def test_a_scene_is_carried_through_by_rule(folder: Path, scene: Scene, spawn: Any) -> None:
    with lsp_client({"rules": True}) as client:
        play(client, folder, scene)
