"""UTF-16 positions against a reference that counts code units one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from redraft.lsp.documents.positions import (
    character_at,
    cut,
    index_at,
    join,
    units,
    whole,
    without_surrogates,
)

# Plain, accented, combining, astral, joined by ZWJ, what Python takes for line ends, NUL, and
# halves of pairs that came alone.
ALPHABET = "ab \té\u0301中😀👩\u200d💻\u2028\x0b\x0c\x85\0\ufeff\ud83d\ude00"
lines = st.text(st.sampled_from(ALPHABET), max_size=12).map(whole)


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


@given(st.lists(st.text(st.sampled_from(ALPHABET), max_size=5)))
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
