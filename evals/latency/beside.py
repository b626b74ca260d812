"""Redraft beside a llama.cpp-style server: the same single lines, asked of both in turns.

Fifty characters are typed into a real file and every key asks both for the rest of the line; then
lines of other files are asked for with nothing cached. The other server is asked twice: as its own
clients ask (``/infill``, where it has that), and through ``/completion`` with the same
fill-in-the-middle marks in the order that keeps a keystroke cheap, so that what is compared is the
engine and not the order. Medians and ratios, no verdicts. Knows nothing of who the other server is.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redraft.model.errors import SettingsError
from redraft.model.predict import Model
from redraft.model.records import EditRequest

from ..figures import Spread
from .latency import SAMPLES, TYPED, Say, ask, emptied, places, sample_text

TIMEOUT_S = 120.0
MOST_TOKENS = 24  # written for one line
#: Characters of one token of code, about: texts are cut alike for both, before either reads them.
_CHARS_PER_TOKEN = 3.2
_ABOVE = 0.75  # of the text that both are shown stands above the cursor

#: How the other server is asked, and the path that answers.
WAYS = ("its own order", "our order")


@dataclass(frozen=True, slots=True)
class Line:
    """A line to finish: the text around the gap, as both see it, and what stood there."""

    path: str
    prefix: str
    suffix: str
    truth: str  # rest of the line


@dataclass(frozen=True, slots=True)
class TimedLine:
    """One answer: how long it took, and whether it was the line."""

    ms: float
    text: str
    exact: bool


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One way of asking the other server, beside Redraft asked the same lines in the same turns."""

    way: str
    state: str  # "cold" or "a key typed"
    lines: int
    ours_ms: Spread
    theirs_ms: Spread
    ratio: Spread  # theirs ÷ ours, pair by pair
    ours_exact: int
    theirs_exact: int


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
        """As its own clients ask; None where it has no such route."""
        return self._post(
            "/infill", {"input_prefix": line.prefix, "input_suffix": line.suffix}, cached
        )

    def completion(self, line: Line, cached: bool) -> str | None:
        """The suffix first and the prefix last, by the marks of Qwen's and many other models."""
        prompt = f"<|fim_prefix|><|fim_suffix|>{line.suffix}<|fim_middle|>{line.prefix}"
        return self._post("/completion", {"prompt": prompt}, cached)

    def _post(self, route: str, body: dict[str, Any], cached: bool) -> str | None:
        body |= {
            "n_predict": MOST_TOKENS,
            "temperature": 0.0,
            "stop": ["\n"],
            "cache_prompt": cached,
        }
        try:
            self._connection.request(
                "POST",
                self._base + route,
                json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise SettingsError(
                f"Nothing that answers at {self._url}{route}: {error}. Start the server to compare "
                "with, with the same model, and give its address."
            ) from error
        if answer.status in (404, 501):
            return None
        try:
            return str(json.loads(content)["content"])
        except (ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._url}{route} answered {answer.status} {content[:120]!r}, not as llama.cpp "
                "does: {'content': …}."
            ) from error


def typed_lines(context: int) -> list[Line]:
    """A text that was cut out of a real file, typed back into it: one line to finish per key."""
    text = sample_text(SAMPLES[0])
    start = text.index("def parse_known_args")
    return [_line(text, start + count, context, "argparse.py") for count in range(TYPED + 1)]


def other_lines(context: int, count: int) -> list[Line]:
    """Lines of other files, cut at natural places; the same ones every time."""
    found = []
    for request in places(context, "medium", count):
        text = sample_text(next(m for m in SAMPLES if _path(m.__name__) == request.path))
        found.append(_line(text, request.cursor, context, request.path))
    return found


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _line(text: str, at: int, context: int, path: str) -> Line:
    """Lines around ``at`` that take about ``context`` tokens; the rest of its line is gone."""
    room = int(context * _CHARS_PER_TOKEN)
    end = text.index("\n", at)
    top = text.rfind("\n", 0, max(0, at - int(room * _ABOVE))) + 1
    bottom = text.find("\n", end + int(room * (1 - _ABOVE)))
    bottom = len(text) if bottom < 0 else bottom + 1
    return Line(path, text[top:at], text[end:bottom], text[at:end])


def compare(
    model: Model, url: str, context: int, runs: int, say: Say = lambda _: None
) -> Iterator[ServerRow]:
    """Rows as they are measured, cold ones last.

    Args:
        context: tokens of text around the gap, about.
        runs: lines that are asked for with nothing cached.

    Raises:
        SettingsError: the other server cannot be asked.
    """
    other = OtherServer(url)
    ways: list[tuple[str, Callable[[Line, bool], str | None]]] = [
        (WAYS[0], other.infill),
        (WAYS[1], other.completion),
    ]
    for way, asking in ways:
        say(f"typing {TYPED} characters beside {url}, in {way}")
        yield from _rows(way, "a key typed", typed_lines(context), model, asking, cached=True)
    lines = other_lines(context, runs)
    random.Random(1).shuffle(lines)
    for way, asking in ways:
        say(f"{runs} lines with nothing cached, in {way}")
        yield from _rows(way, "cold", lines, model, asking, cached=False)


def _rows(
    way: str,
    state: str,
    lines: Sequence[Line],
    model: Model,
    asking: Callable[[Line, bool], str | None],
    cached: bool,
) -> Iterator[ServerRow]:
    """At most one row; none where the other server has no such route."""
    ours: list[TimedLine] = []
    theirs: list[TimedLine] = []
    with emptied(model) as warm:
        for line in lines:
            if cached:
                ours.append(_ours(warm, line))
            else:
                with emptied(model) as fresh:
                    ours.append(_ours(fresh, line))
            begun = time.perf_counter()
            text = asking(line, cached)
            if text is None:
                return
            theirs.append(_asked(text, line, begun))
    if cached:  # the first one fills both caches
        ours, theirs = ours[1:], theirs[1:]
    yield ServerRow(
        way,
        state,
        len(ours),
        Spread.of([each.ms for each in ours]),
        Spread.of([each.ms for each in theirs]),
        Spread.of([b.ms / a.ms for a, b in zip(ours, theirs, strict=True)]),
        sum(each.exact for each in ours),
        sum(each.exact for each in theirs),
    )


def _ours(model: Model, line: Line) -> TimedLine:
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
    begun = time.perf_counter()
    found = ask(model, request).candidates
    return _asked(found[0].text if found else "", line, begun)


def _asked(text: str, line: Line, begun: float) -> TimedLine:
    ms = (time.perf_counter() - begun) * 1_000
    first = text.split("\n", 1)[0]
    return TimedLine(ms, first, first.rstrip() == line.truth.rstrip())


def headline(rows: Sequence[ServerRow]) -> str:
    """What the rows say, in words."""
    told = [
        f"{row.ratio.p50:.1f}× as fast {row.state} in {row.way}"
        if row.ratio.p50 >= 1
        else f"{1 / row.ratio.p50:.1f}× slower {row.state} in {row.way}"
        for row in rows
    ]
    return "Redraft is " + "; ".join(told) + "." if told else "Nothing could be compared."
