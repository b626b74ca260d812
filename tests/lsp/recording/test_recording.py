"""Recordings: what is in them, what never is, and what limits them."""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import pytest
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.lsp.documents.positions import Position, Range, units
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.learning.recording_file import read_recording
from redraft.lsp.recording.recording_events import Focused, Header, SelectionChanged, encode
from redraft.lsp.recording.recordings_folder import (
    FolderLimits,
    RecordingFile,
    Recordings,
    name_recording,
)
from redraft.model.errors import SettingsError
from support.editors.recordings import changes_in, replayed
from support.editors.workbench import URI, Workbench, change


def test_nothing_is_recorded_until_it_is_turned_on(tmp_path: Path) -> None:
    scene = Workbench("x = 1\n", tmp_path / "r", on=False)
    scene.type_at(0, 5, "abc")
    assert not (tmp_path / "r").exists()


def test_turned_on_midway_it_begins_with_the_text(tmp_path: Path) -> None:
    scene = Workbench("x = 1\n", tmp_path, on=False)
    scene.type_at(0, 5, "23")
    scene.recordings.turn_on()
    scene.type_at(0, 7, "45")
    [file] = scene.files()
    stream = read_recording(file)
    assert replayed(file) == {"a.py": "x = 12345\n"}
    assert [change.edits[0].text for change in stream.changes] == ["4", "5"]
    assert stream.header.root == "file:///w"


def test_turned_off_elsewhere_it_ends_at_a_change(tmp_path: Path) -> None:
    scene = Workbench("x\n", tmp_path)
    scene.type_at(0, 1, "ab")
    Recordings(tmp_path).turn_off()
    scene.type_at(0, 3, "cd")
    [file] = scene.files()
    assert replayed(file) == {"a.py": "xab\n"}
    Recordings(tmp_path).turn_on()
    scene.type_at(0, 5, "ef")
    assert [replayed(each)["a.py"] for each in scene.files()] == ["xab\n", "xabcdef\n"]


def test_a_deleted_recording_begins_anew(tmp_path: Path) -> None:
    scene = Workbench("x\n", tmp_path)
    scene.type_at(0, 1, "ab")
    assert scene.recordings.delete(scene.files()) == [] or sys.platform == "win32"
    scene.type_at(0, 3, "cd")
    [file] = scene.files()
    assert replayed(file) == {"a.py": "xabcd\n"}
    assert len(changes_in(file)) == (2 if sys.platform != "win32" else 4)


OTHERS = "\n".join(f"line_{n} = {n}" for n in range(20))  # put in by a checkout


def test_changes_carry_their_source(tmp_path: Path) -> None:
    scene = Workbench("a = 1\nb = 2\n", tmp_path)
    scene.type_at(0, 5, "0")
    for each in (
        change("pasted_text_of_some_length_and_more = 3\n", 2, 0),
        change("+ total", 1, 5),
        ContentChange("", Range(Position(1, 5), Position(1, 12))),
        change(OTHERS, 3, 0),
        ContentChange("w = 0\n" * 30),
    ):
        scene.clock.now += 5
        scene.change(each, accepted=each.text == "+ total")
    assert sources(scene) == ["user", "paste", "suggestion", "undo", "paste", "external"]


def sources(scene: Workbench) -> list[str]:
    [file] = scene.files()
    return [change.source for change in changes_in(file)]


def test_what_happens_in_absence_is_no_paste(tmp_path: Path) -> None:
    scene = Workbench("a = 1\n", tmp_path)
    scene.recorder.on_focus("")
    scene.change(change(OTHERS, 1, 0))
    assert sources(scene) == ["external"]


def at_work(
    tmp_path: Path, reason: str, moved_s: float = 1.0, to: str = "c1"
) -> tuple[Workbench, str]:
    """Return a file of a repository whose ``HEAD`` moved some seconds before the next change."""
    scene = Workbench(None, tmp_path / "recordings")
    log = tmp_path / "repository" / ".git" / "logs" / "HEAD"
    log.parent.mkdir(parents=True)
    log.write_text(
        f"00 c0 A <a@b> 1 +0000\tcommit (initial): all\nc0 {to} A <a@b> 2 +0000\t{reason}\n"
    )
    at_s = scene.clock.now + 0.2 - moved_s  # the clock goes on by that with the change
    os.utime(log, (at_s, at_s))
    uri = (tmp_path / "repository" / "src" / "a.py").as_uri()
    scene.open("a = 1\n", uri)
    return scene, uri


