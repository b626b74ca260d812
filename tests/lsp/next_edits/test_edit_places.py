"""Places that are asked about, in their order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from redraft.lsp.context.ranked_places import DocumentPlace, RankedPlaces
from redraft.lsp.context.region import Region
from redraft.lsp.edit_places import LEAST_NEED, LIKELY, SURE_CHANCE, questions
from redraft.lsp.question import LineRange, Question
from redraft.lsp.schedule import Schedule
from redraft.lsp.snapshot import COLD_TOKENS, Snapshot
from redraft.model.edits.edit import Edit
from redraft.model.places.ranker import RankedPlace
from redraft.model.records import Diagnostic
from support.editors.workbench import URI, Workbench

LINES = [f"value_{number} = compute({number})" for number in range(200)]
SURE, UNSURE, HOPELESS = SURE_CHANCE + 0.1, SURE_CHANCE - 0.1, 0.0


def ranked(line: int, chance: float, *, word: str = "compute", is_far: bool = True) -> RankedPlace:
    need = LEAST_NEED + 0.1 if chance else LEAST_NEED - 0.1
    return RankedPlace(0, line, chance, need, 1.0, 0.9, word, is_far)


def asked(
    *places: RankedPlace, reports: tuple[Diagnostic, ...] = (), text: str = "", **settings: Any
) -> list[Question]:
    """Change line 0, and return the questions where the ranker finds some places."""
    desk = Workbench("\n".join(LINES) + text, **settings)
    desk.swap("compute(0)", "compute(0, 1)")
    desk.shelf.diagnostics = lambda _: reports  # type: ignore[method-assign]
    snapshot = desk.query()

    def rank(snapshot: Snapshot) -> list[DocumentPlace]:
        return [DocumentPlace(snapshot.document, place) for place in places]

    desk.shelf.places = SimpleNamespace(rank=rank)  # type: ignore[assignment]
    return list(questions(snapshot, desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]


def lines(found: list[Question]) -> list[int]:
    """Return the 0-based line of each question; -1: that of the cursor."""
    return [-1 if one.about is None else one.snapshot.line for one in found]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], [-1]),
        ([(100, UNSURE)], [-1, 100]),
        ([(100, SURE)], [100, -1]),
        ([(100, SURE), (150, SURE)], [100, -1, 150]),  # one goes before the cursor
        ([(100, UNSURE), (150, UNSURE)], [-1, 100, 150]),
        ([(100, UNSURE), (150, UNSURE), (190, UNSURE)], [-1, 100, 150]),
        ([(100, HOPELESS)], [-1]),
        ([(0, SURE)], [-1]),  # inside the region of the cursor
        ([(100, UNSURE), (101, UNSURE)], [-1, 100]),  # inside the region of line 100
    ],
)
def test_order_of_ranked_places(places: list[tuple[int, float]], expected: list[int]) -> None:
    assert lines(asked(*(ranked(*place) for place in places))) == expected


def test_a_place_too_far_to_offer_is_asked_about() -> None:
    desk = Workbench("def area(r):\n    return r\n" + "\n" * 50 + "area(1)\n" + "\n" * 50)
    desk.shelf.region_at = lambda _: Region(0, 80, "", 0)  # type: ignore[method-assign]
    desk.swap("(r)", "(r, pi)")
    found = list(questions(desk.query(), desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]
    assert lines(found) == [-1, 52]


def test_a_near_place_never_goes_before_the_cursor() -> None:
    assert lines(asked(ranked(60, SURE, is_far=False))) == [-1, 60]


@pytest.mark.parametrize(("eagerness", "most"), [("low", 1), ("medium", 2), ("high", 4)])
def test_eagerness_limits_all_places_together(eagerness: str, most: int) -> None:
    places = [ranked(line, UNSURE) for line in (60, 90, 120, 150, 180)]
    sure = ranked(199, SURE)
    assert len(asked(*places, eagerness=eagerness)) == 1 + most
    assert len(asked(sure, *places, eagerness=eagerness)) == 1 + most


def test_an_unread_place_is_asked_with_few_tokens() -> None:
    own, far = asked(ranked(100, UNSURE))
    assert (own.request.context_tokens, far.request.context_tokens) == (None, COLD_TOKENS)


def test_the_gate_learns_how_likely_a_place_is() -> None:
    report = Diagnostic(150, "compute() takes 1 positional argument but 2 were given")
    told, own, far = asked(ranked(100, UNSURE), reports=(report,))
    assert own.features["chance"] < far.features["chance"] < 0
    assert [one.features["certain"] for one in (told, own, far)] == [1, 0, 0]
    assert [one.features["left"] for one in (told, own, far)] == [0.9] * 3


def test_reported_errors_go_before_a_sure_place() -> None:
    report = Diagnostic(100, "compute() takes 1 positional argument but 2 were given")
    assert lines(asked(ranked(150, SURE), reports=(report,)))[:2] == [100, 150]


def test_an_import_without_uses_comes_after_the_cursor() -> None:
    desk = Workbench("import os\nimport sys\n" + "\n" * 40 + "print(os.name)\nprint(sys.path)\n")
    desk.swap("os.name", "1")
    desk.shelf.places = SimpleNamespace(rank=lambda _: [])  # type: ignore[assignment]
    found = list(questions(desk.query(), desk.shelf, Schedule(desk.clock)))
    assert lines(found) == [-1, 0]
    assert found[1].about is not None and found[1].about.why == "this import is no longer used"


def test_missing_imports_go_before_the_cursor() -> None:
    desk = Workbench("import os\n" + "\n".join(LINES))
    desk.swap("compute(199)", "json.dumps(199)")
    found = list(questions(desk.query(), desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]
    assert [one.about.name if one.about else "" for one in found][:2] == ["json", ""]


CALLED = """\
def area(r):
    return r * r


