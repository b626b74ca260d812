"""The ``redraft`` command as people call it: exit codes, one red line, output that can be piped."""

from __future__ import annotations

import asyncio
import codecs
import socket
import sys
from pathlib import Path

import pytest
from redraft.model.choice import decline_model
from redraft.model.errors import EngineGone, InvalidRequest
from redraft.model.records import ModelStatus, Predictor
from redraft.server.commands import serve
from redraft.server.commands.complete import FilePlace, ask_once, cursor_at, display_path, read_text
from redraft.server.commands.console import ShownFile, canvas_text
from redraft.server.commands.main import app, main
from redraft.server.engine_process import client
from redraft.server.engine_process import open as engines
from redraft.server.engine_process.rendezvous import Rendezvous
from redraft.server.settings import Settings, load_settings
from support.command import call, is_one_red_line, python, redraft
from support.editors.predictor import ScriptedPredictor, infill
from support.served import served
from typer.testing import CliRunner

pytestmark = pytest.mark.usefixtures("spawn")


def call_with_server(
    predictor: ScriptedPredictor, *arguments: str, settings: Settings | None = None, key: str = ""
) -> tuple[int, str, str]:
    async def run() -> tuple[int, str, str]:
        async with served(predictor, settings) as (url, _):
            return await redraft(*arguments, "--server", url, environment={"REDRAFT_API_KEY": key})

    return asyncio.run(run())


def test_help_names_every_command() -> None:
    code, out, _ = call("--help")
    assert code == 0
    for command in ("doctor", "model", "complete", "serve", "lsp", "bench", "eval"):
        assert command in out
    assert " train " not in out  # for maintainers: not in the list, but there
    assert call("train", "--help")[0] == 0
    code, out, _ = call("model", "--help")
    assert all(
        command in out for command in ("list", "pull", "decline", "show", "export", "remove")
    )


def test_serving_imports_no_torch_and_help_even_less() -> None:
    code = (
        "import sys, redraft.server.commands.main\n"
        "heavy = {'torch', 'numpy', 'onnxruntime', 'aiohttp', 'pygls', 'pydantic'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import redraft.server.app, redraft.server.engine_process.host, "
        "redraft.server.engine_process.client\n"
        "import redraft.server.commands.serve, redraft.evals.commands.bench\n"
        "import redraft.server.commands.doctor, redraft.server.commands.complete, "
        "redraft.server.engine_process.open\n"
        "import redraft.model.engine, redraft.model.load, "
        "redraft.model.weights.store\n"
        "assert 'torch' not in sys.modules\n"
    )
    python(code)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("complete",),
        ("complete", "file"),
        ("complete", "file:0:1"),
        ("complete", "file:1:x"),
        ("serve", "--port", "99999"),
        ("lsp", "--tcp", "nowhere"),
        ("lsp", "--tcp", "127.0.0.1:1", "--stdio"),
        ("lsp", "--token-file", "token"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["redraft", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    assert stopped.value.code == 2
    assert out == ""
    assert "Usage: " in err


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        (("serve", "--host", "0.0.0.0"), {}, "REDRAFT_API_KEY"),
        (("serve",), {"REDRAFT_PORT": "many"}, "REDRAFT_PORT is 'many'"),
        (("complete", "-:1:1"), {}, "the name of a file tells its language"),
        (("serve", "--port", "0", "--model", "nope"), {"REDRAFT_LOG_LEVEL": "LOUD"}, "LOUD"),
        (("serve", "--port", "0", "--model", "nope"), {}, "There is no model 'nope'"),
        (("serve", "--port", "0", "--variant", "fp99"), {}, "Unknown variant 'fp99'"),
        (("model", "show", "nope"), {}, "There is no model 'nope'"),
        (("complete", "no/such/file.py:1:1"), {}, "cannot be read"),
        (("complete", f"{__file__}:1:1", "--server", "nope"), {}, "'nope'"),
        (
            ("complete", f"{__file__}:1:1", "--server", "http://127.0.0.1:1"),
            {},
            "(Connection refused). Start 'redraft serve --port 1', or the ssh tunnel",
        ),
        (("model", "pull", __file__), {}, "is not a GGUF file: it does not begin with 'GGUF'"),
    ],
)
def test_errors_exit_1(arguments: tuple[str, ...], environment: dict[str, str], says: str) -> None:
    code, out, err = call(*arguments, environment=environment)
    assert code == 1
    assert out == ""
    assert is_one_red_line(err), err
    assert says in err


