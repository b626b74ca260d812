"""Nothing leaves this machine: real processes under a guard, in a home where nothing ran before."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redraft.model.silence import REPORTERS, SILENCED
from support.command import RUN, python
from support.editors.lsp_process import LspProcess
from support.models.onnx_models import register
from support.models.tiny import tiny_config, tiny_tokenizer
from support.outgoing import END_S, Guard, Kind, best_guard, guarded, outside, strace_works, tried
from support.weights.training_sources import commit, write_lines

pytestmark = pytest.mark.usefixtures("spawn")

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")

ROOT = Path(__file__).parents[2]
#: How long the engine process stays when its editor has left: longer than onnxruntime keeps its
#: reports back before it first uploads (9 s were seen).
IDLE_S = 15
SOURCE = "def area(w, h):\n    size = \n    return size\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    register(root, "tiny", tiny_config(head_dim=16), tiny_tokenizer())
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the environment of a new user: libraries read what their reports left behind."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(models: Path, home: Path) -> dict[str, str]:
    """As of a user who asked for reports: ours is the promise, and theirs are other programs."""
    kept = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
    asking = {name: {"1": "0", "0": "1"}[value] for name, value in SILENCED.items()}
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **asking,
        **{name: str(home) for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")},
        "REDRAFT_MODELS": str(models),
        "REDRAFT_MODEL": "tiny",
        "REDRAFT_THREADS": "1",
        "REDRAFT_RUNTIME_DIR": str(home / "run"),
        "REDRAFT_IDLE_EXIT_S": str(IDLE_S),
        "PYTHONUTF8": "1",
    }


@pytest.fixture
def guard(tmp_path: Path, environment: dict[str, str]) -> Iterator[Guard]:
    with guarded(tmp_path / "guard", environment, best_guard()) as started:
        yield started


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    file = folder / "area.py"
    file.write_text(SOURCE)
    return file


def redraft(*arguments: object) -> list[str]:
    return [sys.executable, "-c", RUN, *map(str, arguments)]


def finished(guard: Guard, *arguments: object) -> str:
    """Return the output of a command that has to succeed."""
    process = guard.start(
        redraft(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=4 * END_S)
    assert process.returncode == 0, err.decode()
    return out.decode()


def nothing_left(guard: Guard, home: Path) -> None:
    """Neither over the network nor into a library's store of what is to be sent."""
    assert guard.seen() == []
    found = [str(path.relative_to(home)) for path in home.rglob("*")]
    assert found, "the process did not run in this home"
    assert not [name for name in found if "onnxruntime" in name or name.endswith("deviceid")]


def test_a_completion_sends_nothing(guard: Guard, home: Path, source: Path) -> None:
    finished(guard, "complete", f"{source}:2:12", "--max-tokens", 4)
    nothing_left(guard, home)


def test_serving_sends_nothing(guard: Guard, home: Path) -> None:
    process = guard.start(redraft("serve", "--port", 0), stderr=subprocess.PIPE)
    assert process.stderr is not None
    words = process.stderr.readline().decode().split()
    assert words[:3] == ["Redraft", "listens", "at"], words
    line = ""
    while "ready" not in line:
        line = process.stderr.readline().decode()
        assert line, "it ended before it was ready"
    answer = posted(words[3] + "/v1/completions", prompt="def f():\n", suffix="\n", max_tokens=4)
    assert answer["usage"]["completion_tokens"] >= 1
    guard.program(process).terminate()
    process.wait(END_S)
    nothing_left(guard, home)


def posted(url: str, **body: Any) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=END_S) as response:
        return json.load(response)


def test_the_language_server_and_engine_send_nothing(
    guard: Guard, home: Path, source: Path, tmp_path: Path
) -> None:
    client = LspProcess({}, tmp_path, guard.start, redraft("lsp", "--stdio"))
    uri = source.as_uri()
    client.initialize(rootUri=source.parent.as_uri())
    client.open(SOURCE, uri)
    client.status("ready: tiny")
    asked = client.ask_completion(1, 11, uri)
    assert "items" in client.answer(asked)["result"]
    assert client.end() == 0
    guard.wait_for_all()
    nothing_left(guard, home)


def test_evaluations_send_nothing(guard: Guard, home: Path, models: Path, tmp_path: Path) -> None:
    commits = write_lines(tmp_path / "dev-commits.jsonl.zst", [commit()])
    run = home / "run.jsonl"
    finished(
        guard, "eval", "infill", "--commits", commits, "--weights", models / "tiny" / "fp32",
        "--limit", 1, "--max-tokens", 4, "--out", run,
    )  # fmt: skip
    assert len(run.read_text().splitlines()) == 2  # what the run is, and its one gap
    nothing_left(guard, home)


