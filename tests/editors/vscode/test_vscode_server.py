"""The server behind the VS Code extension: restarts, installation, menu, large files."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.editors.lsp_process import SERVER, command_with_tour
from support.editors.vscode_desk import (
    CALL,
    STATUS,
    Open,
    Window,
    change_signature,
)
from support.editors.vscode_studio import missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]


def test_a_killed_server_comes_back(project: Open) -> None:
    with project("math.pi") as w:
        server = _server_of(w)
        server.kill()
        server.wait(timeout=30)
        assert _server_of(w).pid != server.pid
        w.go_to(9, 5)
        w.type_until_ghost("z + ", "math.pi")  # typing brings suggestions again
        assert w.toasts() == []


def _server_of(w: Window) -> psutil.Process:
    """Return the language server of this window, known by the name of its model's log."""
    wanted = json.dumps(str(w.log))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in psutil.process_iter(["cmdline"]):
            if any(wanted in part for part in process.info["cmdline"] or ()):
                return process
        time.sleep(0.2)
    raise AssertionError("no server")


def test_a_slow_model_holds_no_key_up(project: Open) -> None:
    with project("math.pi", delay_s=4.0) as w:
        w.go_to(9, 1)
        text = "    total = 0  # typed while the model thinks\n"
        w.type(text.rstrip("\n"), 40)
        w.await_status("thinking")
        assert "total = 0  # typed while the model thinks" in w.saved("a.py")
        w.await_ghost("math.pi")


def test_a_server_that_is_not_there_is_said_once(project: Open) -> None:
    nowhere = {"redraft.server.path": "/nowhere/redraft"}
    with project("x", settings=nowhere, ready=False) as w:
        w.await_status("the server is not installed")
        w.await_toast("/nowhere/redraft, named by redraft.server.path")
        assert len(w.toasts()) == 1


def test_a_crashing_server_shows_a_status_but_no_popup(project: Open) -> None:
    broken = {"redraft.server.arguments": ["-c", "raise SystemExit('broken')"]}
    with project("x", settings=broken, ready=False) as w:
        w.await_status("the server ended several times in a row")
        assert w.toasts() == []


def test_a_build_without_a_server_installs_nothing(project: Open) -> None:
    with project("x", settings={"redraft.server.path": ""}, ready=False) as w:
        w.await_toast("Redraft needs its language server")
        w.answer("Install")
        w.await_toast("this build of the extension comes without the server")


def test_the_server_is_installed_with_a_tool(project: Open, request: pytest.FixtureRequest) -> None:
    settings = {"redraft.server.path": "", "redraft.server.package": "/somewhere/my redraft"}
    with project("math.pi", settings=settings, ready=False) as w:
        installed = w.studio.tools.parent / "home" / ".local" / "bin" / "redraft"
        request.addfinalizer(lambda: installed.unlink(missing_ok=True))
        told = {"answers": [{"ghost": "math.pi", "edits": []}], "log": str(w.log)}
        server = [sys.executable, str(SERVER), json.dumps(told)]
        uv = w.studio.tools / "uv"
        _script(uv, "echo no network >&2; exit 1")
        w.await_status("the server is not installed")
        w.await_toast("Redraft needs its language server")
        w.answer("Install")
        w.choose("uv tool")
        w.await_toast("could not be installed: uv ended with code 1. no network")
        _script(w.studio.tools / "redraft-to-be", f"exec {shlex.join(server)}")
        into = '"$HOME/.local/bin"'
        install = f'mkdir -p {into}; cp "${{0%uv}}redraft-to-be" {into}/redraft'
        _script(uv, f'printf "%s\\n" "$@" > "$0.told"; {install}')
        w.command("Redraft: Install Server…")
        w.choose("uv tool")
        w.await_ready()
        w.go_to(9, 5)
        w.type_until_ghost("z + ", "math.pi")
        *_, wanted = (w.studio.tools / "uv.told").read_text().splitlines()
        assert wanted == "redraft[cpu] @ file:///somewhere/my%20redraft"


def test_the_server_that_setup_named_is_started(project: Open) -> None:
    with project("math.pi", settings={"redraft.server.path": ""}, ready=False) as w:
        w.await_status("the server is not installed")
        told = {"answers": [{"ghost": "math.pi", "edits": []}], "log": str(w.log)}
        command = w.studio.tools.parent / "a command"
        _script(command, shlex.join(["exec", sys.executable, str(SERVER), json.dumps(told)]))
        [package] = w.studio.tools.parent.glob("extensions/redraft.redraft-*")
        named = package / "dist" / "server-command"
        named.write_text(str(command), encoding="utf-8")
        try:
            w.command("Redraft: Restart Server")
            w.await_ready()
        finally:
            named.unlink()


