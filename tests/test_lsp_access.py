"""The language server over TCP: which clients it serves, and how it refuses others."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import os
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.protocol import tcp
from redraft.lsp.protocol.tcp import (
    FIRST_BODY,
    HEADER_BYTES,
    Refused,
    checked_token,
    first_message,
    new_token,
    serve_tcp,
)
from redraft.lsp.recording.recordings_folder import Recordings
from redraft.model.errors import SettingsError
from redraft.server.commands.lsp_token import given_token
from support.editors.predictor import ScriptedPredictor

TOKEN = "a-token-of-these-tests"
OPTIONS = {"initializationOptions": {"token": TOKEN}}


@contextlib.asynccontextmanager
async def served(predictor: ScriptedPredictor | None = None) -> AsyncIterator[int]:
    """Yield the port of a server and end it."""
    model = predictor or ScriptedPredictor()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_tcp(model, "127.0.0.1", 0, TOKEN, listening=lambda _, p: port.set_result(p))
    )
    try:
        async with asyncio.timeout(60):
            yield await port
    finally:
        serving.cancel()
        await asyncio.wait({serving}, timeout=20)
    assert model.closed


class Client:
    """A connection that says exactly what a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.methods: list[str] = []  # of what came besides answers

    @classmethod
    async def to(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def answer(self) -> dict[str, Any]:
        header = await self.reader.readuntil(b"\r\n\r\n")
        length = int(header.split(b"\r\n")[0].split(b":")[1])
        told: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        return told

    async def ask(self, method: str, params: Any, head: str = "") -> dict[str, Any]:
        self.writer.write(framed(method, params, head))
        while "method" in (told := await self.answer()):
            self.methods.append(told["method"])
        return told

    async def has_ended(self) -> bool:
        return await self.reader.read() == b""


def framed(method: str, params: Any, head: str = "", id_: int = 1) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
    return f"Content-Length: {len(body)}\r\n{head}\r\n".encode() + body


RECORD = {"command": "redraft.record", "arguments": ["on"]}


async def is_served(port: int) -> None:
    """Check that the server lives, and serves a client with the token."""
    client = await Client.to(port)
    answer = await client.ask("initialize", OPTIONS)
    assert answer["result"]["serverInfo"]["name"] == "redraft"
    client.writer.close()


@pytest.mark.parametrize(
    ("params", "head"),
    [
        (OPTIONS, ""),
        ({}, f"Redraft-Token: {TOKEN}\r\n"),
        ({}, f"redraft-token:{TOKEN} \r\nContent-Type: application/vscode-jsonrpc\r\n"),
    ],
    ids=["in initialize", "in the header", "in a header as odd as is allowed"],
)
async def test_a_token_is_served(params: Any, head: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with served() as port:
        client = await Client.to(port)
        assert "result" in await client.ask("initialize", params, head)
        told = await client.ask("workspace/executeCommand", RECORD)  # and needs it no more
        assert told["result"]["on"] is True
        assert "window/logMessage" not in client.methods, "a token is no unknown setting"
        client.writer.close()
    Recordings().turn_off()
    assert TOKEN not in caplog.text


async def test_each_client_has_a_session_of_its_own() -> None:
    async with served() as port:
        one, two = await Client.to(port), await Client.to(port)
        assert "result" in await one.ask("initialize", OPTIONS)
        assert "result" in await two.ask("initialize", OPTIONS)
        document = {"uri": "file:///w/a.py", "languageId": "python", "version": 1, "text": "x\n"}
        one.writer.write(framed("textDocument/didOpen", {"textDocument": document}))
        asked = {"textDocument": {"uri": "file:///w/a.py"}, "position": {"line": 0, "character": 1}}
        assert (
            "didOpen" in (await two.ask("textDocument/inlineCompletion", asked))["error"]["message"]
        )
        with pytest.raises(SettingsError, match="choose another port"):
            await serve_tcp(ScriptedPredictor(), "127.0.0.1", port, TOKEN)
        two.writer.close()
        assert "result" in await one.ask("shutdown", None)
        one.writer.close()


async def test_whoever_is_connected_is_sent_away_when_the_server_ends() -> None:
    async with served() as port:
        silent, greeted = await Client.to(port), await Client.to(port)
        await greeted.ask("initialize", OPTIONS)
    assert await silent.has_ended()
    assert await greeted.has_ended()


@pytest.mark.parametrize(
    ("method", "params", "head", "says"),
    [
        ("initialize", {}, "", "needs its token"),
        ("initialize", None, "", "needs its token"),
        ("initialize", {"initializationOptions": {"token": None}}, "", "needs its token"),
        ("initialize", {"initializationOptions": {"token": "x" * 22}}, "", "another token"),
        ("initialize", {"initializationOptions": {"token": "\ud800é"}}, "", "another token"),
        ("initialize", {"initializationOptions": {"token": ""}}, "", "another token"),
        ("initialize", OPTIONS, "Redraft-Token: wrong\r\n", "another token"),
        ("initialize", {}, f"X: Redraft-Token: {TOKEN}\r\n", "needs its token"),
        ("workspace/executeCommand", RECORD | OPTIONS, "", "needs its token"),
    ],
)
async def test_a_wrong_token_is_sent_away(method: str, params: Any, head: str, says: str) -> None:
    async with served() as port:
        client = await Client.to(port)
        client.writer.write(framed(method, params, head, 7))
        client.writer.write(framed("initialize", OPTIONS))  # one attempt on each connection
        client.writer.write(framed("workspace/executeCommand", RECORD))
        answer = await client.answer()
        assert (answer["id"], answer["error"]["code"]) == (7, -32600)
        assert says in answer["error"]["message"]
        assert TOKEN not in answer["error"]["message"]
        assert await client.has_ended()
        await is_served(port)
    assert not Recordings().is_on()


async def test_who_connects_and_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "FIRST_MESSAGE_S", 0.2)
    async with served() as port:
        silent, slow = await Client.to(port), await Client.to(port)
        slow.writer.write(b"Content-Length: 10")
        for client in (silent, slow):
            assert "no message came" in (await client.answer())["error"]["message"]
            assert await client.has_ended()
        monkeypatch.undo()
        await is_served(port)


def attack() -> bytes:
    """Return what a page sends: all messages of a client, as the body of a request."""
    said = [("initialize", {}), ("initialized", {}), ("workspace/executeCommand", RECORD)]
    return b"".join(framed(method, params) for method, params in said)


async def test_a_page_that_posts_messages_is_answered_by_no_language_server() -> None:
    predictor = ScriptedPredictor()
    async with served(predictor) as port:
        url = f"http://127.0.0.1:{port}/"
        async with aiohttp.ClientSession() as session:
            # A page may send this without asking, and spell the header as it likes.
            headers = {"Content-Type": "text/plain", "X": "content-length: 20"}
            async with session.post(url, data=attack(), headers=headers) as answer:
                assert answer.status == 400
                assert "language server" in await answer.text()
            tokened = {"Redraft-Token": TOKEN}  # even who knows it: HTTP is not spoken here
            async with session.post(url, data=attack(), headers=tokened) as answer:
                assert answer.status == 400
        await is_served(port)
    assert predictor.requests == []
    assert not Recordings().is_on()


async def test_other_ways_of_http_end_the_connection_too() -> None:
    async with served() as port:

        def post() -> int:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", data=attack() * 2_000)
            try:
                urllib.request.urlopen(request, timeout=20)
            except urllib.error.HTTPError as error:
                return error.code
            except (OSError, http.client.HTTPException):
                return 400  # it was sent away before it had sent everything
            return 200

        assert await asyncio.to_thread(post) == 400
        for line in (
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            b"GET /\r\n",
            b"OPTIONS * HTTP/1.1\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /" + b"x" * 30_000,  # its line never ends
        ):
            client = await Client.to(port)
            client.writer.write(line + attack())
            assert (await client.reader.read()).startswith(b"HTTP/1.1 400 ")
        await is_served(port)
    assert not Recordings().is_on()


def let_in(stream: bytes) -> bytes:
    """Return the first message of a stream.

    Raises:
        Refused: it is not let in.
    """

    async def scenario() -> bytes:
        reader = asyncio.StreamReader(limit=HEADER_BYTES)
        reader.feed_data(stream)
        reader.feed_eof()
        return await first_message(reader, TOKEN)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        (b"X-Content-Length: 2\r\n\r\n{}", "without a Content-Length"),
        (b"X: Content-Length: 2\r\n\r\n{}", "without a Content-Length"),
        (b"junkContent-Length: 2 {}\r\n\r\n", "without a Content-Length"),
        (b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}", "came twice"),
        (b"Content-Length: 2, 2\r\n\r\n{}", "whole number"),
        (b"Content-Length: -2\r\n\r\n{}", "whole number"),
        (b"Content-Length: +2\r\n\r\n{}", "whole number"),
        (b"Content-Length: 0x2\r\n\r\n{}", "whole number"),
        ("Content-Length: ２\r\n\r\n{}".encode(), "no header"),
        (b"Content-Length: 9999999999999999999\r\n\r\n", "whole number"),
        (b"Content-Length: %d\r\n\r\n" % (FIRST_BODY + 1), "above the limit"),
        (b" Content-Length: 2\r\n\r\n{}", "no header"),
        (b"Content-Length : 2\r\n\r\n{}", "no header"),
        (b"Content-Length: 2\r\n folded\r\n\r\n{}", "no header"),
        (b"Content-Length: 2\r\nX: \0\r\n\r\n{}", "no header"),
        (b"Content-Length: 2\rX: y\r\n\r\n{}", "no header"),
        (b"\x16\x03\x01\x02\0\x01\n", "no header"),
        (b"\r\n", "without a Content-Length"),
        (b"X: " + b"y" * 9_000, "longer than"),
        (b"".join(b"X%d: y\r\n" % n for n in range(2_000)), "longer than"),
    ],
)
def test_a_header_out_of_order_ends_the_connection(stream: bytes, says: str) -> None:
    with pytest.raises(Refused, match=says):
        let_in(stream)


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_whatever_comes_first_nothing_gets_in_without_the_token(junk: bytes) -> None:
    with pytest.raises(Refused):
        let_in(junk + attack())