def test_serve_names_a_port_in_use_and_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = call("serve", "--port", str(port))
    assert code == 1
    assert is_one_red_line(err)
    assert str(port) in err
    assert "--port" in err


@pytest.mark.parametrize(("option", "value"), [("--tcp", "127.0.0.1:1"), ("--token-file", "token")])
def test_listening_on_a_port_names_the_new_way(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["redraft", "lsp", option, value])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err.replace("│", "")
    assert "ssh HOST redraft lsp" in " ".join(said.split())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "sum.py"
    file.write_bytes("def f(a, b):\r\n    # Größe 🙂 x\r\n    \r\n".encode())
    return file


def test_complete_writes_only_the_infill_to_stdout(source: Path) -> None:
    predictor = ScriptedPredictor()
    code, out, err = call_with_server(predictor, "complete", f"{source}:3:5")
    assert (code, out) == (0, "return a + b\n")
    assert "4 steps" in err
    [request] = predictor.requests
    assert request.text == "def f(a, b):\n    # Größe 🙂 x\n    \n"
    assert request.text[request.cursor :] == "\n"
    assert request.path == "sum.py"


@pytest.mark.parametrize(
    ("name", "text"), [(".env", "KEY="), ("notes.txt", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n")]
)
def test_a_file_that_may_hold_secrets_is_not_sent(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    predictor = ScriptedPredictor()
    code, out, err = call_with_server(predictor, "complete", f"{tmp_path / name}:1:1")
    assert (code, out, predictor.requests) == (1, "", [])
    assert is_one_red_line(err)
    assert "The language server would show nothing of" in err


@pytest.mark.parametrize(("confidence", "warns"), [(0.13, True), (0.9, False)])
def test_low_confidence_is_said(source: Path, confidence: float, warns: bool) -> None:
    place = ("complete", f"{source}:3:5")

    def predictor() -> ScriptedPredictor:
        return ScriptedPredictor([lambda asked: infill(asked, "return a", confidence=confidence)])

    code, out, err = call_with_server(predictor(), *place)
    assert (code, out) == (0, "return a\n")
    assert ("low confidence (0.13)" in err) == warns
    assert call_with_server(predictor(), *place, "--quiet")[2] == ""


DECIDED = {"--model": "redraft-0.5b", "--variant": "q4", "--provider": "cpu", "--threads": "2"}


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *((("complete", f"{__file__}:1:1"), option) for option in DECIDED),
        *((("lsp",), option) for option in DECIDED),
        (("chat", "hi"), "--model"),
    ],
)
def test_what_a_server_has_decided_is_refused(command: tuple[str, ...], option: str) -> None:
    asked = [*command, "--server", "http://127.0.0.1:9", option, DECIDED[option]]
    told = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert told.exit_code == 2
    assert "chooses its own" in told.output


def test_columns_count_characters(source: Path) -> None:
    text = read_text(source)
    assert text[cursor_at(text, FilePlace(source, 2, 15)) :].startswith("x\n")


def test_watch_shows_each_canvas_state(source: Path) -> None:
    code, out, err = call_with_server(
        ScriptedPredictor(), "complete", f"{source}:3:5", "--watch", "--quiet"
    )
    assert (code, out) == (0, "return a + b\n")
    assert [line.split("  ")[-1] for line in err.splitlines()] == [
        "'░░░ b'",
        "'░░ + b'",
        "'░ a + b'",
    ]


def test_options_reach_the_request(source: Path) -> None:
    predictor = ScriptedPredictor()
    options = ("--max-tokens", "9", "--quality", "high", "--temperature", "0.5", "--seed", "3")
    call_with_server(predictor, "complete", f"{source}:1:1", *options)
    [request] = predictor.requests
    assert (request.max_tokens, request.quality, request.temperature) == (9, "high", 0.5)
    assert request.seed == 3


def test_a_request_outlives_an_engine_that_dies_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    dying, own = ScriptedPredictor(), ScriptedPredictor()
    asked: list[Predictor] = []

    async def join_running(settings: Settings) -> Predictor:
        return dying

    async def ask(predictor: Predictor) -> None:
        asked.append(predictor)
        if predictor is dying:
            raise EngineGone("it was killed")

    monkeypatch.setattr(Rendezvous, "read", lambda self: object())
    monkeypatch.setattr(client, "join_running", join_running)
    monkeypatch.setattr(engines, "open_engine", lambda settings: own)
    asyncio.run(ask_once(Settings(), None, ask))
    assert asked == [dying, own]


def test_nothing_to_suggest_is_said_and_no_failure(source: Path) -> None:
    code, out, err = call_with_server(ScriptedPredictor([()]), "complete", f"{source}:1:1", "-q")
    assert (code, out) == (0, "")
    assert "nothing to suggest: nothing to add" in err


OFFERING = ModelStatus("ready", "fake int8", larger="redraft-1.5b", about_larger="It costs 1 GB.")


def test_complete_offers_no_larger_model(source: Path) -> None:
    predictor = ScriptedPredictor(["total"], statuses=[OFFERING])
    code, out, told = call_with_server(predictor, "complete", f"{source}:2:12")
    assert (code, out) == (0, "total\n") and "It costs" not in told


def test_serve_offers_a_larger_model_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "LOOK_S", 0.01)
    predictor = ScriptedPredictor(
        statuses=[OFFERING, OFFERING, ModelStatus("loading", "fake int8")]
    )

    def printed() -> str:
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(serve.tell_when_ready(predictor), 0.3))
        return capsys.readouterr().err

    told = printed()
    assert told.count("It costs 1 GB.") == 1 and "'redraft model pull redraft-1.5b'" in told
    decline_model("redraft-1.5b")
    predictor.statuses[:] = [OFFERING]
    assert "It costs 1 GB." not in printed()


