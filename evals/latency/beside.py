"""Compare Redraft with a llama.cpp server: the same single lines, asked of both in turns.

Fifty characters are typed into a real file, and every key asks both for the rest of the line. Then
lines of other files are asked for with nothing cached. The other server is asked in two ways: as
llama.cpp's clients ask (``/infill``, where it has that), and through ``/completion`` with the
prompt order of Redraft, which keeps a keystroke cheap. The second way compares the engines alone.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from redraft.model.errors import SettingsError
from redraft.model.predict import Model
from redraft.model.records import EditRequest

from ..example import Example, Row
from ..scorers.latency import record_figures
from .editor_latency import SAMPLES, TYPED, Say, ask, empty_cache, path_of, places, sample_text

TIMEOUT_S = 120.0
MOST_TOKENS = 24  # written for one line
#: Characters of one token of code, about: texts are cut alike for both, before either reads them.
_CHARS_PER_TOKEN = 3.2
_ABOVE = 0.75  # of the text that both are shown stands above the cursor


@dataclass(frozen=True, slots=True)
class Line:
    """A line to finish: the text around the gap, as both see it, and what stood there."""

    path: str
    prefix: str
    suffix: str
    truth: str  # rest of the line


#: How the other server is asked; returns None where it has no such route.
Asking = Callable[[Line, bool], str | None]


class OtherServer:
    """A llama.cpp-style server behind ``url``.

    Raises:
        SettingsError: it is no http address, or nothing answers there.
    """

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise SettingsError(f"{url!r} is no http address. Give one like http://127.0.0.1:8080.")
        self._url, self._base = url, parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(
            parts.hostname, parts.port or 80, timeout=TIMEOUT_S
        )

    def infill(self, line: Line, cached: bool) -> str | None:
        """Ask as the usual clients of llama.cpp ask; return None if it has no such route."""
        body = {"input_prefix": line.prefix, "input_suffix": line.suffix}
        return self._post("/infill", body, cached)

    def completion(self, line: Line, cached: bool) -> str | None:
        """Ask with the suffix first and the prefix last, by the marks of Qwen's and many models."""
        prompt = f"<|fim_prefix|><|fim_suffix|>{line.suffix}<|fim_middle|>{line.prefix}"
        return self._post("/completion", {"prompt": prompt}, cached)

    def _post(self, route: str, body: dict[str, Any], cached: bool) -> str | None:
        settings = {"n_predict": MOST_TOKENS, "temperature": 0.0, "stop": ["\n"]}
        content = json.dumps(body | settings | {"cache_prompt": cached})
        headers = {"Content-Type": "application/json"}
        try:
            self._connection.request("POST", self._base + route, content, headers)
            answer = self._connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise SettingsError(
                f"Nothing that answers at {self._url}{route}: {error}. Start the server to compare "
                "with, with the same model, and give its address."
            ) from error
        if answer.status in (404, 501):
            return None
        try:
            return str(json.loads(said)["content"])
        except (ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._url}{route} answered {answer.status} {said[:120]!r}, not as llama.cpp "
                "does: {'content': …}."
            ) from error


def lines_while_typing(context: int) -> list[Line]:
    """Return one line to finish per key of a text that is typed back into a real file."""
    text = sample_text(SAMPLES[0])
    start = text.index("def parse_known_args")
    return [_line(text, start + count, context, "argparse.py") for count in range(TYPED + 1)]


def other_lines(context: int, count: int) -> list[Line]:
    """Return lines of other files, cut at natural places; the same ones every time."""
    texts = {path_of(module): sample_text(module) for module in SAMPLES}
    return [
        _line(texts[request.path], request.cursor, context, request.path)
        for request in places(context, "medium", count)
    ]


def _line(text: str, at: int, context: int, path: str) -> Line:
    """Return lines around ``at`` of about ``context`` tokens, without the rest of its line."""
    room = int(context * _CHARS_PER_TOKEN)
    end = text.index("\n", at)
    top = text.rfind("\n", 0, max(0, at - int(room * _ABOVE))) + 1
    bottom = text.find("\n", end + int(room * (1 - _ABOVE)))
    bottom = len(text) if bottom < 0 else bottom + 1
    return Line(path, text[top:at], text[end:bottom], text[at:end])


def compare(
    model: Model, url: str, context: int, runs: int, say: Say = lambda _: None
) -> Iterator[Example]:
    """Return an example for every line, as they are measured, cold ones last.

    Args:
        context: tokens of text around the gap, about.
        runs: lines that are asked for with nothing cached.

    Raises:
        SettingsError: the other server cannot be asked.
    """
    other = OtherServer(url)
    ways: dict[str, Asking] = {"llama.cpp order": other.infill, "our order": other.completion}
    for way, asking in ways.items():
        say(f"typing {TYPED} characters beside {url}, in {way}")
        yield from _pairs(f"a key typed, {way}", lines_while_typing(context), model, asking, True)
    lines = other_lines(context, runs)
    random.Random(1).shuffle(lines)
    for way, asking in ways.items():
        say(f"{runs} lines with nothing cached, in {way}")
        yield from _pairs(f"cold, {way}", lines, model, asking, False)


def _pairs(
    kind: str, lines: Sequence[Line], model: Model, asking: Asking, cached: bool
) -> Iterator[Example]:
    """Return an example for every line; none where the other server has no such route."""
    with empty_cache(model) as warm:
        for number, line in enumerate(lines):
            with nullcontext(warm) if cached else empty_cache(model) as fresh:
                ours_ms, ours = _timed(lambda line=line, fresh=fresh: _ours(fresh, line))  # type: ignore[misc]
            theirs_ms, theirs = _timed(lambda line=line: asking(line, cached))  # type: ignore[misc]
            if theirs is None:
                return
            score: Row = {
                "ours_ms": ours_ms,
                "theirs_ms": theirs_ms,
                "times_as_fast": theirs_ms / ours_ms,
                "ours_exact": _is_exact(ours, line),
                "theirs_exact": _is_exact(theirs, line),
            }
            if number or not cached:  # the first one fills both caches
                yield record_figures(f"{kind}:{number}", kind, score)


def _timed(asking: Callable[[], str | None]) -> tuple[float, str | None]:
    begun = time.perf_counter()
    text = asking()
    return 1_000 * (time.perf_counter() - begun), text


def _ours(model: Model, line: Line) -> str:
    request = EditRequest(
        "infill",
        line.path,
        line.prefix + line.suffix,
        len(line.prefix),
        language="python",
        context_tokens=4_096,  # all of it: both are shown the same text
        max_tokens=MOST_TOKENS,
        max_lines=1,
        min_tokens=1,
    )
    found = ask(model, request).candidates
    return found[0].text if found else ""


def _is_exact(text: str | None, line: Line) -> bool:
    return (text or "").split("\n", 1)[0].rstrip() == line.truth.rstrip()
