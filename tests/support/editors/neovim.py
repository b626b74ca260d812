"""A real Neovim with the client loaded: keys go in, the screen comes out.

Neovim runs as a child that draws its screen for us (``--embed``), so tests see the cells and
colours a person would see. The language server runs in this process, on loopback, with a scripted
model; :func:`server_command` is the one over stdio for tests that end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.protocol.stdio import MessageReader, converse
from redraft.lsp.recording.counts import StatisticsFolder
from redraft.lsp.recording.recordings_folder import Recordings
from redraft.lsp.server import create_server
from redraft.model.records import EditRequest, Prediction

from support.editors.lsp_process import SERVER
from support.editors.neovim_screen import Screen
from support.editors.predictor import ScriptedPredictor, infill, rewrite

NVIM = shutil.which("nvim") or shutil.which("nvim", path=str(Path(sys.executable).parent))
needs_neovim = pytest.mark.usefixtures("neovim")

CLIENT = Path(__file__).parents[3] / "editor-clients" / "neovim"
_WAIT_S = 60.0

#: A Python file makes Neovim look for Python plugins, by processes that take seconds.
_QUICKLY = ("--cmd", "let g:loaded_python3_provider = 0")

#: What a person would see as well: colours, and the status line.
LOOKS = """
vim.o.termguicolors, vim.o.laststatus = true, 2
vim.o.statusline = " %f %m%=%{%v:lua.require'redraft'.statusline()%} "
"""

#: Keeps every status of the server.
_TOLD = """
_G.told = {}
vim.api.nvim_create_autocmd("User", { pattern = "RedraftStatus", callback = function()
  table.insert(_G.told, require("redraft.status").state.message)
end })
"""


def server_command(script: dict[str, Any]) -> str:
    """Lua for the command that runs the scripted server over stdio."""
    words = [sys.executable, str(SERVER), json.dumps(script)]
    return "vim.json.decode([==[" + json.dumps(words) + "]==])"


def edits(
    *changes: tuple[str, str], ghost: str = "", confidence: float = 0.9
) -> Callable[[EditRequest], Prediction]:
    """Return a model that writes ``ghost`` and makes the first change that the text lacks."""

    def answer(request: EditRequest) -> Prediction:
        if request.task == "infill":
            return infill(request, ghost, confidence=confidence)
        for old, new in changes:
            done = old in new and new in request.text
            if old in request.text and not done:
                return rewrite(request, old, new, confidence)
        return rewrite(request, "nothing", "left")

    return answer


def ghost(text: str, confidence: float = 0.9) -> Callable[[EditRequest], Prediction]:
    return edits(ghost=text, confidence=confidence)


def pieces(typed: str) -> Iterator[str]:
    """Return the keys of a string; ``<Esc>`` and the like are one key."""
    while typed:
        end = typed.index(">") + 1 if typed.startswith("<") else 1
        yield typed[:end]
        typed = typed[end:]


class Server:
    """Language servers for any number of editors, in a thread of this process."""

    def __init__(self, predictor: ScriptedPredictor, settings: LspSettings | None = None) -> None:
        self._ready: queue.Queue[int] = queue.Queue()
        self._loop = asyncio.new_event_loop()
        self._serving = self._loop.create_task(self._serve(predictor, settings))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.port = self._ready.get(timeout=_WAIT_S)

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)

    async def _serve(self, predictor: ScriptedPredictor, settings: LspSettings | None) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server = create_server(
                predictor,
                settings=settings,
                recordings=Recordings(),
                statistics=StatisticsFolder(),
            )
            await converse(server, MessageReader(reader), writer)
            writer.close()

        listener = await asyncio.start_server(connected, "127.0.0.1", 0)
        self._ready.put(listener.sockets[0].getsockname()[1])
        try:
            await asyncio.Event().wait()
        finally:
            listener.close()
            await predictor.close()

    @property
    def command(self) -> str:
        """Lua for the client's ``cmd``."""
        return f"vim.lsp.rpc.connect('127.0.0.1', {self.port})"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(timeout=_WAIT_S)


