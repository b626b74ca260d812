"""Replay: what became of a text, who wrote it, and whether it was the suggestion."""

from __future__ import annotations

import asyncio
import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.evals.figures import figure_of_sums, no_figure, quantile
from redraft.evals.predictors import copy_last_edit, substitution
from redraft.evals.replay.clock import run
from redraft.evals.scorers.at_rest import Comparison, compare, has_work_left
from redraft.evals.sources.scripts import sample
from redraft.lsp.learning.followed import Followed
from redraft.lsp.learning.matching import Match, match, until_rest
from redraft.lsp.learning.recorded_moments import DocumentChange, PlacedEdit
from redraft.lsp.recording.recording_events import ChangeSource
from redraft.model.edits.edit import Edit
from redraft.model.records import EditRequest, RecentEdit
from support.editors.typist import Typist

YES, NO, UNKNOWN = Match(True, True, True), Match(False, False, False), Match(None, None, None)


def source(typed: bool) -> ChangeSource:
    return "user" if typed else "paste"


def put(
    at: int, text: str, removed: int = 0, typed: bool = True, at_s: float = 0.0
) -> DocumentChange:
    return DocumentChange(at_s, (PlacedEdit(at, at + removed, text),), source(typed))


def typing(at: int, text: str) -> list[DocumentChange]:
    return [put(at + i, char) for i, char in enumerate(text)]


@given(st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_what_lies_outside_of_regions_is_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("ab\n") for _ in range(rng.randrange(30)))
    start = rng.randint(0, len(text))
    followed, now = Followed(Edit(text, start, rng.randint(start, len(text)), "")), text
    for _ in range(rng.randrange(8)):
        low = rng.randint(0, len(now))
        high = rng.randint(low, min(len(now), low + 4))
        step = DocumentChange(
            0.0,
            (PlacedEdit(low, high, rng.choice(["", "x", "y\n", "zz"])),),
            source(rng.random() < 0.8),
        )
        now = step.apply(now)
        followed.apply(step)
    assert followed.now == now
    rebuilt, at = "", 0
    for region in followed.regions:
        rebuilt += text[at : region.old_start] + now[region.start : region.end]
        at = region.old_end
    assert rebuilt + text[at:] == now
    lines = followed.lines()
    if not any(region.foreign for region in followed.regions):
        whole, at = "", 0
        for low, high in lines:
            whole += text[at:low] + followed.new_parts([(low, high)])
            at = high
        assert whole + text[at:] == now


AGAIN = [put(2, "x") for _ in range(50)]
LINE = typing(0, "return value or None")
ELSEWHERE = [put(0, "# top\n"), *typing(8, "a"), put(12, "end"), *typing(9, ", b")]


@pytest.mark.parametrize(
    ("text", "start", "end", "suggested", "steps", "expected"),
    [
        ("f()\n", 2, 2, "a, b", typing(2, "a, b"), YES),
        ("f()\n", 2, 2, "a", typing(2, "a, b"), YES),  # further than the suggestion
        ("f()\nx\n", 2, 2, "a, b", ELSEWHERE, YES),
        # A new line is written above, and the old one deleted.
        ("f(old)\n", 2, 5, "new", [put(0, "f(new)\n"), put(7, "", removed=7)], YES),
        ("a = old + 1\n", 4, 7, "new", [put(0, "a = new", removed=7)], YES),  # more replaced
        ("f()\n", 2, 2, "a, b", typing(2, "a,b"), Match(False, True, True)),  # white space
        ("\n", 0, 0, "return value", LINE[:11], Match(False, False, True)),  # ten characters
        ("\n", 0, 0, "return what()", LINE, Match(False, False, False)),
        ("\n", 0, 0, "retur", typing(0, "retu"), NO),  # too short for a prefix
        ("\n\n", 0, 0, "a", [*AGAIN, put(0, "a")], NO),  # too late
        ("\n\n", 0, 0, "a", [*AGAIN[:49], put(0, "a")], YES),
        ("f()\n", 2, 2, "a, b", [put(2, "a, b", typed=False)], UNKNOWN),  # pasted
        ("f()\nx\n", 2, 2, "a", [put(5, "pasted", typed=False), *typing(2, "a")], YES),
        ("f()\n", 2, 2, "a, b", [put(2, "x"), put(3, "y", typed=False)], NO),
        ("f()\n", 2, 2, "a, b", [put(2, "a"), put(3, "y", typed=False)], UNKNOWN),
        (
            *("\n", 0, 0, "return value"),
            [*typing(0, "return val"), put(10, "ue", typed=False)],
            Match(None, None, True),
        ),
    ],
)
def test_a_suggestion_is_matched_with_what_was_typed(
    text: str, start: int, end: int, suggested: str, steps: list[DocumentChange], expected: Match
) -> None:
    assert match(Edit(text, start, end, suggested), steps) == expected


