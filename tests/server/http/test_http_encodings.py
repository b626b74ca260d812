"""Bodies in gzip, deflate and zstd on every route, and encodings that are not read."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import zstandard
from redraft.server.settings import Settings
from support.editors.predictor import ScriptedPredictor, chatting, editing
from support.served import INFILL, POSTED, TALK, message, post, served


def posted(
    path: str,
    data: bytes,
    headers: dict[str, str],
    predictor: ScriptedPredictor | None = None,
    settings: Settings | None = None,
) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and JSON of one request to a fresh server."""

    async def run() -> tuple[int, dict[str, str], Any]:
        async with (
            served(predictor or ScriptedPredictor(), settings) as (_, client),
            client.post(path, data=data, headers=headers) as answer,
        ):
            return answer.status, dict(answer.headers), await answer.json()

    return asyncio.run(run())


def deflated(body: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(body) + packer.flush()


def zstd_in_pieces(body: bytes) -> bytes:
    """Return two frames without the size of their content, as streaming clients send them."""
    half = len(body) // 2
    packers = [zstandard.ZstdCompressor().compressobj() for _ in range(2)]
    parts = (body[:half], body[half:])
    return b"".join(
        packer.compress(part) + packer.flush() for packer, part in zip(packers, parts, strict=True)
    )


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "gzip of two members": ("GZIP", lambda b: gzip.compress(b[:5]) + gzip.compress(b[5:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without a header": ("deflate", partial(deflated, wbits=-15)),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd of the highest level": ("zstd", zstandard.ZstdCompressor(level=22).compress),
    "zstd in pieces": ("zstd", zstd_in_pieces),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("way", PACKED)
@pytest.mark.parametrize("path", POSTED)
def test_an_encoded_body_is_read_as_it_is(path: str, way: str) -> None:
    coding, pack = PACKED[way]
    plain = post(path, POSTED[path], chatting("hi") if path in TALK else editing(None))
    headers = {"Content-Encoding": coding}
    data = pack(json.dumps(POSTED[path]).encode())
    packed = posted(path, data, headers, chatting("hi") if path in TALK else editing(None))
    assert packed[0] == plain[0]


@pytest.mark.parametrize("coding", ["br", "rot13", "compress", "gzip, gzip", "zstd, br", "x"])
@pytest.mark.parametrize("path", POSTED)
def test_another_encoding_is_refused_with_those_read(path: str, coding: str) -> None:
    status, headers, answer = posted(path, b"anything", {"Content-Encoding": coding})
    assert (status, headers["Accept-Encoding"]) == (415, "gzip, deflate, zstd")
    assert repr(coding) in message(answer)
    if not path.startswith("/api/"):
        assert answer["error"]["code"] == "unsupported_encoding"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("data", [b"", b"no such thing", b"\x78\x9c", b"\x1f\x8b\x08"])
def test_a_body_that_is_not_in_its_encoding_is_refused(coding: str, data: bytes) -> None:
    status, _, answer = posted("/v1/completions", data, {"Content-Encoding": coding})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("way", PACKED)
def test_an_encoded_body_that_is_cut_off_is_refused(way: str) -> None:
    coding, pack = PACKED[way]
    data = pack(json.dumps({**INFILL, "prompt": "x" * 1_000}).encode())[:-10]
    status, _, answer = posted("/v1/completions", data, {"Content-Encoding": coding})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


def test_a_zstd_frame_ending_behind_a_block_is_refused() -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    data = packer.compress(json.dumps(INFILL).encode())
    data += packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)  # all the JSON, but no last block
    status, _, answer = posted("/v1/completions", data, {"Content-Encoding": "zstd"})
    assert (status, "cut off" in message(answer)) == (400, True)


@pytest.mark.parametrize("way", sorted(PACKED.keys() - {"identity"}))
def test_the_decoded_body_is_limited(way: str) -> None:
    coding, pack = PACKED[way]
    settings = Settings(max_body_bytes=100_000, shutdown_s=0.1)
    data = pack(b" " * 6_000_000)
    status, _, answer = posted(
        "/v1/completions", data, {"Content-Encoding": coding}, settings=settings
    )
    assert (status, "100000 bytes" in message(answer)) == (413, True)


def test_a_zstd_window_that_fills_memory_is_refused() -> None:
    options = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=options).compressobj()
    data = packer.compress(b" " * 1_000) + packer.flush()
    status, _, _ = posted("/v1/completions", data, {"Content-Encoding": "zstd"})
    assert status == 400


async def test_others_are_answered_while_a_body_is_decoded() -> None:
    size = 100_000_000  # so large that a fast machine takes several turns, too
    data = zstandard.ZstdCompressor().compress(b" " * size)
    settings = Settings(shutdown_s=0.1, max_body_bytes=size)
    async with served(ScriptedPredictor(), settings) as (_, client):
        packed = {"Content-Encoding": "zstd"}
        large = asyncio.create_task(client.post("/v1/completions", data=data, headers=packed))
        turns = 0
        while not large.done():
            async with client.get("/health") as answer:
                turns += answer.status == 200
        assert (large.result().status, turns > 3) == (400, True)
