"""``redraft record`` as people call it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.recording.recordings_folder import Recordings, recordings_folder
from redraft.server.commands import console
from redraft.server.commands.main import app
from support.editors.workbench import Workbench
from typer.testing import CliRunner, Result


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_RECORDINGS_DIR", str(tmp_path / "recordings"))
    monkeypatch.setattr(console.out, "_width", 200)


def record(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["record", *arguments], input=typed)


def said(*arguments: str, typed: str = "") -> str:
    result = record(*arguments, typed=typed)
    assert result.exit_code == 0, result.output
    return result.output


def as_json(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def refused(*arguments: str) -> str:
    result = record(*arguments)
    assert result.exit_code != 0
    return str(result.exception)


def a_recording(text: str = "x") -> Path:
    """Write a recording that has ended; its file is the newest."""
    scene = Workbench(None, recordings_folder())
    scene.open("a = 1\n")
    scene.type_at(0, 5, text)
    scene.recorder.stop()
    return scene.files()[-1]


def test_it_says_what_is_recorded_and_how_to_delete_it() -> None:
    assert "Recording is off." in said("status")
    told = said("on")
    assert str(recordings_folder()) in told
    assert "secretGlobs" in told and "redraft record delete --all" in told
    assert "Recording is on." in said("status")
    assert "Recording is off." in said("off")
    assert as_json("status") == {
        "on": False,
        "problem": "",
        "folder": str(recordings_folder()),
        "recordings": 0,
        "bytes": 0,
        "limit_bytes": 500_000_000,
        "other_files": 0,
        "other_names": [],
    }
    assert "Recording is off." in said("off"), "twice does no harm"


def test_a_limit_stays_until_another_is_named() -> None:
    said("on", "--limit", "50")
    said("on")
    assert as_json("status")["limit_bytes"] == 50_000_000
    assert record("on", "--limit", "5").exit_code == 2


def test_recordings_are_listed_with_what_is_in_them() -> None:
    assert "no recordings" in said("list")
    path = a_recording("abc")
    [row] = as_json("list")
    assert (row["name"], row["changes"], row["workspace"]) == (path.stem, 3, "file:///w")
    assert row["bytes"] == path.stat().st_size
    assert path.stem in said("list")


def test_one_command_deletes_everything() -> None:
    for _ in range(3):
        a_recording()
    assert record("delete", "--all").exit_code == 1, "nobody said yes"
    assert len(Recordings().list_recordings()) == 3
    assert "Deleted 3 recordings" in said("delete", "--all", typed="y\n")
    assert Recordings().list_recordings() == []
    assert "nothing to delete" in said("delete", "--all", "--yes")


def test_recordings_are_deleted_by_name_or_age() -> None:
    old, new = a_recording(), a_recording()
    long_ago = time.time() - 40 * 86_400
    os.utime(old, (long_ago, long_ago))
    assert "there is no recording 'nothing'" in refused("delete", "nothing", "--yes")
    assert "--all" in refused("delete", "--yes")
    said("delete", "--older-than", "30", "--yes")
    assert [kept.path for kept in Recordings().list_recordings()] == [new]
    said("delete", new.stem, "--yes")
    assert Recordings().list_recordings() == []


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_other_files_of_the_folder_are_left_alone() -> None:
    path = a_recording()
    folder = recordings_folder()
    for name in ("data.jsonl", "odd\x1b[2J[x].jsonl", "b", "c", "d", "e"):
        (folder / name).write_text('{"a": 1}\n')
    told = as_json("status")
    assert (told["recordings"], told["bytes"]) == (1, path.stat().st_size)
    assert told["other_files"] == 6
    assert told["other_names"] == ["b", "c", "d", "data.jsonl", "e"]
    assert "6 other files are in there" in said("status")
    (folder / "b").unlink()
    shown = said("status")
    assert "\x1b" not in shown and r"odd\x1b[2J[x].jsonl" in shown
    assert len(as_json("list")) == 1
    assert "there is no recording 'data'" in refused("delete", "data", "--yes")
    assert "Deleted 1 recordings" in said("delete", "--all", "--yes")
    assert "nothing to delete" in said("delete", "--older-than", "0", "--yes")
    said("off")
    left = sorted(each.name for each in folder.iterdir())
    assert left == ["c", "d", "data.jsonl", "e", "odd\x1b[2J[x].jsonl"]


def test_after_a_full_disk_the_status_is_off_with_why() -> None:
    said("on")
    Recordings().end("recording ended, it cannot be written: No space left on device")
    shown = said("status")
    assert "Recording is off." in shown and "No space left" in shown
    assert (as_json("status")["on"], "No space" in as_json("status")["problem"]) == (False, True)
    said("on")
    assert "No space left" not in said("status")


@pytest.mark.parametrize(
    "name", ["[/x]", "[bold]b", "\x1b[31mred\x1b]0;t\x07", "\x9b2J\u202e", "\ud800"]
)
def test_a_workspace_of_any_name_is_listed(name: str) -> None:
    path = a_recording()
    lines = path.read_bytes().split(b"\n")
    header = json.loads(lines[0]) | {"repoRootUri": f"file:///w/{name}/z"}
    path.write_bytes(b"\n".join([json.dumps(header).encode(), *lines[1:]]))
    shown = said("list")
    assert all(each.isprintable() or each == "\n" for each in shown)
    spelt = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    assert f"file:///w/{spelt}/z" in shown
    raw = said("list", "--json")
    assert raw.isascii()
    assert json.loads(raw)[0]["workspace"] == f"file:///w/{name}/z"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("a file")
    assert "REDRAFT_RECORDINGS_DIR" in refused("on")
