"""The limits of programs that a model wrote, in bubblewrap and with limits alone."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from redraft.evals.sandbox import sandbox
from redraft.evals.sandbox.sandbox import (
    ProgramLimits,
    ProgramResult,
    bubblewrap,
    protection,
    run_program,
)

pytestmark = pytest.mark.usefixtures("spawn")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")


IN_BUBBLEWRAP = pytest.mark.skipif(bubblewrap() is None, reason=protection())


@pytest.fixture(autouse=True, params=["limits", "bubblewrap"] if bubblewrap() else ["limits"])
def wrapper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in both sandboxes, where there are two."""
    if request.param == "limits":
        monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)


def refused(verdict: ProgramResult) -> bool:
    return verdict.outcome == "failed" and "the sandbox refuses" in verdict.detail


def test_a_right_program_passes_and_a_wrong_one_fails_with_its_error() -> None:
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


def test_the_network_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)"
        assert refused(run_program(program))
        raw = f"import _socket\n_socket.socket().connect(('127.0.0.1', {port}))"
        assert refused(run_program(raw))
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


def test_files_outside_the_folder_are_out_of_reach(tmp_path: Path) -> None:
    secret, target = tmp_path / "secret.txt", tmp_path / "new.txt"
    secret.write_text("mine")
    for program in (
        f"open({str(secret)!r}).read()",
        f"open({str(target)!r}, 'w')",
        f"import os\nos.open({str(target)!r}, os.O_CREAT | os.O_WRONLY)",
        f"import os\nos.remove({str(secret)!r})",
        f"import os\nos.rename('x', {str(target)!r})",
        f"import os\nos.listdir({str(tmp_path)!r})",
        "open('../up.txt', 'w')",
        f"import os\nos.symlink({str(secret)!r}, 'link')",
        f"import os\nos.chdir({str(tmp_path)!r})",
    ):
        assert refused(run_program(program)), program
    assert secret.read_text() == "mine"
    assert not target.exists()


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos.system('true')",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.kill(os.getppid(), 9)",
        "import ctypes",
    ],
)
def test_other_processes_and_native_code_are_out_of_reach(program: str) -> None:
    assert refused(run_program(program))


@POSIX
def test_it_cannot_fork() -> None:
    assert refused(run_program("import os\nos.fork()"))


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


ONLY_LIMITS = "Programs run with resource limits and an audit hook only: "


def test_the_active_sandbox_is_named(wrapper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    if sandbox.bubblewrap() is not None:
        assert protection() == "Programs run in bubblewrap, with resource limits and an audit hook."
        return
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert protection() == f"{ONLY_LIMITS}bubblewrap (bwrap) is not installed."
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/bwrap")
    assert protection() == f"{ONLY_LIMITS}bubblewrap does not work here."
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "macOS has no bubblewrap" in protection()
    monkeypatch.setattr(sys, "platform", "win32")
    assert "Windows has no bubblewrap" in protection()


@POSIX
def test_a_failing_bubblewrap_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    bubblewrap.cache_clear()
    try:
        assert bubblewrap() is None
    finally:
        bubblewrap.cache_clear()


@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True: os.write(3, b'[' * 65536)",
        "import os\nos.write(3, b'[' * 200_000)\nos._exit(0)",
    ],
)
def test_a_flood_through_the_pipe_of_the_verdict_is_cut_off(program: str) -> None:
    assert run_program(program).outcome == "died"


def test_nested_nonsense_in_place_of_a_verdict_is_no_verdict() -> None:
    assert run_program("import os\nos.write(3, b'[' * 60_000)\nos._exit(0)").outcome == "died"


def test_a_program_that_closes_the_pipe_and_sleeps_is_stopped() -> None:
    program = "import os, time\nfor fd in range(3, 9):\n    try: os.close(fd)\n"
    program += "    except OSError: pass\ntime.sleep(600)"
    assert run_program(program, ProgramLimits(wall_s=1.0)).outcome == "timeout"


@pytest.mark.parametrize(
    "program",
    [
        "for i in range(500): open(str(i), 'w')",
        "import os\nfor i in range(500): os.mkdir('a/' * i + 'a')",
    ],
)
def test_files_and_folders_are_counted(program: str) -> None:
    verdict = run_program(program)
    assert refused(verdict) and "more than 100" in verdict.detail


@POSIX
def test_a_relative_name_cannot_mean_another_folder() -> None:
    program = "import os\nhere = os.open(os.path.dirname(os.__file__), os.O_RDONLY)\n"
    assert refused(
        run_program(program + "os.open('new.py', os.O_CREAT | os.O_WRONLY, dir_fd=here)")
    )


@pytest.mark.parametrize(
    "module", ["sqlite3", "ssl", "dbm.gnu", "_xxsubinterpreters", "_posixshmem", "_tkinter"]
)
def test_modules_that_open_files_in_silence_are_out_of_reach(module: str) -> None:
    verdict = run_program(f"import {module}")
    assert verdict.outcome == "failed" and "Error" in verdict.detail


#: Makes the audit hook blind, as anything can that runs in one interpreter with it.
BLIND = (
    "import __main__ as jail, os\njail.REFUSED = ()\njail.REFUSED_IMPORTS = ()\n"
    "jail.Guard.check = lambda *a: None\n"
)


@IN_BUBBLEWRAP
@pytest.mark.parametrize("wrapper", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize(
    "program",
    [
        "open('/etc/passwd').read()",
        "open('../up.txt', 'w')",
        "open('/usr/lib/new.py', 'w')",
        "os.listdir('/proc')",
        "os.kill(OUTSIDE, 0)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    ],
)
def test_bubblewrap_refuses_what_a_blinded_hook_lets_through(program: str) -> None:
    verdict = run_program(BLIND + program.replace("OUTSIDE", str(os.getpid())))
    assert verdict.outcome == "failed"
    assert verdict.detail.startswith(("PermissionError", "OSError", "FileNotFoundError",
                                      "ProcessLookupError", "ValueError: not allowed"))  # fmt: skip


@IN_BUBBLEWRAP
@pytest.mark.parametrize("wrapper", ["bubblewrap"], indirect=True)
def test_bubblewrap_has_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)"
        verdict = run_program(BLIND + program)
        assert verdict.outcome == "failed" and "Error" in verdict.detail
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
