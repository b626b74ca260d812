"""``redraft setup``: what it changes, asks, keeps and undoes, for editors that are files here."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import typer
from redraft.model.errors import EditorSetupError
from redraft.server.commands import doctor
from redraft.server.commands.setup import changes, command, vscode
from redraft.server.commands.setup.clients import server_program
from redraft.server.commands.setup.command import run_setup
from support.command import call

pytestmark = pytest.mark.usefixtures("spawn")

ROOT = Path(__file__).parents[3]

ZED = """// mine
{
  "theme": "One Dark", // dark
  "languages": { "Python": { "tab_size": 4, }, },
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder; the PATH has one folder of it alone."""
    folder = tmp_path / "my höme"
    (folder / "bin").mkdir(parents=True)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return folder


@pytest.fixture
def zed(home: Path) -> Path:
    """Return the file of Zed's settings."""
    file = home / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(ZED, encoding="utf-8")
    return file


def script(home: Path, name: str, text: str) -> Path:
    """Write a command that stands in for an editor, which cannot be run here."""
    file = home / "bin" / name
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder, with the content of files."""
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize(
    "text", [ZED, ZED.replace("\n", "\r\n"), f"\ufeff{ZED}", "", "// nothing\n", "{}"]
)
def test_zed_gets_its_old_bytes_back(zed: Path, text: str) -> None:
    zed.write_bytes(text.encode())
    before = tree(zed.parents[2])
    run_setup("zed", remove=False, yes=True)
    changed = zed.read_bytes().decode()
    assert "open_ai_compatible_api" in changed
    assert ("\r\n" in changed) == ("\r\n" in text)
    run_setup("zed", remove=True, yes=True)
    assert tree(zed.parents[2]) == before


def test_settings_that_were_not_there_are_deleted(zed: Path) -> None:
    zed.unlink()
    before = tree(zed.parents[2])
    run_setup("zed", remove=False, yes=True)
    assert zed.exists()
    run_setup("zed", remove=True, yes=True)
    assert tree(zed.parents[2]) == before


def test_what_the_user_changed_since_stays(zed: Path) -> None:
    old = '"provider": "copilot", // mine\n    "mode": "eager"'
    zed.write_text(ZED.replace("{\n", f'{{\n  "edit_predictions": {{\n    {old}\n  }},\n', 1))
    before = zed.read_text()
    run_setup("zed", remove=False, yes=True)
    zed.write_text(zed.read_text().replace("One Dark", "Ayu"))
    run_setup("zed", remove=True, yes=True)
    assert zed.read_text() == before.replace("One Dark", "Ayu")


def test_another_provider_chosen_since_stays(zed: Path) -> None:
    run_setup("zed", remove=False, yes=True)
    ours = '"provider": "open_ai_compatible_api"'
    zed.write_text(zed.read_text().replace(ours, '"provider": "zed"'))
    run_setup("zed", remove=True, yes=True)
    assert '"provider": "zed"' in zed.read_text()
    assert "7331" not in zed.read_text()


def test_setting_up_again_changes_nothing(zed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_setup("zed", remove=False, yes=True)
    after = tree(zed.parents[2])
    run_setup("zed", remove=False, yes=False)  # no question either
    assert tree(zed.parents[2]) == after
    assert "current" in capsys.readouterr().out


def test_an_update_follows_the_port(zed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_setup("zed", remove=False, yes=True)
    monkeypatch.setenv("REDRAFT_PORT", "7777")
    run_setup("zed", remove=False, yes=True)
    assert zed.read_text().count("127.0.0.1:7777") == 1
    assert "7331" not in zed.read_text()
    run_setup("zed", remove=True, yes=True)
    assert zed.read_text() == ZED


def test_removing_twice_says_so(zed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_setup("zed", remove=False, yes=True)
    run_setup("zed", remove=True, yes=True)
    run_setup("zed", remove=True, yes=True)
    assert "nothing to remove" in capsys.readouterr().out
    assert zed.read_text() == ZED


def test_the_plan_is_shown_and_asked_about(home: Path, zed: Path) -> None:
    code, out, err = call("setup", "zed")  # no terminal, no --yes
    assert (code, zed.read_text()) == (1, ZED), err
    assert '+  "edit_predictions": {' in out
    assert "~/.config/zed/settings.json" in out
    assert "--yes" in err
    assert not (home / ".local").exists()


@pytest.mark.parametrize(("answer", "changes"), [("n", False), ("y", True)])
def test_the_answer_at_a_terminal_counts(
    zed: Path, answer: str, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    with contextlib.nullcontext() if changes else pytest.raises(typer.Abort):
        run_setup("zed", remove=False, yes=False)
    assert (zed.read_text() != ZED) == changes


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": ', "not JSON"),
        (b'{"edit_predictions": []}', "edit_predictions is not an object"),
        ('{"a": "ä"}'.encode("latin-1"), "not UTF-8"),
    ],
)
def test_settings_that_are_not_understood_stay(zed: Path, content: bytes, reason: str) -> None:
    zed.write_bytes(content)
    with pytest.raises(EditorSetupError, match=reason) as raised:
        run_setup("zed", remove=False, yes=True)
    assert str(zed) in str(raised.value)
    assert zed.read_bytes() == content


def test_a_write_that_fails_leaves_no_trace(zed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = tree(zed.parents[2]), changes._write

    def refuse(path: Path, content: bytes) -> None:
        if path == zed:
            raise PermissionError(13, "Permission denied", str(path))
        write(path, content)

    monkeypatch.setattr(changes, "_write", refuse)
    with pytest.raises(EditorSetupError, match=r"Permission denied.*as it was without Redraft"):
        run_setup("zed", remove=False, yes=True)
    assert tree(zed.parents[2]) == before


def test_settings_changed_during_the_question_stay(
    zed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_ask", lambda _: zed.write_text('{"mine": 1}'))
    with pytest.raises(EditorSetupError, match="changed meanwhile"):
        run_setup("zed", remove=False, yes=False)
    assert zed.read_text() == '{"mine": 1}'


@pytest.mark.parametrize("content", ["{", "[1]", '{"edit_predictions": 1}'])
def test_settings_broken_since_stay(zed: Path, content: str) -> None:
    run_setup("zed", remove=False, yes=True)
    zed.write_text(content)
    with contextlib.suppress(EditorSetupError):
        run_setup("zed", remove=True, yes=True)
    assert zed.read_text() == content


def test_linked_settings_stay_a_link(home: Path, zed: Path) -> None:
    dotfiles = home / "dotfiles.json"
    zed.rename(dotfiles)
    dotfiles.chmod(0o600)
    zed.symlink_to(dotfiles)
    run_setup("zed", remove=False, yes=True)
    assert zed.readlink() == dotfiles
    assert "7331" in dotfiles.read_text()
    assert dotfiles.stat().st_mode & 0o777 == 0o600
    run_setup("zed", remove=True, yes=True)
    assert (zed.readlink(), dotfiles.read_text()) == (dotfiles, ZED)


def test_settings_survive_a_copy_that_is_lost(home: Path, zed: Path) -> None:
    run_setup("zed", remove=False, yes=True)
    (home / ".local" / "share" / "redraft" / "setup" / "zed-settings.json").unlink()
    run_setup("zed", remove=True, yes=True)
    assert zed.read_text() == ZED


def test_a_record_that_is_broken_is_named(home: Path, zed: Path) -> None:
    run_setup("zed", remove=False, yes=True)
    record = home / ".local" / "share" / "redraft" / "setup" / "zed.json"
    record.write_text("{")
    with pytest.raises(EditorSetupError, match=r"zed\.json"):
        run_setup("zed", remove=True, yes=True)


def test_the_list_says_what_is_here(zed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_setup(None, remove=False, yes=False)
    assert "zed          without Redraft" in capsys.readouterr().out
    run_setup("zed", remove=False, yes=True)
    zed.write_text(zed.read_text().replace("One Dark", "Ayu"))
    run_setup(None, remove=False, yes=False)
    assert "zed          set up, current" in capsys.readouterr().out
    zed.write_text("{")
    run_setup(None, remove=False, yes=False)
    listed = capsys.readouterr().out
    assert "set up, not checked" in listed
    assert "helix, emacs" in listed


@pytest.mark.parametrize("editor", ["vim", None])
def test_an_unknown_editor_is_refused(editor: str | None) -> None:
    with pytest.raises(typer.BadParameter, match="vscode, vscodium"):
        run_setup(editor, remove=True, yes=True)


@pytest.mark.parametrize("editor", ["neovim", "helix", "emacs"])
def test_an_editor_that_is_absent_is_named(home: Path, editor: str) -> None:
    with pytest.raises(EditorSetupError, match="is not on this machine"):
        run_setup(editor, remove=False, yes=True)
    assert [*home.iterdir()] == [home / "bin"]


@pytest.mark.parametrize("editor", ["zed", "cursor"])
def test_without_a_home_folder_nothing_is_done(
    home: Path, editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.chdir(home)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(EditorSetupError, match="Set HOME"):
        run_setup(editor, remove=False, yes=True)
    assert [*home.iterdir()] == [home / "bin"]


# --- VS Code --------------------------------------------------------------------------------------

#: Keeps what it installed beside itself.
CODE = """case $1 in
--list-extensions) sed "s/${2:-@.*}//" "$HOME/installed" 2>/dev/null; exit 0;;
--install-extension) cp "$2" "$HOME/got.vsix"; echo redraft.redraft@VERSION >"$HOME/installed";;
--uninstall-extension) rm "$HOME/got.vsix" "$HOME/installed";;
esac"""


def test_vscode_gets_the_extension_and_gives_it_back(home: Path) -> None:
    manifest = json.loads((ROOT / "editor-clients/vscode/package.json").read_text())
    script(home, "code", CODE.replace("VERSION", manifest["version"]))
    before = tree(home)
    run_setup("vscode", remove=False, yes=True)
    with zipfile.ZipFile(home / "got.vsix") as package:
        assert package.read("extension/dist/server-command").decode() == server_program()
        assert json.loads(package.read("extension/package.json")) == manifest
        assert b"Apache License" in package.read("extension/LICENSE.txt")
        assert b"vscode-languageclient" in package.read("extension/THIRD_PARTY_NOTICES.md")
    run_setup("vscode", remove=False, yes=False)  # current: no question
    run_setup("vscode", remove=True, yes=True)
    assert tree(home) == before


def test_an_extension_uninstalled_by_hand_is_no_error(home: Path) -> None:
    manifest = json.loads((ROOT / "editor-clients/vscode/package.json").read_text())
    script(home, "code", CODE.replace("VERSION", manifest["version"]))
    before = tree(home)
    run_setup("vscode", remove=False, yes=True)
    (home / "installed").unlink()
    (home / "got.vsix").unlink()
    run_setup("vscode", remove=True, yes=True)
    assert tree(home) == before


def test_a_failing_installer_leaves_no_trace(home: Path) -> None:
    script(home, "codium", '[ "$1" = --list-extensions ] && exit; echo "as root?" >&2; exit 1')
    before = tree(home)
    with pytest.raises(EditorSetupError, match="as root"):
        run_setup("vscodium", remove=False, yes=True)
    assert tree(home) == before


def test_without_the_command_the_file_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_setup("cursor", remove=False, yes=True)
    [file] = home.rglob("*.vsix")
    assert f"open {file}" in " ".join(capsys.readouterr().out.split())
    run_setup("cursor", remove=True, yes=True)
    assert not (home / ".local" / "share" / "redraft").exists()


def test_the_same_extension_has_the_same_bytes() -> None:
    assert vscode.pack("/a b/redraft") == vscode.pack("/a b/redraft")


def test_the_bundle_is_built_from_the_sources() -> None:
    client = ROOT / "editor-clients" / "vscode"
    digest = hashlib.sha256()
    for file in (*sorted((client / "src").glob("*.ts")), client / "package-lock.json"):
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    first = (client / "bundle" / "extension.js").read_text("utf-8").split("\n", 1)[0]
    assert first == f"// {digest.hexdigest()}", "run 'npm ci && npm run bundle' in " + str(client)


# --- Helix and Emacs ------------------------------------------------------------------------------

#: Answers as Helix does, with its colours.
HX = r"""printf 'Configured language servers:\n'
case $2 in
python) printf '  \033[32m✓\033[39m ruff: /bin/ruff\n  \033[31m✘\033[39m pylsp: no\n';;
rust) printf '  x rust-analyzer: no\n';;
html) printf 'Language not found\n';;
esac
printf 'Configured debug adapter: None\n'"""


def test_helix_gets_us_behind_its_servers(home: Path) -> None:
    script(home, "hx", HX)
    file = home / ".config" / "helix" / "languages.toml"
    file.parent.mkdir(parents=True)
    mine = """[[language]]
