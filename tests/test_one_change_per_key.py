"""One acceptance makes one change, in an order that a reader expects."""

from __future__ import annotations

from redraft.lsp.session.decisions import Ask, Decision, Show
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.answers import replace_lines
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction
from support.predictor import predicted
from support.workbench import Workbench

SURE = Confidence(0.9, 0.9, 0.9)
SHOP = """\
class Item:
    name: str
    price: float

def total_value(items):
    return sum(item.price for item in items)

def report(items):
    for item in items:
        print(f"{item.name}: {item.price}")
    print(total_value(items))
"""


def rewritten(request: EditRequest, *edits: tuple[int, int, str]) -> Prediction:
    """A candidate for each edit: lines [first, last), 0-based, become other lines."""
    made = (
        Candidate(*replace_lines(request.text, first, last, new), SURE, 5, 2, "end")
        for first, last, new in edits
    )
    return predicted(*made)


def answered(desk: Workbench, *edits: tuple[int, int, str]) -> Show | Abstain:
    ask = desk.ask_edit()
    return desk.settle(ask, rewritten(ask.request, *edits))


def lines_of(shown: Decision) -> list[tuple[int, str]]:
    """The lines that a shown edit writes, by their numbers."""
    assert isinstance(shown, Show), shown
    before, after = shown.suggestion.text.split("\n"), shown.suggestion.result.split("\n")
    return [
        (at, two.strip())
        for at, (one, two) in enumerate(zip(before, after, strict=True))
        if one != two
    ]


def test_of_an_edit_that_two_renames_led_to_each_is_offered_by_itself_and_none_out_of_scope() -> (
    None
):
    desk = Workbench(SHOP)
    desk.swap("total_value(items)", "total_value(stock)")
    desk.clock.now += 2
    desk.swap("    price: float", "    unit_price: float")
    desk.cursor = desk.text.index("def report")
    whole = (
        "    for item in stock:\n"
        '        print(f"{item.name}: {item.unit_price}")\n'
        "    print(total_value(stock))\n"
    )
    shown = answered(desk, (8, 11, whole))
    assert lines_of(shown) == [(9, 'print(f"{item.name}: {item.unit_price}")')]


def test_one_word_renamed_in_several_spellings_is_one_change() -> None:
    desk = Workbench("MAX_ENTRY_AGE = 3\nentries = {}\n\n\nuse(MAX_ENTRY_AGE)\nuse(entries)\n")
    desk.swap("MAX_ENTRY_AGE", "MAX_RECORD_AGE")
    desk.clock.now += 2
    desk.swap("entries", "records")
    shown = answered(desk, (4, 6, "use(MAX_RECORD_AGE)\nuse(records)\n"))
    assert lines_of(shown) == [(4, "use(MAX_RECORD_AGE)"), (5, "use(records)")]


GO = """\
func NewServer(host string, port int) *Server {
	return &Server{Host: host, Port: port}
}

func (s *Server) Address() string {
	return fmt.Sprintf("%s:%d", s.Host, s.Port)
}
"""


def after_acceptance() -> Workbench:
    """A suggestion has changed the body of ``Address``."""
    desk = Workbench(GO)
    desk.swap("Port: port}", "Port: port, Timeout: 3}")
    new = '\treturn fmt.Sprintf("%s:%d", s.Host, s.Port, s.Timeout)\n'
    desk.accept(answered(desk, (5, 6, new)))
    return desk


def test_in_place_of_a_line_that_was_just_changed_another_edit_is_shown() -> None:
    desk = after_acceptance()
    again = '\treturn fmt.Sprintf("%s:%d:%d", s.Host, s.Port, s.Timeout, s.Timeout)\n'
    shown = answered(desk, (5, 6, again), (1, 2, "\treturn &Server{host, port, 3}\n"))
    assert lines_of(shown) == [(1, "return &Server{host, port, 3}")]


def test_a_line_that_the_user_edits_after_an_acceptance_may_be_changed_again() -> None:
    desk = after_acceptance()
    desk.clock.now += 2
    desk.swap("s.Timeout)", "s.Limit)")
    assert isinstance(answered(desk, (5, 6, '\treturn fmt.Sprintf("%d", s.Limit)\n')), Show)


def test_another_rename_may_go_on_in_a_line_that_a_suggestion_changed() -> None:
    desk = Workbench("def f(left, right):\n    return left + right\n\n\n\n")
    desk.swap("(left", "(first")
    desk.accept(answered(desk, (1, 2, "    return first + right\n")))
    desk.clock.now += 2
    desk.swap(", right", ", second")
    shown = answered(desk, (1, 2, "    return first + second\n"))
    assert lines_of(shown) == [(1, "return first + second")]


def test_the_second_of_two_calls_in_one_line_is_reached() -> None:
    desk = Workbench("def area(w):\n    return w\n\nx = area(2) + area(3)\n")
    desk.swap("area(w)", "area(w, h)")
    desk.accept(answered(desk, (3, 4, "x = area(2, 1) + area(3)\n")))
    shown = answered(desk, (3, 4, "x = area(2, 1) + area(3, 1)\n"))
    assert lines_of(shown) == [(3, "x = area(2, 1) + area(3, 1)")]


CALLS = """\
def area(w):
    return w

# area(1) is one
a = area(1)
b = area(1)
c = 3
"""


def test_of_edits_that_do_the_same_the_first_below_comes_first_and_code_before_comments() -> None:
    desk = Workbench(CALLS)
    desk.swap("def area", "def surface")
    made = [(at, at + 1, f"{line}\n") for at, line in [
        (5, "b = surface(1)"), (3, "# surface(1) is one"), (4, "a = surface(1)")
    ]]  # fmt: skip
    shown = answered(desk, *made)
    assert lines_of(shown) == [(4, "a = surface(1)")]


FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))
FAR = f"""\
def area(w):
    \"\"\"The area of one side.\"\"\"
    return w

{FILLER}
a = area(1)
"""


def test_a_docstring_waits_until_the_code_is_done() -> None:
    desk = Workbench(FAR)
    desk.swap("def area", "def surface")
    ask = desk.ask_edit()
    prediction = rewritten(ask.request, (1, 2, '    """The surface of one side."""\n'))
    waits = desk.settle(ask, prediction)
    there = desk.session.go_on(ask, waits)
    assert (
        isinstance(there, Ask) and "a = area(1)" in there.query.text.split("\n")[there.query.line]
    )
    there = desk.session.complete(there)
    nothing = desk.settle(there, predicted(), target=desk.revision)
    assert lines_of(desk.session.go_on(there, nothing)) == [(1, '"""The surface of one side."""')]


def test_the_file_that_a_name_was_renamed_in_comes_before_the_file_that_defines_it() -> None:
    desk = Workbench(f"print(price(1))\n\n{FILLER}\nprint(price(2))\n")
    desk.open("def price(count):\n    return count\n", "b.py")
    desk.swap("price(1)", "total(1)")
    ask = desk.ask_edit(other_documents=True)
    nothing = desk.settle(ask, predicted())
    there = desk.session.go_on(ask, nothing)
    assert isinstance(there, Ask) and there.query.uri == desk.query().uri
