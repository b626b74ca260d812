"""The engine process that editors share, with real processes around a fake engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from redraft.model.errors import (
    EngineGone,
    InvalidRequest,
    ModelNotReady,
    Unauthorized,
)
from redraft.model.records import EditRequest
from redraft.model.remote import RemotePredictor
from redraft.server.commands.serve import stop_engines
from redraft.server.engine_process import client as engine_client
from redraft.server.engine_process import rendezvous
from redraft.server.engine_process.client import EngineClient
from redraft.server.engine_process.engine_app import Activity, engine_app
from redraft.server.engine_process.rendezvous import Endpoint, Rendezvous
from redraft.server.settings import Settings
from support.editors.predictor import ScriptedPredictor
from support.served import eventually

pytestmark = pytest.mark.usefixtures("spawn")

ENGINE = "support.models.engines:process_engine"
#: Seconds that these wait for a start, however much else this machine has to do.
PATIENCE_S = 60.0

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files or signals")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    tests = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("FAKE_ENGINE_NOTES", str(tmp_path / "notes"))
    chosen = Settings(
        runtime_dir=tmp_path / "run",
        log_dir=tmp_path / "log",
        backoff_s=0.01,
        shutdown_s=0.2,
        idle_exit_s=120,  # an engine that a failing test leaves behind goes by itself
    )
    yield chosen
    # All that were started, not only the engine: one that lost a race may still be on its way.
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if str(tmp_path) in " ".join(child.cmdline()):
                child.kill()
                child.wait(10)


@contextlib.asynccontextmanager
async def client(settings: Settings, **options: Any) -> AsyncIterator[EngineClient]:
    joined = EngineClient(settings, **{"engine": ENGINE, "patience_s": PATIENCE_S, **options})
    try:
        yield joined
    finally:
        await joined.close()


async def pid_of(joined: EngineClient, text: str = "") -> int:
    """Return the engine process that answered."""
    prediction = await joined.predict(EditRequest("infill", "a.py", text, 0))
    return int(prediction.candidates[0].text)


def gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def kill(pid: int) -> None:
    psutil.Process(pid).kill()


async def test_racing_clients_start_one_engine(settings: Settings) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client(settings)) for _ in range(4)]
        assert len(set(await asyncio.gather(*(pid_of(one) for one in clients)))) == 1


async def test_limits_of_serve_do_not_bind_editors(settings: Settings) -> None:
    narrow = settings.with_options(max_candidates=1, max_tokens=1, max_body_bytes=1_024)
    async with client(narrow) as joined:
        text = "x = 1\n" * 1_000
        request = EditRequest("next_edit", "a.py", text, 0, candidates=3)
        assert await joined.predict(request)


async def test_another_model_gets_an_engine_of_its_own(settings: Settings) -> None:
    other = settings.with_options(model="other-model")
    async with client(settings) as first, client(other) as second:
        first_pid, second_pid = await pid_of(first), await pid_of(second)
        assert first_pid != second_pid
        kill(second_pid)


async def test_a_request_survives_a_killed_engine(settings: Settings, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with client(settings) as joined:
        asking = asyncio.create_task(pid_of(joined, "<hold once>"))
        await eventually(lambda: notes.exists() and notes.read_text())
        held_by = int(notes.read_text())
        kill(held_by)
        assert await asking != held_by


async def test_a_request_that_kills_engines_is_retried_once(settings: Settings) -> None:
    async with client(settings) as joined:
        with pytest.raises(EngineGone, match="died twice"):
            await pid_of(joined, "<crash>")
        assert await pid_of(joined) > 0  # and the next request is served


async def test_an_error_of_the_engine_restarts_nothing(settings: Settings) -> None:
    async with client(settings) as joined:
        before = await pid_of(joined)
        with pytest.raises(InvalidRequest, match="refused by the fake engine"):
            await pid_of(joined, "<refuse>")
        assert await pid_of(joined) == before


def wake_ups(pid: int) -> int:
    """Return how often the threads of a process have waited, so far."""
    texts = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/status")]
    counts = re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", "".join(texts), re.MULTILINE)
    return sum(map(int, counts))


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
async def test_nothing_wakes_an_idle_engine(settings: Settings) -> None:
    async with client(settings) as joined:
        pid = await pid_of(joined)
        await asyncio.sleep(1)
        before = wake_ups(pid)
        await asyncio.sleep(3)
        assert wake_ups(pid) == before


async def test_an_idle_engine_leaves_with_its_files(settings: Settings) -> None:
    brief = settings.with_options(idle_exit_s=0.3)
    async with client(brief) as joined:
        pid = await pid_of(joined)
    meeting = Rendezvous.of(brief)
    await eventually(lambda: gone(pid))
    assert meeting.read() is None
    assert meeting.socket is None or not meeting.socket.exists()
    assert not meeting.is_taken()


async def test_a_joined_client_keeps_the_engine(settings: Settings) -> None:
    brief = settings.with_options(idle_exit_s=0.3)
    async with client(brief) as joined:
        pid = await pid_of(joined)
        await asyncio.sleep(1.5)
        assert not gone(pid)
    await eventually(lambda: gone(pid))


async def test_a_running_request_keeps_the_engine(settings: Settings, tmp_path: Path) -> None:
    brief = settings.with_options(idle_exit_s=0.3)
    notes = tmp_path / "notes"
    async with client(brief) as joined:
        pid = await pid_of(joined)
        remote = await engine_client.join_running(brief)
        assert remote is not None
    asking = asyncio.create_task(remote.predict(EditRequest("infill", "a.py", "<hold>", 0)))
    await eventually(lambda: notes.exists() and notes.read_text())
    await asyncio.sleep(1.0)
    assert not gone(pid)
    asking.cancel()
    await eventually(lambda: gone(pid))
    await remote.close()


async def test_the_files_of_a_crashed_engine_are_no_obstacle(settings: Settings) -> None:
    meeting = Rendezvous.of(settings)
    dead = Endpoint(str(meeting.folder / "engine.sock"), True, "t", 2**22 - 1, 1.0, "0.1.0")
    meeting.publish(dead)
    (meeting.folder / "engine.sock").write_text("stale")
    (meeting.folder / "engine.lock").write_text("stale")
    async with client(settings) as joined:
        assert (await pid_of(joined)) > 0


async def test_an_upgraded_client_gets_its_own_build(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(settings) as old:
        before = await pid_of(old)
        old_meeting = Rendezvous.of(settings)
        monkeypatch.setattr(rendezvous, "BUILD", "of the upgrade")
        assert Rendezvous.of(settings).folder != old_meeting.folder
        assert await pid_of(old) == before  # the old client keeps its engine


async def test_a_client_from_before_an_upgrade_must_restart(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_client, "BUILD", "from before the upgrade")
    async with client(settings) as old:
        with pytest.raises(EngineGone, match=r"was upgraded .* Restart the editor"):
            await old.status()


async def test_an_engines_end_is_noticed_before_a_request(settings: Settings) -> None:
    async with client(settings, patience_s=0.0) as joined:
        first = await until_answered(joined)
        kill(first)
        await eventually(lambda: joined._running is None)


async def test_an_engine_that_cannot_start_says_why(settings: Settings) -> None:
    slow = settings.with_options(backoff_s=30)
    async with client(slow, engine="support.models.engines:broken_engine") as joined:
        with pytest.raises(EngineGone, match="the fake engine cannot start"):
            await joined.status()
        with pytest.raises(EngineGone, match="next try"):
            await joined.status()


async def test_an_engine_that_hangs_at_its_start_is_ended(settings: Settings) -> None:
    hasty = settings.with_options(start_timeout_s=4)
    async with client(hasty, engine="support.models.engines:hanging_engine") as joined:
        with pytest.raises(EngineGone, match="within 4 s"):
            await joined.status()
        await eventually(lambda: not Rendezvous.of(hasty).is_taken())


async def test_a_missing_engine_is_named(settings: Settings) -> None:
    async with client(settings, engine="support.models.engines:nothing") as joined:
        with pytest.raises(EngineGone, match=r"support\.models\.engines:nothing"):
            await joined.status()


async def test_a_cancelled_request_leaves_the_engine(settings: Settings, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with client(settings) as joined:
        asking = asyncio.create_task(pid_of(joined, "<hold>"))
        await eventually(lambda: notes.exists() and notes.read_text())
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await pid_of(joined) == int(notes.read_text())


async def test_a_question_interrupts_another_editors_reading(settings: Settings) -> None:
    engine = "support.models.engines:reading_engine"
    question = EditRequest("infill", "a.py", "x = 1\n", 2)
    long = EditRequest("infill", "b.py", "y = 2\n" * 2_000, 6_000, read_ahead="all")
    async with client(settings, engine=engine) as one, client(settings, engine=engine) as other:
        assert (await one.predict(question)).stats.prompt_tokens
        assert (await other.status()).reads_ahead
        reading = asyncio.create_task(other.predict(long))
        await asyncio.sleep(0.5)
        await one.predict(question)
        assert not reading.done()
        stats = (await reading).stats
        assert 0 < stats.reused_tokens < stats.prompt_tokens - 1, "it went on where it was"
        assert stats.reused_tokens + stats.computed_tokens == stats.prompt_tokens - 1


@posix
async def test_socket_and_token_are_for_this_user_alone(settings: Settings) -> None:
    async with client(settings) as joined:
        await pid_of(joined)
        meeting = Rendezvous.of(settings)
        for file in meeting.folder.iterdir():
            if file.suffix in (".json", ".sock"):
                assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
        assert stat.S_IMODE(meeting.folder.stat().st_mode) == 0o700
        endpoint = meeting.read()
        assert endpoint is not None
        for token in (None, "", endpoint.token[:-1] + "x"):
            stranger = RemotePredictor(Path(endpoint.address), token)
            with pytest.raises(Unauthorized):
                await stranger.status()
            await stranger.close()


@posix
async def test_a_long_socket_path_falls_back_to_tcp(settings: Settings, tmp_path: Path) -> None:
    long = settings.with_options(runtime_dir=tmp_path / ("x" * 100))
    async with client(long) as joined:
        pid = await pid_of(joined)
        endpoint = Rendezvous.of(long).read()
        assert endpoint is not None
        assert endpoint.address.startswith("http://127.0.0.1:")
        kill(pid)


async def test_the_engine_imports_nothing_of_the_project(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "json.py").write_text("raise SystemExit('the user\\'s json was imported')")
    monkeypatch.chdir(project)
    async with client(settings) as joined:
        assert (await pid_of(joined)) > 0


async def test_the_log_has_no_text_of_the_user(settings: Settings) -> None:
    async with client(settings) as joined:
        await pid_of(joined, "my secret document")
    log = Rendezvous.of(settings).log_file.read_text()
    assert "engine process" in log
    assert "secret" not in log


@posix
async def test_a_hanging_engine_is_ended_and_replaced(settings: Settings, tmp_path: Path) -> None:
    async with client(settings) as joined:
        first = await pid_of(joined)
        psutil.Process(first).suspend()
        async with asyncio.timeout(20):
            second = await pid_of(joined)
        await eventually(lambda: gone(first))
    assert first != second


@posix
async def test_a_hanging_engine_stops_no_next_editor(settings: Settings) -> None:
    async with client(settings) as early, client(settings) as late:
        first = await pid_of(early)
        psutil.Process(first).suspend()
        async with asyncio.timeout(20):
            second = await pid_of(late)
    assert first != second


async def test_lost_requests_repeat(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ENGINE_LOADS_S", "0.7")
    async with client(settings, engine="support.models.engines:loading_engine") as joined:
        with pytest.raises(ModelNotReady):  # nothing ever answered: the status says it loads
            await pid_of(joined)
        await asyncio.sleep(0.8)
        first = await pid_of(joined)
        kill(first)
        second = await pid_of(joined)
    assert first != second


async def until_answered(joined: EngineClient) -> int:
    """Return the engine that answers in the end; until then every request gets a reason."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await pid_of(joined)
            except ModelNotReady as error:
                assert "Try again" in str(error)
            await asyncio.sleep(0.05)


