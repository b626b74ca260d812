"""Whatever happens in two documents, in whatever order: what is shown is for the text there is."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.snapshot import Snapshot
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.answers import replace_lines
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction
from support.editors.workbench import URI, Ask, Decision, Workbench

OTHER = "file:///w/b.py"
FILLER = "".join(f"value_{i} = '😀'\n" for i in range(40))
TEXT = f"def area(r):\n    return r\n\n{FILLER}print(area(2))\n{FILLER}print(area(3))\n"
CALLER = f"from a import area\n{FILLER}print(area(4))\n"
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
