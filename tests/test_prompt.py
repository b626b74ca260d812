"""The prompt of both tasks: layout, budget, stability under typing, answers read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.config import ModelConfig
from redraft.model.errors import InvalidAnswer, RedraftError
from redraft.model.prompt.answers import (
    cut_overlap,
    encode_edit,
    read_answer,
    replace_lines,
)
from redraft.model.prompt.constraints import ForcedText, ValidRange
from redraft.model.prompt.render import Prompt, render, window
from redraft.model.prompt.tokens import (
    EDIT,
    FILE,
    HISTORY,
    PREFIX,
    REGION,
    SUFFIX,
    Tokenizer,
    _byte_of_char,
    build_bpe,
)
from redraft.model.records import EditRequest, RecentEdit, RelatedFile
from redraft.model.text.common import common_head
from support.tiny import tiny_config, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
CONFIG = tiny_config()
FILE_TEXT = "".join(f"line_{i} = {i}\n" for i in range(300))


def infill(text: str, cursor: int, **more: object) -> EditRequest:
    return EditRequest("infill", "pkg/mod.py", text, cursor, **more)  # type: ignore[arg-type]


def next_edit(text: str, cursor: int, **more: object) -> EditRequest:
    return EditRequest("next_edit", "pkg/mod.py", text, cursor, **more)  # type: ignore[arg-type]


def at(marker: str, text: str = FILE_TEXT) -> int:
    return text.index(marker) + len(marker)


def draw(request: EditRequest, budget: int = 4096) -> Prompt:
    return render(request, TOKENIZER, CONFIG, budget)


def test_infill_puts_what_follows_before_what_precedes_the_cursor() -> None:
    prompt = draw(infill("before(\nafter\n", 7))
    expected = [
        TOKENIZER.mark(FILE), *TOKENIZER.encode("pkg/mod.py\n"),
        TOKENIZER.mark(SUFFIX), *TOKENIZER.encode("\nafter\n"),
        TOKENIZER.mark(PREFIX), *TOKENIZER.encode("before("),
    ]  # fmt: skip
    assert list(prompt.tokens) == expected


def qwen_tokenizer() -> Tokenizer:
    """Byte by byte, with the marks of Qwen2.5-Coder's vocabulary."""
    names = (
        "<|endoftext|>", "<|object_ref_start|>", "<|box_start|>", "<|box_end|>", "<|fim_prefix|>",
        "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|file_sep|>",
    )  # fmt: skip
    vocab = {char: i for i, char in enumerate(_byte_of_char())}
    special = {len(vocab) + i: name for i, name in enumerate(names)}
    return Tokenizer(build_bpe(vocab | {n: i for i, n in special.items()}, [], special), special)


def marks_of(prompt: Prompt, tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.special[t] for t in prompt.tokens if t in tokenizer.special]


QWEN = qwen_tokenizer()
QWEN_CONFIG = ModelConfig()


