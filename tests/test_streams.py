"""Recordings of any maker: read, rebuilt exactly, and cut into edit events."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redraft.evals.recordings.documents import StreamDocuments, content_changes
from redraft.evals.recordings.format import Changed, FetchStarted, Note, SetContent, Stream
from redraft.evals.recordings.streams import coalesce, read_stream
from redraft.lsp.documents import Document
from redraft.lsp.recording import format as entries
from redraft.model.errors import InvalidRequest

FOREIGN = Path(__file__).parent / "samples" / "foreign.recording.json"
BEGUN = 1_750_000_000_000


def replay(stream: Stream, until: int | None = None) -> StreamDocuments:
    documents = StreamDocuments()
    for event in stream.events[:until]:
        documents.apply(event)
    return documents


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_bytes(b"".join(map(entries.line_of, lines)))
    return path


def typing(*edits: tuple[int, int, int, str], text: str = "") -> list[dict[str, Any]]:
    """A recording of edits (ms since the last one, start, end, text), no source stated."""
    now_ms = BEGUN
    lines = [
        entries.header("u", "file:///w", now_ms, "tests"),
        entries.encountered(0, "a.py", now_ms),
        entries.set_content(0, 1, text, now_ms),
    ]
    for version, (wait_ms, start, end, put) in enumerate(edits, 2):
        now_ms += wait_ms
        line = entries.changed(0, version, [(start, end, put)], "user", now_ms)
        del line["source"]
        lines.append(line)
    return lines


def test_a_foreign_recording_is_read_with_all_it_says() -> None:
    stream = read_stream(FOREIGN)
    assert stream.header.root == "file:///c%3A/code/shop"
    assert not stream.header.simulated
    documents = replay(stream)
    assert [documents.path(id_) for id_ in documents.ids] == ["src/cart.ts", "README.md"]
    [started] = [event for event in stream.events if isinstance(event, FetchStarted)]
    assert (started.request, started.version) == (0, 3)
    assert [e.kind for e in stream.events if isinstance(e, Note)][-1] == "somethingNew"


def test_texts_are_rebuilt_in_utf16_with_their_line_ends() -> None:
    stream = read_stream(FOREIGN)
    last = max(at for at, event in enumerate(stream.events) if isinstance(event, Changed))
    documents = replay(stream, last)
    assert documents.text(0) == (
        "const label = '🧺';\r\nfunction total(prices: number[]) {\r\n"
        "return prices.reduce((a, b) => a + b, 0);\r\n}\r\n"
    )
    documents = replay(stream)
    assert documents.text(0) == (
        "const label = '🛒';\r\nfunction total(items: number[]) {\r\n\r\n}\r\n"
    ), "restored from what was stored"
    assert documents.text(1) == "# Shop\n!"


def test_lines_and_one_object_say_the_same(tmp_path: Path) -> None:
    log = json.loads(FOREIGN.read_text(encoding="utf-8"))["log"]
    plain = tmp_path / "plain.jsonl"
    plain.write_text("".join(json.dumps(entry) + "\n\n" for entry in log), encoding="utf-8")
    assert read_stream(plain).events == read_stream(FOREIGN).events
    dense = tmp_path / "dense.json"
    dense.write_text("\ufeff" + json.dumps({"log": log}), encoding="utf-8")
    assert read_stream(dense).events == read_stream(FOREIGN).events


def test_time_never_goes_back(tmp_path: Path) -> None:
    times = [event.time_ms for event in read_stream(FOREIGN).events]
    assert times == sorted(times)
    # A text cut out of a longer log is dated by the cut, after the changes made to it.
    lines = typing((10, 0, 0, "a"), (10, 1, 1, "b"))
    lines[0] = {"kind": "meta", "data": {"uuid": "cut", "repoRootUri": "file:///w"}}
    lines[2]["time"] = BEGUN + 99_000
    stream = read_stream(written(tmp_path / "cut.jsonl", *lines))
    assert [event.time_ms for event in stream.events if isinstance(event, SetContent)] == [
        BEGUN + 10
    ]
    assert (stream.header.uuid, stream.header.time_ms) == ("cut", BEGUN + 10)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no entry"),
        ("hello\nworld\n", "line 1 is no JSON"),
        ('{"kind":"header","time":1}\nx\n{"kind":"applicationStart","time":1}\n', "line 2"),
        ('{"a":1}\n', "entry 1 has no kind"),
        ('{"kind":"opened","id":0}\n', "entry 1 ('opened') cannot be used: KeyError 'time'"),
        ('{"kind":"header","documentType":"other@2","time":1}\n', "other@2"),
        ('{"kind":"changed","id":0,"time":1,"edit":[[0,0,"x"]]}\n', "before the recording"),
        ('{"kind":"changed","id":0,"time":1,"edit":[[0,"x"]]}\n', "entry 1 ('changed')"),
    ],
)
def test_what_is_no_recording_is_refused_by_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidRequest) as caught:
        replay(read_stream(path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "edits", [[(0, 4, "x")], [(2, 1, "x")], [(0, 2, "x"), (1, 3, "y")], [(-1, 0, "x")]]
)
def test_an_edit_out_of_range_is_refused(tmp_path: Path, edits: list[tuple[int, int, str]]) -> None:
    lines = typing(text="abc")
    lines.append(entries.changed(0, 2, edits, "user", BEGUN + 1))
    with pytest.raises(InvalidRequest, match="3 code units"):
        replay(read_stream(written(tmp_path / "x.jsonl", *lines)))


@dataclass
class Editor:
    """Random documents, and the recording of what is done with them."""

    rng: random.Random
    now_ms: int = BEGUN
    texts: dict[int, bytes] = field(default_factory=dict)  # UTF-16
    lines: list[dict[str, Any]] = field(default_factory=list)

    def open(self) -> None:
        id_, text = len(self.texts), self.words(30)
        self.texts[id_] = text.encode("utf-16-le", "surrogatepass")
        self.lines += [
            entries.encountered(id_, f"src/{id_}.py", self.now_ms),
            entries.set_content(id_, 1, text, self.now_ms),
        ]

    def words(self, most: int) -> str:
        pieces = ("a", "word ", "ß", "😀", "𒀀x", "\n", "\r\n", "\ud83d", '"\\', "\u2028", "\0")
        return "".join(self.rng.choices(pieces, k=self.rng.randrange(most)))

    def edit(self) -> None:
        id_ = self.rng.choice(list(self.texts))
        data = self.texts[id_]
        places = sorted(self.rng.choices(range(len(data) // 2 + 1), k=2 * self.rng.randint(1, 3)))
        edits = [
            (start, end, self.words(4))
            for start, end in zip(places[::2], places[1::2], strict=True)
        ]
        for start, end, text in reversed(edits):
            put = text.encode("utf-16-le", "surrogatepass")
            data = data[: 2 * start] + put + data[2 * end :]
        self.texts[id_] = data
        self.now_ms += self.rng.randrange(3000)
        self.lines.append(entries.changed(id_, None, edits, "user", self.now_ms))


@pytest.mark.parametrize("seed", range(10))
def test_a_language_server_sees_the_same_changes(tmp_path: Path, seed: int) -> None:
    editor = Editor(random.Random(seed))
    editor.open()
    for _ in range(60):
        editor.edit()
    stream = read_stream(written(tmp_path / "x.jsonl", *editor.lines))
    content = stream.events[1]
    assert isinstance(content, SetContent)
    server, documents = Document("file:///a.py", content.text), replay(stream, 2)
    for change in stream.changes:
        server.apply(content_changes(documents.text(0), change.edits), None)
        documents.apply(change)
        assert server.source == documents.text(0)


def test_changes_near_each_other_are_one_edit_event(tmp_path: Path) -> None:
    text = "line\n" * 40
    lines = typing(
        (0, 0, 0, "a"),
        (1000, 1, 1, "b"),  # a second later: the same
        (1001, 2, 2, "c"),  # just over a second: another
        (10, 8 * 5 + 3, 8 * 5 + 3, "d"),  # eight lines below: the same
        (10, 17 * 5 + 4, 17 * 5 + 4, "e"),  # nine lines below: another
        text=text,
    )
    stream = read_stream(written(tmp_path / "x.jsonl", *lines))
    found = [
        "".join(edit.text for change in event.changes for edit in change.edits)
        for event in coalesce(stream)
    ]
    assert found == ["ab", "cd", "e"]
    assert [event.last for event in coalesce(stream)] == [3, 5, 6]
    assert len(coalesce(stream, gap_s=2)) == 2
    assert len(coalesce(stream, lines=20, gap_s=2)) == 1


def test_sources_that_are_not_stated_are_inferred(tmp_path: Path) -> None:
    block = "\n".join(f"value_{n} = compute_something({n})" for n in range(12)) + "\n"
    lines = typing(
        (0, 0, 0, "x = old"),
        (5000, 4, 7, "renamed_all_of_it"),
        (5000, 4, 21, "old"),
        (5000, 7, 7, "\n" + block),
        (5000, 7, 7, " + this_is_more_than_thirty_visible_characters"),
    )
    stream = read_stream(written(tmp_path / "x.jsonl", *lines))
    assert [change.source for change in stream.changes] == [
        "user",
        "user",
        "undo",
        "paste",
        "paste",
    ]
    assert not any(change.stated for change in stream.changes)


def test_what_editors_say_of_a_change_is_heard(tmp_path: Path) -> None:
    lines = typing((0, 0, 0, "a"), (5000, 1, 1, "b"), (5000, 2, 2, "c"))
    lines += [
        entries.change_reason(0, 3, "formatEditsCommand", BEGUN + 9000),
        entries.change_reason(0, 4, "snippet", BEGUN + 9000),
        entries.change_reason(0, 77, "undo", BEGUN + 9000),
    ]
    changes = read_stream(written(tmp_path / "x.jsonl", *lines)).changes
    assert [(c.source, c.reason, c.stated) for c in changes] == [
        ("user", "", False),
        ("format", "formatEditsCommand", True),
        ("user", "snippet", False),
    ]
