"""Redraft compared with a llama.cpp server: which requests it gets, and what a row holds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from redraft.evals.example import Row
from redraft.evals.latency.beside import compare, other_lines, lines_while_typing
from redraft.model.errors import SettingsError
from redraft.model.predict import Model
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.fake_backend import FakeBackend, Noise, fake_tokenizer, small_config


def model() -> Model:
    backend = FakeBackend(Noise(), small_config())
    return Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 30), 1_024)


class Server(ThreadingHTTPServer):
    """Answers as llama.cpp does; knows every line of the text it is asked about."""

    def __init__(self, routes: tuple[str, ...], status: int = 200, body: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.routes, self.status, self.body = routes, status, body
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.truths = {line.prefix: line.truth for line in lines_while_typing(200)}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        known = self.path in self.server.routes
        prefix = body.get("input_prefix") or body.get("prompt", "").rpartition("<|fim_middle|>")[2]
        answer = {"content": self.server.truths.get(prefix, "?")}
        content = self.server.body or json.dumps(answer if known else {}).encode()
        self.send_response(self.server.status if known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with started(Server(("/infill", "/completion"))) as server:
        yield server


@contextmanager
def started(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_typed_lines_rebuild_a_text_key_by_key() -> None:
    lines = lines_while_typing(300)
    assert len(lines) == 51 and len({line.suffix for line in lines}) <= 3
    assert "parse_known_args" in lines[20].prefix and lines[20].prefix[-20:] in lines[30].prefix
    for line in lines:
        assert "\n" not in line.truth and line.suffix.startswith("\n")
        assert 500 < len(line.prefix + line.suffix) < 1_500


def test_other_lines_are_the_same_every_time() -> None:
    assert other_lines(300, 6) == other_lines(300, 6)
    assert len({line.path for line in other_lines(300, 4)}) == 4


def test_both_servers_are_scored_on_the_same_lines(server: Server) -> None:
    found: dict[str, list[Row]] = {}
    for each in compare(model(), server.url, 200, 3):
        found.setdefault(each.kind, []).append(each.row())
    assert {kind: len(rows) for kind, rows in found.items()} == {
        "a key typed, llama.cpp order": 50,
        "a key typed, our order": 50,
        "cold, llama.cpp order": 3,
        "cold, our order": 3,
    }
    for kind, rows in found.items():
        knows = kind.startswith("a key typed")  # the server knows all lines of one file
        assert all(row["theirs_exact"] is knows and not row["ours_exact"] for row in rows)
        assert all(row["times_as_fast"] > 0 and row["ours_ms"] > 0 for row in rows)
    infills = [body for route, body in server.asked if route == "/infill"]
    own = [body for route, body in server.asked if route == "/completion"]
    assert infills[5]["cache_prompt"] and not infills[-1]["cache_prompt"]
    assert infills[5]["stop"] == ["\n"] and infills[5]["temperature"] == 0
    line = lines_while_typing(200)[5]
    assert (infills[5]["input_prefix"], infills[5]["input_suffix"]) == (line.prefix, line.suffix)
    marks = f"<|fim_prefix|><|fim_suffix|>{line.suffix}<|fim_middle|>{line.prefix}"
    assert own[5]["prompt"] == marks


def test_a_server_without_infill_gets_only_our_order() -> None:
    with started(Server(("/completion",))) as server:
        kinds = {each.kind for each in compare(model(), server.url, 200, 1)}
        assert kinds == {"a key typed, our order", "cold, our order"}


def test_what_is_not_llama_cpp_is_said() -> None:
    told = r"answered 200 .*<html>.*not as llama\.cpp"
    with (
        started(Server(("/infill", "/completion"), 200, b"<html>")) as server,
        pytest.raises(SettingsError, match=told),
    ):
        list(compare(model(), server.url, 200, 1))


@pytest.mark.parametrize(
    ("url", "told"),
    [("127.0.0.1:80", "is no http address"), ("http://127.0.0.1:9", "Nothing that answers")],
)
def test_an_address_that_cannot_be_asked_is_said(url: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        list(compare(model(), url, 200, 1))
