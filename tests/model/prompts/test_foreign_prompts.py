"""Prompts of other projects' models: golden files, and recorded answers read back as edits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import SettingsError
from redraft.model.prompts.diffs import as_it_was
from redraft.model.prompts.format import Declined, Prompt
from redraft.model.prompts.registry import (
    IN_PLACE,
    OTHERS,
    check_format,
    format_of,
    native_format,
    predicts_edits,
    takes_grammars,
)
from redraft.model.prompts.sweep import read_sweep
from redraft.model.prompts.zeta import read_zeta2
from redraft.model.records import EditRequest, RecentEdit, RelatedFile, Task
from support.foreign_prompts import (
    CURSOR,
    LINES,
    QWEN,
    REQUEST,
    TEXT,
    TOKENIZERS,
    VOCABULARIES,
    made,
    read,
    rendered,
)

GOLDEN = Path(__file__).parents[2] / "golden_prompts"


def spelled(name: str, prompt: Prompt) -> str:
    """Return the prompt as text, special tokens by their names, ░ for an answer within it."""
    tokenizer = TOKENIZERS[name]
    data = b""
    gap = tokenizer.encode("░") if prompt.in_place else []
    for token in (*prompt.tokens, *gap, *prompt.behind):
        mark = tokenizer.special.get(token)
        data += tokenizer.vocab_bytes[token] if mark is None else mark.encode()
    return data.decode()


def task_of(name: str) -> Task:
    return "next_edit" if name.startswith(("sweep", "zeta")) else "infill"


def golden(name: str) -> EditRequest:
    region = (8, 21) if name.startswith("zeta") else None  # so that text stands around it
    return replace(REQUEST, task=task_of(name), region=region)


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_prompt_is_its_golden_file_byte_for_byte(name: str) -> None:
    request = golden(name)
    expected = (GOLDEN / f"{name}.txt").read_bytes().decode()
    assert spelled(name, rendered(name, request)) == expected


@pytest.mark.parametrize("name", [name for name in OTHERS if name != IN_PLACE])
def test_every_format_is_told_by_its_vocabulary(name: str) -> None:
    check_format(name, VOCABULARIES[name])
    called = {
        "sweep": "sweep-next-edit-1.5b.q8_0.v2",
        "sweep-v2": "Sweep-Next-Edit-v2-7B",
        "zeta-2": "zeta-2",
        "zeta-2.1": "Zeta_2.1",
    }
    assert native_format(VOCABULARIES[name], [called.get(name, "weights")]) == name


def test_a_format_needs_its_tokens() -> None:
    with pytest.raises(SettingsError, match="fim-suffix"):
        check_format("zeta-2", QWEN)
    with pytest.raises(SettingsError, match=r"zeta-2\.1"):
        check_format("zeta-9", QWEN)
    assert native_format(QWEN, ["zeta-2"]) == "fim-qwen"  # its vocabulary is not Zeta's


def test_our_wire_reads_what_is_written_for_sweep() -> None:
    excerpt = read_sweep(spelled("sweep", rendered("sweep", REQUEST)))
    at = TEXT.count("\n", 0, CURSOR)
    assert excerpt.region == "\n".join(LINES[at - 10 : at + 11])
    assert excerpt.path == "box.py"
    assert [file.path for file in excerpt.related] == ["lib/b.py", "shapes.py"]


@pytest.mark.parametrize("name", ["zeta-2", "zeta-2.1"])
def test_our_wire_reads_what_is_written_for_zeta(name: str) -> None:
    prompt = rendered(name, golden(name))
    excerpt = read_zeta2(spelled(name, prompt))
    assert excerpt.region == "\n".join(LINES[slice(*prompt.region)])
    first = sum(len(line) + 1 for line in LINES[: prompt.region[0]])
    assert excerpt.cursor == CURSOR - first
    assert [edit.accepted for edit in excerpt.edits] == [True, False]


@pytest.mark.parametrize(("name", "share"), [("fim-qwen", 0.3), ("in-place", 0.4)])
def test_a_full_prompt_has_text_behind_the_cursor(name: str, share: float) -> None:
    request = EditRequest("infill", "a.py", "a = 1\n" * 1_000 + "b = 2\n" * 1_000, 6_000)
    behind = spelled(name, rendered(name, request, 2_000)).count("b = 2\n") * len("b = 2\n")
    assert behind / 2_000 == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_small_budget_leaves_far_parts_out_and_tells(name: str) -> None:
    request = replace(
        REQUEST, task=task_of(name), related=(RelatedFile("far.py", "x = 1\n" * 500),)
    )
    small = rendered(name, request, 1_400)
    assert len(small.tokens) + len(small.behind) <= 1_400
    assert "far.py" not in spelled(name, small)
    if task_of(name) == "next_edit":
        assert "left out 1 related files" in small.cut


def test_typing_keeps_the_beginning_of_a_prompt() -> None:
    text = "".join(f"line_{i} = {i}\n" for i in range(400))
    cursor = text.index("line_300 = ") + len("line_300 = ")
    prompts = []
    for typed in ("(", "(1", "(1,"):
        made = text[:cursor] + typed + text[cursor:]
        request = EditRequest("infill", "a.py", made, cursor + len(typed))
        prompts.append(rendered("fim-qwen", request, 2_000).tokens)
    assert prompts[1][: len(prompts[0])] == prompts[0]
    assert prompts[2][: len(prompts[1])] == prompts[1]


def test_a_region_that_is_asked_for_is_not_left() -> None:
    request = replace(REQUEST, region=(11, 15))
    for name in ("sweep", "sweep-v2", "zeta-2", "zeta-2.1"):
        first, last = rendered(name, request).region
        assert 11 <= first <= 13 < last <= 15


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("sweep-v2", "<|cursor|>"),
        ("zeta-2", "<|user_cursor|>"),
        ("zeta-2", "<<<<<<< CURRENT\n"),
        ("zeta-2.1", "<|marker_3|>"),
    ],
)
def test_a_file_with_a_mark_of_the_format_is_not_asked(name: str, word: str) -> None:
    request = replace(REQUEST, text=f"x = '{word}'\n", cursor=0)
    config = ModelConfig(prompt_format=name)
    found = format_of(name).render(request, TOKENIZERS[name], config, 2_000)
    assert isinstance(found, Declined) and word.strip()[:9] in found.reason


def test_v2_shows_two_lines_above_to_five_below() -> None:
    for line, expected in ((13, (11, 19)), (5, (3, 10)), (4, (3, 10)), (0, (0, 6))):
        cursor = sum(len(each) + 1 for each in LINES[:line])
        found = rendered("sweep-v2", replace(REQUEST, cursor=cursor)).region
        assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\nc|\nd\n", "a\n"),  # the first line, whatever stands behind it
        ("a\n\n  c|\nd\n", "a\n\n"),  # and the line ends behind that
        ("retur|n 1\n", "retur"),  # of the cursor's own line only what stands before it
        ("|a\n", ""),
    ],
)
def test_v2_is_given_the_beginning_of_its_answer(text: str, expected: str) -> None:
    cursor = text.index("|")
    request = EditRequest("next_edit", "a.py", text.replace("|", ""), cursor)
    prompt = rendered("sweep-v2", request)
    assert prompt.begun == expected
    assert spelled("sweep-v2", prompt).rpartition("updated/a.py")[2].partition("\n")[2] == expected


@pytest.mark.parametrize(
    ("text", "cursor", "answer", "expected"),
    [
        ("return a\nx = 1\n", 6, " b\nx = 1\n", "return b\nx = 1\n"),  # goes on
        ("return a\nx = 1\n", 6, " a\nx = 1\n", None),
        ("a = 1\nb = 2\n", 8, "a = 1\nnew = 0\nb = 2\n", None),  # only above the cursor
        ("a = 1\nb = 2\n", 8, "a = 1\nnew = 0\nb = 3\n", "a = 1\nnew = 0\nb = 3\n"),
        ("a = 1\n\nb = 2\n", 6, "a = 1\nnew = 0\n\nb = 2\n", "a = 1\nnew = 0\n\nb = 2\n"),
    ],
)
def test_v2_continues_its_text(text: str, cursor: int, answer: str, expected: str | None) -> None:
    request = EditRequest("next_edit", "a.py", text, cursor)
    found = read("sweep-v2", request, answer)
    assert (None if found is None else made(request, found)) == expected
    if answer == " b\nx = 1\n":
        assert found is not None and found.written == (0, 3)  # what was given is not counted


def test_v2_shows_three_hundred_lines_of_a_large_file() -> None:
    text = "".join(f"line_{i}\n" for i in range(2_000))
    request = EditRequest("next_edit", "a.py", text, text.index("line_1000"))
    prompt = spelled("sweep-v2", rendered("sweep-v2", request, 30_000))
    assert "\nline_900\n" in prompt and "\nline_1199\n" in prompt
    assert "line_899\n" not in prompt and "line_1200\n" not in prompt


def test_a_mark_that_is_a_token_cannot_be_forged() -> None:
    request = replace(REQUEST, text="x = '<|file_sep|>'\n", cursor=0, edits=(), related=())
    prompt = rendered("sweep", request)
    mark = TOKENIZERS["sweep"].special_id("<|file_sep|>")
    assert prompt.tokens.count(mark) == 3


def test_infill_weights_are_not_asked_for_edits() -> None:
    config = ModelConfig(name="mine", prompt_format="fim-qwen")
    found = format_of("fim-qwen").render(REQUEST, TOKENIZERS["fim-qwen"], config, 2_000)
    assert isinstance(found, Declined) and "mine" in found.reason


@pytest.mark.parametrize("name", list(OTHERS))
def test_what_a_format_says_it_can_is_what_it_does(name: str) -> None:
    config = ModelConfig(name="mine", prompt_format=name)
    asked = format_of(name).render(REQUEST, TOKENIZERS[name], config, 20_000)
    assert isinstance(asked, Prompt) == predicts_edits(name)
    prompt = rendered(name, replace(REQUEST, task="infill"))
    assert takes_grammars(name) == (not prompt.room and not prompt.in_place)


#: Ten tokens by Zed's count. 350 are 26 such lines around the cursor's, and nine more.
LINE = "    value = compute(width, 1)    #"[:30]


def functions(*lengths: int) -> list[str]:
    """Functions one below the other, each line of ten tokens."""
    return [line for many in lengths for line in ["def area(width, height, a):  #", *[LINE] * many]]


def zeta_region(lines: list[str], at: int, path: str = "a.py") -> tuple[int, int]:
    cursor = sum(len(line) + 1 for line in lines[:at])
    return rendered("zeta-2", EditRequest("next_edit", path, "\n".join(lines), cursor)).region


@pytest.mark.parametrize(
    ("lengths", "path", "expected"),
    [
        # 47 to 72 at first, 13 lines below the cursor's and 12 above: the function from 44 to 75
        # fits in what is left, 60 of 90 tokens; then a line above, a line below, one more above.
        ((43, 31, 50), "a.py", (42, 77)),
        # A function from 40 to 75 fits without its head, and nothing is left.
        ((39, 35, 50), "a.py", (41, 76)),
        # One from 37 to 75 does not fit: as many lines as there is room for, above first.
        ((36, 38, 50), "a.py", (42, 77)),
        # From 47 to 79 it grows below alone, by seven lines; two are left, above first.
        ((46, 32, 50), "a.py", (46, 81)),
        # The same where the language is not known: lines alone, above first.
        ((46, 32, 50), "a.unknown", (42, 77)),
    ],
)
def test_whole_nodes_fit(lengths: tuple[int, ...], path: str, expected: tuple[int, int]) -> None:
    assert {len(line) for line in functions(*lengths)} == {30}
    assert zeta_region(functions(*lengths), 59, path) == expected


def test_a_region_is_shown_in_a_whole_node_if_one_fits() -> None:
    lines = functions(39, 44, 50)  # the cursor's function has ten lines more than a region
    text = "\n".join(lines)
    cursor = 31 * 59
    first, last = zeta_region(lines, 59)
    shown = spelled("zeta-2", rendered("zeta-2", EditRequest("next_edit", "a.py", text, cursor)))
    above = shown.partition("<filename>a.py\n")[2].partition("<<<<<<< CURRENT")[0]
    below = shown.partition("<[fim-prefix]>")[0].removeprefix("<[fim-suffix]>\n")
    assert (first, last) == (42, 77)
    assert above == "\n".join([*lines[40:42], ""])  # from its head on, not further
    assert below == "\n".join([*lines[77:85], ""])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("zeta-2", "<filename>a.py\nA = 1\n...\nA = 2\n<filename>b.py\nB = 1\n\n<filename>"),
        ("sweep", "<|file_sep|>a.py\nA = 1\nA = 2\n<|file_sep|>b.py\nB = 1\n<|file_sep|>"),
    ],
)
def test_excerpts_of_one_file_follow_its_name_once(name: str, expected: str) -> None:
    related = (RelatedFile("a.py", "A = 1\n"), RelatedFile("b.py", "B = 1"))
    request = replace(golden(name), related=(*related, RelatedFile("a.py", "A = 2\n")))
    assert expected in spelled(name, rendered(name, request))


def test_the_window_before_the_newest_edit_is_as_was() -> None:
    lines = as_it_was(REQUEST, 10, 14)
    assert lines == ["", "    def __init__(self, width):", *LINES[12:14]]
    gone = replace(REQUEST, text=TEXT.replace("width, height", "w, h"))
    assert as_it_was(gone, 3, 6) == gone.text.split("\n")[3:6]  # it cannot be undone any more


@pytest.mark.parametrize(
    ("region", "expected"), [((0, 2), ["a", "b"]), ((2, 4), ["c"]), ((4, 6), ["d", "e"])]
)
def test_a_window_moves_with_an_insertion(region: tuple[int, int], expected: list[str]) -> None:
    request = EditRequest(
        "next_edit", "a", "a\nb\nc\nnew\nd\ne", 0, edits=(RecentEdit("a", 2, " c\n+new\n"),)
    )
    assert as_it_was(request, *region) == expected
