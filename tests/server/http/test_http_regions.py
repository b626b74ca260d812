"""Regions and histories of edit clients: to the byte, whatever the text; and hostile prompts."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redraft.model.errors import InvalidRequest
from redraft.model.prompts.answer_edits import replace_lines
from redraft.model.prompts.diffs import (
    original_and_updated,
    write_fenced_diffs,
    write_unified_diffs,
)
from redraft.model.prompts.excerpt import (
    Excerpt,
    Unreadable,
    locate_reports,
    reports_in,
    rewrite,
    to_request,
)
from redraft.model.prompts.mercury_edit import read_mercury
from redraft.model.prompts.registry import recognise
from redraft.model.records import Candidate, Confidence, Diagnostic, EditRequest, RecentEdit
from redraft.model.wire import check_request
from support.edit_prompts import (
    mercury_applied,
    mercury_as_cursortab,
    mercury_as_zed,
    mercury_body,
    sweep_as_zed,
    zeta1_applied,
    zeta1_as_zed,
    zeta2_applied,
    zeta2_as_zed,
    zeta21_applied,
    zeta21_as_zed,
)
from support.editors.predictor import LineEdit
from support.served import post

TEMPLATE = EditRequest("infill", "untitled", "", 0)

LINE = st.text(st.sampled_from("ab =é𝄞\t"), max_size=6)
LINES = st.lists(LINE, min_size=1, max_size=8)
BREAK = st.sampled_from(("\n", "\r\n"))


def candidate(request: EditRequest, edit: LineEdit) -> Candidate:
    assert request.region is not None
    first, last, lines = edit
    top = request.region[0]
    body = "".join(f"{line}\n" for line in lines)
    span = replace_lines(request.text, top + first - 1, top + last, body)
    return Candidate(*span, Confidence(0.9, 0.5, 0.8), 5, 3, "end")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("line 2: [ERROR] undefined: foo (source: gopls)", [(1, "undefined: foo", 1)]),
        ("Line 2: [gopls] undefined: foo", [(1, "undefined: foo", 1)]),
        ("line 9: [WARNING] undefined: foo", []),  # which of the two?
        ("[WARNING] undefined: bar", [(2, "undefined: bar", 2)]),
        ("line 1: [ERROR] undefined: foo", []),  # another line has that number here
        ("line 3: [ERROR] expected ';'", []),  # nothing says that the numbers agree
        ("line 2: [HINT] 'foo' and 'bar' differ", []),
        ("", []),
    ],
)
def test_a_report_belongs_to_its_names(text: str, found: list[tuple[int, str, int]]) -> None:
    lines = ["a", "foo", "bar", "foo"]
    reports = reports_in([("a.go", "line 2: [ERROR] x"), ("context/diagnostics", text)])
    assert locate_reports(reports, lines, 0, 4) == tuple(Diagnostic(*each) for each in found)
    assert locate_reports(reports, lines, 0, 1) == ()


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_any_text_can_be_read_as_reports(text: str) -> None:
    locate_reports(reports_in([("diagnostics", text)]), text.split("\n"), 0, text.count("\n") + 1)


@st.composite
def edits(draw: st.DrawFn, count: int) -> LineEdit:
    """Draw an edit within a region of ``count`` lines."""
    first = draw(st.integers(1, count + 1))
    last = draw(st.integers(first - 1, count))
    return first, last, draw(st.lists(LINE, max_size=3))


@st.composite
def excerpts(draw: st.DrawFn) -> tuple[Excerpt, list[str], LineEdit]:
    """Draw an excerpt with line ends of any kind, its region's lines, and an edit of them."""
    lines = draw(LINES)
    region = lines[0] + "".join(draw(BREAK) + line for line in lines[1:])
    before = "".join(line + draw(BREAK) for line in draw(st.lists(LINE, max_size=4)))
    after = "".join(line + draw(BREAK) for line in draw(st.lists(LINE, max_size=4)))
    after += draw(LINE)  # without a line end at the end of the file
    cursor = draw(st.integers(0, len(region)))
    return Excerpt("a.py", before, region, after, cursor, write=str), lines, draw(edits(len(lines)))


