"""Ghost text and next edits: which of the two a user sees."""

from __future__ import annotations

import pytest
from redraft.lsp.refusals import is_empty_body, is_empty_body_line
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from support.editors.predictor import infill, predicted, rewrite
from support.editors.workbench import Ask, Workbench, reason, showing

READ = 'def read_items(path):\n    """Read them."""\n    \n'
IMPORT = ("def read_items", "import csv\n\n\ndef read_items")


def with_an_import_shown() -> Workbench:
    """Put the user in the empty body, and offer an import further up."""
    desk = Workbench(READ)
    desk.cursor = len(READ) - 1
    desk.type("x")
    desk.erase(1)
    assert isinstance(desk.edit(*IMPORT), Offer)
    return desk


def test_in_an_empty_body_ghost_text_precedes_an_edit() -> None:
    desk = with_an_import_shown()
    ask = desk.ask()
    body = infill(ask.request, "return list(csv.reader(path))")
    assert isinstance(desk.settle(ask, body), Offer)
    assert reason(desk.consider_edit()) == "ghost text is shown at the cursor"


def test_a_body_without_ghost_text_keeps_the_edit() -> None:
    desk = with_an_import_shown()
    ask = desk.ask()
    assert isinstance(desk.settle(ask, predicted()), Abstain)
    assert isinstance(desk.consider_edit(), Offer)


def typed_up_to_the_value() -> Workbench:
    desk = Workbench("import logging\n\nlogger =")
    desk.type(" ")
    return desk


def test_a_late_edit_is_not_shown_beside_ghost_text() -> None:
    desk = typed_up_to_the_value()
    desk.session.memory.outcomes.report_turned_down(
        showing(desk.answer("logging.getLogger(__name__)")).suggestion.id, "ignored"
    )
    ask = desk.ask_edit()
    assert isinstance(desk.consider(), Offer)  # the model is not asked
    made = rewrite(ask.request, "logger = ", "logger = logging.getLogger()")
    late = desk.settle(ask, made)
    assert reason(late) == "ghost text is shown at the cursor"


def test_late_ghost_text_is_not_shown_beside_an_edit() -> None:
    desk = typed_up_to_the_value()
    edit = showing(desk.edit("logger = ", "logger = logging.getLogger()"))
    desk.session.memory.outcomes.report_turned_down(edit.suggestion.id, "ignored")
    ask = desk.ask()
    assert isinstance(desk.consider_edit(), Offer)  # the model is not asked
    late = desk.settle(ask, infill(ask.request, "None"))
    assert reason(late) == "a next edit is shown"


def test_a_gesture_prefers_a_sure_edit_alone() -> None:
    desk = typed_up_to_the_value()
    assert isinstance(desk.answer("logging.getLogger(__name__)", confidence=0.1), Offer)
    ask = desk.ask_edit(invoked=True)
    unsure = rewrite(ask.request, "logger = ", "logger = None", confidence=0.1)
    assert isinstance(desk.session.go_on(ask, desk.settle(ask, unsure)), Abstain)
    desk = typed_up_to_the_value()
    desk.answer("logging.getLogger(__name__)", confidence=0.1)
    shown = desk.edit("logger = ", "logger = logging.getLogger()", invoked=True)
    assert isinstance(shown, Offer)
    assert desk.outcomes == ["replaced"], "the client shows one of the two"


STACK = (
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
    "    def pop(self):\n        \n"
)


def in_the_empty_body(**settings: object) -> Workbench:
    desk = Workbench(STACK, **settings)
    desk.cursor = len(STACK) - 1
    desk.type("x")
    desk.erase(1)
    return desk


def test_in_an_empty_body_a_next_edit_may_write_it() -> None:
    desk = in_the_empty_body(eagerness="high")
    body = "        return self.items.pop()\n"
    assert isinstance(desk.edit("        \n", body), Offer)


@pytest.mark.parametrize(
    ("text", "line", "body"),
    [
        ("def f():\n    ‸\n", True, True),
        ("def f():\n‸\n", True, True),
        ("def f():\n    x = 1\n    ‸\n", True, False),
        ('def f():\n    """Do it."""\n    ‸\n', True, True),
        ('def f():\n    """Do it."""\n    ‸\n    return 1\n', True, False),
        ("function f() {\n  ‸\n}\n", True, True),
        ("x = 1\n‸\n", False, False),
        ("def f():\n    x‸\n", False, False),
    ],
)
def test_where_a_body_is_about_to_be_written(text: str, line: bool, body: bool) -> None:
    cursor = text.index("‸")
    text = text.replace("‸", "")
    assert is_empty_body_line(text, cursor) is line
    assert is_empty_body(text, cursor) is body


RENAMED = "def area(w, h):\n    return w * h\n\nprint(area(2, 3))\n"


def test_a_replaced_name_is_not_made_longer() -> None:
    desk = Workbench(RENAMED)
    desk.cursor = RENAMED.index("area") + len("area")
    desk.erase(len("area"))
    desk.type("surface")
    assert reason(desk.consider()) == "you are replacing a name here"
    desk.clock.now += 1
    assert isinstance(desk.edit("print(area(2, 3))", "print(surface(2, 3))"), Offer)


@pytest.mark.parametrize(
    ("text", "at", "typed"),
    [
        ("def area(w, h):\n    return w * h\n", "w * h", " * d"),  # nothing is replaced
        ("total = price\n", "price", ""),  # the line ends there
    ],
)
def test_elsewhere_ghost_text_is_asked_for_as_ever(text: str, at: str, typed: str) -> None:
    desk = Workbench(text)
    desk.cursor = text.index(at) + len(at)
    if typed:
        desk.type(typed)
    else:
        desk.erase(len(at))
        desk.type("cost")
    assert isinstance(desk.consider(), Ask)
