"""Every reason for showing nothing: its kind for programs, and the sentence that people see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from redraft.evals.replay.clock import run
from redraft.lsp.edit_choice import UNRELATED
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.policy.machine_load import Reading
from redraft.lsp.recording.recorder import PREFETCHED
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.model.edits.edit import LineChange
from redraft.model.errors import EngineGone, Overloaded, RedraftError
from redraft.model.gate.decide import decide, situation_of
from redraft.model.gate.filters import Situation
from redraft.model.gate.reasons import Abstain, AbstentionKind
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction, RecentEdit
from support.editors.predictor import ScriptedPredictor, infill, rewrite
from support.editors.workbench import FOLDER, URI, Ask, Decision, Workbench
from support.models.gates import PLAIN

CODE = "def area(r):\n    return r\n"
LONG = "import os\n" + "x = 1\n" * 100 + "y = f(2)\n"
FILLER = "".join(f"value_{i} = compute({i})\n" for i in range(60))


def ghost(new: str, text: str = CODE, at: int | None = None, sure: float = 0.9) -> Decision:
    """Decide on ghost text at the end of ``text``, whose last line was just deleted there."""
    end = len(text)
    done = [LineChange(2, ("    log(r)",), ())]
    here = Situation("infill", "a.py", "python", text, end, threshold=0.85, changes=done)
    place = end if at is None else at
    return decided(place, place, new, sure, here)


def edit(old: str, new: str, text: str = CODE, sure: float = 0.9, **known: object) -> Decision:
    """Decide on an edit, for a user in the first line who typed the whole of it."""
    at = text.index(old)
    done = [LineChange(0, ("def area():",), ("def area(r):",))]
    here = Situation("next_edit", "a.py", "python", text, 0, threshold=0.88, changes=done)
    here = replace(here, last_edit=0, **known)  # type: ignore[arg-type]
    return decided(at, at + len(old), new, sure, here)


def candidate(start: int, end: int, new: str, sure: float = 1.0, **features: float) -> Candidate:
    confidence = Confidence(sure, sure, sure)
    return Candidate(start, end, new, confidence, 1, 1, "end", features=features)


def decided(start: int, end: int, new: str, sure: float, here: Situation) -> Abstain:
    found = decide([candidate(start, end, new, sure)], here, PLAIN)
    assert isinstance(found, Abstain), found
    return found


def considered(text: str = CODE, path: str = "a.py", **fields: object) -> Decision:
    """Return the session's decision on a query."""
    return Workbench(text).consider(path=path, **fields)


def with_settings(text: str = CODE, edits: bool = False, **settings: object) -> Decision:
    desk = Workbench(text, **settings)
    return desk.consider_edit() if edits else desk.consider()


def snoozed(**settings: str) -> Decision:
    desk = Workbench(**settings)
    desk.session.snooze(60)
    desk.session.workspace.load.look = lambda: desk.session.workspace.load._reading
    desk.session.workspace.load._reading = Reading(True, None)
    return desk.consider()


def unfocused() -> Decision:
    desk = Workbench()
    desk.session.focus("")
    return desk.consider()


def in_a_document_that_is_closed_meanwhile() -> Decision:
    desk = Workbench(CODE)
    snapshot = desk.query()
    desk.session.close(URI)
    return desk.session.consider(snapshot)


def after_a_paste() -> Decision:
    desk = Workbench()
    desk.type("x = 1\n" * 50)
    return desk.consider()


def while_undoing() -> Decision:
    desk = Workbench()
    desk.type("abc")
    desk.erase(3)
    return desk.consider()


def after_a_rejection() -> Decision:
    desk = Workbench()
    shown = desk.answer("return 1")
    assert not isinstance(shown, Abstain)
    desk.clock.now += 1
    desk.session.report_shown(shown.suggestion.id)
    desk.clock.now += 2
    desk.session.report_rejected(shown.suggestion.id)
    return desk.consider(language="")


