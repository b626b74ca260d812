"""Next edits of a session: when they are requested, and which is shown, after any events."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.context.ranked_places import DocumentPlace
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.edit_search import LIFETIME_S
from redraft.lsp.refusals import AFTER_EDIT_S
from redraft.lsp.snapshot import Snapshot
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.answer_edits import replace_lines
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction
from support.editors.next_edits import CODE, edited, shown_edit
from support.editors.predictor import infill, predicted, rewrite
from support.editors.workbench import URI, Ask, Decision, Workbench, reason, showing, shown


def test_the_edit_just_made_goes_with_the_question() -> None:
    request = edited().ask_edit().request
    assert request.task == "next_edit"
    assert request.region == (0, 11)
    [edit] = request.edits
    assert edit.diff.startswith("-def area(r):\n+def area(r, pi):\n     return")


def test_no_place_is_looked_for_before_a_question() -> None:
    desk, ranked = edited(), list[str]()
    rank = desk.shelf.places.rank

    def counted(snapshot: Snapshot) -> list[DocumentPlace]:
        ranked.append(snapshot.text)
        return rank(snapshot)

    desk.shelf.places.rank = counted  # type: ignore[method-assign]
    assert isinstance(desk.consider_edit(), Ask)
    assert len(ranked) == 1


def test_nothing_is_asked_before_an_edit_but_by_hand() -> None:
    desk = Workbench(CODE)
    assert reason(desk.consider_edit()) == "you have not edited anything yet"
    assert isinstance(desk.consider_edit(invoked=True), Ask)


def test_a_next_edit_is_asked_for_within_ten_seconds() -> None:
    desk = edited()
    desk.clock.now += AFTER_EDIT_S
    assert isinstance(desk.consider_edit(), Ask)
    desk.clock.now += 0.1
    assert reason(desk.consider_edit()) == "your last edit is more than 10 s ago"


def test_another_file_after_an_edit_is_asked_about() -> None:
    desk = edited()
    other = desk.open("area(1)\n", "b.py")
    ask = desk.ask_edit(
        uri=other.uri, path="b.py", text=other.text, cursor=0, revision=other.revision
    )
    assert [edit.path for edit in ask.request.edits] == ["a.py"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"selected": 4}, "text is selected"),
        ({"cursors": 3}, "there are 3 cursors"),
        ({"in_snippet": True}, "filling in a snippet"),
        ({"path": "app/.env"}, "secretGlobs"),
    ],
)
def test_nothing_is_offered_in_the_way(fields: dict[str, object], expected: str) -> None:
    assert expected in reason(edited().consider_edit(**fields))
    assert expected in reason(edited().consider(**fields))


def test_nothing_is_offered_in_an_unfocused_window() -> None:
    desk = edited()
    desk.session.focus("")
    assert reason(desk.consider_edit()) == "the editor window is not active"
    assert reason(desk.consider(cursor=len(desk.text))) == "the editor window is not active"
    desk.type("x")
    assert isinstance(desk.consider_edit(), Ask)


def test_next_edits_can_be_switched_off_alone() -> None:
    desk = edited(next_edits=False)
    assert "next_edits" in reason(desk.consider_edit())
    assert isinstance(desk.consider(), Ask)


def test_a_shown_edit_stays_while_it_agrees() -> None:
    desk = edited()
    shown_edit(desk)
    assert reason(desk.consider()) == "a next edit is shown"
    assert reason(desk.consider(invoked=True)) == "a next edit is shown"


def test_a_shown_edit_stays_however_long_one_thinks() -> None:
    desk = edited()
    show = shown_edit(desk)
    desk.clock.now += AFTER_EDIT_S + LIFETIME_S
    there = showing(desk.consider_edit(cursor=desk.text.index("print")))  # Tab has jumped
    assert there.suggestion.id == show.suggestion.id


def test_going_on_elsewhere_brings_ghost_text_again() -> None:
    desk = edited()
    shown_edit(desk)
    desk.type(", e")
    assert isinstance(desk.consider(), Ask)


def test_that_there_is_no_edit_is_kept_as_well() -> None:
    desk = edited()
    assert "change nothing" in reason(desk.edit("no such", ""))
    assert "change nothing" in reason(desk.consider_edit(cursor=0))


def test_an_edit_typed_by_hand_stays_and_shrinks() -> None:
    desk = edited()
    first = shown_edit(desk)
    at = desk.text.index("print(area(r") + len("print(area(r")
    desk.becomes(desk.text[:at] + "," + desk.text[at:], at + 1)
    again = showing(desk.consider_edit())
    assert again.suggestion.id == first.suggestion.id
    assert shown(again) == " 3"
    assert again.text == again.suggestion.replacement
    assert again.suggestion.result == first.suggestion.result
    assert reason(desk.consider()) == "a next edit is shown"


def test_an_edit_typed_to_its_end_was_accepted() -> None:
    desk = edited()
    shown_edit(desk)
    at = desk.text.index("print(area(r") + len("print(area(r")
    for number, character in enumerate(", 3"):
        desk.becomes(desk.text[: at + number] + character + desk.text[at + number :])
    assert desk.outcomes == ["accepted"]


@pytest.mark.parametrize(("old", "new"), [("3.14", "pi"), ("show(2)", "show(2.5)")])
def test_edits_above_and_below_move_a_shown_edit_along(old: str, new: str) -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.swap(old, new)
    again = showing(desk.consider_edit())
    assert again.suggestion.id == first.suggestion.id
    assert again.suggestion.text == desk.text
    assert "print(area(r, 3))" in again.suggestion.result
    assert desk.outcomes == []


def test_a_shown_edit_that_was_left_behind_is_given_up() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += LIFETIME_S + 1
    desk.swap("3.14", "pi")
    assert isinstance(desk.consider_edit(), Ask)
    assert desk.outcomes == ["ignored"]


def test_a_change_where_the_edit_was_turns_it_down() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += 1
    desk.swap("print(area(r))", "print(volume(r))")
    assert desk.outcomes == ["rejected"]
    assert isinstance(desk.consider_edit(), Ask)


def test_white_space_at_the_edit_is_no_rejection() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += 1
    desk.swap("print(area(r))", "\n    print(area(r))")
    assert desk.outcomes == ["ignored"]


def test_an_answer_overtaken_elsewhere_is_shown_later() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.swap("3.14", "pi")
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    late = desk.settle(ask, prediction, 50)
    assert isinstance(late, Abstain)
    assert late.is_stale
    again = showing(desk.consider_edit())
    assert "pi * r * r" in again.suggestion.result
    assert "print(area(r, 3))" in again.suggestion.result


def test_an_answer_overtaken_in_its_place_is_dropped() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.swap("print(area(r))", "log(area(r))")
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    desk.settle(ask, prediction, 50)
    assert isinstance(desk.consider_edit(), Ask)


def test_just_deleted_ghost_text_is_not_offered_again() -> None:
    desk = Workbench("value = compute(total, rate)")
    desk.clock.now += 5
    desk.erase(len("total, rate)"))
    ask = desk.ask()
    decision = desk.settle(ask, infill(ask.request, "total, rate)"))
    assert reason(decision) == "the model would write what you just deleted"
    desk.type(" ")
    again = desk.ask()
    assert shown(desk.settle(again, infill(again.request, "amount)"))) == "amount)"


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
    """Return a candidate for each edit: lines [first, last), 0-based, become other lines."""
    made = (
        Candidate(*replace_lines(request.text, first, last, new), SURE, 5, 2, "end")
        for first, last, new in edits
    )
    return predicted(*made)


def answered(desk: Workbench, *edits: tuple[int, int, str]) -> Offer | Abstain:
    ask = desk.ask_edit()
    return desk.settle(ask, rewritten(ask.request, *edits))


def lines_of(shown: Decision) -> list[tuple[int, str]]:
    """Return the lines that a shown edit writes, by their numbers."""
    assert isinstance(shown, Offer), shown
    before, after = shown.suggestion.text.split("\n"), shown.suggestion.result.split("\n")
    return [
        (at, two.strip())
        for at, (one, two) in enumerate(zip(before, after, strict=True))
        if one != two
    ]


def test_edits_of_two_renames_come_one_by_one_in_scope() -> None:
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


def test_one_word_in_several_spellings_is_one_change() -> None:
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
    """Return a desk where a suggestion has changed the body of ``Address``."""
    desk = Workbench(GO)
    desk.swap("Port: port}", "Port: port, Timeout: 3}")
    new = '\treturn fmt.Sprintf("%s:%d", s.Host, s.Port, s.Timeout)\n'
    desk.accept(answered(desk, (5, 6, new)))
    return desk


def test_another_edit_replaces_a_just_changed_line() -> None:
    desk = after_acceptance()
    again = '\treturn fmt.Sprintf("%s:%d:%d", s.Host, s.Port, s.Timeout, s.Timeout)\n'
    shown = answered(desk, (5, 6, again), (1, 2, "\treturn &Server{host, port, 3}\n"))
    assert lines_of(shown) == [(1, "return &Server{host, port, 3}")]


def test_an_accepted_line_that_is_edited_may_change() -> None:
    desk = after_acceptance()
    desk.clock.now += 2
    desk.swap("s.Timeout)", "s.Limit)")
    assert isinstance(answered(desk, (5, 6, '\treturn fmt.Sprintf("%d", s.Limit)\n')), Offer)


def test_another_rename_may_go_on_in_a_suggested_line() -> None:
    desk = Workbench("def f(left, right):\n    return left + right\n\n\n\n")
    desk.swap("(left", "(first")
    desk.accept(answered(desk, (1, 2, "    return first + right\n")))
    desk.clock.now += 2
    desk.swap(", right", ", second")
    shown = answered(desk, (1, 2, "    return first + second\n"))
    assert lines_of(shown) == [(1, "return first + second")]


def test_the_second_call_of_one_line_is_reached() -> None:
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


def test_like_edits_go_first_below_and_code_first() -> None:
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
    there = there
    nothing = desk.settle(there, predicted())
    assert lines_of(desk.session.go_on(there, nothing)) == [(1, '"""The surface of one side."""')]


def test_the_renamed_file_precedes_the_defining_one() -> None:
    desk = Workbench(f"print(price(1))\n\n{FILLER}\nprint(price(2))\n")
    desk.open("def price(count):\n    return count\n", "b.py")
    desk.swap("price(1)", "total(1)")
    ask = desk.ask_edit(other_documents=True)
    nothing = desk.settle(ask, predicted())
    there = desk.session.go_on(ask, nothing)
    assert isinstance(there, Ask) and there.query.uri == desk.query().uri


OTHER = "file:///w/b.py"
EMOJI_FILLER = "".join(f"value_{i} = '😀'\n" for i in range(40))
TEXT = f"def area(r):\n    return r\n\n{EMOJI_FILLER}print(area(2))\n{EMOJI_FILLER}print(area(3))\n"
CALLER = f"from a import area\n{EMOJI_FILLER}print(area(4))\n"
#: Questions at most of two edits ahead: each is followed by one here and a few elsewhere.
MOST_AHEAD = 12
#: What the user does to the first of these words that there is, in either direction.
SWAPS = (("area(r)", "area(r, pi)"), ("area", "surface"), ("return r", "return r * r"), ("2", "22"))


class World:
    """Two documents, one user, a model that answers at random, and questions that may come late."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self.desk, self.draw = Workbench(TEXT, eagerness="high"), draw
        self.other: Document | None = self.desk.open(CALLER, "b.py")
        self.past: list[str] = []  # texts of the first document
        self.late: list[Ask] = []
        self.shown: Offer | None = None

    def edit(self) -> None:
        old, new = SWAPS[self.draw(len(SWAPS))]
        old, new = (old, new) if self.draw(2) else (new, old)
        if old in self.desk.text:
            self.past.append(self.desk.text)
            self.desk.swap(old, new)

    def undo(self) -> None:
        if self.past:
            self.desk.becomes(self.past.pop(), 0)

    def edit_the_other(self) -> None:
        if self.other is not None:
            text = self.other.text.replace("area(4)", "area(4, 5)", 1)
            self.desk.becomes_elsewhere(self.other, text if self.draw(2) else f"# head\n{text}")

    def close_or_open_the_other(self) -> None:
        if self.other is None:
            self.other = self.desk.open(CALLER, "b.py")
        else:
            self.desk.session.close(OTHER)
            self.other = None

    def wait(self) -> None:
        self.desk.clock.now += (0.2, 2.0, 6.0)[self.draw(3)]

    def move(self) -> None:
        self.desk.cursor = self.draw(len(self.desk.text) + 1)

    def ask(self) -> None:
        there = self.other is not None and self.draw(4) == 0
        query = self.there() if there else self.here()
        decision = self.desk.session.consider_edit(query)
        for _ in range(6):
            self.check(decision)
            if not isinstance(decision, Ask):
                return
            if self.draw(4) == 0:
                self.late.append(decision)
                return
            settled = self.answer(decision)
            self.check(settled)
            if isinstance(settled, Offer) or settled.is_stale:
                return
            decision = self.desk.session.go_on(decision, settled)
        raise AssertionError("the questions never end")

    def answer_late(self) -> None:
        if self.late:
            self.check(self.answer(self.late.pop(0)))

    def prefetch(self) -> None:
        if self.shown is None:
            return
        for _ in range(MOST_AHEAD):
            ahead = self.desk.session.follow_up()
            if ahead is None:
                return
            self.desk.session.prefetched(ahead, self.predict(ahead.request))
        raise AssertionError("what is computed ahead never ends")

    def accept(self) -> None:
        show, self.shown = self.shown, None
        if show is None:
            return
        if show.suggestion.uri == URI:
            self.past.append(self.desk.text)
            self.desk.accept(show)
        elif self.other is not None:
            self.desk.becomes_elsewhere(self.other, show.suggestion.result)

    def reject(self) -> None:
        if self.shown is not None:
            self.desk.session.report_rejected(self.shown.suggestion.id)
            self.shown = None

    def here(self) -> Snapshot:
        return self.desk.query(other_documents=True, invoked=bool(self.draw(2)))

    def there(self) -> Snapshot:
        assert self.other is not None
        return self.desk.query(
            uri=OTHER, text=self.other.text, cursor=0, revision=self.other.revision,
            other_documents=True, invoked=bool(self.draw(2)),
        )  # fmt: skip

    def text(self, uri: str) -> str | None:
        if uri == URI:
            return self.desk.text
        return self.other.text if self.other is not None else None

    def answer(self, ask: Ask) -> Offer | Abstain:
        return self.desk.settle(ask, self.predict(ask.request), 5.0)

    def predict(self, request: EditRequest) -> Prediction:
        assert request.region is not None
        first, last = request.region
        lines = request.text.split("\n")
        calls = [at for at in range(first, last) if "area" in lines[at] or "surface" in lines[at]]
        line = calls[self.draw(len(calls))] if calls else first
        old, way = lines[line], self.draw(4)
        new = old if way == 0 else old.replace("area", "surface") if way == 1 else f"{old}  # {way}"
        start, end, body = replace_lines(request.text, line, line + 1, f"{new}\n")
        if new == old:
            return Prediction("1", "fake", (), "The model would change nothing here.")
        sure = Confidence(0.95, 0.9, 0.9)
        return Prediction("1", "fake", (Candidate(start, end, body, sure, 5, 1, "end"),))

    def check(self, decision: Decision) -> None:
        if isinstance(decision, Offer):
            suggestion = decision.suggestion
            assert suggestion.text == self.text(suggestion.uri)
            assert suggestion.result != suggestion.text
            assert suggestion.id
            self.shown = decision
        elif isinstance(decision, Abstain):
            assert decision.reason
            self.shown = None
        else:
            assert self.text(decision.query.uri) == decision.query.text


EVENTS = [
    *(World.edit, World.undo, World.edit_the_other, World.close_or_open_the_other, World.wait),
    *(World.move, World.ask, World.ask, World.ask, World.answer_late, World.prefetch),
    *(World.accept, World.reject),
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_shown_is_for_the_text_there_is(data: st.DataObject) -> None:
    def draw(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    world = World(draw)
    world.edit()
    for event in data.draw(st.lists(st.sampled_from(EVENTS), max_size=25)):
        event(world)
        shown = world.shown
        if shown is not None and world.text(shown.suggestion.uri) != shown.suggestion.text:
            world.shown = None  # a client drops what is for another version
