"""Open documents, folders, diagnostics and budgets that the gatherer works with."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.lsp.context.gatherer import Gatherer
from redraft.lsp.context.scored_excerpts import Diagnostic
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.workspace import Workspace
from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.records import RelatedFile
from support.editors.shop import CART, MAIN


class Desk:
    """A client with some open documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(LspSettings(), time.monotonic, reads=False)
        self.workspace.folders = [folder.as_uri()]

    @property
    def context(self) -> Gatherer:
        return self.workspace.context

    def open(self, path: str, text: str) -> Document:
        return self.open_uri((self.folder / path).as_uri(), text)

    def open_uri(self, uri: str, text: str) -> Document:
        return self.workspace.open(uri, text, 0, "python")

    def snapshot(self, document: Document, at: str) -> Snapshot:
        cursor = document.text.index(at) + len(at)
        return self.workspace.snapshot(document.uri, cursor, RequestFlags())

    def related(self, document: Document, at: str) -> tuple[RelatedFile, ...]:
        return self.context.gather(self.snapshot(document, at)).related

    def editable(self, document: Document) -> list[str]:
        """URIs of the documents in which an edit may be offered."""
        return [each.uri for each in self.snapshot(document, "").opened.editable]


@pytest.fixture
def desk(tmp_path: Path):  # type: ignore[no-untyped-def]
    desk = Desk(tmp_path)
    yield desk
    desk.context.stop()


AT = "    cart = Cart(customer)\n"


def test_diagnostics_are_those_reported_last(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    line = MAIN[: MAIN.index("    return cart")].count("\n")
    desk.workspace.on_diagnostics(main.uri, [Diagnostic(line, "undefined name")])
    (shown,) = desk.related(main, AT)
    assert shown.text == "undefined name: return cart"
    desk.workspace.close(main.uri)
    main = desk.open("shop/main.py", MAIN)
    assert desk.related(main, AT) == ()


def test_the_budget_is_the_setting_else_the_models(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    rooms = [desk.context.gather(desk.snapshot(main, AT)).room]
    desk.workspace.context_tokens = 8_000
    rooms.append(desk.context.gather(desk.snapshot(main, AT)).room)
    desk.workspace.settings = LspSettings(context_tokens=512)
    rooms.append(desk.context.gather(desk.snapshot(main, AT)).room)
    assert rooms[2] < rooms[0] < rooms[1]


def test_cells_of_a_notebook_are_not_one_file(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    for number in range(3):
        desk.open_uri(f"vscode-notebook-cell:/nb.ipynb#{number}", "x = 1\n")
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
        desk.workspace.folders = [Path(desk.folder.anchor).as_uri()]
    desk.context.folders_changed()
    assert [len(folders) for folders in watched] == [1, 0]


def test_an_edit_leads_to_no_file_outside_the_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "project")
    main = desk.open("main.py", MAIN)
    desk.open(".venv/lib/site-packages/shop/cart.py", CART)
    for uri in (
        (tmp_path / "project-two" / "cart.py").as_uri(),
        "file:///usr/lib/python3/shop/cart.py",
        "untitled:Untitled-1",
    ):
        desk.open_uri(uri, CART)
    assert desk.editable(main) == [main.uri, "untitled:Untitled-1"]


def test_without_a_folder_edits_lead_to_any_open_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.workspace.folders = []
    assert desk.editable(desk.open_uri("file:///a/cart.py", CART)) == ["file:///a/cart.py"]


@pytest.mark.usefixtures("spawn")
def test_imports_are_told_to_files_of_the_only_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "cart.py").write_text(CART)
    (project / "till.py").write_text("from cart import Cart\n")
    desk = Desk(project)
    desk.context.folders_changed()
    desk.context.catch_up()
    before, after = "x = 1\n", "x = 1\ncart = Cart()\n"
    hunks = hunks_of(before.split("\n"), after.split("\n"))
    edits = apply_history("main.py", before.split("\n"), hunks, len(hunks))[1]

    def told(uri: str) -> list[str]:
        document = desk.open_uri(uri, after)
        snapshot = desk.snapshot(document, after)
        # Only the folder of a file matters here, not how its path is shown.
        edited = [replace(each, path=snapshot.path) for each in edits]
        return [one.module for one in desk.context.importable(snapshot, edited)]

    assert told((project / "main.py").as_uri()) == ["cart"]
    assert not told("untitled:main.py")
    assert not told((tmp_path / "main.py").as_uri())
    desk.workspace.folders.append((tmp_path / "other").as_uri())
    assert not told((project / "main.py").as_uri())


def test_reports_go_along_as_text_fit_for_a_model(desk: Desk) -> None:
    main = desk.open("shop/main.py", MAIN)
    told = [Diagnostic(9, "hint", 4), Diagnostic(1, "bad \0 \ud800" + "x" * 5_000, -3)]
    desk.workspace.on_diagnostics(main.uri, told)
    first, last = desk.snapshot(main, AT).reports
    assert (first.line, first.severity, last.message) == (1, 0, "hint")
    assert first.message.startswith("bad  ?") and len(first.message) < 400
    desk.workspace.close(main.uri)
    main = desk.open("shop/main.py", MAIN)
    assert desk.snapshot(main, AT).reports == ()
