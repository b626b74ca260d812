"""Names replaced key by key: no edit takes the new name back or copies half of it.

That holds however the client sends its changes, until the user undoes the rename.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from redraft.evals.replay.clock import run
from redraft.evals.replay.simulated_predictor import ReplayPredictor
from redraft.lsp.server import HANDLERS
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.errors import StaleDocument
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction
from support.editors.lsp import unconnected
from support.editors.predictor import READY, predicted, rewrite
from support.editors.workbench import URI, Ask, Workbench, reason

KEY_S = 0.1
CODE = """def area(width, height):
    return width * height


def main():
    print(area(1, 2))
"""
BODY = "(width, height):\n    return width * height\n"
#: What a model writes that sees the calls and not the rename: the old name, and a line twice.
BACK = ("def area_of" + BODY, "def area" + BODY + "    return width * height\n")
CALL = ("print(area(1, 2))", "print(area_of(1, 2))")


class Renaming(Workbench):
    """The name of the function is deleted, and another typed in its place."""

    def __init__(self, **settings: object) -> None:
        super().__init__(CODE, **settings)
        self.cursor = CODE.index("(width")
        self.asked: Ask | None = None
        self.erase(4)

    def keys(self, text: str, every_s: float = KEY_S) -> Ask:
        """Return the request after the last of these keys."""
        for key in text:
            self.type(key)
            decision = self.consider_edit()
            self.asked = decision if isinstance(decision, Ask) else None
            self.clock.now += every_s
        assert self.asked is not None
        return self.asked

    def answered(self, *edit: str) -> Offer | Abstain:
        assert self.asked is not None
        said = rewrite(self.asked.request, *edit)
        return self.settle(self.asked, said)


def test_an_edit_that_takes_back_the_name_is_not_shown() -> None:
    desk = Renaming()
    desk.keys("area_of")
    decision = desk.answered(*BACK)
    assert isinstance(decision, Abstain) and decision.kind == "reversal"


def test_nor_once_the_keys_rest_and_it_is_in_history() -> None:
    desk = Renaming()
    desk.keys("area_of")
    desk.clock.now += 3
    assert reason(desk.edit(*BACK)) == "the edit would undo what you just typed"


def test_nor_where_it_changes_the_calls_as_well() -> None:
    desk = Renaming()
    desk.keys("area_of")
    body = BODY + "\n\ndef main():\n    print("
    back = ("def area_of" + body + "area(1, 2)", "def area" + body + "area(2, 1)")
    assert desk.text.count(back[0]) == 1
    decision = desk.answered(*back)
    assert isinstance(decision, Abstain) and decision.kind == "reversal"


def test_what_carries_the_name_on_is_shown_instead() -> None:
    desk = Renaming()
    desk.keys("area_of")
    desk.clock.now += 3
    ask = desk.ask_edit()
    both = (*rewrite(ask.request, *BACK).candidates, *rewrite(ask.request, *CALL).candidates)
    assert len(both) == 2
    made = desk.settle(ask, predicted(*both))
    assert isinstance(made, Offer) and made.suggestion.result == desk.text.replace(*CALL)


def test_an_edit_of_half_a_name_goes_with_the_name() -> None:
    desk = Renaming()
    desk.keys("are", every_s=1.5)
    half = desk.answered("print(area(1, 2))", "print(are(1, 2))")
    assert isinstance(half, Offer)
    desk.type("a_of")
    assert isinstance(desk.consider_edit(), Ask), "it wrote 'are', which nobody wants"
    assert desk.outcomes == ["ignored"], "that is no answer to what was offered"


def test_such_an_edit_that_is_late_is_not_kept() -> None:
    desk = Renaming()
    desk.keys("are", every_s=1.5)
    asked, revision = desk.asked, desk.revision
    assert asked is not None
    desk.type("a_of")
    half = rewrite(asked.request, "print(area(1, 2))", "print(are(1, 2))")
    late = desk.settle(asked, half)
    assert revision != desk.revision
    assert isinstance(late, Abstain) and late.kind == "document_changed"
    assert isinstance(desk.consider_edit(), Ask)


def test_a_late_edit_without_the_name_is_kept() -> None:
    desk = Renaming()
    desk.keys("area", every_s=1.5)
    asked = desk.keys("_o")
    desk.type("f")
    said = rewrite(asked.request, "width * height", "height * width")
    desk.settle(asked, said)
    assert isinstance(desk.consider_edit(), Offer)


def test_a_name_taken_back_takes_its_edit_along() -> None:
    desk = Renaming()
    desk.keys("area_of")
    desk.clock.now += 3
    assert isinstance(desk.edit(*CALL), Offer)
    for _ in "_of":
        desk.erase(1)
        desk.clock.now += KEY_S
    assert desk.text == CODE
    assert not isinstance(desk.consider_edit(), Offer)


def test_an_undo_allows_edits_after_the_next_key() -> None:
    desk = Renaming()
    desk.keys("area_of")
    desk.clock.now += 3
    desk.edit(*CALL)
    desk.becomes(CODE, CODE.index("(width"))  # the editor's undo: the whole word at once
    assert reason(desk.consider_edit()) == "you just undid or redid a change"
    assert desk.outcomes == ["ignored"], "and not rejected"
    desk.keys("_by")
    desk.clock.now += 3
    assert isinstance(desk.edit("print(area(1, 2))", "print(area_by(1, 2))"), Offer)


def test_a_call_may_be_named_back_as_the_definition() -> None:
    desk = Workbench(CODE.replace("area(", "area_of("))
    desk.cursor = desk.text.index("(width")
    for _ in "_of":
        desk.erase(1)
        desk.clock.now += KEY_S
    desk.clock.now += 3
    assert isinstance(desk.edit(*reversed(CALL)), Offer)


def gone(text: str, word: str) -> Workbench:
    desk = Workbench(text)
    desk.cursor = text.index(word) + len(word)
    desk.erase(len(word))
    desk.clock.now += 3
    return desk


def test_a_name_yet_to_be_typed_carries_nothing_on() -> None:
    desk = gone(CODE, "area")
    assert reason(desk.consider_edit()) == "you have not typed yet what replaces 'area'"
    assert isinstance(desk.consider_edit(invoked=True), Ask)
    assert isinstance(desk.consider_edit(cursor=len(desk.text)), Ask), "the user is done there"


@pytest.mark.parametrize("word", ["2", "width"])
def test_what_is_whole_without_the_word_is_carried_on(word: str) -> None:
    desk = gone(CODE.replace("(width, height)", "(width)").replace("1, 2", "2"), word)
    assert isinstance(desk.consider_edit(), Ask)


def test_an_edit_removing_something_goes_when_typed_in() -> None:
    desk = gone(CODE, "area")
    show = desk.edit("print(area(1, 2))", "print((1, 2))", invoked=True)
    assert isinstance(show, Offer)
    assert isinstance(desk.consider_edit(), Offer), "still holds"
    desk.type("a")
    assert not isinstance(desk.consider_edit(), Offer)


Changes = Callable[[str, str, int], list[dict[str, Any]]]


def whole(text: str, added: str, at: int) -> list[dict[str, Any]]:
    """Send the whole document with each key."""
    return [{"text": text}]


def part(text: str, added: str, at: int) -> list[dict[str, Any]]:
    """Send a key as an insertion."""
    place = {"line": 0, "character": at}
    return [{"range": {"start": place, "end": place}, "text": added}]


def word(text: str, added: str, at: int) -> list[dict[str, Any]]:
    """Send a key as the new first line, as clients do that compare texts."""
    line = text.split("\n")[0]
    end = {"line": 0, "character": len(line) - len(added)}
    return [{"range": {"start": {"line": 0, "character": 0}, "end": end}, "text": line}]


def renamed(
    changes: Changes, model: Callable[[EditRequest], Prediction], latency_ms: float, every_s: float
) -> list[tuple[str, str]]:
    """Type ``area_of`` for ``area`` and ask at every key.

    Return for each edit that came the first line of its document, and its text.
    """

    async def session() -> list[tuple[str, str]]:
        clock = asyncio.get_running_loop().time
        server = unconnected(ReplayPredictor(model, READY, latency_ms), clock)
        HANDLERS["initialize"](server, {"capabilities": {}})
        await HANDLERS["initialized"](server, {})
        opened = {"uri": URI, "languageId": "python", "version": 0, "text": CODE}
        HANDLERS["textDocument/didOpen"](server, {"textDocument": opened})
        start, text, came = {"line": 0, "character": 4}, CODE.replace("area", "", 1), []
        gone = {"range": {"start": start, "end": {**start, "character": 8}}, "text": ""}
        changed, asked = [gone], []

        async def ask(version: int, at: int) -> None:
            here = {"uri": URI, "version": version}
            place = {"line": 0, "character": at}
            try:
                answer = await HANDLERS["textDocument/copilotInlineEdit"](
                    server, {"textDocument": here, "position": place}
                )
            except StaleDocument:
                return
            document = server.session.workspace.documents.get(URI)
            assert document is not None
            for edit in answer["edits"]:
                assert edit["textDocument"]["version"] == document.version == version
                came.append((document.text.split("\n")[0], edit["text"]))

        for version, key in enumerate(["", *"area_of"], 1):
            at = 4 + version - 1
            if key:
                text = text[: at - 1] + key + text[at - 1 :]
                changed = changes(text, key, at - 1)
            here = {"uri": URI, "version": version}
            told = {"textDocument": here, "contentChanges": changed}
            HANDLERS["textDocument/didChange"](server, told)
            asked.append(asyncio.ensure_future(ask(version, at)))
            await asyncio.sleep(every_s)
        await asyncio.gather(*asked)
        return came

    return run(session())


def forgetful(request: EditRequest) -> Prediction:
    """Answer as a model that repeats a rename once it sees one.

    Before that, it writes the old name and a line twice.
    """
    first = request.text.split("\n")[0]
    name = first[4 : first.index("(")]
    for edit in request.edits:
        if f"+{first}" in edit.diff:
            return rewrite(request, "print(area(", f"print({name}(", confidence=0.95)
    back = replace(request, region=None)
    return rewrite(back, f"def {name}{BODY}", BACK[1], confidence=0.95)


@pytest.mark.parametrize("changes", [whole, part, word])
@pytest.mark.parametrize("latency_ms", [20.0, 250.0, 1_200.0])
@pytest.mark.parametrize("every_s", [0.1, 0.4, 1.3])
def test_no_edit_takes_the_name_back(changes: Changes, latency_ms: float, every_s: float) -> None:
    came = renamed(changes, forgetful, latency_ms, every_s)
    assert came, "the calls are to be changed"
    for first, written in came:
        assert written == f"    print({first[4 : first.index('(')]}(1, 2))" != "    print((1, 2))"
    assert came[-1][1] == "    print(area_of(1, 2))"