@settings(max_examples=300, deadline=None)
@given(excerpts())
def test_no_byte_outside_the_edit_changes(drawn: tuple[Excerpt, list[str], LineEdit]) -> None:
    excerpt, lines, (first, last, new) = drawn
    request = to_request(excerpt, TEMPLATE)
    assert request is not None
    check_request(request)
    assert request.region == (excerpt.before.count("\n"), excerpt.before.count("\n") + len(lines))
    region = rewrite(excerpt, candidate(request, (first, last, new)))
    expected = [*lines[: first - 1], *new, *lines[last:]]
    if region is None:
        assert "\n".join(expected) == "\n".join(lines)
        return
    assert region.replace("\r\n", "\n") == "\n".join(expected)
    kept = excerpt.region.splitlines(keepends=True)
    above, below = "".join(kept[: first - 1]), "".join(kept[last:])
    if new or below:  # else the last line above loses its line end
        assert region.startswith(above)
    if below and (new or first > 1):
        assert region.endswith(below)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_client_gets_the_edit_and_nothing_else(data: st.DataObject) -> None:
    lines = data.draw(LINES, "lines")
    edit = data.draw(edits(len(lines)), "edit")
    region = "\n".join(lines)
    cursor = data.draw(st.integers(0, len(region)), "cursor")
    before = "".join(f"{line}\n" for line in data.draw(st.lists(LINE, max_size=3), "before"))
    after = "".join(f"\n{line}" for line in data.draw(st.lists(LINE, max_size=3), "after"))
    expected = "\n".join([*lines[: edit[0] - 1], *edit[2], *lines[edit[1] :]])
    if not expected or not region:  # clients cannot tell an empty line from none
        return

    def answered(excerpt: Excerpt) -> str:
        request = to_request(excerpt, TEMPLATE)
        assert request is not None
        check_request(request)
        return excerpt.write(rewrite(excerpt, candidate(request, edit)))

    def recognised(prompt: str) -> str:
        excerpt = recognise(prompt)
        assert isinstance(excerpt, Excerpt)
        return answered(excerpt)

    marked = f"{region[:cursor]}<|cursor|>{region[cursor:]}"
    for content in (
        mercury_as_zed(before, marked, after),
        mercury_as_cursortab(before.split("\n")[:-1], marked.split("\n"), after.split("\n")[1:]),
    ):
        new = mercury_applied(answered(read_mercury(content)))
        assert new == (None if expected == region else expected)
    assert zeta1_applied(recognised(zeta1_as_zed(before, region, after, cursor))) == expected
    cut = data.draw(st.integers(0, len(lines)), "cut")
    blocks = ["".join(f"{line}\n" for line in lines[:cut]), "\n".join(lines[cut:])]
    blocks = [block for block in blocks if block] if cut < len(lines) else [region]
    if "".join(blocks) == region:
        numbered = recognised(zeta21_as_zed(before, blocks, after, cursor))
        assert zeta21_applied(blocks, numbered) == expected
    if lines[-1] and expected[-1] != "\n":  # a blank last line is not shown (see zeta.py)
        zeta2 = zeta2_applied(region, recognised(zeta2_as_zed(before, region, after, cursor)))
        assert zeta2 == (None if expected == region else expected)
        swept = recognised(sweep_as_zed(region))
        assert swept == ("" if expected == region else expected)


FRAGMENTS = st.lists(
    st.sampled_from(
        (
            *("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>", "<filename>a.py\n"),
            *("<filename>edit_history\n", "<<<<<<< CURRENT\n", "=======\n", "<|user_cursor|>"),
            *("<|marker_1|>", "<|marker_2|>", "<|file_sep|>", "current/a.py\n", "updated/a.py\n"),
            *("a.py.diff\noriginal:\n", "\nupdated:\n", "<|cursor|>", "### User Excerpt:\n"),
            *("```a.py\n", "<|editable_region_start|>\n", "\n<|editable_region_end|>"),
            *("<|recently_viewed_code_snippet|>\n", "<|/recently_viewed_code_snippets|>\n"),
            *("<|current_file_content|>\n", "current_file_path: a.py\n", "<|code_to_edit|>\n"),
            *("<|/code_to_edit|>\n", "<|/current_file_content|>\n", "<|edit_diff_history|>\n"),
            *("--- a/x\n", "+++ b/x\n", "@@ -1,3 +1,9 @@\n", "-old\n", "+new\n", "\r\n", "\n", "x"),
        )
    ),
    max_size=24,
).map("".join)


@settings(max_examples=600, deadline=None)
@given(FRAGMENTS, st.booleans())
@example("<[fim-suffix]><[fim-prefix]><filename>\n<<<<<<< CURRENT\n=======\n<[fim-middle]>", False)
@example("--- a/x\n-old\n--- a/x\n", True)
def test_made_of_markers_it_is_refused_or_sound(text: str, edit: bool) -> None:
    try:
        excerpt = read_mercury(text) if edit else recognise(text)
    except (InvalidRequest, Unreadable):
        return
    if isinstance(excerpt, Excerpt):
        request = to_request(excerpt, TEMPLATE)
        assert request is not None
        check_request(request)
        assert isinstance(excerpt.write(None), str)
        changed = rewrite(excerpt, candidate(request, (1, 1, ["changed"])))
        if changed is not None:
            assert "changed" in excerpt.write(changed)


MB = 2**20


