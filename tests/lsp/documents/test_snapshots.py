"""Snapshots: nothing of them changes, and answers for another text never leave the server."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.suggestion import Offer, Suggestion
from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from support.editors.paused_session import LOOP, spin
from support.editors.predictor import ScriptedPredictor, infill
from support.editors.workbench import URI, Workbench

CODE = "def area(r):\n    return r\n"


@pytest.mark.parametrize("leaves", [False, True])
def test_stale_alternatives_show_nothing(leaves: bool) -> None:
    desk = Workbench()
    desk.answer("return x")
    known = len(desk.session.model.asks)
    task = LOOP.create_task(desk.session.ghost_texts(desk.query(invoked=True)))
    spin()
    (ask,) = desk.session.model.asks[known:]
    if leaves:
        desk.becomes("# above\n" + desk.text)
    ask.answer.set_result(infill(ask.request, "return y"))
    spin()
    found = task.result()
    if leaves:
        assert isinstance(found, Abstain) and found.kind == "document_changed"
    else:
        assert not isinstance(found, Abstain)
        assert [each.text for each in found] == ["return x", "return y"]


def test_second_prefetch_sees_first_edit() -> None:
    desk = Workbench(CODE)
    other = desk.open("print(area(1))\n", "b.py")
    desk.swap("area(r)", "area(r, s)")
    snapshot = desk.query(other_documents=True)
    first = Suggestion.of(other.uri, "next_edit", Edit(other.text, 12, 12, ", 2"), 0, 1.0, "m")
    second = Suggestion.of(URI, "next_edit", Edit(desk.text, 0, 0, "# x\n"), 0, 1.0, "m")
    one = snapshot.after(first)
    assert one is not None
    two = one.after(second)
    assert two is not None
    changed = two.opened.get(other.uri)
    assert changed is not None and changed.text == first.result
    assert two.text.startswith("# x") and two.user is snapshot and snapshot.text == desk.text
    assert [edit.path for edit in two.recent][-2:] == ["b.py", "a.py"]


def test_a_snapshot_keeps_its_text_and_edits() -> None:
    desk = Workbench(CODE)
    desk.swap("area(r)", "area(r, s)")
    before = desk.query()
    text, lines, recent = before.text, [*before.lines], before.edits
    desk.type("# more")
    desk.clock.now += 2
    assert (before.text, [*before.lines]) == (text, lines)
    assert before.edits is recent and "# more" not in "".join(e.diff for e in before.recent)
    assert desk.query().text != text


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_shared_lines_are_those_of_the_text(seed: int) -> None:
    rng, document, kept = random.Random(seed), Document(URI, CODE * 3, 1, "python"), []
    for version in range(2, 40):
        if rng.random() < 0.5:
            now = document.current()
            kept.append((now, now.text))
        ends = sorted((rng.randrange(9), rng.randrange(12)) for _ in range(2))
        at = Range(*(Position(*end) for end in ends))
        new = rng.choice(("x", "", "\n", "a\r\nb", "\ud83d", "é\n\n", "  y"))
        document.apply([ContentChange(new, at)], version)
    for now, text in kept:
        assert now.text == text and list(now.lines) == text.split("\n")


async def test_an_edit_of_a_changed_document_is_withheld() -> None:
    session = Session(ScriptedPredictor(), LspSettings(), lambda: 9.0, reads=False)
    session.open(URI, CODE, 1, "python")
    other = session.open("file:///w/b.py", "print(area(1))\n", 1, "python")
    snapshot = session.at(URI, 0, RequestFlags(other_documents=True))
    edit = Edit(other.text, 12, 12, ", 2")
    made = Suggestion.of(other.uri, "next_edit", edit, 0, 1.0, "m")
    offer = Offer(made, ", 2", "")
    session.change(other.uri, [ContentChange("pass\n")], 2)
    found = session._deliver("next_edit", snapshot, offer)
    assert isinstance(found, Abstain) and found.kind == "target_changed"
    assert session.memory.outcomes.find_shown(other.uri) is None
    await session.leave()


@pytest.mark.parametrize("how", ["secret", "disabled"])
async def test_what_is_excluded_meanwhile_is_not_delivered(how: str) -> None:
    session = Session(ScriptedPredictor(), LspSettings(), lambda: 9.0, reads=False)
    session.open(URI, CODE, 1, "python")
    snapshot = session.at(URI, 0, RequestFlags())
    made = Suggestion.of(URI, "infill", Edit(CODE, 0, 0, "x"), 0, 1.0, "m")
    settings = {
        "secret": LspSettings(secret_globs=("a.py",)),
        "disabled": LspSettings(enabled=False),
    }
    session.configure(settings[how])
    found = session._deliver("infill", snapshot, Offer(made, "x", ""))
    assert isinstance(found, Abstain) and found.kind == how
    await session.leave()
