"""What a report keeps of a document: the lines that differ and a few around them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from redraft.evals.figures.before_after import AROUND, LEFT_OUT, MOST_LINES, scene_of

LINES = [f"line {i}" for i in range(100)]


def changed(at: int, *new: str, removed: int = 1) -> str:
    return "\n".join([*LINES[:at], *new, *LINES[at + removed :]])


def test_the_lines_that_differ_and_those_around_them_are_kept() -> None:
    scene = scene_of("a.py", "\n".join(LINES), changed(50, "guess"), changed(50, "truth", "more"))
    assert (scene["was"], scene["predicted"], scene["expected"]) == (
        "line 50\n", "guess\n", "truth\nmore\n",
    )  # fmt: skip
    assert str(scene["above"]).splitlines() == LINES[50 - AROUND : 50]
    assert str(scene["below"]).splitlines() == LINES[51 : 51 + AROUND]
    assert (scene["path"], scene["line"]) == ("a.py", 50 - AROUND)


def test_no_prediction_is_the_document_as_it_was() -> None:
    before = "\n".join(LINES)
    scene = scene_of("a.py", before, before, changed(50, "truth"))
    assert scene["was"] == scene["predicted"] == "line 50\n"
    nothing = scene_of("a.py", before, before, before)
    assert (nothing["was"], nothing["predicted"], nothing["expected"]) == ("", "", "")


def test_a_gap_within_a_line_is_seen_as_that_line() -> None:
    scene = scene_of("a.py", "a\nx = \nb", "a\nx = 1\nb", "a\nx = 2\nb")
    assert (scene["was"], scene["predicted"], scene["expected"]) == (
        "x = \n", "x = 1\n", "x = 2\n",
    )  # fmt: skip


def test_what_lies_between_two_far_places_is_left_out_of_all_three() -> None:
    scene = scene_of("a.py", "\n".join(LINES), changed(10, "guess", "grown"), changed(80, "truth"))
    mark = f"{LEFT_OUT} 63 lines as they were"
    kept = ["line 11", "line 12", "line 13", mark, "line 77", "line 78", "line 79"]
    assert str(scene["was"]).splitlines() == ["line 10", *kept, "line 80"]
    assert str(scene["predicted"]).splitlines() == ["guess", "grown", *kept, "line 80"]
    assert str(scene["expected"]).splitlines() == ["line 10", *kept, "truth"]
    swapped = scene_of("a.py", "\n".join(LINES), changed(80, "guess"), changed(10, removed=1))
    assert str(swapped["expected"]).splitlines() == [*kept, "line 80"]


def test_a_rewritten_document_is_cut() -> None:
    scene = scene_of("a.py", "\n".join(LINES), "x\n" * 5_000, "y" * 50_000)
    assert len(str(scene["was"]).splitlines()) == MOST_LINES + 1
    assert all(len(str(text)) < 7_000 for text in scene.values())


TEXTS = st.text(st.sampled_from("ab\n"), max_size=30)


@given(TEXTS, TEXTS, TEXTS)
def test_states_differ_in_the_scene_where_the_documents_do(
    before: str, found: str, wanted: str
) -> None:
    scene = scene_of("a.py", before, found, wanted)
    assert (scene["was"] == scene["predicted"]) == (before == found)
    assert (scene["was"] == scene["expected"]) == (before == wanted)
    for state, whole in (("was", before), ("predicted", found), ("expected", wanted)):
        if LEFT_OUT not in str(scene[state]):
            parts = f"{scene['above']}{scene[state]}{scene['below']}"
            assert parts in f"{whole}\n"