@pytest.mark.parametrize(
    ("reason", "moved_s", "to", "expected"),
    [
        ("checkout: moving from main to other", 1.0, "c1", "git"),
        ("rebase (finish): returning to refs/heads/main", 1.0, "c1", "git"),
        ("checkout: moving from main to other", 20.0, "c1", "paste"),
        ("commit: leaves the files alone", 1.0, "c1", "paste"),
        ("checkout: moving from main to new", 1.0, "c0", "paste"),  # checkout -b
        ("reset: moving to HEAD", 1.0, "c0", "git"),  # a stash
    ],
)
def test_a_bulk_change_right_after_head_moved_is_gits(
    tmp_path: Path, reason: str, moved_s: float, to: str, expected: str
) -> None:
    scene, uri = at_work(tmp_path, reason, moved_s, to)
    scene.change(change(OTHERS, 1, 0), uri=uri)
    assert sources(scene) == [expected]


def test_after_a_checkout_typing_is_still_the_users(tmp_path: Path) -> None:
    scene, uri = at_work(tmp_path, "checkout: moving from main to other")
    scene.type_at(0, 5, "0", uri)
    scene.recorder.on_focus("")
    scene.change(ContentChange("2", Range(Position(0, 4), Position(0, 6))), uri=uri)
    assert sources(scene) == ["user", "git"]


def test_a_worktree_has_a_head_of_its_own(tmp_path: Path) -> None:
    scene, uri = at_work(tmp_path, "checkout: moving from main to other")
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_text("gitdir: ../repository/.git\n")
    uri = (worktree / "a.py").as_uri()
    scene.open("a = 1\n", uri)
    scene.change(change(OTHERS, 1, 0), uri=uri)
    assert sources(scene) == ["git"]


def test_the_cursor_is_told_once_and_in_utf16(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path)
    document = scene.open("s = '😀'\r\nt\r\n")
    for place in (Position(1, 1), Position(1, 1), Position(0, 7)):
        scene.recorder.cursor(document, Range(place, place))
    events = read_recording(scene.files()[0]).events
    assert [e.selections for e in events if isinstance(e, SelectionChanged)] == [
        ((11, 11),),
        ((7, 7),),
    ]
    assert [e.document for e in events if isinstance(e, Focused)] == [0]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_changed_replays_to_the_same_text(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    scene = Workbench(None, tmp_path)
    scene.open(random_text(rng))
    for _ in range(60):
        document = scene.documents.get(URI)
        assert document is not None
        scene.change(*random_changes(rng, document))
        if rng.random() < 0.05:
            scene.recordings.delete(scene.files())
    [file] = scene.files()[-1:]
    assert replayed(file) == {"a.py": document.source}


_PIECES = ("a", "beta", "é", "😀", "𝒳y", "\n", "\r\n", "\r", "    ", "\u2028", "(", "")


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(_PIECES, k=rng.randrange(40)))


def random_changes(rng: random.Random, document: Document) -> list[ContentChange]:
    """Draw the changes of one message, in any order and anywhere, also within characters."""
    if rng.random() < 0.05:
        return [ContentChange(random_text(rng))]
    changes = []
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        start, end = sorted(random_place(rng, document) for _ in range(2))
        if rng.random() < 0.6:
            end = start
        changes.append(
            ContentChange("".join(rng.choices(_PIECES, k=rng.randrange(4))), Range(start, end))
        )
    return changes


def random_place(rng: random.Random, document: Document) -> Position:
    line = rng.randrange(document.line_count + 1)
    longest = units(document.lines[line]) if line < document.line_count else 3
    return Position(line, rng.randrange(longest + 3))


def test_secret_files_are_not_recorded(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path)
    scene.open("KEY=hunter2\n", ".env")
    scene.open("x\n")
    scene.type_at(0, 11, "3", uri="file:///w/.env")
    scene.type_at(0, 1, "y")
    [file] = scene.files()
    assert b"hunter2" not in file.read_bytes()
    assert b".env" not in file.read_bytes()
    assert replayed(file) == {"a.py": "xy\n"}