@pytest.mark.parametrize("cursor", [3, at("line_150 = ")])
def test_with_native_marks_an_infill_reads_as_the_model_was_pretrained(cursor: int) -> None:
    prompt = render(infill(FILE_TEXT, cursor), QWEN, QWEN_CONFIG, 20_000)
    far_suffix = ["<|fim_suffix|>"]  # both places have lines far below
    expected = ["<|file_sep|>", *far_suffix, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert marks_of(prompt, QWEN) == expected


def test_a_next_edit_opens_a_far_prefix_only_where_there_is_one() -> None:
    edits = (RecentEdit("pkg/mod.py", 3, "-a\n+b\n"),)
    top = render(next_edit("a\nb\nc\nd", 4, edits=edits), QWEN, QWEN_CONFIG, 20_000)
    assert marks_of(top, QWEN) == [
        "<|file_sep|>", "<|object_ref_start|>", "<|box_start|>", "<|box_end|>",
    ]  # fmt: skip
    below = render(next_edit(FILE_TEXT, at("line_299 = ")), QWEN, QWEN_CONFIG, 20_000)
    assert marks_of(below, QWEN) == [
        "<|file_sep|>",
        "<|fim_prefix|>",
        "<|box_start|>",
        "<|box_end|>",
    ]


def test_weights_made_for_another_format_are_refused_with_what_to_do() -> None:
    config = replace(CONFIG, prompt_format="redraft-1")
    with pytest.raises(RedraftError, match=r"redraft-1.*redraft-2.*redraft model import"):
        render(infill("a", 1), TOKENIZER, config, 100)


def test_next_edit_numbers_the_region_and_states_the_cursor_last() -> None:
    prompt = draw(next_edit("a\nb\nc\nd", 4, region=(1, 3)))
    marks = TOKENIZER.mark
    near = [
        marks(REGION),
        *TOKENIZER.encode("1|b\n2|c\n"),
        *TOKENIZER.encode("@2:1\n"),
        marks(EDIT),
    ]
    assert list(prompt.tokens[-len(near) :]) == near
    assert prompt.region == (1, 3)


def test_related_files_come_first_and_edits_between_far_suffix_and_far_prefix() -> None:
    request = infill(
        FILE_TEXT,
        at("line_150 = "),
        related=(RelatedFile("other.py", "X = 1\n"),),
        edits=(RecentEdit("pkg/mod.py", 3, "-a\n+b\n"),),
    )
    tokens = draw(request, 20_000).tokens
    order = [t for t in tokens if t < CONFIG.special_tokens]
    names = [FILE, FILE, SUFFIX, HISTORY, PREFIX, SUFFIX, PREFIX]
    assert order == [TOKENIZER.mark(name) for name in names]
    text = TOKENIZER.decode(tokens)
    assert text.startswith("other.py\nX = 1\n")
    assert "pkg/mod.py:4\n-a\n+b\n" in text


def test_typing_changes_only_the_tail() -> None:
    place = at("line_150 = ")
    before = draw(infill(FILE_TEXT, place)).tokens
    typed = FILE_TEXT[:place] + "foo(" + FILE_TEXT[place:]
    after = draw(infill(typed, place + 4)).tokens
    assert len(before) - common_head(before, after) <= 3


def test_pressing_enter_moves_neither_far_part() -> None:
    place = at("line_150 = 150")
    before = draw(infill(FILE_TEXT, place)).tokens
    entered = FILE_TEXT[:place] + "\n" + FILE_TEXT[place:]
    after = draw(infill(entered, place + 1)).tokens
    near = len(before) - before[::-1].index(TOKENIZER.mark(SUFFIX))
    assert common_head(before, after) >= near - 1


def test_both_tasks_share_their_far_parts() -> None:
    place = at("line_150 = 150")
    one = draw(infill(FILE_TEXT, place), 20_000).tokens
    two = draw(next_edit(FILE_TEXT, place), 20_000).tokens
    assert common_head(one, two) > len(one) * 0.8


@given(st.integers(0, 5_000), st.integers(0, 5_000))
def test_window_always_holds_the_cursor_with_a_margin(line: int, more: int) -> None:
    total = line + more + 1
    first, last = window(line, total)
    assert 0 <= first <= line < last <= total
    assert line - first >= min(line, 12) and last - 1 - line >= min(more, 12)
    assert last - first <= 28 + 28


@given(
    st.integers(64, 3_000),
    st.integers(0, len(FILE_TEXT)),
    st.sampled_from(["infill", "next_edit"]),
)
def test_prompt_never_exceeds_its_budget(budget: int, cursor: int, task: str) -> None:
    request = EditRequest(
        task,  # type: ignore[arg-type]
        "p.py",
        FILE_TEXT,
        cursor,
        related=(RelatedFile("r.py", FILE_TEXT),),
        edits=(RecentEdit("p.py", 0, "+x\n" * 50),) * 3,
    )
    assert 0 < len(draw(request, budget).tokens) <= budget + 16


def test_one_enormous_line_is_cut_inside() -> None:
    text = "x" * 2_000_000
    prompt = draw(infill(text, 1_000_000), 512)
    assert len(prompt.tokens) <= 512


def test_what_was_left_out_is_said() -> None:
    assert "left out" in draw(infill(FILE_TEXT, at("line_150")), 700).cut
    assert draw(infill("x = 1\n", 3)).cut == ""


def test_text_is_cut_at_line_ends() -> None:
    text = TOKENIZER.decode(draw(infill(FILE_TEXT, at("line_150 = ")), 1_500).tokens)
    assert all(line in FILE_TEXT for line in text.split("pkg/mod.py\n")[1].split("\n")[1:-1])


def test_unfinished_word_is_held_back_and_stripped_from_the_answer() -> None:
    request = infill("def f():\n    retu\n", 17)
    prompt = draw(request)
    assert prompt.forced == " retu"
    assert TOKENIZER.decode(prompt.tokens).endswith("def f():\n   ")
    assert read_answer(prompt, request, " return x", True) == (17, 17, "rn x")


def test_an_answer_that_drops_the_unfinished_word_is_invalid() -> None:
    request = infill("retu", 4)
    with pytest.raises(InvalidAnswer):
        read_answer(draw(request), request, "yield", True)


def test_forced_text_allows_its_beginnings_and_its_extensions() -> None:
    allowed = ForcedText(" ret", TOKENIZER).allowed([])
    assert allowed is not None
    found = {TOKENIZER.vocab_bytes[i] for i in np.flatnonzero(allowed)}
    assert found == {b" ", b" return"}
    assert ForcedText(" ret", TOKENIZER).allowed(TOKENIZER.encode(" return")) is None


@given(st.integers(1, 60), st.integers(1, 61), st.integers(0, 60))
def test_exactly_the_valid_ranges_can_be_written(count: int, first: int, last: int) -> None:
    grammar = ValidRange(count, TOKENIZER, CONFIG.end_token)
    text, written = f"{first}-{last}\n", ""
    ok = True
    for char in text:
        ok = ok and char in grammar.next_chars(written)
        written += char
    assert ok == (first <= count + 1 and first - 1 <= last <= count)


def test_end_is_allowed_at_once_but_not_inside_a_range() -> None:
    grammar = ValidRange(3, TOKENIZER, CONFIG.end_token)
    first, inside = grammar.allowed([]), grammar.allowed(TOKENIZER.encode("1-"))
    assert first is not None and first[CONFIG.end_token]
    assert inside is not None and not inside[CONFIG.end_token]
    assert grammar.allowed(TOKENIZER.encode("1-2\n")) is None


@given(st.lists(st.text("ab", max_size=3), min_size=1, max_size=6), st.data())
def test_any_replacement_of_lines_reads_back_as_the_same_document(
    lines: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(lines) + 1))
    last = data.draw(st.integers(first - 1, len(lines)))
    new = data.draw(st.lists(st.text("xy", max_size=3), max_size=3))
    text = "\n".join(lines)
    request = next_edit(text, 0, region=(0, len(lines)))
    answer = TOKENIZER.decode(encode_edit(first, last, new, TOKENIZER))
    found = read_answer(draw(request), request, answer, True)
    assert found is not None
    start, end, body = found
    expected = "\n".join([*lines[: first - 1], *new, *lines[last:]])
    assert text[:start] + body + text[end:] == expected


