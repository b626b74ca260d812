"""Open documents, pinned files, folders, diagnostics and budgets that the gatherer works with."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.lsp.context.gatherer import Gatherer
from redraft.lsp.context.pinned import match_pinned, read_pinned
from redraft.lsp.context.scored_excerpts import Diagnostic
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.policy.ignore_files import IgnoreRules
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.workspace import Workspace
from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.prompts.redraft3 import render_infill
from redraft.model.records import EditRequest, RelatedFile
from support.editors.shop import CART, MAIN
from support.models.tiny import tiny_tokenizer


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


TOKENIZER = tiny_tokenizer()
API = "def charge(amount: int, currency: str) -> None: ...\n"
LONG = "".join(f"value_{number} = {number}\n" for number in range(400))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.md").write_text(API)
    (tmp_path / "docs" / "long.md").write_text(LONG)
    (tmp_path / "docs" / ".env").write_text("KEY=1\n")
    return tmp_path


def pinned(folder: Path, *patterns: str, tokens: int = 1_024) -> list[tuple[str, str]]:
    names = [each.relative_to(folder).as_posix() for each in folder.rglob("*")]
    listed = {folder: match_pinned(patterns, names)}
    refuse = lambda path: "secret" * path.endswith(".env")  # noqa: E731
    found = read_pinned([folder], patterns, tokens, refuse, listed, IgnoreRules())
    return [(each.path, each.text) for each in found]


def test_files_follow_pattern_order_and_end_at_a_line(folder: Path) -> None:
    assert pinned(folder, "docs/api.md") == [("docs/api.md", API.rstrip())]
    found = dict(pinned(folder, "docs/api.md", "docs/*.md", tokens=200))
    assert list(found) == ["docs/api.md", "docs/long.md"]
    assert LONG.startswith(found["docs/long.md"] + "\n") and len(found["docs/long.md"]) < 2_000


@pytest.mark.parametrize(
    "pattern", ["docs/.env", "../api.md", "/etc/hosts", "docs/none.md", "docs"]
)
def test_what_may_not_be_read_is_left_out(folder: Path, pattern: str) -> None:
    assert pinned(folder, pattern, "docs/api.md") == [("docs/api.md", API.rstrip())]


@pytest.mark.usefixtures("spawn")  # git
def test_they_stand_first_in_every_prompt_and_stay(folder: Path) -> None:
    settings = LspSettings(pinned_files=("docs/api.md",), context_tokens=512)
    workspace = Workspace(settings, lambda: 100.0, reads=False)
    workspace.folders = [folder.as_uri()]
    workspace.context.start()
    workspace.context.catch_up()
    code = workspace.open((folder / "a.py").as_uri(), "x = 1\ncharge(\n", 1, "python")
    prompts = []
    for cursor in (5, 13):
        snapshot = workspace.snapshot(code.uri, cursor, RequestFlags())
        related = workspace.context.gather(snapshot).related
        assert related[0].path == "docs/api.md" and related[0].pinned
        asked = EditRequest("infill", "a.py", code.text, cursor, related=related)
        made = render_infill(asked, TOKENIZER, 512)
        prompts.append(made.tokens)
    front = TOKENIZER.encode(API)
    same = next(at for at, (one, two) in enumerate(zip(*prompts, strict=False)) if one != two)
    assert same > len(front)
    assert any(list(prompts[0][at : at + len(front)]) == front for at in range(same))


def test_pinned_files_stay_where_others_find_no_room() -> None:
    others = tuple(RelatedFile(f"b{number}.py", LONG) for number in range(3))
    asked = EditRequest(
        "infill", "a.py", "x = 1\n", 0, related=(RelatedFile("api.md", API, pinned=True), *others)
    )
    made = render_infill(asked, TOKENIZER, 400)
    wanted = TOKENIZER.encode(API)
    tokens = list(made.tokens)
    assert any(tokens[at : at + len(wanted)] == list(wanted) for at in range(20))


def test_a_bad_value_names_the_setting() -> None:
    _, problems = update_settings(LspSettings(), {"pinnedTokens": 3})
    assert len(problems) == 1 and "pinned_tokens" in problems[0]
