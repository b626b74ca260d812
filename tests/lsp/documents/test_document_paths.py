"""URIs as clients send them, and links: a document obeys the exclusions of its real place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from redraft.lsp.context.listing import read_saved
from redraft.lsp.documents.uris import display_path, file_of, on_disk, path_of, uri_of
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.model.gate.reasons import Abstain
from support.editors.predictor import ScriptedPredictor

CODE = "x = \n"
posix = pytest.mark.skipif(os.name != "posix", reason="such names are possible on POSIX alone")

#: Literal strings of clients, and the path that each means.
SENT = {
    "file:///c%3A/Users/me/proj": "/c:/Users/me/proj",  # VS Code
    "file:///C:/Users/me/proj": "/c:/Users/me/proj",  # Neovim, Emacs
    "file:///C%3A/Users/me/my%20proj/": "/c:/Users/me/my proj",
    "file:///c%3A\\Users\\me": "/c:/Users/me",
    "file:///c|/Users": "/c:/Users",
    "file://server/share/a%20b": "//server/share/a b",
    "file://localhost/w/a": "/w/a",
    "file:/w/a": "/w/a",
    "FILE:///w/a": "/w/a",
    "file:///w/bad%FF/a.py": "/w/bad\udcff/a.py",
    "file:///w/c#/a.py": "/w/c#/a.py",
    "file:///w/what?/a.py": "/w/what?/a.py",
    "file:///w/c%23/a%3F.py": "/w/c#/a?.py",
    "file:///w/100%25/a.py": "/w/100%/a.py",
    "file:///w/%2541/a.py": "/w/%41/a.py",
    "file:///w/a%5Cb.py": "/w/a\\b.py",
    "file:///w/a%2Bb+c.py": "/w/a+b+c.py",
    "file:///w/x/../private/./a.py": "/w/private/a.py",
    "file:///w//private///a.py": "/w/private/a.py",
    "file:///w/caf%C3%A9/é.py": "/w/café/é.py",
    "file:///": "",
    "vscode-notebook-cell:/w/n.ipynb#W0sZmlsZQ%3D%3D": "/w/n.ipynb",
    "git:/w/private/a.py?%7B%22ref%22%3A%22%22%7D": "/w/private/a.py",
}


@pytest.mark.parametrize("uri", SENT)
def test_uri_is_decoded_once(uri: str) -> None:
    assert path_of(uri) == SENT[uri]


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///c%3A/Users/me/proj", "c:/Users/me/proj"),
        ("file:///C:/Users/me/proj/", "c:/Users/me/proj"),
        ("file:///d%3A/", "d:/"),
        ("file://server/share/a", "//server/share/a"),
        ("file:///w/a", ""),
        ("file://server", ""),
        ("file:///c%3A/a%00b", ""),
    ],
)
def test_encoded_drive_letter_is_found(uri: str, name: str) -> None:
    assert on_disk(path_of(uri), is_windows=True) == name


def test_a_document_lies_below_an_encoded_drive() -> None:
    folders = ("file:///c%3A/Users/me/proj",)
    assert display_path("file:///C:/Users/me/proj/private/p.py", folders) == "private/p.py"
    assert display_path("file:///c%3A/Users/me/proj/private/p.py", folders) == "private/p.py"


@posix
@pytest.mark.parametrize("name", [b"bad\xff", b"c#", b"what?", b"100%", b"a\\b", "é ü".encode()])
def test_name_on_the_disk_and_back(name: bytes, tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/" + name
    assert file_of(uri_of(os.fsdecode(file))) == os.fsdecode(file)


async def reason(session: Session, uri: str) -> str:
    """Return why there is no ghost text in a document."""
    if session.workspace.documents.get(uri) is None:
        session.open(uri, CODE, 1, "python")
    answer = await session.ghost_text(session.at(uri, 4, RequestFlags()))
    return answer.reason if isinstance(answer, Abstain) else ""


def session_of(*folders: str) -> Session:
    session = Session(ScriptedPredictor(), LspSettings(), lambda: 100.0)
    session.workspace.folders = [*folders]
    return session


@posix
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (b"bad\xff", "bad%FF"),
        (b"c#", "c#"),
        (b"c#", "c%23"),
        (b"what?", "what?"),
        (b"100%", "100%25"),
        (b"a b", "a b"),
        ("é".encode(), "é"),
        (b"x:y", "x%3Ay"),
        (b"a\\b", "a%5Cb"),
    ],
)
async def test_folder_is_found_by_what_clients_send(name: bytes, sent: str, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(name)
    (folder / "private").mkdir(parents=True)
    (folder / ".redraftignore").write_text("private/\n")
    (folder / "private" / "p.py").write_text("y = 1\n")
    uri = f"file://{tmp_path}/{sent}"
    session = session_of(uri)
    try:
        assert "line 1 of .redraftignore" in await reason(session, f"{uri}/private/p.py")
        assert not await reason(session, f"{uri}/open.py")
        assert read_saved(f"{uri}/private/p.py") == "y = 1\n"
        session.workspace.context.folders_changed()
        assert not session.workspace.context.unread
    finally:
        await session.leave()


@posix
async def test_a_pattern_of_bytes_not_unicode_fails_closed(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_bytes(b"bad\xff/\n")
    session = session_of(f"file://{tmp_path}")
    try:
        assert "not UTF-8" in await reason(session, f"file://{tmp_path}/bad%FF/p.py")
    finally:
        await session.leave()


# --- links ---------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("as_link", ["folder", "document"])
async def test_workspace_by_a_link_keeps_its_exclusions(as_link: str, tmp_path: Path) -> None:
    (tmp_path / "real" / "private").mkdir(parents=True)
    (tmp_path / "real" / ".redraftignore").write_text("private/\n")
    (tmp_path / "link").symlink_to("real")
    folder, other = ("link", "real") if as_link == "folder" else ("real", "link")
    session = session_of(f"file://{tmp_path}/{folder}")
    try:
        assert ".redraftignore" in await reason(session, f"file://{tmp_path}/{other}/private/p.py")
        uri = f"file://{tmp_path}/{other}/sub/open.py"
        assert not await reason(session, uri)
        (found,) = (d for d in session.workspace.documents.all() if d.uri == uri)
        assert found.path == "sub/open.py" and found.current().is_editable
    finally:
        await session.leave()


@posix
@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("notes.txt", ".env"),
        ("notes.py", ".env"),
        ("notes.py", "second"),
        ("plain.txt", "id_rsa"),
        ("docs/config", ".kube/config"),
        ("a.py", "private/p.py"),
        ("a.py", "settings.yaml"),  # the text of code is looked at otherwise
        ("folder/p.py", ""),
    ],
)
async def test_link_is_treated_as_its_target(link: str, target: str, tmp_path: Path) -> None:
    for name in (".env", "id_rsa", ".kube/config", "private/p.py", "settings.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CODE)
    (tmp_path / ".redraftignore").write_text("private/\n")
    (tmp_path / "second").symlink_to(".env")
    (tmp_path / "folder").symlink_to("private")
    if target:
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(tmp_path / target)
    session = session_of(f"file://{tmp_path}")
    try:
        assert await reason(session, f"file://{tmp_path}/{link}")
        assert not session.workspace.snapshot(
            f"file://{tmp_path}/{link}", 0, RequestFlags()
        ).opened.readable
    finally:
        await session.leave()


@posix
async def test_link_to_an_allowed_file_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "b.py").symlink_to("a.py")
    session = session_of(f"file://{tmp_path}")
    try:
        assert not await reason(session, f"file://{tmp_path}/b.py")
    finally:
        await session.leave()
