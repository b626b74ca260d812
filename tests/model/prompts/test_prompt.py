"""The prompt of both tasks: layout, budget, stability under typing, answers read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from redraft.model.config import ModelConfig
from redraft.model.decode.grammar import ForcedText
from redraft.model.errors import InvalidAnswer, RedraftError
from redraft.model.prompts.answer_edits import cut_overlap, replace_lines
from redraft.model.prompts.format import Declined, Prompt
from redraft.model.prompts.redraft3 import window
from redraft.model.prompts.registry import format_of
from redraft.model.prompts.tokenizer import (
    CURSOR,
    EDIT,
    FILE,
    HISTORY,
    PREFIX,
    REGION,
    SUFFIX,
    Tokenizer,
)
from redraft.model.records import EditRequest, RecentEdit, RelatedFile
from redraft.model.text.common import common_head
from support.models.tiny import byte_tokenizer, rendered, tiny_config, tiny_tokenizer

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
    return rendered(request, TOKENIZER, CONFIG, budget)


def read(
    prompt: Prompt, request: EditRequest, answer: str, ended: bool
) -> tuple[int, int, str] | None:
    found = format_of(CONFIG.prompt_format).parse(prompt, request, answer, ended)
    return found and (found.start, found.end, found.text)


def test_infill_puts_the_suffix_before_the_prefix() -> None:
    prompt = draw(infill("before(\nafter\n", 7))
    expected = [
        TOKENIZER.mark(FILE), *TOKENIZER.encode("pkg/mod.py\n"),
        TOKENIZER.mark(SUFFIX), *TOKENIZER.encode("\nafter\n"),
        TOKENIZER.mark(PREFIX), *TOKENIZER.encode("before("),
    ]  # fmt: skip
    assert list(prompt.tokens) == expected


#: With the marks of Qwen2.5-Coder's vocabulary.
QWEN = byte_tokenizer(
    (
        "<|endoftext|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
        "<|box_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
        "<|file_sep|>",
    )
)  # fmt: skip
QWEN_CONFIG = ModelConfig(verifier="ar")


def marks_of(prompt: Prompt, tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.special[t] for t in prompt.tokens if t in tokenizer.special]


@pytest.mark.parametrize("cursor", [3, at("line_150 = ")])
def test_with_native_marks_infill_is_as_pretrained(cursor: int) -> None:
    prompt = rendered(infill(FILE_TEXT, cursor), QWEN, QWEN_CONFIG, 20_000)
    far_suffix = ["<|fim_suffix|>"]  # both places have lines far below
    expected = ["<|file_sep|>", *far_suffix, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert marks_of(prompt, QWEN) == expected


def test_a_next_edit_has_a_far_prefix_where_one_exists() -> None:
    edits = (RecentEdit("pkg/mod.py", 3, "-a\n+b\n"),)
    top = rendered(next_edit("a\nb\nc\nd", 4, edits=edits), QWEN, QWEN_CONFIG, 20_000)
    near = ["<|box_start|>", "<|object_ref_end|>", "<|box_end|>"]
    assert marks_of(top, QWEN) == ["<|file_sep|>", "<|object_ref_start|>", *near]
    below = rendered(next_edit(FILE_TEXT, at("line_299 = ")), QWEN, QWEN_CONFIG, 20_000)
    assert marks_of(below, QWEN) == ["<|file_sep|>", "<|fim_prefix|>", *near]


def test_weights_of_another_format_are_refused() -> None:
    config = replace(CONFIG, prompt_format="redraft-1")
    with pytest.raises(RedraftError, match=r"redraft-1.*redraft-3.*redraft model pull"):
        rendered(infill("a", 1), TOKENIZER, config, 100)


def test_weights_of_the_last_format_only_fill_in() -> None:
    config = replace(CONFIG, prompt_format="redraft-2")
    assert rendered(infill("a", 1), TOKENIZER, config, 100) == draw(infill("a", 1), 100)
    found = format_of("redraft-2").render(next_edit("a", 1), TOKENIZER, config, 100)
    assert isinstance(found, Declined) and "not to predict edits" in found.reason


def test_a_next_edit_ends_with_region_and_cursor() -> None:
    prompt = draw(next_edit("a\nb\nc\nd", 5, region=(1, 3)))
    mark, encode = TOKENIZER.mark, TOKENIZER.encode
    near = [mark(REGION), *encode("b\nc"), mark(CURSOR), *encode("\n"), mark(EDIT)]
    assert list(prompt.tokens[-len(near) :]) == near
    assert prompt.region == (1, 3)


def test_related_files_are_first_and_edits_in_between() -> None:
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


def test_typing_moves_nothing_before_the_newest_edit() -> None:
    text = "".join(f"line_{number} = {number}\n" for number in range(400))
    old = RecentEdit("a.py", 3, "-line_3 = 0\n+line_3 = 3\n")
    others = tuple(RelatedFile(f"{name}.py", FILE_TEXT) for name in "bcd")
    at_once = set()
    for typed in ("", "v", "va", "value", "value = line_3"):
        newest = RecentEdit("a.py", 200, f" line_199 = 199\n-\n+{typed}\n")
        now = text.replace("line_200 = 200\n", f"{typed}\n")
        cursor = now.index(f"{typed}\nline_201") + len(typed)
        request = next_edit(now, cursor, edits=(old, newest), related=others, region=(198, 203))
        prompt = draw(request, 2_100)
        at_once.add(prompt.tokens[: prompt.stable])
        before = TOKENIZER.decode(prompt.tokens[: prompt.stable])
        assert "+line_3 = 3" in before
        assert " line_199 = 199" not in before
    assert len(at_once) == 1


def test_pressing_enter_moves_neither_far_part() -> None:
    place = at("line_150 = 150")
    before = draw(infill(FILE_TEXT, place)).tokens
    entered = FILE_TEXT[:place] + "\n" + FILE_TEXT[place:]
    after = draw(infill(entered, place + 1)).tokens
    near = len(before) - before[::-1].index(TOKENIZER.mark(SUFFIX))
    assert common_head(before, after) >= near - 1


@given(st.integers(0, 5_000), st.integers(0, 5_000))
def test_window_always_holds_the_cursor_with_a_margin(line: int, more: int) -> None:
    total = line + more + 1
    first, last = window(line, total)
    assert 0 <= first <= line < last <= total
    assert line - first >= min(line, 12) and last - 1 - line >= min(more, 12)
    assert last - first <= 28 + 28


@given(
    st.integers(64, 3_000), st.integers(0, len(FILE_TEXT)), st.sampled_from(["infill", "next_edit"])
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


def test_an_unfinished_word_is_held_back_and_stripped() -> None:
    request = infill("def f():\n    retu\n", 17)
    prompt = draw(request)
    assert prompt.forced == " retu"
    assert TOKENIZER.decode(prompt.tokens).endswith("def f():\n   ")
    assert read(prompt, request, " return x", True) == (17, 17, "rn x")


def test_dropping_the_unfinished_word_is_invalid() -> None:
    request = infill("retu", 4)
    with pytest.raises(InvalidAnswer):
        read(draw(request), request, "yield", True)


def test_forced_text_allows_beginnings_and_extensions() -> None:
    allowed = ForcedText(" ret", TOKENIZER).token_mask([])
    assert allowed is not None
    found = {TOKENIZER.vocab_bytes[i] for i in np.flatnonzero(allowed)}
    assert found == {b" ", b" return"}
    assert ForcedText(" ret", TOKENIZER).token_mask(TOKENIZER.encode(" return")) is None


LINES = st.text("ab", max_size=2)


@given(st.lists(LINES, min_size=1, max_size=6), st.lists(LINES, max_size=6))
@example(["a", ""], ["a"])
@example(["a", ""], ["a", "", ""])
@example(["a", ""], [])
def test_any_rewriting_is_parsed_as_the_same_document(lines: list[str], new: list[str]) -> None:
    assume(any(new) or not new)  # an answer of blank lines alone is no edit
    text = "\n".join(lines)
    request = next_edit(text, 0, region=(0, len(lines)))
    found = read(draw(request), request, "".join(f"{line}\n" for line in new), True)
    if new == lines:
        assert found is None
        return
    assert found is not None
    start, end, body = found
    assert text[:start] + body + text[end:] == "\n".join(new)


def test_an_unfinished_edit_is_invalid() -> None:
    request = next_edit("a\nb\nc", 0, region=(0, 3))
    with pytest.raises(InvalidAnswer, match="broke off"):
        read(draw(request), request, "a\nwhole\nto", False)


def test_lines_that_do_not_fit_are_not_rewritten() -> None:
    request = next_edit(FILE_TEXT, at("line_150"), region=(100, 200))
    prompt = draw(request, 160)
    first, last = prompt.region
    assert 100 < first <= 150 < last < 200
    region = TOKENIZER.decode(prompt.tokens[prompt.tokens.index(TOKENIZER.mark(REGION)) :])
    assert region == "".join(f"line_{i} = {i}\n" for i in range(first, last))
    assert len(prompt.tokens) <= 160


def test_deleting_the_last_line_takes_its_newline() -> None:
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


def test_a_line_behind_the_cursor_is_not_repeated() -> None:
    text, after = "    total += 1\n    return total\n\ndef more():\n", "    return total\n"
    assert cut_overlap(text, after, at_line_start=True) == "    total += 1\n"
    assert cut_overlap(text, after) == text
    document = "x = 1\n    return total\n"
    request = replace(infill(document, 6), path="a.py")
    prompt = rendered(request, TOKENIZER, CONFIG, 512)
    assert read(prompt, request, text, True) == (6, 6, "    total += 1\n")


def test_a_blank_line_is_filled_without_a_second_end() -> None:
    request = infill("x = 1\n\nreturn total\n", 6)
    prompt = rendered(request, TOKENIZER, CONFIG, 512)
    assert read(prompt, request, "y = 2\nreturn total", True) == (6, 6, "y = 2")