def test_tokens_are_new_and_long() -> None:
    assert len({new_token() for _ in range(20)}) == 20
    assert all(checked_token(new_token(), "here") for _ in range(20))
    assert len(new_token()) >= 43  # 256 bits


def test_a_chosen_token_comes_from_a_variable_or_a_file(tmp_path: Path) -> None:
    environment = {"REDRAFT_LSP_TOKEN": TOKEN, "HOME": "/h"}
    assert given_token(environment, None) == TOKEN
    assert environment == {"HOME": "/h"}, "no child inherits it"
    assert given_token(environment, None) is None
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}-of-the-file\n")
    file.chmod(0o600)
    assert given_token({"REDRAFT_LSP_TOKEN": TOKEN}, file) == f"{TOKEN}-of-the-file"


@pytest.mark.parametrize("text", ["short", "two words of a token", "ünter-sechzehn-zeichen", ""])
def test_a_token_that_cannot_be_one_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="16 to 512"):
        given_token({}, file)
    if text:
        with pytest.raises(SettingsError, match="REDRAFT_LSP_TOKEN has"):
            given_token({"REDRAFT_LSP_TOKEN": text}, None)


def test_a_token_file_that_is_no_secret_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        given_token({}, tmp_path / "missing")
    if os.name == "nt":
        return
    file, pipe = tmp_path / "token", tmp_path / "pipe"
    file.write_text(TOKEN)
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        given_token({}, file)
    os.mkfifo(pipe)
    with pytest.raises(SettingsError, match="is not a file"):
        given_token({}, pipe)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org", "::"])
def test_tcp_stays_on_this_machine(host: str) -> None:
    with pytest.raises(SettingsError, match="this machine only"):
        asyncio.run(serve_tcp(ScriptedPredictor(), host, 0, TOKEN))
