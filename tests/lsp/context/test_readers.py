"""Every reader of files asks the exclusions of now, and no surface shows what they refuse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from redraft.lsp import workspace as root
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.question import infill, next_edit
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace

LSP = Path(root.__file__).parent
#: Functions that return the text of a file of the workspace.
READERS = {"read_code", "read_file", "read_behind_links", "read_saved", "text", "workspace"}
ASKING = {"refuse", "_refuse", "why"}
#: Readers that do not ask themselves, and why not.
EXEMPT = {
    "listing.read_code": "reads for its callers, which are listed here",
    "listing.read_saved": "reads for its callers, which are listed here",
    "indexer._refresh": "its callers ask; those of fill ask while they list",
    "indexer.fill": "lists with the exclusions and reads at once, for commands",
    "workspace._read": "Workspace._take asks before the text is used",
    "pinned._text": "its only caller asks",
    "index.text": "asks inside Index.workspace",
    "ignore_files.read_ignore_file": "patterns reach no prompt",
    "change_sources.has_moved": "files of git reach no prompt",
    "change_sources._pointed_at": "files of git reach no prompt",
}


def readers() -> Iterator[tuple[str, bool]]:
    """Yield the functions that read files, and whether they ask."""
    for file in LSP.rglob("*.py"):
        if file.stem in ("counts", "statistics"):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                used = [_used(each) for each in ast.walk(node)]
                if any(name in READERS for name, _ in used if _):
                    yield f"{file.stem}.{node.name}", any(name in ASKING for name, _ in used)


def _used(node: ast.AST) -> tuple[str, bool]:
    """Return the last name of an expression, and whether it can be a reader."""
    if isinstance(node, ast.Attribute):
        is_index = isinstance(node.value, ast.Attribute) and node.value.attr == "index"
        return node.attr, is_index
    if isinstance(node, ast.Name):
        return node.id, node.id not in ("text", "workspace")
    return "", False


def test_every_reader_asks_whether_it_may() -> None:
    found = dict(readers())
    silent = {name for name, asks in found.items() if not asks}
    assert silent <= EXEMPT.keys(), "ask Exclusions.why at the time of use, or say why not"
    assert {"indexer._do_urgent", "gatherer._text_of", "offer._read"} <= {
        name for name, asks in found.items() if asks
    }


SECRET = "LAUNCH_CODE"
SHAPE = f"def area(r):\n    return {SECRET} * r\n\nclass {SECRET}_SHAPE:\n    x = 1\n"
FILES = {
    "private/shape.py": SHAPE,
    "private/api.md": f"{SECRET} in a page\n",
    "open/helper.py": "def help_me():\n    return 1\n",
}
TEXT = "from private.shape import area\n\nx = area(1)\ny = LAUNCH_CODE_SHAPE()\nz = area(2)\n"


class Desk:
    def __init__(self, folder: Path, rules: str = "") -> None:
        for name, text in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        if rules:
            (folder / ".redraftignore").write_text(rules)
        self.folder, self.uri = folder, f"file://{folder}/a.py"
        settings = LspSettings(pinned_files=("private/api.md",))
        self.workspace = workspace = Workspace(settings, lambda: 100.0, reads=False)
        workspace.folders = [f"file://{folder}"]
        workspace.context.start()
        workspace.context.catch_up()
        workspace.open(self.uri, TEXT, 1, "python")
        private = f"file://{folder}/private/shape.py"
        workspace.exclusions.on_open(private)
        workspace.open(private, FILES["private/shape.py"], 1, "python")
        changes = (ContentChange(f"# {SECRET}\n" + FILES["private/shape.py"]),)
        splices = workspace.change(private, changes, 2)
        workspace.record(private, splices, accepted=False)

    def exclude(self) -> None:
        (self.folder / ".redraftignore").write_text("private/\n")
        self.workspace.context.on_save(f"file://{self.folder}/.redraftignore")
        self.workspace.context.catch_up()
        if self.workspace.adopt_rules():
            self.workspace.context.exclusions_changed()

    def prompts(self) -> str:
        """Return all that requests at each line hold besides the document itself."""
        found = []
        for cursor in (0, len(TEXT) - 8, len(TEXT)):
            snapshot = self.workspace.snapshot(self.uri, cursor, RequestFlags(is_invoked=True))
            region = self.workspace.context.region_at(snapshot)
            for question in (infill(snapshot), next_edit(snapshot, region)):
                asked = self.workspace.complete(question).request
                found += [asked.related, asked.edits, asked.diagnostics, asked.importable]
            found.append(self.workspace.context.look(snapshot).pieces)
            found.append([each.text for each in snapshot.opened.readable if each.uri != self.uri])
        return repr(found)


@pytest.fixture(autouse=True)
def without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))


def test_desk_shows_what_is_allowed(tmp_path: Path) -> None:
    assert SECRET in Desk(tmp_path).prompts()


def test_nothing_shows_a_file_that_is_excluded(tmp_path: Path) -> None:
    assert SECRET not in Desk(tmp_path, "private/\n").prompts()


def test_nothing_shows_a_file_that_is_excluded_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.prompts()
    desk.exclude()
    assert SECRET not in desk.prompts()


def test_nothing_shows_a_file_settings_exclude_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.prompts()
    desk.workspace.settings = LspSettings(
        pinned_files=("private/api.md",), secret_globs=("private/*",)
    )
    desk.workspace.place_all()
    assert SECRET not in desk.prompts()