{}area(1)
{}area(2, 3)
print(area(4))
"""


def after_a_parameter(definition: str = "def area(r, pi):", **opened: str) -> list[Question]:
    """Return the questions after a parameter was added to a function with three calls."""
    gap = "x = 1\n" * 40
    desk = Workbench(CALLED.format(gap, gap), eagerness="high")
    for path, text in opened.items():
        desk.open(text, f"{path}.py")
    desk.swap("def area(r):", definition)
    query = desk.query(other_documents=True)
    return list(questions(query, desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]


def test_a_call_that_does_not_fit_wants_an_edit() -> None:
    found = after_a_parameter()
    wanted = {one.snapshot.line for one in found if one.report is not None}
    assert wanted and all((one.report is None) == (not one.request.min_tokens) for one in found)
    assert not any(one.request.min_tokens for one in asked(ranked(100, UNSURE)))
    near = after_a_parameter("def area(r, pi):\n    area(r)\n")[0]
    assert near.about is None and near.report is not None and near.request.min_tokens == 1


def test_calls_that_no_longer_fit_follow_the_cursor() -> None:
    found = after_a_parameter()
    assert lines(found)[:3] == [-1, 44, 86]
    first = found[1]
    assert first.report is not None and first.report.message.endswith('parameter "pi"')
    assert first.about is not None and first.about.name == "area"


def test_calls_in_other_documents_come_last() -> None:
    found = after_a_parameter(b="from a import area\n\narea(5)\n")
    assert [one.snapshot.path for one in found][:4] == ["a.py", "a.py", "a.py", "b.py"]


def test_a_parameter_with_a_default_asks_for_no_call() -> None:
    assert all(one.report is None for one in after_a_parameter("def area(r, pi=3):"))


def test_a_name_of_two_functions_asks_for_no_call() -> None:
    found = after_a_parameter(b="def area(x):\n    return x\n")
    assert all(one.report is None for one in found)


RUST = """\
struct Tree {{
    age: u32,
    girth: f32,
}}

{}impl Tree {{
    fn grown(&self) -> Self {{
        Self {{
            age: self.age + 1,
            girth: self.girth,
        }}
    }}

    fn area(&self) -> f32 {{
        let Tree {{ girth, .. }} = self;
        let other = Self {{ girth: 1.0, ..Self::default() }};
        girth * other.girth
    }}
}}