def test_no_answer_means_no_edit() -> None:
    request = next_edit("a\nb", 0)
    assert read_answer(draw(request), request, "", True) is None


def test_an_unfinished_edit_loses_its_torn_last_line() -> None:
    request = next_edit("a\nb\nc", 0, region=(0, 3))
    assert read_answer(draw(request), request, "2-2\nwhole\nto", False) == (2, 4, "whole\n")


@pytest.mark.parametrize("answer", ["x", "9-9\nx\n", "3-1\nx\n", "0-0\n", "-1-2\n", "1-2"])
def test_an_answer_with_a_broken_range_is_invalid(answer: str) -> None:
    request = next_edit("a\nb\nc", 0, region=(0, 3))
    if answer == "1-2":  # a complete range that deletes
        assert read_answer(draw(request), request, answer, True) == (0, 4, "")
        return
    with pytest.raises(InvalidAnswer):
        read_answer(draw(request), request, answer, True)


def test_revealed_range_is_the_end_of_the_prompt() -> None:
    request = next_edit("a\nb\nc", 0, region=(0, 3))
    prompt = render(request, TOKENIZER, CONFIG, 512, reveal=(2, 2))
    assert TOKENIZER.decode(prompt.tokens).endswith("2-2\n")
    assert prompt.constraint is None
    assert read_answer(prompt, request, "z\n", True) == (2, 4, "z\n")