def test_the_end_of_a_recording_cannot_tell() -> None:
    assert match(Edit("\n", 0, 0, "a"), [], is_known=False) == UNKNOWN
    assert match(Edit("\n", 0, 0, "a"), [], is_known=True) == NO
    assert match(Edit("f()\n", 2, 2, "a, b"), [put(2, "x")], is_known=False) == NO


def test_a_document_rests_after_a_pause_or_long_work() -> None:
    steps = [put(0, "a", at_s=t) for t in (1.0, 9.0, 18.0, 28.0)]
    assert until_rest(steps, 0.0) == steps[:3]
    busy = [put(0, "a", at_s=9.0 * t) for t in range(60)]
    assert until_rest(busy, 0.0)[-1].at_s == 297.0


def test_what_is_left_to_do_is_what_the_user_does_soon() -> None:
    assert has_work_left([put(0, "a", at_s=5.0)], 0.0, 100.0) is True
    assert has_work_left([put(0, "a", at_s=15.0)], 0.0, 100.0) is False
    assert has_work_left([put(0, "a", typed=False, at_s=5.0)], 0.0, 100.0) is None
    assert has_work_left([], 0.0, 5.0) is None


def test_a_suggestion_is_compared_with_all_user_edits() -> None:
    text = "f(a)\n" + "x\n" * 50 + "g(a)\n"
    steps = [put(3, ", b"), put(3 + len(text) - 2 - 1 + 1, ", b")]
    # Suggested and typed: ", b" in f (3 characters); typed besides: ", b" in g.
    found = compare(Edit(text, 3, 3, ", b"), steps)
    assert found is not None
    assert (found.right, found.suggested, found.done) == (3, 3, 6)
    assert 0 < found.delta_chrf < 100


PERFECT = Comparison(3, 3, 3, 100.0)


@pytest.mark.parametrize(
    ("text", "at", "new", "steps", "expected"),
    [
        ("f(a)\n", 3, ", b", [put(3, ", b")], PERFECT),
        # Text from elsewhere in the same line makes no truth. In other lines it is left out.
        ("f(a)\n", 3, ", b", [put(3, ", b"), put(0, "x = ", typed=False)], None),
        ("f(a)\ng\nh\n", 3, ", b", [put(4, "  # pasted", typed=False), put(3, ", b")], None),
        ("f(a)\ng\nh\n", 3, ", b", [put(7, "pasted\n", typed=False), put(3, ", b")], PERFECT),
        ("a\n", 2, "b\n", [put(2, "b\n")], Comparison(2, 2, 2, 100.0)),  # at the very end
    ],
)
def test_pasted_text_is_excluded_from_the_truth(
    text: str, at: int, new: str, steps: list[DocumentChange], expected: Comparison | None
) -> None:
    assert compare(Edit(text, at, at, new), steps) == expected


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_applying_steps_yields_the_next_moment(seed: int) -> None:
    rng, typist = random.Random(seed), Typist()
    typist.opens("".join(rng.choice(["a", "\r\n", "\n", "é", "𝄞"]) for _ in range(20)))
    for _ in range(12):
        units = len(typist.texts[0].encode("utf-16-le")) // 2
        starts = [len(typist.texts[0][:i].encode("utf-16-le")) // 2 for i in range(20)]
        low = rng.choice([at for at in starts if at <= units])
        high = rng.choice([at for at in starts if low <= at <= units])
        typist.puts(rng.choice(["", "x", "\r\n", "\r", "\n𝄞"]), low, high - low)
        typist.pauses(rng.choice([0.1, 0.1, 3.0]))
    script = typist.script()
    steps = script.steps[0]
    for before, after in zip(script.moments, script.moments[1:], strict=False):
        text = before.text
        for step in steps[before.done : after.done]:
            text = step.apply(text)
        assert text == after.text
    assert script.moments[-1].text == typist.texts[0].replace("\r\n", "\n").replace("\r", "\n")


def test_keys_in_quick_succession_are_one_moment() -> None:
    typist = Typist()
    typist.opens("\n")
    typist.types("abc", 0)
    typist.pauses(2)
    typist.types("de", 3)
    first, second = typist.script().moments
    assert (first.before, first.text, first.typed) == ("\n", "abc\n", 3)
    assert (second.before, second.text, second.typed) == ("abc\n", "abcde\n", 2)


def test_reopening_a_document_is_not_a_typed_step() -> None:
    typist = Typist()
    typist.opens("old\n")
    typist.types("a", 0)
    typist.pauses(2)
    typist.opens("new\n")
    typist.types("b", 0)
    script = typist.script()
    text = script.moments[0].text
    for step in script.steps_after(0, script.moments[0].done):
        text = step.apply(text)
    assert text == "bnew\n"
    assert not script.steps_after(0, script.moments[0].done)[0].is_typed


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    typist = Typist()
    typist.opens("\n")
    for _ in range(30):
        typist.types("a", 0)
        typist.pauses(2)
    script = typist.script()
    small, large = sample([script], 5, 0), sample([script], 12, 0)
    assert len(small) == 5 and small < large
    assert sample([script], 12, 1) != large
    assert len(sample([script], None, 0)) == 30


def test_hours_pass_in_no_time() -> None:
    async def wait() -> float:
        await asyncio.sleep(3_600)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 10)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert run(wait()) == pytest.approx(3_610)
    assert time.monotonic() - began < 60