class Neovim:
    """A running Neovim.

    Args:
        command: the server's ``cmd``, in Lua; None: without our client.
        init: further configuration of the user, in Lua.
        pictures: folder for :meth:`picture`.
    """

    def __init__(
        self,
        folder: Path,
        file: Path,
        command: str | None,
        init: str = "",
        size: tuple[int, int] = (80, 24),
        pictures: Path | None = None,
    ) -> None:
        import msgpack

        self._pictures = pictures
        begin = folder / "init.lua"
        ours = (
            f"vim.opt.runtimepath:append({json.dumps(str(CLIENT))})\n"
            f"vim.lsp.config('redraft', {{ cmd = {command} }})\n"
        )
        begin.write_text(
            ("" if command is None else ours)
            + "vim.o.swapfile = false\nvim.o.shortmess = vim.o.shortmess .. 'I'\n"
            + init,
            encoding="utf-8",
        )
        home = folder / "home"
        names = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        assert NVIM is not None
        self.process = subprocess.Popen(
            [NVIM, *_QUICKLY, "-u", str(begin), "-i", "NONE", "--embed", str(file)],
            cwd=folder,
            env={**os.environ, **{name: str(home / name) for name in names}},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.screen = Screen()
        self._pack = msgpack.Packer().pack
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        self._answers: dict[int, queue.Queue[tuple[Any, Any]]] = {}
        self._ids = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.request("nvim_ui_attach", *size, {"rgb": True, "ext_linegrid": True})

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while data := os.read(stream.fileno(), 65536):
            self._unpacker.feed(data)
            for message in self._unpacker:
                if message[0] == 1:
                    self._answers[message[1]].put((message[2], message[3]))
                elif message[0] == 2 and message[1] == "redraw":
                    self.screen.redraw(message[2])

    def request(self, method: str, *arguments: Any) -> Any:
        self._ids += 1
        id_ = self._ids
        self._answers[id_] = queue.Queue()
        assert self.process.stdin is not None
        self.process.stdin.write(self._pack([0, id_, method, list(arguments)]))
        self.process.stdin.flush()
        error, result = self._answers[id_].get(timeout=_WAIT_S)
        assert error is None, error
        return result

    def keys(self, keys: str) -> None:
        """Typed as a person types them, mappings included."""
        self.request("nvim_input", keys)

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.request("nvim_exec_lua", code, list(arguments))

    def command(self, command: str) -> str:
        """Return the output of an Ex command."""
        printed: str = self.request("nvim_exec2", command, {"output": True})["output"]
        return printed

    def lines(self) -> list[str]:
        found: list[str] = self.request("nvim_buf_get_lines", 0, 0, -1, False)
        return found

    def cursor(self) -> tuple[int, int]:
        """Line from 1 and byte from 0."""
        line, column = self.request("nvim_win_get_cursor", 0)
        return line, column

    def mode(self) -> str:
        found: str = self.request("nvim_get_mode")["mode"]
        return found

    def showing(self) -> str | None:
        found: str | None = self.lua("return require('redraft').showing()")
        return found

    def notices(self) -> list[str]:
        """Return the messages of ``vim.notify`` since the file was opened."""
        found: list[str] = self.lua("return _G.notices")
        return found

    def told(self) -> list[str]:
        """Every status since the file was opened."""
        found: list[str] = self.lua("return _G.told")
        return found

    def why(self) -> str:
        found: str = self.lua("return select(2, require('redraft').status())")
        return found

    def until(self, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + _WAIT_S
        while not holds():
            if time.monotonic() > deadline:
                self.picture("failed")
                raise AssertionError(f"{self._state()}\n{self.screen.text()}")
            time.sleep(0.02)

    def _state(self) -> str:
        """Return the state of our client, if it is loaded."""
        loaded = self.lua("return package.loaded['redraft'] ~= nil")
        return f"{self.showing()} {self.why()!r}" if loaded else "another's client"

    def sees(self, part: str) -> None:
        """Wait until ``part`` is on the screen."""
        self.until(lambda: part in self.screen.text())

    def has(self, *lines: str) -> None:
        """Wait until the buffer holds exactly these lines."""
        self.until(lambda: self.lines() == list(lines))

    def picture(self, what: str) -> None:
        """Keep the screen as it is, under the name of the running test."""
        if self._pictures is None:
            return
        self.request("nvim__redraw", {"flush": True})
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition(" ")[0]
        test = "".join(c if c.isalnum() or c == "_" else "-" for c in test.removeprefix("test_"))
        name = f"neovim-{test}-{what}.svg".replace("--", "-")
        (self._pictures / name).write_text(self.screen.svg(), encoding="utf-8")

    def attached(self) -> None:
        """Wait until the server is there."""
        self.until(lambda: self.lua("return require('redraft.client').get() ~= nil"))

    def close(self) -> None:
        with contextlib.suppress(OSError, AssertionError, queue.Empty):
            assert self.process.stdin is not None
            self.process.stdin.write(self._pack([2, "nvim_command", ["qa!"]]))
            self.process.stdin.flush()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class NeovimDesk:
    """A Neovim and a server thread for all tests of a file.

    Each test gets a new project, a new connection and thus a new session, and its answers.
    """

    def __init__(self, folder: Path, pictures: Path) -> None:
        self.folder = folder
        self.predictor = ScriptedPredictor()
        # No delay and no threshold: other tests cover them.
        self.server = Server(self.predictor, LspSettings(delay_ms=0, eagerness="high"))
        self._projects = 0
        file = self._file("x = 1\n", "a.py")
        self.editor = Neovim(folder, file, self.server.command, LOOKS + _TOLD, pictures=pictures)

    def _file(self, text: str, name: str) -> Path:
        self._projects += 1
        project = self.folder / f"project{self._projects}"
        (project / ".git").mkdir(parents=True)
        file = project / name
        file.write_bytes(text.encode())
        return file

    def open(
        self, text: str, *answers: Any, name: str = "a.py", beside: dict[str, str] | None = None
    ) -> Neovim:
        """Open a file with ``text``; see :class:`ScriptedPredictor` for the answers.

        Args:
            beside: texts of other files of the project, by name.
        """
        file = self._file(text, name)
        for other, content in (beside or {}).items():
            (file.parent / other).write_bytes(content.encode())
        self.editor.keys("<C-\\><C-n>")
        self.editor.lua(
            """
            require("redraft.events").clear()
            for _, client in ipairs(vim.lsp.get_clients()) do client:stop(true) end
            vim.wait(10000, function() return #vim.lsp.get_clients() == 0 end, 5)
            vim.cmd("silent! only | silent! %bwipeout!")
            require("redraft").setup()
            _G.notices, _G.told = {}, {}
            vim.notify = function(message) table.insert(_G.notices, message) end
            """
        )
        self.predictor.answers[:] = list(answers)
        self.predictor.requests.clear()
        self.predictor.delay_s = 0.0
        self.editor.command(f"edit {file.as_posix()}")
        self.editor.attached()
        # Said once the model was looked at, which may be later than a first answer.
        self.editor.until(lambda: any(told.startswith("ready") for told in self.editor.told()))
        return self.editor

    def close(self) -> None:
        self.editor.close()
        self.server.close()


@contextlib.contextmanager
def neovim(
    folder: Path, text: str, command: str, attached: bool = True, **how: Any
) -> Iterator[Neovim]:
    """Yield a Neovim with one file open; where ``attached``, wait for the server."""
    project = folder / "project"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    file = project / "a.py"
    file.write_bytes(text.encode())
    editor = Neovim(folder, file, command, **how)
    try:
        if attached:
            editor.attached()
        yield editor
    finally:
        editor.close()


def with_ghost_text(desk: NeovimDesk) -> Neovim:
    """Type the beginning of a line and wait for the ghost text that completes it."""
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    return editor