def test_lines_of_the_region_that_do_not_fit_cannot_be_replaced() -> None:
    request = next_edit(FILE_TEXT, at("line_150"), region=(100, 200))
    prompt = draw(request, 400)
    first, last = prompt.region
    assert 100 < first <= 150 < last < 200
    shown = TOKENIZER.decode(prompt.tokens)
    assert f"1|line_{first} =" in shown
    assert f"{last - first}|line_{last - 1} = {last - 1}\n" in shown
    assert len(prompt.tokens) <= 400
    assert isinstance(prompt.constraint, ValidRange)
    assert prompt.constraint.next_chars(f"{last - first + 1}-") == {str(last - first)[0]}
    with pytest.raises(InvalidAnswer):
        read_answer(prompt, request, f"1-{last - first + 1}\nx\n", True)


def test_a_region_that_fits_to_the_token_stays_whole() -> None:
    request = next_edit("a\nb\nc\n", 2, region=(0, 3))
    assert draw(request, 64).region == (0, 3)


def test_a_line_that_does_not_fit_can_only_be_preceded() -> None:
    request = next_edit("x = [" + "1, " * 400 + "]\ny\n", 3, region=(0, 2))
    prompt = draw(request, 128)
    assert prompt.region == (0, 0)
    assert isinstance(prompt.constraint, ValidRange)
    assert prompt.constraint.next_chars("1-") == {"0"}
    assert read_answer(prompt, request, "1-0\nnew\n", True) == (0, 0, "new\n")


def test_deleting_the_last_line_takes_the_newline_before_it() -> None:
    assert replace_lines("a\nb", 1, 2, "") == (1, 3, "")


@pytest.mark.parametrize(
    ("text", "after", "kept"),
    [
        ("a + b\nprint(add(1, 2))", "\n\nprint(add(1, 2))\n", "a + b"),
        ("a + b\n\nprint(ad", "\n\nprint(add(1, 2))\n", "a + b"),
        ("x\n    y = 1\n    return y", "\n    return z\n", "x\n    y = 1\n    return y"),
        ("x)\n}", "\n}\n", "x)\n}"),
        ("only one line", "\nonly one line", "only one line"),
        ("a\nb", "", "a\nb"),
    ],
)
def test_a_tail_that_repeats_what_follows_is_cut(text: str, after: str, kept: str) -> None:
    assert cut_overlap(text, after) == kept


def test_the_line_before_which_the_cursor_stands_is_not_written_again() -> None:
    text, after = "    total += 1\n    return total\n\ndef more():\n", "    return total\n"
    assert cut_overlap(text, after, at_line_start=True) == "    total += 1\n"
    assert cut_overlap(text, after) == text
    document = "x = 1\n    return total\n"
    request = replace(infill(document, 6), path="a.py")
    prompt = render(request, TOKENIZER, CONFIG, 512)
    assert read_answer(prompt, request, text, True) == (6, 6, "    total += 1\n")


def test_a_blank_line_is_filled_without_a_second_line_end() -> None:
    request = infill("x = 1\n\nreturn total\n", 6)
    prompt = render(request, TOKENIZER, CONFIG, 512)
    assert read_answer(prompt, request, "y = 2\nreturn total", True) == (6, 6, "y = 2")