def test_timers_keep_their_order_after_many_years() -> None:
    order: list[str] = []

    async def after(seconds: float, name: str) -> None:
        await asyncio.sleep(seconds)
        order.append(name)

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.gather(after(2, "late"), after(0.5, "soon"), after(0, "now"))
        await asyncio.sleep(1e9)
        due = loop.create_future()
        loop.call_at(loop.time(), due.set_result, None)
        await due
        await asyncio.sleep(0.02)

    run(wait())
    assert order == ["now", "soon", "late"]


def edit(diff: str) -> RecentEdit:
    return RecentEdit("a.py", 0, diff)


def request(text: str, cursor: int, diff: str) -> EditRequest:
    return EditRequest("next_edit", "a.py", text, cursor, edits=(edit(diff),))


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        ("-  foo = bar_old(1)\n+  foo = bar_new(1)\n", ("bar_old", "bar_new")),
        (" x\n-f(a)\n+f(a, b)\n", ("a", "a, b")),
        (" x = 1\n+y = 2\n", ("", "")),  # whole new lines
    ],
)
def test_a_substitution_is_of_whole_words(diff: str, expected: tuple[str, str]) -> None:
    assert substitution(edit(diff)) == expected


def test_the_last_substitution_wraps_to_the_top() -> None:
    text = "new(1)\nold(2)\nolder(3)\nold(4)\n"
    (found,) = copy_last_edit(request(text, 15, "-old(1)\n+new(1)\n")).candidates
    assert (found.start, found.end, found.text) == (text.index("old(4)"), 26, "new")
    text = "old(0)\nnew(1)\n"
    (found,) = copy_last_edit(request(text, len(text), "-old(1)\n+new(1)\n")).candidates
    assert found.start == 0
    assert not copy_last_edit(request("f(a, b)\n", 3, "-f(a)\n+f(a, b)\n")).candidates


def test_a_quantile_resamples_groups() -> None:
    figure = quantile(list(range(100)), 0.95, groups=[i // 10 for i in range(100)])
    assert figure.value == pytest.approx(94.05)
    assert figure.low is not None and figure.high is not None
    assert figure.low <= figure.value <= figure.high <= 99
    alone = quantile([1.0, 2.0, 3.0], 0.5, groups=["a", "a", "a"])
    assert (alone.low, alone.value, alone.high) == (2.0, 2.0, 2.0)
    assert quantile([], 0.5) == no_figure(0)


def test_a_combined_figure_is_of_the_sums() -> None:
    terms = [(1.0, 2.0), (3.0, 2.0), (5.0, 4.0)]
    figure = figure_of_sums(terms, lambda sums: sums[:, :1] / sums[:, 1:], groups=["a", "a", "b"])
    assert figure.value == pytest.approx(9 / 8)
    assert (figure.low, figure.high) == (pytest.approx(1.0), pytest.approx(1.25))
    assert figure_of_sums(terms, lambda sums: sums[:, :1] * math.nan, ["a", "a", "b"]) == no_figure(
        3
    )
