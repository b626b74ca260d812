"""The status names ignore files that are not heeded and workspace folders that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editors.lsp import LspHere, lsp_client

CODE = "def f(a):\n    \n"


def ask(client: LspHere, folder: Path, uri: str) -> None:
    client.initialize(rootUri=f"file://{folder}")
    client.open(CODE, uri)
    client.complete(1, 4, uri=uri)


@pytest.fixture(autouse=True)
def without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))


def test_status_names_an_unheeded_ignore_file(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_bytes(b"priv\xe9/\n")
    with lsp_client("return a") as client:
        ask(client, tmp_path, f"file://{tmp_path}/a.py")
        told = client.status("redraftignore")
        assert "because .redraftignore has a line 1 that is not UTF-8" in told["message"]
        status = client.command("redraft.status")["result"]
        assert list(status["unheededFiles"]) == [f"{tmp_path}/.redraftignore"]


def test_status_names_a_folder_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def scandir(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path) == tmp_path:  # root may read everything
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with lsp_client("return a") as client:
        uri = f"file://{tmp_path}/a.py"
        ask(client, tmp_path, uri)
        for _ in range(200):
            client.complete(1, 4, uri=uri)
            if "Permission denied" in client.statuses()[-1]:
                break
        told = f"Nothing of file://{tmp_path} is read: it cannot be read: Permission denied."
        assert client.statuses()[-1].endswith(told)


def test_status_names_an_absent_folder_of_documents(tmp_path: Path) -> None:
    with lsp_client("return a") as client:
        uri = f"file://{tmp_path}/a.py"
        ask(client, tmp_path / "elsewhere", uri)
        for _ in range(200):
            client.complete(1, 4, uri=uri)
            if "Nothing of" in client.statuses()[-1]:
                break
        assert "it does not exist" in client.statuses()[-1]
