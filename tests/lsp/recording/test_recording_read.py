"""Recordings of any maker: written, read, rebuilt exactly, and cut into edit events."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.learning.recorded_moments import script_of
from redraft.lsp.learning.recording_file import Recording, read_recording
from redraft.lsp.learning.texts import Texts, lsp_changes
from redraft.lsp.recording.recording_events import (
    CHANGE_REASON,
    FETCH,
    AnswerEvent,
    Changed,
    Closed,
    DecisionEvent,
    DrawnEvent,
    Encountered,
    Event,
    FetchStarted,
    Focused,
    Header,
    Note,
    Opened,
    OutcomeEvent,
    PlacedText,
    RecordedCandidate,
    RestoreContent,
    SelectionChanged,
    SetContent,
    StoreContent,
    TextEdit,
    decode,
    encode,
    encode_all,
)
from redraft.model.errors import InvalidRequest
from redraft.model.records import Confidence

FOREIGN = Path(__file__).parents[2] / "samples" / "foreign.recording.json"
#: Lines that each release wrote, of every kind and form, and how they are written now.
RECORDED = Path(__file__).parents[2] / "samples" / "recorded.jsonl"
BEGUN = 1_750_000_000_000


def replay(stream: Recording, until: int | None = None) -> Texts:
    documents = Texts()
    for event in stream.events[:until]:
        documents.apply(event)
    return documents


def written(path: Path, *events: Header | Event) -> Path:
    path.write_bytes(encode_all(events))
    return path


def typing(*edits: tuple[int, int, int, str], text: str = "") -> list[Header | Event]:
    """Return a recording of edits (ms since the last one, start, end, text), no source stated."""
    now_ms = BEGUN
    events: list[Header | Event] = [
        Header(now_ms, "u", "file:///w", "tests"),
        Encountered(now_ms, 0, "a.py"),
        SetContent(now_ms, 0, 1, text),
    ]
    for version, (wait_ms, start, end, put) in enumerate(edits, 2):
        now_ms += wait_ms
        events.append(Changed(now_ms, 0, version, (TextEdit(start, end, put),), stated=False))
    return events


def test_a_foreign_recording_is_read_with_all_it_says() -> None:
    stream = read_recording(FOREIGN)
    assert stream.header.root == "file:///c%3A/code/shop"
    assert not stream.header.simulated
    documents = replay(stream)
    assert [documents.path(id_) for id_ in documents.ids] == ["src/cart.ts", "README.md"]
    [started] = [event for event in stream.events if isinstance(event, FetchStarted)]
    assert (started.request, started.version) == (0, 3)
    assert [e.kind for e in stream.events if isinstance(e, Note)][-1] == "somethingNew"


def test_texts_are_rebuilt_in_utf16_with_line_ends() -> None:
    stream = read_recording(FOREIGN)
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
    assert read_recording(plain).events == read_recording(FOREIGN).events
    dense = tmp_path / "dense.json"
    dense.write_text("\ufeff" + json.dumps({"log": log}), encoding="utf-8")
    assert read_recording(dense).events == read_recording(FOREIGN).events


def test_time_never_goes_back(tmp_path: Path) -> None:
    times = [event.time_ms for event in read_recording(FOREIGN).events]
    assert times == sorted(times)
    # A text cut out of a longer log is dated by the cut, after the changes made to it.
    lines = typing((10, 0, 0, "a"), (10, 1, 1, "b"))
    lines[0] = Note(0, "meta", data={"data": {"uuid": "cut", "repoRootUri": "file:///w"}})
    lines[2] = SetContent(BEGUN + 99_000, 0, 1, "")
    stream = read_recording(written(tmp_path / "cut.jsonl", *lines))
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
        replay(read_recording(path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "edits", [[(0, 4, "x")], [(2, 1, "x")], [(0, 2, "x"), (1, 3, "y")], [(-1, 0, "x")]]
)
def test_an_edit_out_of_range_is_refused(tmp_path: Path, edits: list[tuple[int, int, str]]) -> None:
    lines = typing(text="abc")
    lines.append(Changed(BEGUN + 1, 0, 2, tuple(TextEdit(*edit) for edit in edits)))
    with pytest.raises(InvalidRequest, match="3 code units"):
        replay(read_recording(written(tmp_path / "x.jsonl", *lines)))


@dataclass
class Editor:
    """Random documents, and the recording of what is done with them."""

    rng: random.Random
    now_ms: int = BEGUN
    texts: dict[int, bytes] = field(default_factory=dict)  # UTF-16
    lines: list[Event] = field(default_factory=list)

    def open(self) -> None:
        id_, text = len(self.texts), self.words(30)
        self.texts[id_] = text.encode("utf-16-le", "surrogatepass")
        self.lines += [
            Encountered(self.now_ms, id_, f"src/{id_}.py"),
            SetContent(self.now_ms, id_, 1, text),
        ]

    def words(self, most: int) -> str:
        pieces = ("a", "word ", "ß", "😀", "𒀀x", "\n", "\r\n", "\ud83d", '"\\', "\u2028", "\0")
        return "".join(self.rng.choices(pieces, k=self.rng.randrange(most)))

    def edit(self) -> None:
        id_ = self.rng.choice(list(self.texts))
        data = self.texts[id_]
        places = sorted(self.rng.choices(range(len(data) // 2 + 1), k=2 * self.rng.randint(1, 3)))
        edits = [
            TextEdit(start, end, self.words(4))
            for start, end in zip(places[::2], places[1::2], strict=True)
        ]
        for start, end, text in reversed(edits):
            put = text.encode("utf-16-le", "surrogatepass")
            data = data[: 2 * start] + put + data[2 * end :]
        self.texts[id_] = data
        self.now_ms += self.rng.randrange(3000)
        self.lines.append(Changed(self.now_ms, id_, None, tuple(edits)))


@pytest.mark.parametrize("seed", range(10))
def test_a_language_server_sees_the_same_changes(tmp_path: Path, seed: int) -> None:
    editor = Editor(random.Random(seed))
    editor.open()
    for _ in range(60):
        editor.edit()
    stream = read_recording(written(tmp_path / "x.jsonl", *editor.lines))
    content = stream.events[1]
    assert isinstance(content, SetContent)
    server, documents = Document("file:///a.py", content.text), replay(stream, 2)
    for change in stream.changes:
        server.apply(lsp_changes(documents.text(0), change.edits), None)
        documents.apply(change)
        assert server.source == documents.text(0)


EDIT = PlacedText((1, 4), (1, 9), "new \ud83d")
CANDIDATE = RecordedCandidate(
    EDIT, 0.5, Confidence(0.5, 0.25, 0.75, logs=(-1.5,)), 3, 1, "end", "both", 0.25, True, 0.125,
    {"repeat": 1.0}, "renames",
)  # fmt: skip
ANSWER = AnswerEvent(
    BEGUN, 2, 7, "infill", (1, 4), (CANDIDATE,), "redraft-1", "said", 0.25, True,
    {"language": "python"}, {"rested": 2.0}, {"model": "fake", "weights": "w"}, {"tookMs": 9.5},
    {"prompt": 12}, "redraft-0",
)  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        Header(BEGUN, "u", "file:///w", "redraft 0", simulated=True),
        Encountered(BEGUN, 2, "src/a.py"),
        SetContent(BEGUN, 2, None, "text\r\n"),
        StoreContent(BEGUN, 2, 3, "c"),
        RestoreContent(BEGUN, 2, None, "c"),
        Opened(BEGUN, 2),
        Closed(BEGUN, 2),
        Focused(BEGUN, 2),
        Changed(BEGUN, 2, 4, (TextEdit(0, 1, "a"), TextEdit(5, 5, "")), "paste"),
        Changed(BEGUN, 2, None, (), stated=False),
        SelectionChanged(BEGUN, 2, ((1, 1), (3, 5))),
        FetchStarted(BEGUN, 2, 7, 4, "next_edit", invoked=True),
        ANSWER,
        DecisionEvent(BEGUN, 2, None, "nothing to do"),
        DecisionEvent(BEGUN, 2, "redraft-1", "", "infill", EDIT, "new", 0.5, "fake"),
        DrawnEvent(BEGUN, "redraft-1"),
        OutcomeEvent(BEGUN, 2, "redraft-1", "infill", "accepted"),
        Note(BEGUN, "event", data={"sourceId": "other"}),
        Note(BEGUN, "documentEvent", 2, {"sourceId": FETCH, "kind": "end"}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_is_read_as_it_was_written(event: Header | Event) -> None:
    assert decode(json.loads(encode(event))) == event


@pytest.mark.parametrize("sample", [*map(json.loads, RECORDED.read_text("ascii").splitlines())])
def test_lines_of_each_release_are_read_and_written(sample: dict[str, str]) -> None:
    again = encode(decode(json.loads(sample["line"])))
    assert again == sample["again"].encode("ascii") + b"\n"


def test_fields_of_other_releases_are_no_error() -> None:
    entry = json.loads(encode(ANSWER))
    candidate = entry["data"]["candidates"][0]
    candidate["confidence"]["later"] = 1.0
    for name in ("chance", "propensity", "family", "features"):
        del candidate[name]
    for name in ("pace", "versions", "explores", "after"):
        del entry["data"][name]
    found = decode(entry)
    assert isinstance(found, AnswerEvent)
    assert (found.weights, found.candidates[0].confidence) == ("", CANDIDATE.confidence)


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
    stream = read_recording(written(tmp_path / "x.jsonl", *lines))
    moments = script_of(stream, "x").moments
    assert [each.typed for each in moments] == [2, 2, 1]  # "ab", "cd" and "e"
    assert [each.done for each in moments] == [2, 4, 5]
    assert moments[1].before == moments[0].text == "ab" + text


def test_sources_that_are_not_stated_are_inferred(tmp_path: Path) -> None:
    block = "\n".join(f"value_{n} = compute_something({n})" for n in range(12)) + "\n"
    lines = typing(
        (0, 0, 0, "x = old"),
        (5000, 4, 7, "renamed_all_of_it"),
        (5000, 4, 21, "old"),
        (5000, 7, 7, "\n" + block),
        (5000, 7, 7, " + this_is_more_than_thirty_visible_characters"),
    )
    stream = read_recording(written(tmp_path / "x.jsonl", *lines))
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
    for version, reason in ((3, "formatEditsCommand"), (4, "snippet"), (77, "undo")):
        data = {"sourceId": CHANGE_REASON, "source": reason, "v": version}
        lines.append(Note(BEGUN + 9000, "documentEvent", 0, data))
    changes = read_recording(written(tmp_path / "x.jsonl", *lines)).changes
    assert [(c.source, c.reason, c.stated) for c in changes] == [
        ("user", "", False),
        ("format", "formatEditsCommand", True),
        ("user", "snippet", False),
    ]
