"""A slow disk stops nothing: documents are open at once, excluded until their rules are read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.policy import ignore_files
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.model.gate.reasons import Abstain
from support.editors.predictor import ScriptedPredictor

CODE = "x = \n"


class Disk:
    """Reads ignore files when the test lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on = threading.Event()
        self.threads: set[str] = set()
        real = ignore_files.read_ignore_file

        def read(folder: str, name: str) -> ignore_files.IgnoreFile | None:
            self.threads.add(threading.current_thread().name)
            assert self.goes_on.wait(30.0)
            return real(folder, name)

        monkeypatch.setattr(ignore_files, "read_ignore_file", read)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.goes_on.set()


def session_of(folder: Path) -> Session:
    session = Session(ScriptedPredictor(), LspSettings(), time.monotonic)
    session.workspace.folders = [f"file://{folder}"]
    return session


async def reason(session: Session, uri: str) -> str:
    answer = await session.ghost_text(session.at(uri, 4, RequestFlags(is_invoked=True)))
    return answer.reason if isinstance(answer, Abstain) else ""


async def test_open_does_not_wait_for_the_disk(tmp_path: Path, disk: Disk) -> None:
    session, uri = session_of(tmp_path), f"file://{tmp_path}/a.py"
    try:
        began_s = time.monotonic()
        session.open(uri, CODE, 1, "python")
        assert time.monotonic() - began_s < 0.2
        assert "not read yet" in session.at(uri, 4, RequestFlags()).document.excluded
        began_s = time.monotonic()
        assert "not read yet" in await reason(session, uri)
        assert "not read yet" in getattr(
            await session.next_edit(session.at(uri, 4, RequestFlags(is_invoked=True))), "reason", ""
        )
        assert 0.5 < time.monotonic() - began_s < 2.0
        disk.goes_on.set()
        assert not await reason(session, uri)
        assert disk.threads == {"redraft-disk"}
    finally:
        disk.goes_on.set()
        await session.leave()


async def test_other_requests_are_served_meanwhile(tmp_path: Path, disk: Disk) -> None:
    session, uri = session_of(tmp_path), f"file://{tmp_path}/a.py"
    try:
        session.open(uri, CODE, 1, "python")
        asked = asyncio.ensure_future(reason(session, uri))
        await asyncio.sleep(0)
        session.open("untitled:b", CODE, 1, "python")
        assert not await reason(session, "untitled:b")
        assert "not read yet" in await asked
        began_s = time.monotonic()
        assert not await reason(session, "untitled:b")
        assert time.monotonic() - began_s < 0.25, "only what was just opened is waited for"
    finally:
        disk.goes_on.set()
        await session.leave()


async def test_excluded_document_shows_nothing_at_any_time(tmp_path: Path, disk: Disk) -> None:
    (tmp_path / ".redraftignore").write_text("private/\n")
    session, uri = session_of(tmp_path), f"file://{tmp_path}/private/p.py"
    try:
        session.open("untitled:b", CODE, 1, "python")
        session.open(uri, CODE, 1, "python")
        session.change(uri, [ContentChange("launch_code = 1\n")], 2)
        for _ in range(2):
            snapshot = session.at("untitled:b", 4, RequestFlags(is_invoked=True))
            assert not [each for each in snapshot.opened.readable if each.uri == uri]
            assert not [each for each in snapshot.edits.with_pending if "p.py" in each.path]
            disk.goes_on.set()
            await reason(session, uri)
        assert "line 1 of .redraftignore" in await reason(session, uri)
    finally:
        disk.goes_on.set()
        await session.leave()


async def test_edits_made_meanwhile_are_kept(tmp_path: Path, disk: Disk) -> None:
    session, uri = session_of(tmp_path), f"file://{tmp_path}/a.py"
    try:
        session.open(uri, CODE, 1, "python")
        session.change(uri, [ContentChange("launch = 1\n")], 2)
        assert not session.at(uri, 4, RequestFlags()).edits.with_pending
        disk.goes_on.set()
        await reason(session, uri)
        assert session.at(uri, 4, RequestFlags()).edits.with_pending
    finally:
        disk.goes_on.set()
        await session.leave()


async def test_document_closed_meanwhile_is_forgotten(tmp_path: Path, disk: Disk) -> None:
    session, uri = session_of(tmp_path), f"file://{tmp_path}/a.py"
    try:
        session.open(uri, CODE, 1, "python")
        session.close(uri)
        session.open(uri, CODE, 1, "python")
        disk.goes_on.set()
        assert not await reason(session, uri)
    finally:
        disk.goes_on.set()
        await session.leave()


async def test_edits_of_a_file_closed_unread_stay_away(tmp_path: Path, disk: Disk) -> None:
    (tmp_path / ".redraftignore").write_text("secret.py\n")
    session, uri = session_of(tmp_path), f"file://{tmp_path}/secret.py"
    try:
        session.open(uri, CODE, 1, "python")
        session.change(uri, [ContentChange("x = 'hunter2'\n")], 2)
        session.close(uri)
        other = session.open(f"file://{tmp_path}/b.py", CODE, 1, "python")
        for _ in range(2):
            edits = session.at(other.uri, 4, RequestFlags(is_invoked=True)).recent
            assert "hunter2" not in "".join(edit.diff for edit in edits)
            disk.goes_on.set()
            await asyncio.sleep(0.1)
    finally:
        await session.leave()