def of_another_class() -> Decision:
    """Offer a field that a class of the same name got in another file."""
    text = "class C:\n    a: int\n"
    diff = " class C:\n     a: int\n+    b: int\n"
    made = candidate(len(text), len(text), "    b: int\n")
    request = EditRequest("next_edit", "b.py", text, 0, edits=(RecentEdit("a.py", 0, diff),))
    return decide([made], situation_of(request, 0.5))


def on_an_accepted_line() -> Decision:
    """Accept a suggestion; the model would change its line again."""
    desk = Workbench(CODE)
    desk.swap("area(r)", "area(r, pi)")
    desk.accept(desk.edit("return r", "return pi"))
    return desk.edit("return pi", "return pi * pi")


def after_hiding() -> Decision:
    desk = Workbench()
    shown = desk.answer("return 1")
    assert not isinstance(shown, Abstain)
    desk.session.report_dismissed(shown.suggestion.id)
    return desk.consider()


def beside_an_empty_body() -> Decision:
    desk = Workbench("class Stack:\n    def pop(self):\n        ")
    desk.type("\n")
    desk.erase(1)
    made = "        \n\n    def peek(self):\n        return 1\n"
    return desk.edit("        ", made)


def take_away_a_parameter() -> Decision:
    made = candidate(CODE.index("r):"), CODE.index("):"), "")
    return decide([made], Situation("next_edit", "a.py", "python", CODE, 0, threshold=0.5))


def beside_ghost_text() -> Decision:
    desk = Workbench()
    desk.type("r")
    desk.answer("eturn 1")
    return desk.consider_edit()


def beside_a_next_edit() -> Decision:
    desk = Workbench(CODE)
    desk.swap("area(r)", "area(r, s)")
    shown = desk.edit("return r", "return r * s")
    assert not isinstance(shown, Abstain), shown
    desk.session.report_shown(shown.suggestion.id)
    return desk.consider()


def long_after_an_edit() -> Decision:
    desk = Workbench(CODE)
    desk.type("x")
    desk.clock.now += 60
    return desk.consider_edit()


def overtaken() -> Decision:
    desk = Workbench()
    ask = desk.ask()
    desk.type("x")
    return desk.settle(ask, infill(ask.request, "return"))


def about_another_document_that_changed() -> Decision:
    desk = Workbench("def area(r):\n    return r\n")
    other = desk.open("print(area(2))\n", "b.py")
    desk.swap("area(r)", "area(r, pi)")
    first = desk.ask_edit(other_documents=True)
    nothing = desk.settle(first, Prediction("", "", (), "no"))
    there = desk.session.go_on(first, nothing)
    assert isinstance(there, Ask) and there.origin is not None
    desk.becomes_elsewhere(other, "print(area(3))\n")
    said = rewrite(there.request, "area(2)", "area(2, 3)")
    return desk.session.go_on(there, desk.settle(there, said))


def answered_at(cursor: int, code: str, text: str) -> Decision:
    desk = Workbench(code)
    ask = desk.ask(cursor=cursor)
    return desk.settle(ask, infill(ask.request, text))


def while_renaming() -> Decision:
    desk = Workbench(CODE)
    desk.cursor = CODE.index("area") + len("area")
    desk.erase(len("area"))
    desk.type("surface")
    return desk.consider()


def where_a_name_is_gone() -> Decision:
    desk = Workbench(CODE)
    desk.cursor = CODE.index("area") + len("area")
    desk.erase(len("area"))
    return desk.consider_edit()


def asked_of(predictor: ScriptedPredictor, times: int = 1) -> Decision:
    """Ask several questions at once; return the decision on the first."""

    async def asking() -> Decision:
        clock = asyncio.get_running_loop().time
        session = Session(predictor, LspSettings(timeout_ms=2_000), clock, reads=False)
        session.workspace.folders = [FOLDER.rstrip("/")]
        session.open(URI, CODE, 0, "python")
        snapshot = session.at(URI, len(CODE), RequestFlags())
        found = await asyncio.gather(*(session.ghost_text(snapshot) for _ in range(times)))
        await session.leave()
        return found[0]

    return run(asking())


