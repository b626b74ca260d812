"""Next edits at other places than the cursor, in the same file and in other open files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.edit_places import MOST_PLACES
from redraft.lsp.refusals import AFTER_EDIT_S
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Diagnostic, EditRequest, Prediction
from support.editors.predictor import rewrite
from support.editors.workbench import URI, Ask, Decision, Workbench, asking, reason, showing

FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))
FAR = f"def area(r):\n    return r\n\n{FILLER}print(area(2))\n"
NOTHING = Prediction("fake-1", "fake-1m int8", (), "The model would change nothing here.")


def settle(desk: Workbench, ask: Ask, prediction: Prediction) -> Offer | Abstain:
    """Settle an answer while the documents are as they are now."""
    return desk.settle(ask, prediction)


def go_on(desk: Workbench, ask: Ask, prediction: Prediction) -> Decision:
    """Settle an answer; return the suggestion, the next question or the reason."""
    return desk.session.go_on(ask, settle(desk, ask, prediction))


def nothing_near(desk: Workbench, **fields: object) -> Decision:
    """Return the decision after the model found no edit around the cursor."""
    ask = desk.ask_edit(**fields)
    assert ask.origin is None
    return go_on(desk, ask, NOTHING)


def next_place(desk: Workbench, **fields: object) -> Ask:
    decision = asking(nothing_near(desk, **fields))
    return decision


def renamed(text: str = FAR, **settings: object) -> Workbench:
    """Give ``area`` another parameter, far away from its only call."""
    desk = Workbench(text, **settings)
    desk.swap("area(r)", "area(r, pi)")
    return desk


def test_without_an_edit_here_the_call_below_is_asked() -> None:
    desk = renamed()
    ask = next_place(desk)
    line = desk.text[: desk.text.index("print(area(2))")].count("\n")
    assert ask.request.region is not None
    first, last = ask.request.region
    assert first <= line < last
    assert ask.query.line == line
    assert ask.request.edits, "the edit just made goes with the question"
    show = showing(settle(desk, ask, rewrite(ask.request, "area(2)", "area(2, 3)")))
    assert show.reason == 'from the model (area: Argument missing for parameter "pi")'
    assert show.suggestion.lines[0] == line


def test_an_edit_below_the_threshold_leads_elsewhere() -> None:
    desk = renamed()
    ask = desk.ask_edit()
    decision = settle(desk, ask, rewrite(ask.request, "return r", "return pi", confidence=0.1))
    assert "likely to be kept" in reason(decision)
    assert isinstance(desk.session.go_on(ask, decision), Ask)


def test_without_an_edit_the_reason_names_both_places() -> None:
    desk = renamed()
    found = reason(go_on(desk, next_place(desk), NOTHING))
    assert found == "The model would change nothing here, nor in line 64"


def test_a_hidden_edit_elsewhere_is_told_with_its_line() -> None:
    desk = renamed()
    ask = next_place(desk)
    unsure = rewrite(ask.request, "area(2)", "area(2, 3)", confidence=0.03)
    hidden = go_on(desk, ask, unsure)
    assert reason(hidden) == (
        f"in line {ask.query.line + 1}, 3 % likely to be kept (high shows from 5 %)"
    )
    assert isinstance(hidden, Abstain) and not hidden.is_revealable, "a gesture asks here"


def test_an_unrelated_edit_is_not_shown_elsewhere() -> None:
    desk = renamed(FAR + "\n" * 3 + "x = 1\n")
    ask = next_place(desk)
    decision = settle(desk, ask, rewrite(ask.request, "x = 1", "x = 2"))
    assert reason(decision) == "the edit has nothing to do with your last edit"


@pytest.mark.parametrize(("eagerness", "most"), list(MOST_PLACES.items()))
def test_eagerness_decides_how_many_places_are_asked(eagerness: str, most: int) -> None:
    calls = "".join(f"{FILLER}print(area({i}))\n" for i in range(8))
    desk = renamed(f"def area(r):\n    return r\n\n{calls}", eagerness=eagerness)
    asked = 0
    decision = nothing_near(desk)
    while isinstance(decision, Ask):
        asked += 1
        decision = go_on(desk, decision, NOTHING)
    assert asked == most


def test_a_slow_model_is_asked_about_one_place_only() -> None:
    calls = "".join(f"{FILLER}print(area({i}))\n" for i in range(8))
    desk = renamed(f"def area(r):\n    return r\n\n{calls}", eagerness="high")
    ask = desk.ask_edit()
    near = desk.settle(ask, NOTHING, 5_000.0)
    first = asking(desk.session.go_on(ask, near))
    there = desk.settle(first, NOTHING, 5_000.0)
    assert isinstance(desk.session.go_on(first, there), Abstain)


CALLER = "from a import area\n\n\ndef show(r):\n    print(area(r))\n"


def with_caller(text: str = FAR.replace("print(area(2))\n", "")) -> tuple[Workbench, Document]:
    desk = Workbench(text)
    other = desk.open(CALLER, "b.py")
    desk.swap("area(r)", "area(r, pi)")
    return desk, other


def shown_there(desk: Workbench) -> Offer:
    """Offer an edit of another document to the user, who is in the first one."""
    ask = next_place(desk, other_documents=True)
    show = showing(settle(desk, ask, rewrite(ask.request, "print(area(r))", "print(area(r, 3))")))
    return show


def test_the_call_in_an_open_document_is_asked_about() -> None:
    desk, other = with_caller()
    ask = next_place(desk, other_documents=True)
    assert (ask.query.uri, ask.request.path, ask.request.text) == (other.uri, "b.py", CALLER)
    assert [edit.path for edit in ask.request.edits] == ["a.py"]
    show = showing(settle(desk, ask, rewrite(ask.request, "print(area(r))", "print(area(r, 3))")))
    assert show.suggestion.uri == other.uri


def test_an_unopened_document_is_never_asked_about() -> None:
    desk, other = with_caller()
    del desk.shelf.opened[other.uri]
    assert isinstance(nothing_near(desk, other_documents=True), Abstain)


def test_a_document_closed_while_the_model_thinks() -> None:
    desk, other = with_caller()
    ask = next_place(desk, other_documents=True)
    del desk.shelf.opened[other.uri]
    desk.session.close(other.uri)
    decision = settle(desk, ask, rewrite(ask.request, "print(area(r))", "print(area(r, 3))"))
    assert reason(decision) == "b.py was closed or deleted while the model was working"
    assert desk.outcomes == []


def test_the_outcome_is_read_from_the_other_document() -> None:
    desk, other = with_caller()
    show = shown_there(desk)
    desk.becomes_elsewhere(other, show.suggestion.result)
    assert desk.outcomes == ["accepted"]


def test_it_waits_for_who_takes_their_time() -> None:
    desk, other = with_caller()
    show = shown_there(desk)
    desk.clock.now += 5 * AFTER_EDIT_S
    here = desk.consider_edit(other_documents=True, cursor=0)
    at, revision = CALLER.index("print"), other.revision
    there = desk.query(uri=other.uri, path="b.py", text=CALLER, cursor=at, revision=revision)
    for again in (here, desk.session.consider_edit(there)):
        assert isinstance(again, Offer), again
        assert again.suggestion.id == show.suggestion.id
    assert isinstance(desk.consider_edit(cursor=0), Abstain)  # who shows no other documents


def test_whoever_goes_on_typing_has_let_it_pass() -> None:
    desk, _ = with_caller()
    shown_there(desk)
    desk.type("#")
    assert desk.outcomes == ["ignored"]


def test_rejecting_elsewhere_cools_the_users_line() -> None:
    desk, _ = with_caller()
    desk.session.report_rejected(shown_there(desk).suggestion.id)
    assert desk.outcomes == ["rejected"]
    assert "you rejected a suggestion here 0 s ago" in reason(
        desk.consider_edit(other_documents=True)
    )


def test_work_in_another_document_is_a_new_question() -> None:
    desk, other = with_caller()

    def at():
        return desk.query(
            uri=other.uri, path="b.py", text=CALLER, cursor=0, revision=other.revision
        )

    ask = asking(desk.session.consider_edit(at()))
    desk.settle(ask, NOTHING)
    assert not isinstance(desk.session.consider_edit(at()), Ask)
    desk.clock.now += 2
    desk.swap("return r", "return r * pi")
    assert isinstance(desk.session.consider_edit(at()), Ask)


def test_one_edit_in_two_documents_is_two_suggestions() -> None:
    desk, other = with_caller()
    desk.open(CALLER, "c.py")
    first = shown_there(desk)
    desk.session.report_rejected(first.suggestion.id)
    desk.clock.now += 6
    query = desk.query(other_documents=True)
    ask = asking(desk.session.consider_edit(query))
    assert ask.query.path == "c.py"
    ask = ask
    show = showing(settle(desk, ask, rewrite(ask.request, "print(area(r))", "print(area(r, 3))")))
    assert show.suggestion.uri != other.uri


def model_of_a_rename(request: EditRequest) -> Prediction:
    """Rename the first ``total`` of the region."""
    assert request.region is not None
    lines = request.text.split("\n")
    start = sum(len(line) + 1 for line in lines[: request.region[0]])
    end = sum(len(line) + 1 for line in lines[: request.region[1]])
    at = request.text.find("total", start, end)
    if at < 0:
        return NOTHING
    made = (
        rewrite(request, "total", "amount").candidates
        or rewrite(replace(request, region=None), "total", "amount").candidates
    )
    return replace(NOTHING, candidates=(replace(made[0], start=at, end=at + 5),), reason="")


def drive(desk: Workbench, decision: Decision, prefetch: bool) -> Offer | Abstain:
    """Answer questions until there is a decision, then compute what follows its acceptance."""
    asked = 0
    while isinstance(decision, Ask):
        ask, asked = decision, asked + 1
        decision = go_on(desk, ask, model_of_a_rename(ask.request))
    if prefetch and isinstance(decision, Offer):
        while (ahead := desk.session.follow_up()) is not None:
            desk.session.prefetched(ahead, model_of_a_rename(ahead.request))
    desk.asked = asked  # type: ignore[attr-defined]
    return decision


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_rename_goes_through_places_and_a_document(prefetch: bool) -> None:
    text = "def show(total):\n    pass\n" + "".join(f"{FILLER}use(total)\n" for _ in range(3))
    desk = Workbench(text, prefetch=prefetch)
    other = desk.open("import a\n\nuse(total)\n", "b.py")
    desk.swap("total", "amount")
    asked = []
    for _ in range(3):
        show = showing(drive(desk, desk.consider_edit(other_documents=True), prefetch))
        assert show.suggestion.uri == URI
        asked.append(desk.asked)  # type: ignore[attr-defined]
        desk.accept(show)
    last = showing(drive(desk, desk.consider_edit(other_documents=True), prefetch))
    assert last.suggestion.uri == other.uri
    asked.append(desk.asked)  # type: ignore[attr-defined]
    assert desk.text.count("amount") == 4
    assert (asked == [2, 0, 0, 0]) == prefetch


def test_an_undefined_name_is_a_place_to_look_at() -> None:
    desk = Workbench(FAR)
    line = FAR[: FAR.index("print(area(2))")].count("\n")
    told = (Diagnostic(line, '"area" is not defined'), Diagnostic(3, "line too long", 2))
    desk.shelf.diagnostics = lambda query: told  # type: ignore[method-assign]
    desk.swap("    return r\n", "    return r * 2\n")
    ask = next_place(desk)
    assert (ask.query.line, ask.reason) == (line, "area: it is not defined")
    assert ask.request.diagnostics == told
    show = settle(desk, ask, rewrite(ask.request, "area(2)", "arena(2)"))
    assert isinstance(show, Offer)


def test_an_unimported_name_leads_to_the_imports() -> None:
    desk = Workbench(f"import os\n\n\n{FILLER}print(os.name)\n")
    desk.swap("print(os.name)\n", "print(json.dumps(os.name))\n")
    ask = desk.ask_edit()
    assert ask.request.region is not None and ask.request.region[0] == 0
    assert ask.reason == "json: it is not imported"
    show = settle(desk, ask, rewrite(ask.request, "import os\n", "import json\nimport os\n"))
    assert isinstance(show, Offer)


@pytest.mark.parametrize(
    ("new", "is_shown"), [("area(2)", True), ("area(2, unit=3)", False), ("area(2, 4)", False)]
)
def test_an_edit_of_a_call_has_to_fit_its_parameters(new: str, is_shown: bool) -> None:
    desk = Workbench("def area(r, unit):\n    return r\n\n\nprint(area(2, 3))\n")
    desk.swap("def area(r, unit)", "def area(r)")
    decision = desk.edit("area(2, 3)", new, confidence=0.95)
    assert isinstance(decision, Offer) is is_shown
    if isinstance(decision, Abstain):
        assert decision.reason == "the call would fit its parameters no better"
