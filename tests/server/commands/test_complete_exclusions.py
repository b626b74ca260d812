"""``redraft complete`` refuses what the language server never sends to the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from redraft.model.errors import InvalidRequest
from redraft.server.commands.complete import FilePlace, refuse_secret, request_for

posix = pytest.mark.skipif(os.name != "posix", reason="links need a right on Windows")


def ask(file: Path | str) -> str:
    place = FilePlace(Path(file), 1, 1)
    request = request_for(place, 8, "fast", 0.0, None)
    refuse_secret(place, request)
    return request.text


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "p.py").write_text("launch_code = \n")
    (tmp_path / "open.py").write_text("x = 1\n")
    (tmp_path / ".env").write_text("A=\n")
    (tmp_path / ".redraftignore").write_text("private/\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_complete_obeys_redraftignore(project: Path) -> None:
    wanted = (
        "The language server would show nothing of private/p.py: private/p.py is excluded by line "
        "1 of .redraftignore: private/"
    )
    with pytest.raises(InvalidRequest) as error:
        ask("private/p.py")
    assert str(error.value) == wanted
    assert ask("open.py") == "x = 1\n"


@pytest.mark.parametrize("place", ["/", "private", "elsewhere"])
def test_complete_obeys_from_any_folder(
    place: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / place)
    with pytest.raises(InvalidRequest, match=r"\.redraftignore: private/"):
        ask(project / "private" / "p.py")


def test_complete_refuses_in_an_unheeded_files_folder(project: Path) -> None:
    (project / ".redraftignore").write_bytes(b"\xff\xfep")
    with pytest.raises(InvalidRequest, match=r"because \.redraftignore is not valid UTF-16"):
        ask("open.py")


@posix
@pytest.mark.parametrize("target", [".env", "private/p.py"])
def test_complete_treats_a_link_as_its_target(target: str, project: Path) -> None:
    (project / "notes.txt").symlink_to(target)
    with pytest.raises(InvalidRequest, match=r"would show nothing of notes\.txt"):
        ask("notes.txt")


@posix
def test_complete_obeys_the_name_of_a_link_too(project: Path) -> None:
    (project / "private" / "link.py").symlink_to("../open.py")
    with pytest.raises(InvalidRequest, match="would show nothing"):
        ask("private/link.py")


def test_complete_refuses_a_text_that_is_a_secret(project: Path) -> None:
    (project / "key.txt").write_text("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n")
    with pytest.raises(InvalidRequest, match="begins with a private key"):
        ask("key.txt")


def test_complete_refuses_a_key_in_a_file_of_any_size(project: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + ("A" * 64 + "\n") * 20
    (project / "big.txt").write_text(key + "-----END RSA PRIVATE KEY-----\n" + "x\n" * 1_200_000)
    with pytest.raises(InvalidRequest, match="private key"):
        ask("big.txt")