{}fn read(text: &str) -> Tree {{
    Tree {{ age: number(text), girth: 0.0 }}
}}
"""


def test_rust_literals_lacking_a_field_want_an_edit() -> None:
    gap = "fn x() {}\n\n" * 40
    desk = Workbench(None, eagerness="high")
    desk.text = RUST.format(gap, gap)
    desk.document = desk.session.open(URI, desk.text, 1, "rust")
    desk.swap("    girth: f32,\n", "    girth: f32,\n    height: f32,\n")
    found = list(questions(desk.query(), desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]
    reports = {one.report.line: one.report.message for one in found if one.report is not None}
    text = desk.text.split("\n")
    assert [text[line].strip() for line in reports] == [
        "girth: self.girth,",
        "Tree { age: number(text), girth: 0.0 }",
    ]
    assert set(reports.values()) == {"Missing field `height` of `Tree`"}


def test_an_undefined_name_comes_after_the_cursor() -> None:
    report = Diagnostic(200, '"missing" is not defined')
    assert lines(asked(reports=(report,), text="\nshow(missing)")) == [-1, 200]


def test_a_question_has_its_ranked_place_and_word() -> None:
    place = ranked(100, SURE)
    first, own = asked(place)
    assert first.place == place and first.about is not None
    assert first.about.name == "compute"
    assert first.snapshot.text[: first.snapshot.cursor].endswith("value_100 = compute")
    assert own.place is None


def test_a_place_without_a_shared_word_is_a_likely_one() -> None:
    first, _ = asked(ranked(100, SURE, word="value_100"))
    assert first.about is not None and first.about.why in (LIKELY, "a call of it changed")


def others(found: list[Question]) -> list[list[int]]:
    """Return the 0-based first lines of the other places of each question."""
    return [[one.first for one in each.others()] for each in found]


def test_other_places_are_those_the_ranker_is_sure_of() -> None:
    places = ranked(100, SURE), ranked(150, SURE), ranked(190, UNSURE), ranked(40, SURE)
    # Line 100 is asked about first, then the cursor, then 150 and 190.
    assert others(asked(*places)) == [[148, 38], [148, 38], [38]]
    assert others(asked(ranked(60, SURE, is_far=False))) == [[], []]


def test_other_places_are_the_calls_that_do_not_fit() -> None:
    found = after_a_parameter(b="from a import area\n\narea(5)\n")
    calls = [others([one])[0] for one in found if one.report is not None]
    assert calls == [[44, 86, 2], [86, 2], [2]]


def test_calls_are_found_while_their_definition_is_new() -> None:
    gap = "x = 1\n" * 40
    desk = Workbench("def area(r):\n    return r\n" + f"{gap}area(1)\n" * 6)
    desk.swap("(r)", "(r, pi)")
    for _ in range(4):
        desk.pause()
        desk.swap("area(1)", "area(1, 3)")
    found = list(questions(desk.query(), desk.shelf, Schedule(desk.clock)))  # type: ignore[arg-type]
    first = next(one for one in found if one.report is not None)
    assert (first.snapshot.line, others([first])) == (206, [[206, 247]])


def test_a_call_that_the_edit_changes_is_no_place() -> None:
    first = next(one for one in after_a_parameter() if one.report is not None)
    at = first.snapshot.text.index("area(1)")
    edit = Edit(first.snapshot.text, at, at + 7, "area(1, 2)")
    assert first.count_others(edit) == 1
    whole = replace(first, others=lambda: [*first.others(), LineRange(URI, 0, 200)])
    assert whole.count_others(edit) == 1, "places that meet count once"


def test_without_edits_nothing_is_ranked() -> None:
    desk = Workbench("\n".join(LINES))
    assert RankedPlaces().rank(desk.query()) == []


def test_a_ranking_is_kept_until_the_text_changes() -> None:
    desk, places = Workbench("\n".join(LINES)), RankedPlaces()
    desk.swap("compute(0)", "compute(0, 1)")
    first = places.rank(desk.query())
    assert places.rank(desk.query()) is first
    desk.swap("compute(1)", "compute(1, 1)")
    assert places.rank(desk.query()) is not first


def test_a_long_document_is_read_in_the_background() -> None:
    jobs: list[Any] = []
    places = RankedPlaces(jobs.append)
    text = "\n".join(f"only_here_{number} = read({number})" for number in range(900))
    desk = Workbench(text)
    desk.swap("read(0)", "read(0, 1)")
    document = desk.query().document
    assert places.index_of(document) is None and places.rank(desk.query()) == []
    assert len(jobs) == 1, "it is read once"
    rests: list[int] = []
    jobs[0](lambda: rests.append(1))
    assert rests and places.index_of(document) is not None
    assert places.rank(desk.query())


def rank_with(desk: Workbench, **flags: Any) -> list[str]:
    """Return the paths of the documents of the ranked places."""
    return [one.document.path for one in RankedPlaces().rank(desk.query(**flags))]


def test_other_documents_are_ranked_for_able_clients() -> None:
    desk = Workbench("\n".join(LINES[:20]))
    desk.open("print(compute(3))\nprint(compute(4))\n", "b.py")
    desk.swap("compute(0)", "compute(0, 1)")
    assert set(rank_with(desk)) == {"a.py"}
    assert set(rank_with(desk, other_documents=True)) == {"a.py", "b.py"}


def test_documents_edited_lately_are_ranked_first() -> None:
    desk = Workbench("\n".join(LINES[:20]))
    for number in range(12):
        desk.open("print(compute(3))\n", f"b{number}.py")
    desk.put(0, 0, 0, "x = 1\n", uri=URI.replace("a.py", "b11.py"))
    desk.clock.now += 2
    desk.swap("compute(0)", "compute(0, 1)")
    found = set(rank_with(desk, other_documents=True))
    assert "b11.py" in found and "b10.py" not in found


def test_a_document_that_is_too_long_is_not_ranked() -> None:
    desk = Workbench("x = compute(0)\n" + "\n" * 20_001)
    desk.swap("compute(0)", "compute(0, 1)")
    assert rank_with(desk) == []


def test_an_opened_document_is_read_before_asking() -> None:
    jobs: list[Any] = []
    places, desk = RankedPlaces(jobs.append), Workbench("\n".join(LINES))
    document = desk.query().document
    places.on_open(document)
    places.on_open(document)
    assert len(jobs) == 1
    jobs[0](lambda: None)
    assert places.index_of(document) is not None
