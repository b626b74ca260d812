"""After an edit that breaks something, the places that it broke come first, and nothing else."""

from __future__ import annotations

import pytest
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import refuse, situation_of
from redraft.model.records import Diagnostic, EditRequest
from support.editors.predictor import predicted, rewrite
from support.editors.workbench import Ask, Workbench, reason

FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))
AREA = f"""\
def area(width, height):
    return width * height

def circle(radius):
    return 3.14 * radius * radius

def describe(width, height):
    return f"{{area(width, height)}}"

{FILLER}
def show():
    print(area(2, 3))
    print(area(1, 1))
"""


def with_a_parameter() -> Workbench:
    """``area`` has just got a parameter."""
    desk = Workbench(AREA)
    desk.swap("area(width, height)", "area(width, height, depth)")
    return desk


def reporting(desk: Workbench, message: str, where: str, severity: int = 1) -> None:
    """Report a problem of the first line that holds a text."""
    line = desk.text[: desk.text.index(where)].count("\n")
    told = (Diagnostic(line, message, severity),)
    desk.shelf.diagnostics = lambda query: told  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ('Argument missing for parameter "depth"', "area(1, 1)"),
        ("Expected 3 arguments, but got 2.", "area(1, 1)"),
    ],
)
def test_the_place_of_an_error_of_the_edit_is_first(message: str, where: str) -> None:
    desk = with_a_parameter()
    reporting(desk, message, where)
    ask = desk.ask_edit()
    assert ask.origin is not None
    assert ask.query.line == desk.text[: desk.text.index(where)].count("\n")
    shown = desk.settle(ask, rewrite(ask.request, where, "area(1, 1, 1)"))
    assert isinstance(shown, Offer)


def test_an_import_no_longer_used_is_asked_about_first() -> None:
    desk = Workbench(f"import math\n\n{FILLER}\nprint(math.pi)\n")
    desk.swap("math.pi", "3.14")
    reporting(desk, '"math" imported but unused', "import math", 2)
    ask = desk.ask_edit()
    assert ask.query.line == 0
    shown = desk.settle(ask, rewrite(ask.request, "import math\n", ""))
    assert isinstance(shown, Offer)


def test_reports_of_something_else_do_not_lead() -> None:
    desk = with_a_parameter()
    reporting(desk, "line too long", "value_40")
    assert desk.ask_edit().origin is None


def test_an_error_without_a_place_leads_to_its_region() -> None:
    desk = with_a_parameter()
    reporting(desk, 'Argument missing for parameter "depth"', "area(1, 1)")
    ask = desk.ask_edit()
    nothing = desk.settle(ask, predicted())
    following = desk.session.go_on(ask, nothing)
    assert isinstance(following, Ask) and following.origin is None


def test_unreported_callers_are_asked_about_by_name() -> None:
    desk = with_a_parameter()
    ask = desk.ask_edit()
    nothing = desk.settle(ask, predicted())
    following = desk.session.go_on(ask, nothing)
    assert isinstance(following, Ask)
    assert following.query.line == desk.text[: desk.text.index("area(2, 3)")].count("\n")


def test_a_class_with_a_new_field_leads_to_its_making() -> None:
    desk = Workbench(f"class Item:\n    name: str\n    price: float\n\n{FILLER}\nItem('a', 1)\n")
    desk.swap("    price: float\n", "    price: float\n    quantity: int\n")
    ask = desk.ask_edit()
    nothing = desk.settle(ask, predicted())
    following = desk.session.go_on(ask, nothing)
    assert isinstance(following, Ask)
    assert following.query.line == desk.text[: desk.text.index("Item('a'")].count("\n")


def test_a_function_without_the_call_gets_no_parameter() -> None:
    desk = with_a_parameter()
    assert reason(desk.edit("circle(radius)", "circle(radius, depth)")) == (
        "the edit has nothing to do with your last edit"
    )


GO = """\
func NewServer(host string, port int) *Server {
	return &Server{Host: host, Port: port}
}

func (s *Server) Address() string {
	return fmt.Sprintf("%s:%d", s.Host, s.Port)
}
"""


def test_a_body_without_the_changed_name_is_left() -> None:
    desk = Workbench(GO)
    desk.swap("port int)", "port int, timeout int)")
    desk.accept(desk.edit("Port: port}", "Port: port, Timeout: timeout}"))
    assert reason(desk.edit("s.Port)", "s.Port, s.Timeout)")) == (
        "the edit has nothing to do with your last edit"
    )


def test_another_edit_by_hand_reopens_other_places() -> None:
    desk = Workbench(GO)
    desk.swap("port int)", "port int, timeout int)")
    desk.clock.now += 2
    desk.swap("s.Host", "s.Name")
    desk.cursor = 0
    assert isinstance(desk.edit("s.Port)", "s.Port())"), Offer)


def test_a_caller_of_the_changed_may_get_its_parameter() -> None:
    desk = with_a_parameter()
    assert isinstance(desk.edit("describe(width, height)", "describe(width, height, depth)"), Offer)


@pytest.mark.parametrize(
    ("old", "new", "is_shown"),
    [
        ("describe(width, height)", "describe(width)", False),
        ("describe(width, height)", "describe(width, tall)", True),
        ("show()", "show(depth)", True),
    ],
)
def test_a_parameter_in_use_is_not_taken_away(old: str, new: str, is_shown: bool) -> None:
    at = AREA.index(f"def {old}") + len("def ")
    made = Edit(AREA, at, at + len(old), new)
    request = EditRequest("next_edit", "a.py", AREA, at, "python")
    refused = refuse(made, 1.0, situation_of(request, 0.5))
    assert (refused is None) is is_shown, refused


SMALL = """\
def area(width, height):
    return width * height

def describe(width, height):
    return f"{area(width, height)}"

print(area(2, 3))
"""


@pytest.mark.parametrize(
    ("is_reported", "sure", "shown"),
    [(True, 0.08, True), (False, 0.08, False), (True, 0.03, False)],
)
def test_an_edit_of_an_error_may_be_unlikely(is_reported: bool, sure: float, shown: bool) -> None:
    desk = Workbench(SMALL)
    desk.swap("area(width, height):", "area(width, height, depth):")
    if is_reported:
        reporting(desk, 'Argument missing for parameter "depth"', "area(2, 3)")
    decision = desk.edit("area(2, 3)", "area(2, 3, 4)", confidence=sure)
    assert isinstance(decision, Offer) == shown
    if isinstance(decision, Offer):
        assert decision.suggestion.unsure == ""


def test_the_edit_that_repairs_an_error_comes_first() -> None:
    desk = Workbench(SMALL)
    desk.swap("area(width, height):", "area(width, height, depth):")
    reporting(desk, 'Argument missing for parameter "depth"', "area(2, 3)")
    ask = desk.ask_edit()
    likelier = rewrite(ask.request, "describe(width, height)", "describe(width, height, depth)")
    repair = rewrite(ask.request, "area(2, 3)", "area(2, 3, 4)", confidence=0.5)
    both = predicted(*likelier.candidates, *repair.candidates)
    decision = desk.settle(ask, both)
    assert isinstance(decision, Offer)
    assert "area(2, 3, 4)" in decision.suggestion.result
