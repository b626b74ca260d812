"""Open documents, folders, diagnostics and budgets that the gatherer works with."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from redraft.lsp.context.excerpts import Diagnostic
from redraft.lsp.context.gather import Gatherer
from redraft.lsp.context.opened import OpenDocuments
from redraft.lsp.documents import Document
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import Query
from redraft.model.edits.hunks import apply_history, hunks_of
from support.editors.shop import CART, MAIN


class Desk:
    """A client with some open documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents: list[Document] = []
        self.settings = LspSettings()
        self.budget: int | None = None
        self.context = self.gatherer()

    def gatherer(self) -> Gatherer:
        opened = OpenDocuments(
            lambda: self.documents, lambda: [self.folder.as_uri()], lambda: self.settings
        )
        return Gatherer(opened, time.monotonic, budget=lambda: self.budget)

    def open(self, path: str, text: str) -> Document:
        document = Document((self.folder / path).as_uri(), text, 0, "python")
        self.documents.append(document)
        return document

    def query(self, document: Document, at: str) -> Query:
        text = document.text
        cursor = text.index(at) + len(at)
        path = document.uri.removeprefix(self.folder.as_uri() + "/")
        return Query(document.uri, path, "python", text, cursor, document.revision)

    def related(self, document: Document, at: str):  # type: ignore[no-untyped-def]
        return self.context.gather(self.query(document, at)).related


@pytest.fixture
def desk(tmp_path: Path):  # type: ignore[no-untyped-def]
    desk = Desk(tmp_path)
    yield desk
    desk.context.stop()


AT = "    cart = Cart(customer)\n"


def test_diagnostics_are_those_reported_last(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    line = MAIN[: MAIN.index("    return cart")].count("\n")
    desk.context.diagnosed(main.uri, [Diagnostic(line, "undefined name")])
    (shown,) = desk.related(main, AT)
    assert shown.text == "undefined name: return cart"
    desk.context.closed(main.uri)
    assert desk.related(main, AT) == ()


def test_the_budget_is_the_setting_else_what_the_model_told(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    rooms = [desk.context.gather(desk.query(main, AT)).room]
    desk.budget = 8_000
    rooms.append(desk.context.gather(desk.query(main, AT)).room)
    desk.settings = LspSettings(context_tokens=512)
    rooms.append(desk.context.gather(desk.query(main, AT)).room)
    assert rooms[2] < rooms[0] < rooms[1]


def test_cells_of_a_notebook_are_not_taken_for_one_file(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    desk.documents += [
        Document(f"vscode-notebook-cell:/nb.ipynb#{number}", "x = 1\n", 0, "python")
        for number in range(3)
    ]
    desk.related(main, AT)
    assert desk.context.indexer.open_paths() == {"shop/main.py"}


@pytest.mark.parametrize("which", ["home", "disk"])
def test_home_and_disk_are_skipped(desk: Desk, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    (desk.folder / "cart.py").write_text(CART)
    watched: list[list[Path]] = []
    monkeypatch.setattr(desk.context.indexer, "watch", watched.append)
    desk.context.folders_changed()
    if which == "home":
        for name in ("HOME", "USERPROFILE"):
            monkeypatch.setenv(name, str(desk.folder))
    else:
        desk.folder = Path(desk.folder.anchor)
    desk.context.folders_changed()
    assert [len(folders) for folders in watched] == [1, 0]


def test_an_edit_leads_to_no_file_outside_the_workspace(desk: Desk, tmp_path: Path) -> None:
    desk.folder = tmp_path / "project"
    desk.context = desk.gatherer()
    main = desk.open("main.py", MAIN)
    desk.open(".venv/lib/site-packages/shop/cart.py", CART)
    desk.documents += [
        Document((tmp_path / "project-two" / "cart.py").as_uri(), CART, 0, "python"),
        Document("file:///usr/lib/python3/shop/cart.py", CART, 0, "python"),
        Document("untitled:Untitled-1", CART, 0, "python"),
    ]
    assert [each.uri for each in desk.context.documents()] == [main.uri, "untitled:Untitled-1"]


def test_without_a_workspace_every_open_file_may_be_led_to() -> None:
    documents = [Document("file:///a/cart.py", CART, 0, "python")]
    opened = OpenDocuments(lambda: documents, list, LspSettings)
    assert [each.uri for each in opened.editable()] == ["file:///a/cart.py"]


@pytest.mark.usefixtures("spawn")
def test_imports_are_told_to_files_of_the_only_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "cart.py").write_text(CART)
    (project / "till.py").write_text("from cart import Cart\n")
    folders = [project.as_uri()]
    opened = OpenDocuments(list, lambda: folders, LspSettings)
    context = Gatherer(opened, time.monotonic, background=False)
    context.folders_changed()
    context.catch_up()
    before, after = "x = 1\n", "x = 1\ncart = Cart()\n"
    hunks = hunks_of(before.split("\n"), after.split("\n"))
    edits = apply_history("main.py", before.split("\n"), hunks, len(hunks))[1]

    def told(uri: str) -> list[str]:
        query = Query(uri, "main.py", "python", after, len(after), 1)
        return [one.module for one in context.importable(query, edits)]

    assert told((project / "main.py").as_uri()) == ["cart"]
    assert not told("untitled:main.py")
    assert not told((tmp_path / "main.py").as_uri())
    folders.append((tmp_path / "other").as_uri())
    assert not told((project / "main.py").as_uri())


def test_what_is_reported_goes_along_as_text_that_a_model_can_be_sent(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    told = [Diagnostic(9, "hint", 4), Diagnostic(1, "bad \0 \ud800" + "x" * 5_000, -3)]
    desk.context.diagnosed(main.uri, told)
    first, last = desk.context.diagnostics(desk.query(main, AT))
    assert (first.line, first.severity, last.message) == (1, 0, "hint")
    assert first.message.startswith("bad  ?") and len(first.message) < 400
    desk.context.closed(main.uri)
    assert desk.context.diagnostics(desk.query(main, AT)) == ()
