"""A Hugging Face hub on loopback that serves files and misbehaves on demand."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hub:
    content: bytes
    etag: str  # SHA-256 of the file as the hub states it
    path: str  # of the file below the hub
    url: str = ""
    status: int = 0  # answered to everything
    silent: bool = False  # takes requests and never answers
    cut_after: list[int] = field(default_factory=list)  # bytes per answer, one for each cut
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # method, Range
    done: threading.Event = field(default_factory=threading.Event)

    def answer(self, _method: str, path: str) -> tuple[bytes | None, dict[str, str]]:
        """Return what stands at ``path``, if anything, and its headers."""
        headers = {"ETag": f'"{self.etag}"', "X-Repo-Commit": "a" * 40}
        return (self.content if path == self.path else None), headers


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return self.server.hub  # type: ignore[attr-defined, no-any-return]

    def log_message(self, *args: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.hub
        hub.asked.append((self.command, self.headers.get("Range")))
        if hub.silent:
            hub.done.wait(20)
            self.close_connection = True
            return
        content, headers = hub.answer(self.command, self.path.partition("?")[0])
        if hub.status or content is None:
            self._send(hub.status or 404, b"")
            return
        start, status = 0, 200
        if asked := self.headers.get("Range"):
            start, status = int(asked.removeprefix("bytes=").split("-")[0]), 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(status, content[start:], headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cuts = self.hub.cut_after
        cut = cuts.pop(0) if cuts and len(body) > cuts[0] else None
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.hub = hub  # type: ignore[attr-defined]
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.done.set()
        server.shutdown()
        server.server_close()
