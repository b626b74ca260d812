"""Next edits when the time is up."""

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
