"""A save reads its file. The folders are listed once for many changes, and with pauses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from redraft.lsp.context import indexer as indexing
from redraft.lsp.context import listing
from redraft.lsp.context.indexer import Indexer
from redraft.lsp.context.listing import find_files
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace


def allow(_: str) -> str:
    return ""


def wait_until(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    end_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end_s, "it did not get there"
        time.sleep(0.01)


class Disk:
    """Counts what is listed and read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listings, self.reads = 0, list[str]()
        real_list, real_read = indexing.find_files, indexing.read_code

        def list_files(folder: Path, *rest: object, **more: object) -> object:
            self.listings += 1
            return real_list(folder, *rest, **more)  # type: ignore[arg-type]

        def read(folder: str, path: str) -> str | None:
            self.reads.append(path)
            return real_read(folder, path)

        monkeypatch.setattr(indexing, "find_files", list_files)
        monkeypatch.setattr(indexing, "read_code", read)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Disk:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))  # without git
    return Disk(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(20):
        (tmp_path / f"f{number}.py").write_text(f"def name_{number}(): pass\n")
    return tmp_path


@pytest.fixture
def running(folder: Path, disk: Disk) -> Indexer:  # type: ignore[misc]
    indexer = Indexer(allow)
    indexer.watch([folder])
    indexer.start()
    wait_until(lambda: indexer.has_looked and indexer.is_idle)
    disk.listings, disk.reads = 0, []
    yield indexer
    indexer.stop(10.0)


def knows(indexer: Indexer, name: str) -> list[str]:
    return [place.path for place in indexer.index.generation.places(name, "python")]


def test_save_reads_one_file(folder: Path, disk: Disk, running: Indexer) -> None:
    (folder / "f3.py").write_text("def saved_name(): pass\n\n")
    (folder / "f4.py").write_text("def other_name(): pass\n\n")
    running.on_save("f3.py")
    wait_until(lambda: knows(running, "saved_name") == ["f3.py"])
    assert disk.reads == ["f3.py"] and disk.listings == 0
    assert not knows(running, "other_name")


def test_close_reads_one_file(folder: Path, disk: Disk, running: Indexer) -> None:
    running.on_open("f3.py", "python", 1, lambda: "def in_editor(): pass\n")
    wait_until(lambda: knows(running, "in_editor") == ["f3.py"])
    running.on_close("f3.py")
    wait_until(lambda: knows(running, "name_3") == ["f3.py"])
    assert disk.reads == ["f3.py"] and disk.listings == 0


def test_many_changes_cause_one_listing(
    folder: Path, disk: Disk, running: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_CHANGES_S", 0.5)
    (folder / "new.py").write_text("def new_name(): pass\n")
    for _ in range(10):
        running.on_change()
        time.sleep(0.02)
    assert disk.listings == 0
    wait_until(lambda: knows(running, "new_name") == ["new.py"])
    assert disk.listings == 1 and disk.reads == ["new.py"]


def test_saved_new_file_is_found_by_a_listing(
    folder: Path, disk: Disk, running: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_CHANGES_S", 0.1)
    (folder / "new.py").write_text("def new_name(): pass\n")
    running.on_save("new.py")
    wait_until(lambda: knows(running, "new_name") == ["new.py"])
    assert disk.listings == 1


def test_listing_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"src/module_{number}.py" for number in range(3_000)]
    monkeypatch.setattr(listing, "_by_git", lambda _: names)
    rests: list[None] = []
    found = find_files(tmp_path, allow, rest=lambda: rests.append(None))
    assert len(found) == len(names) and len(rests) > 30


# --- pinned files ------------------------------------------------------------------------------


class Desk:
    """A workspace whose index works where it is asked to."""

    def __init__(self, folder: Path, *pinned: str) -> None:
        settings = LspSettings(pinned_files=pinned)
        self.folder = folder
        self.workspace = Workspace(settings, lambda: 100.0, reads=False)
        self.workspace.folders = [f"file://{folder}"]
        self.workspace.context.start()
        self.workspace.context.catch_up()
        self.workspace.open(f"file://{folder}/a.py", "x = 1\n", 1, "python")

    def pinned(self) -> list[str]:
        self.workspace.adopt_rules()
        snapshot = self.workspace.snapshot(f"file://{self.folder}/a.py", 0, RequestFlags())
        pieces = self.workspace.context.look(snapshot).pieces
        return [each.path for each in pieces if each.kind == "pinned"]


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    for name in ("docs/api.md", "docs/plan.md", "node_modules/x/api.md", "deep/er/api.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}\n")
    return tmp_path


def test_pinned_patterns_are_matched_with_the_listing(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Sequence[Path]:
        raise AssertionError("the folder is searched")

    monkeypatch.setattr(Path, "glob", refuse)
    monkeypatch.setattr(Path, "rglob", refuse)
    assert Desk(docs, "**/api.md").pinned() == ["deep/er/api.md", "docs/api.md"]
    assert Desk(docs, "docs/*.md").pinned() == ["docs/api.md", "docs/plan.md"]
    assert Desk(docs, "./docs/a?i.md").pinned() == ["docs/api.md"]
    assert Desk(docs, "*.md", "[").pinned() == []


def test_pinned_file_is_excluded_from_the_first_prompt(docs: Path) -> None:
    (docs / "docs" / ".redraftignore").write_text("*.md\n")
    assert Desk(docs, "docs/api.md", "**/api.md").pinned() == ["deep/er/api.md"]


def test_pinned_file_excluded_later_is_dropped(docs: Path) -> None:
    desk = Desk(docs, "docs/api.md", "deep/er/api.md")
    assert desk.pinned() == ["docs/api.md", "deep/er/api.md"]
    (docs / "docs" / ".redraftignore").write_text("*.md\n")
    desk.workspace.context.on_save(f"file://{docs}/docs/.redraftignore")
    desk.workspace.context.catch_up()
    assert desk.pinned() == ["deep/er/api.md"]


def test_pinned_file_is_asked_for_when_it_is_used(docs: Path) -> None:
    desk = Desk(docs, "docs/api.md")
    assert desk.pinned() == ["docs/api.md"]
    desk.workspace.settings = LspSettings(pinned_files=("docs/api.md",), secret_globs=("*.md",))
    assert desk.pinned() == []


def test_saved_pinned_file_is_read_again(docs: Path) -> None:
    desk = Desk(docs, "docs/api.md")
    (docs / "docs" / "api.md").write_text("new text\n")
    desk.workspace.context.on_save(f"file://{docs}/docs/api.md")
    desk.workspace.context.catch_up()
    snapshot = desk.workspace.snapshot(f"file://{docs}/a.py", 0, RequestFlags())
    assert desk.workspace.context.look(snapshot).pieces[0].text == "new text"