@pytest.mark.parametrize(
    "prompt",
    [
        "<|file_sep|>current/a\n" * (MB // 22) + "<|file_sep|>updated/a\n",
        "<[fim-suffix]><[fim-prefix]>" + "<filename>edit_history\n" * (MB // 23),
        "<[fim-suffix]><[fim-prefix]><filename>a\n" + "<|marker_1|>" * (MB // 12),
        "<[fim-suffix]>" + "x\n" * (MB // 2) + "<[fim-prefix]><filename>a\n<<<<<<< CURRENT\n"
        "<|user_cursor|>\n=======\n<[fim-middle]>",
        "### User Excerpt:\n" + "User edited a:\n```diff\n" * (MB // 23)
        + "<|editable_region_start|>\n",
        "<|fim_prefix|>" * (MB // 14) + "<|fim_suffix|><|fim_middle|>",
        "x" * MB,
    ],
)  # fmt: skip
def test_a_megabyte_of_anything_is_answered(prompt: str) -> None:
    status, _ = post("/v1/completions", {"prompt": prompt})
    assert status == 200


@pytest.mark.parametrize(
    "content",
    [
        mercury_as_cursortab(["x" * 80] * 12_000, ["a<|cursor|>"], []),
        mercury_as_cursortab([], ["a<|cursor|>"], [], "--- a\n" * (MB // 6)),
        mercury_as_cursortab([], ["a<|cursor|>"], [], "@@ -1 +1 @@\n" * (MB // 12)),
        mercury_as_cursortab([], ["a<|cursor|>"], [], "@@ -1,9 +1,9 @@\n+a\n" * (MB // 19)),
        mercury_as_cursortab(
            [], ["a<|cursor|>"], [], "", "<|recently_viewed_code_snippet|>\n" * (MB // 33)
        ),
    ],
)
def test_a_megabyte_for_mercury_is_answered(content: str) -> None:
    body = json.dumps(mercury_body(content)).encode()
    assert len(body) > MB * 9 // 10
    status, answer = post("/v1/edit/completions", body)
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "None"


def test_one_torn_hunk_does_not_cost_the_others() -> None:
    text = (
        "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-old\n+new\n"
        "--- a/b.py\t2026-11-21\n+++ b/b.py\t2026-11-21\n@@ -5,0 +6 @@\n+added\n"
        "\\ No newline at end of file\nprose\n@@ nonsense @@\n"
        "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    )
    assert write_unified_diffs(text) == (
        RecentEdit("a.py", 0, "-old\n+new\n"),
        RecentEdit("b.py", 5, "+added\n"),
        RecentEdit("gone.py", 0, "-gone\n"),
    )


def test_hunks_of_a_file_are_edits_and_blanks_context() -> None:
    text = (
        "// User accepted prediction:\n--- main.py\n+++ main.py\n"
        "@@ -1,2 +1,3 @@\n a\n\n+b\n@@ -9 +10 @@\n-c\n+d\n\n--- x\n+++ x\n@@ -1 +1 @@\n-e\n+f\n"
    )
    assert write_unified_diffs(text) == (
        RecentEdit("main.py", 0, " a\n \n+b\n", accepted=True),
        RecentEdit("main.py", 9, "-c\n+d\n", accepted=True),
        RecentEdit("x", 0, "-e\n+f\n"),
    )


def test_deleted_lines_like_headers_stay_in_their_hunk() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a comment\n+-- b comment\n select\n"
    assert write_unified_diffs(text) == (
        RecentEdit("q.sql", 0, "--- a comment\n+-- b comment\n select\n"),
    )


def test_a_history_without_hunk_headers_is_read() -> None:
    assert write_unified_diffs(
        "--- a/x.rs\n+++ b/x.rs\n-old\n+new\n--- a/y.rs\n+++ b/y.rs\n+z\n"
    ) == (
        RecentEdit("x.rs", 0, "-old\n+new\n"),
        RecentEdit("y.rs", 0, "+z\n"),
    )


def test_only_the_newest_edits_are_kept() -> None:
    hunk = "--- a/x\n+++ b/x\n@@ -{0} +{0} @@\n-a\n+b\n"
    found = write_unified_diffs("".join(hunk.format(i) for i in range(1, 201)))
    assert [edit.line for edit in found] == list(range(136, 200))


def test_of_a_very_long_history_the_end_is_read() -> None:
    filler = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + "b" * 300_000 + "\n"
    last = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n"
    assert write_unified_diffs(filler + last) == (RecentEdit("y", 0, "-c\n+d\n"),)


def test_fenced_diffs_may_have_quoted_paths() -> None:
    text = (
        'User edited "a b.py":\n```diff\n@@ -1 +1 @@\n-x\n+y\n```\n\nUser edited c.py:\n```diff\n'
    )
    assert write_fenced_diffs(text) == (RecentEdit("a b.py", 0, "-x\n+y\n"),)


def test_blocks_become_the_lines_that_differ() -> None:
    blocks = "original:\na\nb\nc\nd\ne\nupdated:\na\nb\nC\nd\ne\n"
    [edit] = original_and_updated("x.py", blocks)
    assert edit == RecentEdit("x.py", 0, " a\n b\n-c\n+C\n d\n e\n")
    assert original_and_updated("x.py", "original:\na\nupdated:\na\n") == ()
    assert original_and_updated("x.py", "torn") == ()
