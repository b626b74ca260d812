"""Files that are written whole or not at all."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from redraft.model.safe_files import atomic_file


def test_a_file_is_replaced_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with atomic_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [path]


def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="half"), atomic_file(path) as file:
        file.write(b"new")
        raise ValueError("half")
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    with atomic_file(path, 0o600) as file:
        [beside] = tmp_path.iterdir()
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600
        file.write(b"{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_that_others_left_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("old")
    path = tmp_path / "a.json"
    path.symlink_to(tmp_path / "other")
    with atomic_file(path) as file:
        file.write(b"new")
    assert (tmp_path / "other").read_text() == "old" and not path.is_symlink()