name = "go"
language-servers = [{ name = "gopls", only-features = ["hover"] }]"""
    file.write_text(mine)
    run_setup("helix", remove=False, yes=True)
    given = tomllib.loads(file.read_text())
    assert given["language-server"]["redraft"]["command"] == server_program()
    servers = {each["name"]: each["language-servers"] for each in given["language"]}
    assert servers["python"] == ["ruff", "pylsp", "redraft"]
    assert servers["rust"] == ["rust-analyzer", "redraft"]
    assert servers["go"] == [{"name": "gopls", "only-features": ["hover"]}, "redraft"]
    assert servers["c-sharp"] == ["redraft"]
    file.write_text(file.read_text() + "# later\n")
    run_setup("helix", remove=True, yes=True)
    assert file.read_text().split() == f"{mine} # later".split()


@pytest.mark.parametrize(
    "text", ["[[language", "language = []\n", '[language-server.redraft]\ncommand = "x"\n']
)
def test_helix_files_that_take_no_block_stay(home: Path, text: str) -> None:
    script(home, "hx", HX)
    file = home / ".config" / "helix" / "languages.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(EditorSetupError, match="by hand"):
        run_setup("helix", remove=False, yes=True)
    assert file.read_text() == text


def test_a_helix_that_is_too_old_is_named(home: Path) -> None:
    script(home, "hx", "echo 'Configured language server: pylsp'")
    with pytest.raises(EditorSetupError, match=r"Helix 23\.10"):
        run_setup("helix", remove=False, yes=True)


@pytest.mark.parametrize("name", [".emacs", ".emacs.d/init.el", None])
def test_emacs_gets_a_block_in_its_init_file(home: Path, name: str | None) -> None:
    script(home, "emacs", "echo '~/.emacs.d/'")
    if name is not None:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("(setq a 1)")
    before = tree(home)
    run_setup("emacs", remove=False, yes=True)
    text = (home / (name or ".emacs.d/init.el")).read_text()
    assert f'copilot-server-executable "{server_program()}"' in text
    assert text.count("(") == text.count(")")
    run_setup("emacs", remove=True, yes=True)
    assert tree(home) == before


# --- the check ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "verdict", "what"),
    [
        ("", "problem", "does not answer"),
        ("import sys; sys.exit('no onnxruntime')", "problem", "no onnxruntime"),
        ("print('hello\\n\\n' * 9)", "problem", "does not answer"),
        (None, "ok", "starts, answers and ends"),
    ],
)
def test_doctor_starts_the_server(code: str | None, verdict: str, what: str) -> None:
    started = [server_program(), "lsp"] if code is None else [sys.executable, "-c", code]
    finding = asyncio.run(doctor.language_server_finding(started))
    assert finding.verdict == verdict
    assert what in finding.what


def test_doctor_names_a_command_that_is_not_there() -> None:
    finding = asyncio.run(doctor.language_server_finding(["/nowhere/redraft", "lsp"]))
    assert finding.verdict == "problem"
    assert "/nowhere/redraft" in finding.what