def test_a_file_that_becomes_secret_is_dropped(tmp_path: Path) -> None:
    scene = Workbench("x\n", tmp_path)
    scene.session.workspace.settings = LspSettings(secret_globs=("a.py",))
    scene.recorder.exclusions_changed()
    scene.type_at(0, 1, "hunter2")
    assert changes_in(scene.files()[0]) == []


def test_binary_and_huge_files_are_not_recorded(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path, max_file_chars=1000)
    scene.open("a\0b", "a.bin")
    scene.open("x" * 1001, "big.txt")
    scene.open("x\n")
    assert list(replayed(scene.files()[0])) == ["a.py"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a user's folders to that user")
def test_nobody_else_can_read_a_recording(tmp_path: Path) -> None:
    scene = Workbench("x\n", tmp_path / "r")
    assert (tmp_path / "r").stat().st_mode & 0o077 == 0
    assert scene.files()[0].stat().st_mode & 0o077 == 0


def test_a_full_file_is_followed_by_a_complete_one(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path, on=False)
    scene.recordings.turn_on(FolderLimits(file_bytes=1_000))
    document = scene.open("x = 1\n" * 100)
    for n in range(40):
        scene.change(change(str(n % 10), n, 5))
    files = scene.files()
    assert len(files) > 2
    streams = [read_recording(file) for file in files]
    assert sum(len(stream.changes) for stream in streams) == 40
    assert replayed(files[-1]) == {"a.py": document.source}
    assert len({stream.header.uuid for stream in streams}) == 1


def an_old_one(folder: Path, number: int, size: int = 4_000) -> Path:
    """Write a recording of an earlier session; a higher number is newer."""
    session = f"{number:08x}" + 24 * "0"
    path = folder / name_recording(1_000.0, session, 1)
    header = encode(Header(1_000_000, session, "file:///w", "redraft test"))
    path.write_bytes(header.ljust(size, b"\n"))
    os.utime(path, (1_000 + number, 1_000 + number))
    return path


def test_the_oldest_recordings_make_room(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path, on=False)
    scene.recordings.turn_on(FolderLimits(file_bytes=3_000, total_bytes=20_000))
    old = [an_old_one(tmp_path, number) for number in range(6)]
    scene.open("x\n")
    scene.recorder.room.join()
    assert scene.files()[:-1] == old[2:]


def test_new_recording_reads_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Workbench(None, tmp_path, on=False)
    scene.recordings.turn_on()
    old = an_old_one(tmp_path, 1)
    readers = []
    opened = os.open

    def open_(path: str | Path, *how: int) -> int:
        if Path(path) == old:
            readers.append(threading.current_thread())
        return opened(path, *how)

    monkeypatch.setattr(os, "open", open_)
    scene.open("x\n")
    scene.recorder.room.join()
    assert readers == [scene.recorder.room]


def test_the_recording_that_needs_room_stays(tmp_path: Path) -> None:
    scene = Workbench(None, tmp_path, on=False)
    scene.recordings.turn_on(FolderLimits(file_bytes=3_000, total_bytes=2_000))
    an_old_one(tmp_path, 1)
    scene.open("x\n")
    scene.recorder.room.join()
    [file] = scene.files()
    assert replayed(file) == {"a.py": "x\n"}


def users_files(folder: Path) -> dict[Path, bytes]:
    """Fill a folder with old and large files, some with a recording's name or content."""
    header = encode(Header(1, "a" * 32, "", "redraft 0"))
    others = encode(Header(1, "a" * 32, "", "another recorder"))
    simulated = encode(Header(1, "a" * 32, "", "redraft 0", simulated=True))
    name = "20240101-120000-aaaaaaaa-1.jsonl"
    found = {
        "data.jsonl": b'{"a": 1}\n',
        "renamed.jsonl": header,
        name: b'{"a": 1}\n',
        name.replace("-1.", "-2."): b"[" * 100_000,
        name.replace("-1.", "-3."): b"",
        name.replace("-1.", "-4."): others,
        name.replace("-1.", "-5."): simulated,
        name.replace("aaaaaaaa", "bbbbbbbb"): header,
        name.replace("-1.", "-6.") + ".bak": header,
        "x" + name: header,
        "notes.txt": b"mine",
        "on.json.bak": b"{}",
    }
    kept = {}
    for each, begin in found.items():
        path = folder / each
        path.write_bytes(begin.ljust(30_000, b"\n") if begin else b"")
        os.utime(path, (1, 1))
        kept[path] = path.read_bytes()
    return kept


def test_the_users_own_files_are_never_deleted(tmp_path: Path) -> None:
    theirs = users_files(tmp_path)
    scene = Workbench(None, tmp_path, on=False)
    scene.recordings.turn_on(FolderLimits(file_bytes=3_000, total_bytes=10_000))
    old = an_old_one(tmp_path, 7)
    older = an_old_one(tmp_path, 6)
    scene.open("x\n")
    scene.recorder.room.join()
    assert not older.exists()
    assert scene.files()[:-1] == [old]
    assert scene.recordings.delete([*theirs]) == [*theirs]
    assert {path: path.read_bytes() for path in theirs} == theirs
    assert scene.recordings.others() == sorted(path.name for path in theirs)


@pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
def test_links_and_pipes_named_as_recordings_are_left(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "r"
    outside.mkdir()
    folder.mkdir()
    real = an_old_one(outside, 1)
    link, hanging, pipe, inner = (
        folder / name_recording(1_000.0, f"{n:08x}", 1) for n in (1, 2, 3, 4)
    )
    link.symlink_to(real)
    hanging.symlink_to(outside / "missing")
    os.mkfifo(pipe)
    inner.mkdir()
    (inner / "mine").write_text("mine")
    scene = Workbench(None, folder, on=False)
    scene.recordings.turn_on(FolderLimits(file_bytes=3_000, total_bytes=4_000))
    scene.open("x\n")
    scene.recorder.room.join()
    assert len(scene.files()) == 1
    odd = [link, hanging, pipe, inner]
    assert scene.recordings.delete(odd) == odd
    assert all(os.path.lexists(path) for path in odd)
    assert real.stat().st_size == 4_000
    assert (inner / "mine").exists()
    assert len(scene.recordings.others()) == 4


def test_a_file_with_only_the_switchs_name_is_none(tmp_path: Path) -> None:
    theirs = tmp_path / "on.json"
    theirs.write_text('{"lights": true}')
    scene = Workbench("x\n", tmp_path, on=False)
    assert not scene.recordings.is_on()
    with pytest.raises(SettingsError, match="would be overwritten"):
        scene.recordings.turn_on()
    scene.recordings.turn_off()
    assert theirs.read_text() == '{"lights": true}'
    assert scene.recordings.others() == ["on.json"]
    theirs.unlink()
    target = tmp_path / "target"
    target.write_text("{}")
    theirs.symlink_to(target)
    with pytest.raises(SettingsError, match="would be overwritten"):
        scene.recordings.turn_on()
    assert target.read_text() == "{}"


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_after_a_full_disk_all_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, other = Workbench(None, tmp_path), Workbench(None, tmp_path)
    scene.recordings.turn_on(FolderLimits(total_bytes=77_000_000))
    scene.document, other.document = scene.open("x\n"), other.open("y\n")
    room = (tmp_path / "on.json").stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr(RecordingFile, "write", no_room)
        scene.type_at(0, 1, "a")
    assert (tmp_path / "on.json").stat().st_size < room, "a full disk has no more"
    for recordings in (scene.recordings, other.recordings, Recordings(tmp_path)):
        assert not recordings.is_on()
        assert "No space left" in recordings.problem()
        assert recordings.limits().total_bytes == 77_000_000
    other.type_at(0, 1, "b")  # one failure is enough until it is turned on again
    assert (scene.document.text, other.document.text) == ("xa\n", "yb\n")
    told = other.recorder.status()
    assert (told["on"], told["file"]) == (False, "")
    assert "No space left" in told["problem"]
    scene.recordings.turn_on()  # with no turning off before
    scene.type_at(0, 2, "c")
    other.type_at(0, 2, "d")
    assert scene.recorder.status()["on"] and other.recorder.status()["on"]
    assert scene.recorder.status()["problem"] == ""
    assert [replayed(each)["a.py"] for each in scene.files()[-2:]] == ["xac\n", "ybd\n"]


def test_only_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    scene = Workbench("x\n", tmp_path)
    scene.type_at(0, 1, "abcd")
    [file] = scene.files()
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    stream = read_recording(file)
    assert stream.torn
    assert [change.edits[0].text for change in stream.changes] == ["a", "b", "c"]
