"""What the fuzz draws: bodies for every route, messages for every method of the language server.

Needs hypothesis. Half of what is drawn nearly makes sense: only that gets past the first check.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

#: Fields that routes read; a new one is found by its route's own errors, which name it.
FIELDS = (
    *("prompt", "suffix", "model", "max_tokens", "max_completion_tokens", "temperature", "top_p"),
    *("seed", "n", "stop", "stream", "stream_options", "diffusing", "messages", "content", "role"),
    *("input_prefix", "input_suffix", "input_extra", "n_predict", "n_indent", "t_max_predict_ms"),
    *("raw", "options", "version", "request", "steps", "task", "path", "text", "cursor", "name"),
    *("request_id", "user_action", "provider_name", "tools", "tool_choice", "response_format"),
    *("reasoning_effort", "state", "questions", "region", "file_path", "file_contents", "changes"),
)
MARKS = (
    *("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<[fim-suffix]>", "<[fim-prefix]>"),
    *("<|file_sep|>", "<filename>", "<<<<<<< CURRENT", "<|user_cursor|>", "<|marker_1|>"),
    *("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "### User Excerpt:", "def f(a):\n"),
)

TEXTS = st.text(max_size=40) | st.lists(st.sampled_from(MARKS) | st.text(max_size=8)).map("".join)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 50)
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from(["auto", "medium", "infill", "next_edit", "user", "accept", "json_schema"])
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=10,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS}), min_size=1, max_size=2
)
#: A body that most routes take, with some of it replaced.
NEARLY = st.tuples(
    st.fixed_dictionaries(
        {"prompt": TEXTS},
        optional={
            "suffix": TEXTS,
            "messages": MESSAGES,
            "max_tokens": st.integers(1, 24),
            "stream": st.booleans(),
            "input_prefix": TEXTS,
            "input_suffix": TEXTS,
            "model": st.just("auto"),
        },
    ),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=2),
).map(lambda two: {**two[0], **two[1]})
OBJECTS = NEARLY | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6)


def _cut(data: bytes, at: int, put: bytes) -> bytes:
    at %= len(data) + 1
    return data[:at] + put + data[at + len(put) :]


WHOLE = OBJECTS.map(lambda one: json.dumps(one).encode())
BODIES = (
    WHOLE
    | WHOLE
    | st.builds(_cut, WHOLE, st.integers(0, 10_000), st.binary(max_size=4))
    | st.binary(max_size=60)
)
HEADERS = st.dictionaries(
    st.sampled_from(["Content-Type", "Content-Encoding", "Accept", "x-session-id", "Origin"]),
    st.sampled_from(["application/json", "text/plain", "gzip", "null", "x" * 200, "*/*"]),
    max_size=2,
)

# --- the language server ---------------------------------------------------------------------

#: Lines of code, and what breaks naive counting: characters of two UTF-16 units, other line ends.
SOURCE = st.lists(
    st.sampled_from(["def f(a):", "    return a", "x = '😀'", "é", "", "\u2028", "print(x)"])
    | st.text(max_size=10),
    max_size=6,
).flatmap(lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines)))
PLACES = st.fixed_dictionaries({"line": st.integers(0, 8), "character": st.integers(0, 14)})


def _ordered(one: dict[str, int], other: dict[str, int]) -> dict[str, Any]:
    start, end = sorted((one, other), key=lambda p: (p["line"], p["character"]))
    return {"start": start, "end": end}


CHANGES = st.fixed_dictionaries(
    {"text": SOURCE}, optional={"range": st.builds(_ordered, PLACES, PLACES)}
)
#: (what, with what): steps of a client that keeps to the protocol, and of one that does not.
STEPS = st.one_of(
    st.tuples(st.just("change"), st.lists(CHANGES, min_size=1, max_size=3)),
    st.tuples(st.just("change"), st.lists(CHANGES, min_size=1, max_size=1)),
    st.tuples(st.just("ask"), PLACES),
    st.tuples(st.just("edit"), PLACES),
    st.tuples(st.just("reopen"), SOURCE),
    st.tuples(st.just("any"), st.tuples(st.integers(0, 99), JSON)),
    st.tuples(st.just("raw"), st.binary(max_size=40)),
)
SESSIONS = st.tuples(SOURCE, st.lists(STEPS, min_size=1, max_size=12))
