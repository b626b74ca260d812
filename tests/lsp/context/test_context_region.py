"""The region: whole pieces of syntax around the cursor; and trees that follow edits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redraft.lsp.context import region as regions
from redraft.lsp.context.region import Region, choose, cost, follow, keep
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.model.text import syntax
from redraft.model.text.syntax import LANGUAGES, Syntax, parse
from support.definitions import SAMPLES

#: Whatever else the machine is doing.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)

FUNCTIONS = "".join(
    f"def function_{number}(value):\n"
    + "".join(f"    step_{line} = compute(value, {line})\n" for line in range(8))
    + f"    return step_{number}\n\n\n"
    for number in range(12)
)  # each takes 10 lines, with two blank ones behind it


def tree(text: str, language: str = "python") -> Syntax:
    found = parse(text, language)
    assert found is not None
    return found


def region_at(line: int, text: str = FUNCTIONS, tokens: float = regions.TOKENS) -> Region:
    return choose(text.split("\n"), line, tree(text), tokens)


def followed(region: Region | None, before: str, after: str) -> Region | None:
    """Return a region after a client sent a whole new text."""
    for splice in Document("", before).apply([ContentChange(after)], None):
        region = None if region is None else follow(region, splice)
    return region


def test_members_of_a_class_are_taken_whole() -> None:
    members = "".join(
        f"    def method_{number}(self):\n        a = {number}\n        return a\n\n"
        for number in range(60)
    )
    found = region_at(1 + 4 * 30 + 1, f"class Long:\n{members}", tokens=120)
    lines = f"class Long:\n{members}".split("\n")
    shown = "\n".join(lines[found.first : found.last])
    for number in (29, 30, 31):
        assert f"    def method_{number}(self):\n        a = {number}\n        return a\n" in shown


def test_neighbours_are_taken_whole_while_they_fit() -> None:
    found = region_at(5 * 12 + 4, tokens=360)
    assert found.first <= 5 * 12
    assert found.last >= 6 * 12 + 10  # the one below comes first


@PATIENT
@given(
    st.lists(
        st.sampled_from(["", "def f():", "    return (", "x = [1,", "]", "class A:", "é" * 40])
    ),
    st.integers(0, 60),
    st.floats(20, 500),
)
def test_the_region_holds_cursor_and_budget(lines: list[str], line: int, tokens: float) -> None:
    lines = lines or [""]
    line = min(line, len(lines) - 1)
    found = choose(lines, line, tree("\n".join(lines)), tokens)
    assert 0 <= found.first <= line < found.last <= len(lines)
    spent = sum(map(cost, lines[found.first : found.last]))
    assert spent <= tokens or found.lines == (line, line + 1)


WORDS = "a rather long line of code with many words"


@pytest.mark.parametrize(
    ("region", "line", "fresh", "tokens", "text"),
    [
        *((Region(20, 60, "", 40), line, None, 350, "x") for line in (24, 40, 55)),
        (Region(20, 60, "", 59), 59, None, 350, "x"),  # typing at the edge
        # A cursor that comes near the edge moves it where that shows more.
        (Region(20, 60, "", 40), 58, Region(35, 75, "", 58), 350, "x"),
        (Region(0, 100, "", 50), 0, None, 5_000, "x"),  # the ends of the file are no edges
        (Region(0, 100, "", 50), 99, None, 5_000, "x"),
        (Region(20, 60, "", 40), 40, Region(30, 50, "", 40), 350, WORDS),  # grew too long
        (Region(20, 60, "", 40), 80, Region(70, 90, "", 80), 350, "x"),  # elsewhere
    ],
)
def test_a_region_is_kept_or_chosen_anew(
    region: Region, line: int, fresh: Region | None, tokens: float, text: str
) -> None:
    def choose_anew() -> Region:
        assert fresh is not None, "a new region is not needed"
        return fresh

    found = keep(region, [text] * 100, line, tokens, choose_anew)
    assert found is (fresh or region)


ADDED = st.lists(st.sampled_from(["new", "", "    more"]), max_size=5)


def after_edit(at: int, removed: int, added: list[str]) -> tuple[list[str], Region | None]:
    """45 lines with the region [15, 30), of which [at, at + removed) become ``added``."""
    lines = [f"line {number}" for number in range(45)]
    new = lines[:at] + added + lines[at + removed :]
    before, after = "\n".join(lines), "\n".join(new)
    return new, followed(Region(15, 30, "", 20), before, after)


@PATIENT
@given(st.sampled_from([*range(10), *range(31, 40)]), st.integers(0, 5), ADDED)
def test_a_region_moves_with_edits_elsewhere(at: int, removed: int, added: list[str]) -> None:
    new, found = after_edit(at, removed, added)
    assert found is not None
    assert new[found.first : found.last] == [f"line {number}" for number in range(15, 30)]


@PATIENT
@given(st.integers(16, 24), st.integers(0, 5), ADDED)
def test_a_region_grows_with_edits_inside_it(at: int, removed: int, added: list[str]) -> None:
    new, found = after_edit(at, removed, added)
    assert found is not None
    assert new[: found.first] == [f"line {number}" for number in range(15)]
    assert new[found.last :] == [f"line {number}" for number in range(30, 45)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tree_that_follows_an_edit_equals_a_fresh(language: str) -> None:
    text, _ = SAMPLES[language]
    for before, after in ((text, text + text), (text + text, text), (text, f"\n\n{text}")):
        found = parse(after, language, tree(before, language))
        assert found is not None
        assert str(found.tree.root_node) == str(tree(after, language).tree.root_node)


@PATIENT
@given(st.data())
def test_typing_by_characters_ends_in_the_same_tree(data: st.DataObject) -> None:
    start = "x = 1\n\ndef f(a):\n    return 'é' + a\n"
    typed = data.draw(st.sampled_from(["y = 'ö'\n", "class B:\n  z = 1\n", "@d\ndef g(): pass\n"]))
    at = data.draw(st.sampled_from([0, start.index("def"), len(start)]))
    found: Syntax | None = tree(start)
    for done in range(1, len(typed) + 1):
        text = start[:at] + typed[:done] + start[at:]
        found = parse(text, "python", found)
        assert found is not None
        assert found.text == text
    assert str(found.tree.root_node) == str(tree(found.text).tree.root_node)


def test_a_background_parse_rests_and_reads_the_same() -> None:
    text = "def f(a):\n    return 'éèê' + a\n" * 4_000
    rests: list[None] = []
    found = parse(text, "python", rest=lambda: rests.append(None))
    assert found is not None
    assert len(rests) >= len(text.encode()) // syntax.REST_BYTES
    assert str(found.tree.root_node) == str(tree(text).tree.root_node)
