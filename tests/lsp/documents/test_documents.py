"""Positions and incremental sync against references that count UTF-16 code units."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.documents.open_documents import ContentChange, Document, Documents, Extent
from redraft.lsp.documents.positions import (
    Position,
    Range,
    character_at,
    cut,
    index_at,
    join,
    units,
    whole,
    without_surrogates,
)
from redraft.model.errors import InvalidRequest

URI = "untitled:Untitled-1"
ALPHABET = "ab é\u0301中😀\u2028\x0c\x85\0\n\r\ud83d\ude00"
texts = st.text(st.sampled_from(ALPHABET), max_size=25) | st.lists(
    st.sampled_from(["\r\n", "\n", "\r", "x", "😀", "\u2028"]), max_size=12
).map("".join)
places = st.tuples(st.integers(0, 8), st.integers(0, 12))


class Reference:
    """The protocol's rules in their plainest form: split anew and search, every time."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-16-le", "surrogatepass")

    def text(self) -> str:
        return self.data.decode("utf-16-le", "surrogatepass")

    def offset(self, line: int, character: int) -> int:
        """Return an offset in code units."""
        start, values = 0, [self.data[at : at + 2] for at in range(0, len(self.data), 2)]
        cr, lf = b"\r\0", b"\n\0"
        for _ in range(line):
            while start < len(values) and values[start] not in (cr, lf):
                start += 1
            if start == len(values):
                return start
            start += 2 if values[start : start + 2] == [cr, lf] else 1
        end = start
        while end < len(values) and values[end] not in (cr, lf):
            end += 1
        return min(start + character, end)

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        first, last = self.offset(*start), self.offset(*end)
        middle = text.encode("utf-16-le", "surrogatepass")
        self.data = self.data[: 2 * first] + middle + self.data[2 * last :]


@settings(max_examples=150)
@given(texts, st.lists(st.tuples(places, places, texts), max_size=6))
def test_changes_give_the_text_the_client_has(
    text: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    document, reference = Document(URI, text), Reference(text)
    for one, other, inserted in edits:
        start, end = min(one, other), max(one, other)
        document.apply([change(start, end, inserted)], None)
        reference.replace(start, end, inserted)
        assert document.source == reference.text()
        fresh = Document(URI, reference.text())
        assert document.text == fresh.text
        assert list(document.current().lines) == document.text.split("\n")
        for index in range(len(document.text) + 1):
            assert document.line_of(index) == document.text.count("\n", 0, index)
        assert document.line_count == fresh.line_count


@given(texts, places)
def test_a_position_finds_its_place_in_engine_text(text: str, place: tuple[int, int]) -> None:
    document = Document(URI, text)
    index = document.index(Position(*place))
    back = document.clamp(Position(*place))
    assert document.index(back) == index
    before = document.source.encode("utf-16-le", "surrogatepass")[
        : 2 * Reference(text).offset(back.line, back.character)
    ]
    plain = before.decode("utf-16-le", "surrogatepass").replace("\r\n", "\n").replace("\r", "\n")
    assert len(document.text[:index]) == len(plain)


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> ContentChange:
    return ContentChange(text, Range(Position(*start), Position(*end)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\r\nb\r\nc\n", "\r\n"), ("a\nb\nc\r\n", "\n"), ("a\rb\r", "\r"), ("one line", "\n")],
)
def test_the_line_end_is_what_most_lines_have(text: str, expected: str) -> None:
    assert Document(URI, text).line_end == expected


def test_a_turned_range_stops_trust_until_text_comes() -> None:
    document = Document(URI, "a\nb\n", 1)
    with pytest.raises(InvalidRequest, match=r"ends .* before it starts"):
        document.apply([change((1, 1), (0, 0), "x")], 2)
    assert "before it starts" in document.out_of_step
    assert document.source == "a\nb\n"
    document.apply([ContentChange("whole\n")], 3)
    assert (document.out_of_step, document.source) == ("", "whole\n")


def test_an_older_version_number_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    document = Document(URI, "a", 7)
    document.apply([change((0, 1), (0, 1), "b")], 3)
    assert document.source == "ab"
    assert "version 3 came after version 7" in caplog.text


def test_reopening_never_repeats_a_revision() -> None:
    documents = Documents()
    first = documents.open(URI, "a", 1, "python")
    first.apply([ContentChange("b")], 2)
    assert documents.open(URI, "a", 1, "python").revision > first.revision


def test_an_unopened_change_is_refused_unless_complete() -> None:
    documents = Documents()
    with pytest.raises(InvalidRequest, match="never opened"):
        documents.change(URI, [change((0, 0), (0, 0), "x")], 1)
    documents.change(URI, [ContentChange("all of it")], 1)
    document = documents.get(URI)
    assert document is not None
    assert document.source == "all of it"


def test_a_line_of_five_megabytes_is_edited_too() -> None:
    document = Document(URI, "中" * 1_600_000 + "\nend")
    document.apply([change((0, 1_600_000), (0, 1_600_000), "!")], 2)
    assert document.text.endswith("中!\nend")
    assert document.clamp(Position(0, 2**31 - 1)) == Position(0, 1_600_001)
    assert document.index(Position(1, 0)) == 1_600_002


def test_nul_and_surrogates_are_mended_for_the_engine() -> None:
    document = Document(URI, "a\0\ud83d b", language="py\ud83d")
    assert document.source == "a\0\ud83d b"
    assert document.text == "a\0\ufffd b"
    assert document.language == "py\ufffd"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (change((0, 1), (0, 1), "x"), Extent(1, 0)),
        (change((0, 0), (0, 3), ""), Extent(3, 0)),
        (change((0, 3), (0, 3), "\nnew\nlines"), Extent(10, 2)),
        (change((0, 0), (2, 0), "one\ntwo\n"), Extent(0, 0)),
        (ContentChange("one\ntwo\nthree!\n"), Extent(1, 0)),
    ],
)
def test_the_extent_is_what_really_differs(edit: ContentChange, expected: Extent) -> None:
    splices = Document(URI, "one\ntwo\nthree\n").apply([edit], None)
    assert sum((splice.extent for splice in splices), Extent()) == expected


