"""What comes of a next edit when the time is up, and of a place that a rule knows."""

from __future__ import annotations

import math
from itertools import count

import pytest
from redraft.model.decoding.candidates import Proposal
from support.candidates import MARK, written
from support.fake_answers import Mixture
from support.fake_backend import FakeBackend, ids, small_config

POOR = Proposal(2, 3, tuple(ids("a = b\n")), 0.05)
GOOD = Proposal(12, 12, tuple(ids("longer\n")), 0.4)
OWN = "5-5\nx = call(1, 2, 3)\n"


def backend(answers: dict[str, float]) -> FakeBackend:
    mixture = Mixture(answers, MARK)
    return FakeBackend(mixture, small_config(8, "ar"), mixture.causal)


def test_a_proposal_that_was_priced_is_kept_when_the_time_is_up_at_once() -> None:
    found = written(
        backend({OWN: 0.6, "12-12\nlonger\n": 0.4}), proposals=[GOOD], late=lambda: True
    )
    assert [draft.text for draft in found.drafts] == ["12-12\nlonger\n"]
    assert found.drafts[0].confidence.repeat == 0.4
    assert found.drafts[0].confidence.total == pytest.approx(math.log(0.4), abs=0.05)


@pytest.mark.parametrize(("proposal", "kept"), [(POOR, True), (GOOD, False)])
def test_a_text_in_progress_is_ended_where_it_is_likelier_than_all_that_is_known(
    proposal: Proposal, kept: bool
) -> None:
    """The time is up after a few passes, when the model's own text has been begun."""
    own, repeated = (0.9, 0.02) if kept else (0.3, 0.6)
    answers = {OWN: own, "2-3\na = b\n": 0.02, "12-12\nlonger\n": repeated}
    asked = count()
    found = written(backend(answers), proposals=[proposal], late=lambda: next(asked) > 3, wanted=1)
    assert (found.drafts[0].text == OWN) == kept


def test_where_a_rule_knows_a_place_the_models_own_text_there_has_that_chance() -> None:
    answers = {
        "7-6\nown\n": 0.02,
        "1-1\nother\n": 0.3,
        **{f"{n}-{n}\nx\n": 0.05 for n in (3, 4, 5)},
    }
    known = Proposal(7, 6, tuple(ids("copied\n")), 0.05, "listed", place=0.9)
    plain, lifted = (written(backend(answers), proposals=each) for each in ((), (known,)))
    assert plain.drafts[0].text == "1-1\nother\n"
    assert lifted.drafts[0].text == "7-6\nown\n"
    sure = lifted.drafts[0].confidence
    assert sure.place == pytest.approx(math.log(0.9))
    assert sure.total == pytest.approx(math.log(0.9), abs=0.1)
    assert (
        sure.repeat == pytest.approx(math.exp(sure.total))
        and plain.drafts[0].confidence.repeat is None
    )


def test_a_text_that_takes_words_away_has_nothing_of_the_rules_chance() -> None:
    """Its lines are "same": a rule that knows the place says that something is put in there."""
    known = Proposal(7, 7, tuple(ids("same copied\n")), 0.05, "listed", place=0.9)
    for text, lifted in (("7-7\nsame own\n", True), ("7-7\nown\n", False)):
        [draft] = [
            each
            for each in written(backend({text: 0.1, "1-1\nother\n": 0.1}), proposals=[known]).drafts
            if each.text == text
        ]
        assert (draft.confidence.repeat is not None) == lifted
        assert draft.confidence.place is not None
        assert (draft.confidence.place > math.log(0.85)) == lifted
