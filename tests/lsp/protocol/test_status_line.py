"""Status line of the language server: one sentence about ghost text or the next edit."""

from __future__ import annotations

from typing import Any

import pytest
from redraft.lsp.protocol.status import StatusLine, sentence
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

HERE, ELSEWHERE = ("file:///w/a.py", 1, 4), ("file:///w/a.py", 1, 9)
HIDDEN = Abstain("below_threshold", "8 % likely to be kept (medium shows from 25 %)")
REVEALABLE = Abstain(HIDDEN.kind, HIDDEN.reason, is_revealable=True)
NOTHING = Abstain("nothing_to_do", "The model would change nothing here.")


def line() -> tuple[StatusLine, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []
    return StatusLine(lambda method, params: sent.append(params)), sent


@pytest.mark.parametrize(
    ("task", "abstained", "expected"),
    [
        ("infill", HIDDEN, f"Ghost text hidden: {HIDDEN.reason}."),
        ("next_edit", HIDDEN, f"Next edit hidden: {HIDDEN.reason}."),
        ("next_edit", NOTHING, "No next edit: the model would change nothing here."),
        ("infill", Abstain("selection", "text is selected"), "No ghost text: text is selected."),
        (
            "next_edit",
            Abstain("nothing_to_do", "A reason. With a second sentence."),
            "No next edit: a reason. With a second sentence.",
        ),
        (
            "infill",
            Abstain("snoozed", "paused for another 5 min"),
            "No suggestions: paused for another 5 min.",
        ),
    ],
)
def test_a_reason_is_one_sentence_with_task(task: Task, abstained: Abstain, expected: str) -> None:
    assert sentence(task, abstained) == expected


def test_while_typing_the_reason_is_of_ghost_text() -> None:
    status, sent = line()
    status.abstain("infill", HERE, HIDDEN)
    status.abstain("next_edit", HERE, NOTHING)
    assert [each["message"] for each in sent] == [f"Ghost text hidden: {HIDDEN.reason}."]
    assert status.message_of("next_edit") == "No next edit: the model would change nothing here."


def test_a_next_edit_question_has_its_own_reason() -> None:
    status, sent = line()
    status.abstain("infill", HERE, HIDDEN)
    status.abstain("next_edit", ELSEWHERE, NOTHING)
    assert sent[-1]["message"] == "No next edit: the model would change nothing here."


def test_what_a_gesture_would_show_comes_first() -> None:
    status, sent = line()
    status.abstain("infill", HERE, NOTHING)
    status.abstain("next_edit", HERE, REVEALABLE)
    assert sent[-1]["message"] == f"Next edit hidden: {HIDDEN.reason}."
    assert [each["revealable"] for each in sent] == [False, True]


@pytest.mark.parametrize(("shown", "other"), [("infill", "next_edit"), ("next_edit", "infill")])
def test_what_is_shown_comes_before_what_is_not(shown: Task, other: Task) -> None:
    status, sent = line()
    status.show(shown, HERE, "")
    status.abstain(other, HERE, REVEALABLE)
    assert [each["message"] for each in sent] == [
        "Ghost text shown." if shown == "infill" else "Next edit shown."
    ]


def test_what_is_shown_on_request_says_how_likely() -> None:
    status, sent = line()
    status.show("infill", HERE, HIDDEN.reason)
    assert sent[-1]["message"] == f"Ghost text shown, though unsure: {HIDDEN.reason}."


@pytest.mark.parametrize(("ended", "other"), [("infill", "next_edit"), ("next_edit", "infill")])
def test_one_suggestions_end_says_nothing_of_another(ended: Task, other: Task) -> None:
    status, sent = line()
    status.show(other, ELSEWHERE, "")
    status.show(ended, HERE, "")
    status.end(ended, "accepted")
    name = "Ghost text" if ended == "infill" else "Next edit"
    assert sent[-1]["message"] == f"{name} accepted."
    assert status.message_of(other).endswith("shown.")


def test_the_end_of_what_is_not_shown_is_not_told() -> None:
    status, sent = line()
    status.abstain("infill", HERE, NOTHING)
    status.end("infill", "accepted")
    status.end("next_edit", "accepted")
    assert len(sent) == 1