def test_a_model_that_failed_to_load_is_said(source: Path) -> None:
    state = ModelStatus("failed", "fake", message="The weights are corrupt: run this and that.")
    code, _, err = call_with_server(
        ScriptedPredictor(statuses=[state]), "complete", f"{source}:1:1"
    )
    assert code == 1
    assert "run this and that" in err


def test_the_key_of_a_server_is_from_the_environment(source: Path) -> None:
    settings = load_settings(environment={"REDRAFT_API_KEY": "sesame"})
    place = ("complete", f"{source}:1:1")
    assert call_with_server(ScriptedPredictor(), *place, settings=settings, key="sesame")[0] == 0
    code, _, err = call_with_server(ScriptedPredictor(), *place, settings=settings)
    assert code == 1
    assert "API key" in err


def test_any_file_name_is_written_in_unicode() -> None:
    assert display_path(Path("caf\udce9.py")) == "caf?.py"
    assert display_path(Path("a") / "b.py") == "a/b.py"
    assert display_path(Path.cwd().parent / "café.py") == "café.py"


@pytest.mark.parametrize("name", ["a.py:3:4", "C:\\x\\a.py:3:4", "odd:name.py:3:4"])
def test_a_place_may_have_colons_in_its_file(name: str) -> None:
    place = FilePlace.parse(name)
    assert (str(place.file), place.line, place.column) == (name[:-4], 3, 4)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"caf\xe9", "not UTF-8"),
        (b"a\0b", "NUL at offset 1"),
        (b"\0\0\0\0", "NUL at offset 0"),
        ("x = 1\n".encode("utf-16"), "is UTF-16"),
        ("x = 1\n".encode("utf-16-be"), "is UTF-16"),
        ("x = 'é'\n".encode("utf-16-le"), "is UTF-16"),
        (codecs.BOM_UTF16_BE + "中".encode("utf-16-be"), "is UTF-16"),
        ("x = 1\n".encode("utf-32"), "is UTF-32"),
    ],
)
def test_a_file_that_is_no_text_is_explained(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "f.bin"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest, match=says):
        read_text(file)


@pytest.mark.parametrize(("line", "column"), [(9, 1), (1, 99)])
def test_a_place_outside_the_file_is_explained(source: Path, line: int, column: int) -> None:
    with pytest.raises(InvalidRequest, match=r"there is no (line 9|column 99)"):
        cursor_at(read_text(source), FilePlace(source, line, column))


def test_the_scene_shows_the_canvas_at_the_cursor() -> None:
    from redraft.model.records import CanvasState

    text = "".join(f"line {n}\n" for n in range(1, 30))
    scene = ShownFile.around(text, text.index("line 20") + 4)
    shown = scene.with_middle(canvas_text(CanvasState(1, (None, "x\ny")))).plain
    assert "   20 │ line░x\n   21 │ y 20\n" in shown
    assert shown.startswith("   14 │ line 14\n")