async def test_a_request_during_a_start_is_told(settings: Settings) -> None:
    async with client(settings, patience_s=0.0) as joined:
        with pytest.raises(ModelNotReady, match="being started"):
            await pid_of(joined)
        status = await joined.status()
        assert status.state == "loading" and "being started" in status.message
        first = await until_answered(joined)
        kill(first)
        with pytest.raises(ModelNotReady, match="started again"):
            await pid_of(joined)
        assert await until_answered(joined) != first


async def test_a_request_during_an_endless_start_is_told_so(settings: Settings) -> None:
    async with client(
        settings, engine="support.models.engines:hanging_engine", patience_s=0.1
    ) as one:
        for _ in range(3):
            with pytest.raises(ModelNotReady, match="being started"):
                await pid_of(one)


async def test_a_frozen_engine_delays_no_request_for_long(settings: Settings) -> None:
    async with client(settings) as joined, client(settings) as other:
        first = await pid_of(joined)
        assert await pid_of(other) == first
        with pytest.raises(ModelNotReady, match="no sign of life"):
            await pid_of(joined, "<freeze>")
        assert await until_answered(other) != first


async def test_a_busy_engine_is_left_alone(settings: Settings) -> None:
    async with client(settings) as joined:
        first = await pid_of(joined)
        with pytest.raises(ModelNotReady, match="no sign of life"):
            await pid_of(joined, "<busy>")
        assert await until_answered(joined) == first


async def test_stop_ends_the_engines_of_all_models(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    other = settings.with_options(model="other-model")
    async with client(settings) as first, client(other) as second:
        pids = [await pid_of(first), await pid_of(second)]
        assert await asyncio.to_thread(stop_engines, settings) == 2
        assert all(gone(pid) for pid in pids)
        assert "other-model" in capsys.readouterr().out
        assert await asyncio.to_thread(stop_engines, settings) == 0
        assert await pid_of(first) not in pids  # the next request starts another


def test_it_answers_four_routes() -> None:
    app = engine_app(ScriptedPredictor(), "token", Activity())
    own = {f"/redraft/v1/{name}" for name in ("predict", "status", "attend")}
    assert {each.canonical for each in app.router.resources()} == {"/health", *own}
