"""TypeSafe's official client, ``typesafe-sdk``, against a live server, sync and async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redraft.model.errors import Overloaded
from support.editors.predictor import CHATTY, ScriptedPredictor, chatting
from support.sdk import caller

sdk = pytest.importorskip("typesafe_sdk", reason="the dev extra installs the typesafe-sdk client")

LONG = {"ticket": "I was charged twice. " * 100}  # above the size that is sent compressed


@pytest.fixture(params=["TypeSafeClient", "AsyncTypeSafeClient"])
def use(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call one method of a client of either kind."""
    made = getattr(sdk, request.param)
    once = sdk.RetryPolicy(max_retries=0)
    return caller(lambda url, key: made(base_url=url, api_key=key, model="redraft", retry=once))


def test_all_kinds_of_questions(use: Callable[..., Any]) -> None:
    answer = use(
        "system_one",
        chatting("x"),
        state=LONG,
        questions={
            "billing": sdk.Noul(instructions="Is this about billing?"),
            "tone": sdk.Choice(criteria={"calm": None, "angry": "An upset message"}),
            "urgent": sdk.Score(criteria=["Can wait", {"when": "today"}]),
        },
    )
    assert 0 < answer.nouls["billing"].noul < 1
    assert answer.choices["tone"].choice == "calm"
    assert sum(answer.choices["tone"].probabilities.values()) == pytest.approx(1)
    assert answer.scores["urgent"].legend == {0: "Can wait", 1: {"when": "today"}}
    assert answer.scores["urgent"].score == pytest.approx(0.5)
    assert answer.usage.output_tokens == 3


def test_the_models_that_decide_are_listed(use: Callable[..., Any]) -> None:
    found = use("models.list", chatting("x"))
    assert [model.name for model in found.models] == ["fake-1m", "fake-1m-int8"]


@pytest.mark.parametrize(
    ("error", "change", "predictor"),
    [
        ("TypeSafeNotFoundError", {"model": "redraft-9b"}, None),
        ("TypeSafeAuthenticationError", {"key": "wrong"}, None),
        (
            "TypeSafeRateLimitError",
            {},
            ScriptedPredictor([Overloaded("full", 3)], statuses=[CHATTY]),
        ),
        (
            "TypeSafeInternalServerError",
            {},
            ScriptedPredictor([RuntimeError("x")], statuses=[CHATTY]),
        ),
    ],
)
def test_errors_are_the_clients_own(
    use: Callable[..., Any], error: str, change: dict[str, Any], predictor: ScriptedPredictor | None
) -> None:
    questions = {"q": sdk.Noul(instructions="Is this about billing?")}
    with pytest.raises(getattr(sdk, error)) as found:
        use("system_one", predictor, state="a", questions=questions, **change)
    assert found.value.request_id


def test_a_place_in_a_picture_is_refused_in_words(use: Callable[..., Any]) -> None:
    with pytest.raises(sdk.TypeSafeBadRequestError, match="picture"):
        use("system_one", state="a", questions={"q": sdk.Box(instructions="Where is it?")})
