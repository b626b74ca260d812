"""Drafts from the last answers: what is left of an infill a key later, and that no text changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.decode.completion import Draft
from redraft.model.decode.recent import MOST, RecentAnswers
from redraft.model.decode.sampling import confidence
from redraft.model.predict import Model, predict
from redraft.model.prompts.format import Prompt
from redraft.model.records import EditRequest
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.engines_of import Clock
from support.models.fake_backend import END, FakeBackend, Noise, fake_tokenizer, ids, small_config

TOKENIZER = fake_tokenizer()
ABOVE = "def area(width, height):\n    "
PROMPT = Prompt(tuple(ids(ABOVE)))


def request(before: str, path: str = "shapes.py") -> EditRequest:
    return EditRequest("infill", path, before + "\n", len(before), max_tokens=40)


def draft(text: str) -> Draft:
    return Draft(text, tuple(ids(text)), confidence([0.9]), 1, 0, "end")


def source(kept: RecentAnswers, asked: EditRequest) -> list[list[int]]:
    """Return the answers to copy from, each without its end."""
    found: list[list[int]] = [[]]
    for token in kept.source(asked, PROMPT, TOKENIZER, END):
        found.append([]) if token == END else found[-1].append(token)
    return found[:-1]


@pytest.mark.parametrize(
    ("before", "left"),
    [
        (ABOVE, "return width * height"),  # asked again
        (ABOVE + "ret", "urn width * height"),  # typed on
        (ABOVE + "return width * height", ""),  # all of it
        (ABOVE[:-2], "  return width * height"),  # deleted
    ],
)
def test_the_rest_of_an_infill_follows_the_prompts_end(before: str, left: str) -> None:
    kept = RecentAnswers()
    kept.note(request(ABOVE), PROMPT, draft("return width * height"))
    assert source(kept, request(before)) == [[*PROMPT.tokens[-12:], *ids(left)]]


@pytest.mark.parametrize(
    "asked",
    [
        request(ABOVE + "rex"),  # typed something else
        request(ABOVE + "ret", "other.py"),
        request("x = 1\n"),
        replace(request(ABOVE), task="next_edit"),
    ],
)
def test_elsewhere_an_answer_follows_what_it_answered(asked: EditRequest) -> None:
    kept = RecentAnswers()
    kept.note(request(ABOVE), PROMPT, draft("return 1"))
    assert source(kept, asked) == [[*ids(ABOVE)[-12:], *ids("return 1")]]


def test_a_repeated_word_of_the_cursor_is_written_once() -> None:
    kept, healed = RecentAnswers(), Prompt(tuple(ids(ABOVE)), forced="ret")
    kept.note(request(ABOVE + "ret"), healed, draft("return 1"))
    found = kept.source(request(ABOVE + "retu"), replace(healed, forced="retu"), TOKENIZER, END)
    assert found == [*ids(ABOVE)[-12:], *ids("return 1"), END]


def test_only_the_last_answers_are_kept() -> None:
    kept = RecentAnswers()
    for number in range(MOST + 3):
        kept.note(request(f"x{number} = "), PROMPT, draft(f"{number % 10}"))
    assert len(source(kept, request("y"))) == MOST


def test_rewrites_of_a_file_are_kept_until_the_next() -> None:
    kept = RecentAnswers()
    kept.note_rewrites("shapes.py", (tuple(ids("a = 1")), tuple(ids("b"))))
    assert kept.rewrites("shapes.py", END) == [*ids("a = 1"), END, *ids("b"), END]
    assert kept.rewrites("other.py", END) == []
    kept.note_rewrites("shapes.py", (tuple(ids("c")),))
    assert kept.rewrites("shapes.py", END) == [*ids("c"), END]


class Remembers:
    """A causal pass that writes one line, whatever of it stands there already."""

    LINE = "    return width * height"

    def __call__(self, context: list[int]) -> NDArray[np.float32]:
        row = Noise(1)([0], [0])[0] * 0
        text = bytes(token - 17 for token in context if token >= 17).decode("latin-1")
        written = text.rpartition("\n")[2]
        goes_on = self.LINE.startswith(written) and len(written) < len(self.LINE)
        row[ids(self.LINE[len(written)])[0] if goes_on else END] = 12.0
        return row


def model() -> Model:
    config = replace(small_config(verifier="ar"), draft_after=4096)
    backend = FakeBackend(Noise(3), config, Remembers())
    return Model("fake", backend, TOKENIZER, PrefixCache(backend, 1 << 20), 512)


def test_a_key_later_a_line_takes_half_the_passes() -> None:
    """The document has nothing to copy from, so that the first answer takes a pass a token."""
    kept, typed = model(), Remembers.LINE.strip()
    first = predict(kept, request("q = 0\n    "), Clock())
    later = predict(kept, request("q = 0\n    " + typed[:3]), Clock())
    alone = predict(model(), request("q = 0\n    " + typed[:3]), Clock())
    assert [each.candidates[0].text for each in (later, alone)] == [typed[3:]] * 2
    assert alone.stats.denoise_steps <= first.stats.denoise_steps
    assert later.stats.denoise_steps <= alone.stats.denoise_steps / 2