@settings(max_examples=100)
@given(texts, st.lists(st.tuples(places, places, texts), max_size=6))
def test_splices_made_one_after_another_give_the_lines(
    text: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    document = Document(URI, text)
    lines = list(document.lines)
    changes = [change(min(one, other), max(one, other), new) for one, other, new in edits]
    for splice in document.apply(changes, None):
        assert lines[splice.first : splice.first + len(splice.removed)] == list(splice.removed)
        lines[splice.first : splice.first + len(splice.removed)] = splice.added
    assert lines == list(document.lines)


LONE_CR = "SEP = 'a\rb'\n\ndef area(r):\n    return 3 * r * r\n"


@pytest.mark.parametrize(
    ("start", "end"),
    [((1, 0), (1, 9)), ((3, 4), (3, 30))],  # as an editor counts that ignores CR
)
def test_an_editor_ending_no_line_at_a_cr_is_noticed(
    start: tuple[int, int], end: tuple[int, int]
) -> None:
    document = Document(URI, LONE_CR)
    document.apply([change(start, end, "x")], None)
    assert document.out_of_step == ""  # it matters for suggestions alone
    document.compare(Position(0, 0))
    assert "a carriage return ends its line 1" in document.out_of_step
    document.apply([ContentChange("whole\n")], None)
    assert document.out_of_step == ""


@pytest.mark.parametrize("text", [LONE_CR, LONE_CR.replace("\r", "")])
def test_existing_positions_say_nothing_of_an_editor(text: str) -> None:
    document = Document(URI, text)
    document.apply([change((0, 0), (2**31 - 1, 0), text)], None)
    document.compare(Position(1, 0), Position(0, 8))
    assert document.out_of_step == ""


def test_without_a_lone_cr_past_the_end_is_the_end() -> None:
    document = Document(URI, "a\r\nb\n")
    document.apply([change((1, 1), (9, 9), "c")], None)
    document.compare(Position(1, 3))
    assert (document.source, document.out_of_step) == ("a\r\nbc", "")


# Plain, accented, combining, astral, joined by ZWJ, what Python takes for line ends, NUL, and
# halves of pairs that came alone.
LINE_ALPHABET = "ab \té\u0301中😀👩\u200d💻\u2028\x0b\x0c\x85\0\ufeff\ud83d\ude00"
lines = st.text(st.sampled_from(LINE_ALPHABET), max_size=12).map(whole)


def code_units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


def from_units(values: list[int]) -> str:
    data = b"".join(value.to_bytes(2, "little") for value in values)
    return data.decode("utf-16-le", "surrogatepass")


@given(lines)
def test_length_counts_code_units(line: str) -> None:
    assert units(line) == len(code_units(line))


@given(lines, st.integers(0, 30))
def test_a_position_between_characters_round_trips(line: str, wanted: int) -> None:
    index = min(wanted, len(line))
    assert index_at(line, character_at(line, index)) == index


@given(lines, st.integers(0, 40))
def test_an_offset_maps_to_the_border_at_or_before(line: str, at: int) -> None:
    borders = [character_at(line, index) for index in range(len(line) + 1)]
    expected = max(index for index, border in enumerate(borders) if border <= at)
    assert index_at(line, at) == expected


@given(lines, st.integers(0, 40))
def test_cutting_loses_no_code_unit_even_inside_a_pair(line: str, at: int) -> None:
    left, right = cut(line, at)
    assert code_units(left) == code_units(line)[:at]
    assert code_units(right) == code_units(line)[at:]
    assert join(left, right) == line


@given(st.lists(st.text(st.sampled_from(LINE_ALPHABET), max_size=5)))
def test_joining_gives_the_text_of_all_code_units(parts: list[str]) -> None:
    assert join(*parts) == from_units([unit for part in parts for unit in code_units(part)])


def test_halves_that_meet_become_one_character() -> None:
    assert join("a\ud83d", "\ude00b") == "a😀b"


def test_the_engine_gets_valid_unicode_of_equal_length() -> None:
    assert without_surrogates("a\ud83db\ude00😀") == "a\ufffdb\ufffd😀"
    assert without_surrogates("nothing to mend: 中") == "nothing to mend: 中"


def test_past_the_end_of_the_line_means_its_end() -> None:
    assert index_at("ab", 2**31 - 1) == 2
    assert index_at("😀", 2**31 - 1) == 1


def test_inside_a_pair_means_before_it() -> None:
    assert index_at("a😀b", 2) == 1
