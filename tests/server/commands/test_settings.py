"""Settings of the command line: defaults, file, environment, options."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from redraft.model.errors import SettingsError
from redraft.server import settings
from redraft.server.settings import OTHER_VARIABLES, Settings, load_settings
from support.command import RUN

pytestmark = pytest.mark.usefixtures("spawn")


def test_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('port = 8000\nqueue_length = 3\nprovider = "cuda"\n')
    settings = load_settings(file, {"REDRAFT_PORT": "9000", "REDRAFT_INDEX_URL": "https://x"})
    assert (settings.port, settings.queue_length, settings.host) == (9000, 3, "127.0.0.1")
    assert settings.provider == "CUDA"
    assert settings.with_options(port=1, model=None).port == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("port = ", "not valid TOML"),
        ("colour = 1", "'colour' is not a setting"),
        ("port = 70000", "'port' is 70000"),
        ('idle_exit_s = "long"', "'idle_exit_s'"),
        ("threads = 0", "'threads' is 0"),
    ],
)
def test_a_bad_configuration_is_explained(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_misspelt_variable_is_named_and_corrected(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"REDRAFT_PROT": "1", "REDRAFT_CACHE_DIR": "/tmp", "REDRAFT_PORT": "8000"}
    assert load_settings(environment=environment).port == 8_000
    [told] = caplog.messages
    assert told.startswith("REDRAFT_PROT is not a variable of Redraft")
    assert told.endswith("Did you mean REDRAFT_PORT?")


def test_every_variable_that_the_code_reads_is_known() -> None:
    known = {f"REDRAFT_{name.upper()}" for name in Settings.model_fields} | {*OTHER_VARIABLES}
    read = re.compile(r"""["'](REDRAFT_[A-Z_]*[A-Z])["']""")
    root = Path(__file__).parents[3]
    for package in ("model", "server", "lsp", "evals"):
        for file in (root / package).rglob("*.py"):
            assert {*read.findall(file.read_text("utf-8"))} <= known, file


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_on_a_terminal_the_server_says_what_it_awaits() -> None:
    import pty

    async def run() -> bytes:
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", RUN, "lsp", stdin=theirs,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        try:
            assert process.stderr is not None
            async with asyncio.timeout(60):
                return await process.stderr.readline()
        finally:
            process.kill()
            await process.wait()
            os.close(ours)
            os.close(theirs)

    assert b"waits for an editor on standard input" in asyncio.run(run())


def test_a_bad_key_is_refused_and_never_shown() -> None:
    for key in ("two words", "\n", "schlüssel"):
        with pytest.raises(SettingsError) as caught:
            load_settings(environment={"REDRAFT_API_KEY": key}).check_exposure()
        assert key not in str(caught.value) or key.isspace()
    assert "sesame" not in repr(load_settings(environment={"REDRAFT_API_KEY": "sesame"}))


def test_a_share_of_the_processor_becomes_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "default_threads", lambda: 15)
    found = [
        load_settings(environment=given).threads
        for given in (
            {},
            {"REDRAFT_CPU_SHARE": "0.5"},
            {"REDRAFT_CPU_SHARE": "0.01"},
            {"REDRAFT_CPU_SHARE": "0.5", "REDRAFT_THREADS": "3"},
        )
    ]
    assert found == [None, 8, 1, 3]
    with pytest.raises(SettingsError, match="REDRAFT_CPU_SHARE"):
        load_settings(environment={"REDRAFT_CPU_SHARE": "2"})


def test_every_setting_says_what_it_means() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
