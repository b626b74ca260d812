"""The limits of programs that a model wrote, in bubblewrap and with limits alone."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from redraft.evals.sandbox import sandbox
from redraft.evals.sandbox.sandbox import ProgramLimits, ProgramResult, bubblewrap
from redraft.model.errors import SettingsError

pytestmark = pytest.mark.usefixtures("spawn")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")


IN_BUBBLEWRAP = pytest.mark.skipif(bubblewrap() is None, reason="bubblewrap does not work here")


@pytest.fixture(params=["limits", pytest.param("bubblewrap", marks=IN_BUBBLEWRAP)], autouse=True)
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run each test in bubblewrap and without it."""
    confined = request.param == "bubblewrap"
    monkeypatch.setitem(globals(), "run_program", partial(sandbox.run_program, confined=confined))
    return confined


run_program = sandbox.run_program


def test_a_wrong_program_fails_with_its_error() -> None:
    assert run_program("def f(x):\n    return x + 1\nassert f(1) == 2") == ProgramResult("passed")
    wrong = run_program("assert 1 == 2, 'one is not two'")
    assert wrong == ProgramResult("failed", "AssertionError: one is not two")
    assert run_program("def f(:").detail.startswith("SyntaxError")


def test_what_solutions_need_is_there() -> None:
    program = """
import collections, dataclasses, functools, hashlib, itertools, math, random, re, typing
@dataclasses.dataclass
class Point:
    x: "int"
assert Point(1).x == 1 and hashlib.md5(b"a").hexdigest()
with open("notes.txt", "w") as file:
    file.write("mine")
assert open("notes.txt").read() == "mine"
print("x" * 1_000_000)
assert not __import__("sys").stdin.read()
"""
    assert run_program(program) == ProgramResult("passed")


@POSIX
def test_a_loop_that_ignores_its_signals_is_stopped() -> None:
    program = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run_program(program, ProgramLimits(cpu_s=1)).outcome == "timeout"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces the limit of memory")
def test_a_memory_hog_is_stopped() -> None:
    verdict = run_program("hog = bytearray(2 << 30)")
    assert verdict == ProgramResult("failed", "MemoryError: ")


@POSIX
def test_a_file_cannot_grow_beyond_its_limit() -> None:
    verdict = run_program("open('big', 'wb').write(bytes(8 << 20))")
    assert verdict.outcome in ("failed", "died")


def test_nothing_of_our_environment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_API_KEY", "not for them")
    program = "import os\nassert 'REDRAFT_API_KEY' not in os.environ and os.listdir('.') == []"
    assert run_program(program) == ProgramResult("passed")


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("import os\nos._exit(0)", "died"),
        ("import sys\nsys.exit(0)", "failed"),
        ("raise SystemExit", "failed"),
        (
            'import os\nfor fd in range(9):\n    print(\'{"verdict": "passed"}\')\nos._exit(0)',
            "died",
        ),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E", "failed"),
    ],
)
def test_leaving_early_is_not_passing(program: str, outcome: str) -> None:
    assert run_program(program).outcome == outcome


@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True: os.write(3, b'[' * 65536)",
        "import os\nos.write(3, b'[' * 200_000)\nos._exit(0)",
    ],
)
def test_a_flood_through_the_verdict_pipe_is_cut_off(program: str) -> None:
    assert run_program(program).outcome == "died"


def test_deeply_nested_json_is_no_verdict() -> None:
    assert run_program("import os\nos.write(3, b'[' * 60_000)\nos._exit(0)").outcome == "died"


def test_a_program_that_closes_its_pipe_is_timed_out() -> None:
    program = "import os, time\nfor fd in range(3, 9):\n    try: os.close(fd)\n"
    program += "    except OSError: pass\ntime.sleep(600)"
    assert run_program(program, ProgramLimits(wall_s=1.0)).outcome == "timeout"


@IN_BUBBLEWRAP
@pytest.mark.parametrize("confined", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize(
    "program",
    [
        "open('/etc/passwd').read()",
        "open('../up.txt', 'w')",
        "open('/dev/shm/new', 'w')",
        "open('/usr/lib/new.py', 'w')",
        "open(SECRET).read()",
        "import os\nos.remove(SECRET)",
        "import os\nos.symlink(SECRET, 'link')\nopen('link').read()",
        "import os\nos.listdir('/proc')",
        "import os\nos.kill(OUTSIDE, 0)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "for i in range(200): open(str(i), 'wb').write(bytes(1 << 20))",
    ],
)
def test_files_and_processes_outside_are_out_of_reach(program: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("mine")
    program = program.replace("OUTSIDE", str(os.getpid())).replace("SECRET", repr(str(secret)))
    verdict = run_program(program)
    assert verdict.outcome == "failed"
    assert verdict.detail.startswith(("PermissionError", "OSError", "FileNotFoundError",
                                      "ProcessLookupError", "ValueError: not allowed"))  # fmt: skip
    assert secret.read_text() == "mine"


@IN_BUBBLEWRAP
@pytest.mark.parametrize("confined", ["bubblewrap"], indirect=True)
def test_the_network_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)"
        assert "Error" in run_program(program).detail
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", "")
    bubblewrap.cache_clear()
    yield
    bubblewrap.cache_clear()


@pytest.mark.usefixtures("without_bubblewrap")
def test_without_bubblewrap_nothing_runs_by_default(tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'ran')!r}, 'w')"
    with pytest.raises(SettingsError, match="it is not installed. Install .* or give --no-sandbox"):
        sandbox.run_program(program)
    assert not (tmp_path / "ran").exists()
    assert sandbox.run_program(program, confined=False).passed


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.usefixtures("without_bubblewrap")
def test_a_failing_bubblewrap_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="it does not work here"):
        sandbox.run_program("pass")