CASES: dict[AbstentionKind, tuple[Callable[[], Decision], str]] = {
    "nothing_to_do": (lambda: ghost(""), "the model would write nothing here"),
    "wrong_place": (
        lambda: ghost("x", at=3),
        "the model answered for another place than the cursor",
    ),
    "no_change": (lambda: edit("return r", "return r"), "the edit would change nothing"),
    "whitespace_only": (
        lambda: edit("    return", "  return"),
        "the model would change only spaces or line breaks",
    ),
    "repeats_what_follows": (
        lambda: answered_at(6, "x = f\nprint(x)\n", "print(x)"),
        "the same text already follows the cursor",
    ),
    "does_not_fit": (lambda: ghost("elif r:\n        g()"), "the text would add 1 syntax error"),
    "half_block": (lambda: ghost("while r:"), "the text would open a block without its body"),
    "special_token": (
        lambda: edit("return r", "return <|endoftext|>"),
        "the model wrote its control token <|endoftext|>",
    ),
    "half_character": (lambda: ghost("x = '\ufffd'"), "the model wrote a broken character"),
    "in_circles": (lambda: ghost("x = 1" + "0" * 24), "the model repeats itself"),
    "reversal": (lambda: edit("area(r)", "area()"), "the edit would undo what you just typed"),
    "far_away": (
        lambda: edit("y = f(2)", "y = g(2)", LONG),
        "the edit is 101 lines away from the cursor and from your last edits",
    ),
    "far_import": (
        lambda: edit("import re\n", "", "\n" * 20 + "import re\n"),
        "the edit changes only imports, 20 lines away",
    ),
    "below_threshold": (
        lambda: edit("return r", "return 2 * r", sure=0.31),
        "31 % likely to be kept (shown from 88 %)",
    ),
    "rejected_before": (
        lambda: edit("return r", "return 2 * r", rejected=lambda made: True),
        "you rejected this edit before",
    ),
    "syntax_errors": (lambda: edit("return r", "return (r"), "the edit would add 1 syntax error"),
    "unrelated": (
        lambda: edit("return r", "return 2 * r", filters=[lambda made: UNRELATED]),
        "the edit has nothing to do with your last edit",
    ),
    "destroys": (
        lambda: edit("def area(r):\n    return r\n", ""),
        "the edit would delete lines, and none of your edits asks for it",
    ),
    "leaves_undefined": (
        take_away_a_parameter,
        "the edit would take away 'r', which is still used",
    ),
    "bound_again": (
        lambda: of_another_class(),
        "'C' is another class here than the one that was changed",
    ),
    "just_changed": (on_an_accepted_line, "a suggestion has just changed this line"),
    "body_first": (beside_an_empty_body, "the body at the cursor is still empty and comes first"),
    "disabled": (lambda: with_settings(enabled=False), "Redraft is switched off (setting enabled)"),
    "snoozed": (snoozed, "paused for another 1 min"),
    "language_disabled": (
        lambda: with_settings(disabled_languages=("python",)),
        "Redraft is switched off for python files",
    ),
    "scope_disabled": (
        lambda: with_settings("# a", disabled_scopes=("comments",)),
        "Redraft is switched off in comments (setting disabledScopes)",
    ),
    "saving": (lambda: snoozed(on_battery="off"), "Redraft is off on battery (setting onBattery)"),
    "next_edits_disabled": (
        lambda: with_settings(edits=True, next_edits=False),
        "next edits are switched off (setting next_edits)",
    ),
    "lost_track": (
        lambda: considered(out_of_step="a change was lost"),
        "Redraft lost track of this file: a change was lost",
    ),
    "secret": (
        lambda: considered(path=".env"),
        ".env may hold secrets (setting secretGlobs, pattern .env; "
        '"!.env" there allows such files)',
    ),
    "too_large": (
        lambda: with_settings(max_file_chars=10),
        "the file is too large: 26 characters, at most 10",
    ),
    "binary": (
        lambda: considered("x\n\0"),
        "this looks like a binary file: line 2 contains a NUL character",
    ),
    "long_line": (
        lambda: considered("x" * 6_000),
        "the line is too long: 6,000 characters, at most 5,000",
    ),
    "minified": (
        lambda: considered("x" * 4_000 + "\n" + "y" * 4_000),
        "the text looks minified: 4,000 characters per line, at most 500",
    ),
    "selection": (lambda: considered(selected=3), "text is selected"),
    "several_cursors": (lambda: considered(cursors=2), "there are 2 cursors"),
    "snippet": (lambda: considered(in_snippet=True), "you are filling in a snippet"),
    "unfocused": (unfocused, "the editor window is not active"),
    "bulk_change": (after_a_paste, "a large change was just made, such as a paste"),
    "undoing": (while_undoing, "you just undid or redid a change"),
    "cooling_down": (after_a_rejection, "you rejected a suggestion here 0 s ago"),
    "dismissed": (
        after_hiding,
        "you hid a suggestion here; it may come back in another line or after an edit",
    ),
    "renaming": (while_renaming, "you are replacing a name here"),
    "half_typed": (where_a_name_is_gone, "you have not typed yet what replaces 'area'"),
    "ghost_text_shown": (beside_ghost_text, "ghost text is shown at the cursor"),
    "next_edit_shown": (beside_a_next_edit, "a next edit is shown"),
    "nothing_edited": (lambda: Workbench(CODE).consider_edit(), "you have not edited anything yet"),
    "no_recent_edit": (long_after_an_edit, "your last edit is more than 10 s ago"),
    "superseded": (
        lambda: asked_of(ScriptedPredictor(["x"], delay_s=1), 2),
        "a newer request replaced this one",
    ),
    "document_changed": (
        overtaken,
        "the text changed while the model was working",
    ),
    "document_closed": (
        in_a_document_that_is_closed_meanwhile,
        "the file was closed",
    ),
    "target_changed": (
        about_another_document_that_changed,
        "b.py changed while the model was working",
    ),
    "not_ready": (lambda: asked_of(ScriptedPredictor([EngineGone("it is gone")])), "it is gone"),
    "overloaded": (
        lambda: asked_of(ScriptedPredictor([Overloaded("too many wait", 3.0)])),
        "too many wait (again in 3 s)",
    ),
    "timeout": (
        lambda: asked_of(ScriptedPredictor(["x"], delay_s=9)),
        "the model took longer than 2 s: its machine is busy or slow ('redraft bench' measures "
        "it), or cut off",
    ),
    "failed": (lambda: asked_of(ScriptedPredictor([RedraftError("no luck")])), "no luck"),
    "prefetched": (lambda: PREFETCHED, "computed ahead of time"),
}


def test_every_kind_has_its_case() -> None:
    assert set(CASES) == set(get_args(AbstentionKind))


@pytest.mark.parametrize("kind", CASES)
def test_each_reason_has_its_kind_and_its_sentence(kind: AbstentionKind) -> None:
    provoke, said = CASES[kind]
    found = provoke()
    assert isinstance(found, Abstain), found
    assert (found.kind, found.reason) == (kind, said)


def test_stale_and_lasting_reasons_are_distinct() -> None:
    stale = {kind for kind in CASES if Abstain(kind, "").is_stale}
    assert stale == {"superseded", "document_changed", "document_closed"}
    lasting = {kind for kind in CASES if Abstain(kind, "").is_lasting}
    assert {"disabled", "secret", "too_large"} < lasting
    assert not lasting & (stale | {"below_threshold", "undoing", "selection"})


def test_ghost_text_says_the_same_in_its_own_words() -> None:
    assert ghost("  \n ") == Abstain(
        "whitespace_only", "the model would add only spaces or line breaks"
    )
    assert ghost("    log(r)") == Abstain("reversal", "the model would write what you just deleted")
    assert ghost("x", sure=0.5) == Abstain(
        "below_threshold", "50 % likely to be kept (shown from 85 %)"
    )