def test_the_tour_opens_a_window_at_its_first_file(project: Open, tmp_path: Path) -> None:
    with project("x", settings={"redraft.server.path": str(command_with_tour(tmp_path))}) as w:
        w.evaluate("void (window.open = url => { window.opened = String(url); return window; })")
        w.command("Redraft: Take the Tour")
        url = w.until("window.opened")
        assert url.endswith("/redraft-tour")
        w.evaluate(f"void setTimeout(() => location.assign({json.dumps(url)}))")
        w.until(
            "document.querySelector('.tab.active')?.dataset.resourceName === 'tour1_parameter.py'"
        )


def test_a_larger_model_is_downloaded_or_declined(project: Open, tmp_path: Path) -> None:
    name = "redraft-1.5b"
    status = {"state": "ready", "model": "redraft-0.5b int8", "larger": name}
    told = tmp_path / "pulled"
    server = f'exec {shlex.quote(sys.executable)} "$@"'
    pull = f"echo $@ > {told}; [ -e {told}.twice ] && exit; touch {told}.twice"
    full = "echo error: The disk is full >&2; exit 1"
    _script(tmp_path / "redraft", f'if [ "$1" = model ]; then {pull}; {full}; else {server}; fi')
    settings = {
        "redraft.server.path": str(tmp_path / "redraft"),
        "redraft.server.environment": {"REDRAFT_CACHE_DIR": str(tmp_path / "cache")},
    }
    statuses = [{**status, "about_larger": f"{name} suits this machine: it costs 1,117 MB."}]
    with project("math.pi", settings=settings, statuses=statuses) as w:
        w.await_toast("it costs 1,117 MB")
        w.answer("Download")
        w.await_toast("the smaller model goes on: redraft ended with code 1. error: The disk is")
        w.await_status("The disk is full")
        assert told.read_text().split() == ["model", "pull", name]
        w.command("Redraft: Restart Server")
        w.await_toast("it costs 1,117 MB")
        w.answer("Download")
        w.await_toast("runs from the next suggestion on")
        w.command("Redraft: Restart Server")
        w.await_toast("it costs 1,117 MB")
        w.answer("No")
        declined = tmp_path / "cache" / "model-declined"
        end = time.monotonic() + 30
        while not declined.exists():
            assert time.monotonic() < end, "No is not remembered"
            time.sleep(0.1)
        assert declined.read_text().strip() == name


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_menu_says_why_and_switches_a_language_off(project: Open) -> None:
    # A setting is changed where it is set already: here, not for the other tests.
    with project("math.pi", settings={"redraft.disabledLanguages": []}) as w:
        w.press("Escape")
        w.command("Redraft: Menu")
        w.until("document.querySelectorAll('.quick-input-list .monaco-list-row').length > 8")
        w.choose("Switch off for python")
        w.await_status("switched off for python")
        w.go_to(9, 5)
        w.type("z = ")
        w.command("Redraft: Why Is Nothing Shown?")
        w.until(
            "document.querySelector('.quick-input-list')?.textContent"
            ".includes('switched off for python')"
        )
        w.press("Escape")
        assert w.asked() == []
        settings = json.loads((w.folder / ".vscode" / "settings.json").read_text())
        assert settings["redraft.disabledLanguages"] == ["python"]
        before = _server_of(w).pid
        w.command("Redraft: Restart Server")
        w.until(f"!{STATUS}.includes('switched off')")
        w.await_ready()
        assert _server_of(w).pid != before


def test_ghost_text_is_shown_in_a_large_file(project: Open) -> None:
    lines = "".join(f"value_{i} = compute({i}, 'text of line {i}')\n" for i in range(10_000))
    settings = {"redraft.trace.server": "off"}
    with project("math.pi", files={"a.py": f"import math\n\n{lines}"}, settings=settings) as w:
        w.go_to(5_000, 1)
        w.press("End", "Enter")
        text = "total = " + "".join(f"value_{i} + " for i in range(17, 27))
        w.type(text, 60)
        w.await_ghost("math.pi")
        assert f"\n{text}" in w.saved("a.py")


def test_reasons_are_those_of_the_present_moment(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Alt+]")
        w.until("document.body.innerText.includes('there is no other edit here')")
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Alt+Backspace")
        w.await_no_hint()
        w.await_reason("rejected; it does not come back")
        w.await_reason("you rejected a suggestion here")
        assert "shown" not in w.status()
        w.press("Control+z")
        w.await_reason("you just undid or redid a change")
        assert "shown" not in w.status()
