"""The folder where the engine process and its clients find each other."""

from __future__ import annotations

import dataclasses
import logging
import sys
from pathlib import Path

import psutil
import pytest
from redraft.model import release
from redraft.model.errors import SettingsError
from redraft.server.engine_process import host, rendezvous
from redraft.server.engine_process.rendezvous import Endpoint, Rendezvous, when_started
from redraft.server.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(runtime_dir=tmp_path / "run", log_dir=tmp_path / "log")


@pytest.mark.parametrize("record", ["", "{", "[]", "null", '{"address": 1}'])
def test_a_damaged_record_is_no_obstacle(settings: Settings, record: str) -> None:
    meeting = Rendezvous.of(settings)
    (meeting.folder / "engine.json").write_text(record)
    assert meeting.read() is None


@pytest.mark.parametrize("part", ["SCHEMA", "BUILD"])
def test_another_release_meets_elsewhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    meeting = Rendezvous.of(settings)
    assert Rendezvous.of(settings).folder == meeting.folder
    monkeypatch.setattr(rendezvous, part, "of another release")
    other = Rendezvous.of(settings)
    assert other.folder != meeting.folder and other.log_file != meeting.log_file


def test_the_log_holds_names_that_are_not_unicode(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = Rendezvous.of(settings)
    handlers: list[logging.Handler] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **given: handlers.extend(given["handlers"]))
    monkeypatch.setattr(logging, "raiseExceptions", True)
    host.log_to(meeting)
    (handler,) = handlers
    handler.handle(logging.makeLogRecord({"msg": "no file %s", "args": ("a\udcff.py",)}))
    handler.close()
    assert meeting.log_file.read_text().endswith("no file a\\udcff.py\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such links")
def test_a_folder_that_is_a_link_is_not_trusted(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingsError, match="REDRAFT_RUNTIME_DIR"):
        Rendezvous.of(settings.with_options(runtime_dir=tmp_path / "link"))


@pytest.mark.skipif(sys.platform != "linux", reason="only there is the boot's time reckoned anew")
def test_a_changed_clock_loses_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = psutil.Process()
    endpoint = Endpoint("", True, "", me.pid, when_started(me), "0")
    (tmp_path / str(me.pid)).symlink_to(f"/proc/{me.pid}")
    told = Path("/proc/stat").read_text().replace("btime ", "btime 1")  # centuries later
    (tmp_path / "stat").write_text(told)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert psutil.Process(me.pid).create_time() > me.create_time() + 3_600
    assert endpoint.process() is not None
    assert dataclasses.replace(endpoint, started=endpoint.started - 60).process() is None


def test_a_built_checkout_has_the_same_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, checkout = tmp_path / "site", tmp_path / "checkout"
    for info, files in (
        (
            site / "redraft-1.0.dist-info",
            {"METADATA": "Version: 1.0\nName: redraft", "RECORD": "a"},
        ),
        (checkout / "redraft.egg-info", {"PKG-INFO": "Version: 1.0\nName: redraft"}),
    ):
        info.mkdir(parents=True)
        for name, text in files.items():
            (info / name).write_text(text)
    for path in ([site], [checkout, site]):  # as -P leaves it, and as 'python -m' extends it
        monkeypatch.setattr(sys, "path", [str(folder) for folder in path])
        found = release.read_release(site)
        assert found is not None and found.read_text("RECORD") == "a"