#: Connects by UDP to an unused address (RFC 5737), which sends no packet.
CONNECTS = (
    "import socket, sys\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "s.connect(('192.0.2.1', 9))\n"
    "sys.stdin.read()\n"
)
#: The same as native code does it, out of sight for Python.
CONNECTS_UNSEEN = (
    "import ctypes, socket, sys\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "to = (socket.AF_INET.to_bytes(2, sys.byteorder) + (9).to_bytes(2, 'big')\n"
    "      + socket.inet_aton('192.0.2.1') + bytes(8))\n"
    "assert ctypes.CDLL(None).connect(s.fileno(), to, len(to)) == 0\n"
    "sys.stdin.read()\n"
)


@pytest.mark.parametrize("kind", ["strace", "hook"])
@pytest.mark.parametrize(
    "program",
    [
        CONNECTS,
        pytest.param(
            CONNECTS_UNSEEN,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="another native connect"),
        ),
    ],
)
def test_the_guard_sees_who_goes_outside(
    kind: Kind, program: str, environment: dict[str, str], tmp_path: Path
) -> None:
    if kind == "strace" and not strace_works():
        pytest.skip("strace is not installed, or may not trace here")
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
    with guarded(tmp_path / "guard", environment, kind) as guard:
        process = guard.start([sys.executable, "-c", nested], stdin=subprocess.PIPE)
        while not guard.seen():  # pytest's own limit ends it
            assert process.poll() is None, "it ended unseen"
        assert set(guard.seen()) == {"192.0.2.1 9"}


def test_asking_for_names_is_outgoing_loopback_is_not() -> None:
    trace = (
        '7 connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16'
        " <unfinished ...>\n"
        "7 connect(9, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
        'inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = 0\n'
        "7 connect(9, {sa_family=AF_INET6, sin6_port=htons(7331), sin6_flowinfo=htonl(0), "
        'inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = 0\n'
        '7 connect(9, {sa_family=AF_UNIX, sun_path="/run/user/0/redraft/e.sock"}, 29) = 0\n'
        '7 connect(9, {sa_family=AF_UNIX, sun_path="/run/systemd/resolve/io.systemd.Resolve"}, 42'
        ") = 0\n"
    )
    assert tried(trace) == [
        "127.0.0.53 53",
        "2001:db8::1 443",
        "/run/systemd/resolve/io.systemd.Resolve (asks for a name)",
    ]
    assert outside("::ffff:192.0.2.1", 443) and not outside("::ffff:127.0.0.1", 443)
    assert outside("example.org", 0) and not outside("localhost", 0)


@pytest.mark.parametrize("package", ["model", "lsp", "server", "evals"])
def test_importing_any_of_ours_silences_first(package: str, environment: dict[str, str]) -> None:
    code = f"import json, os, redraft.{package}; print(json.dumps(dict(os.environ)))"
    done = python(code, env=environment)
    assert json.loads(done.stdout).items() >= SILENCED.items()


def test_these_tests_are_silent_as_well() -> None:
    assert os.environ.items() >= SILENCED.items()


def test_reporting_libraries_are_imported_in_one_place() -> None:
    files = [
        file
        for folder in ("model", "lsp", "server", "evals", "tests", "editor-clients", ".ci")
        for file in (ROOT / folder).rglob("*.py")
        if "node_modules" not in file.parts and "samples" not in file.parts
    ]
    assert len(files) > 200
    found = {str(file.relative_to(ROOT)): reporters_in(file.read_text("utf-8")) for file in files}
    assert {name: which for name, which in found.items() if which} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import onnxruntime as ort",
        "import os, onnxruntime.capi",
        "def f():\n    from onnxruntime import InferenceSession",
        "from importlib import import_module\nimport_module('onnxruntime')",
        "import importlib\nimportlib.import_module('ray.util')",
        "__import__('huggingface_hub')",
    ],
)
def test_every_way_to_import_one_is_found(code: str) -> None:
    assert reporters_in(code)
    assert not reporters_in("from .silence import import_silenced\nimport_silenced('onnxruntime')")
    assert not reporters_in("from . import onnxruntime\nimport onnx, rayleigh")


def reporters_in(code: str) -> set[str]:
    """Return the libraries of ``REPORTERS`` that a module imports without ``import_silenced``."""
    names: list[str] = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import():
                names += [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                names.append(module)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                names.append(module)
    return {name.partition(".")[0] for name in names} & REPORTERS.keys()


def test_a_library_imported_before_us_is_stopped(environment: dict[str, str]) -> None:
    code = (
        "import logging, sys, types\n"
        "logging.basicConfig()\n"
        "early = types.ModuleType('onnxruntime')\n"
        "early.disable_telemetry_events = lambda: print('told')\n"
        "sys.modules['onnxruntime'] = early\n"
        "from redraft.model.silence import import_silenced\n"
        "import_silenced('onnxruntime')\n"
        "import_silenced('onnxruntime')\n"
    )
    done = python(code, env=environment)
    assert done.stdout.split() == ["told", "told"]
    assert done.stderr.count("onnxruntime was imported before Redraft") == 1
    assert "ORT_DISABLE_TELEMETRY=1" in done.stderr
