"""Answers that keep to a grammar: what the weights would write under it, and nothing else."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pytest
from redraft.model.decode.completion import Brief, Plan
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.grammar import GrammarConstraint
from redraft.model.errors import InvalidRequest
from redraft.model.records import Grammar
from redraft.server.routes.constraints import INFILLS
from support.models.denoising import Written, write_over
from support.models.fake_backend import (
    END,
    VOCAB,
    FakeBackend,
    Noise,
    Script,
    always,
    fake_tokenizer,
    ids,
    small_config,
)

TOKENIZER = fake_tokenizer()
PROMPT = ids("ab return  self ret")
#: Small languages: a regular expression and all of its texts, by an enumeration of our own.
LANGUAGES = {
    "(ab|a|return){1,3}": {
        "".join(parts) for n in (1, 2, 3) for parts in product(("ab", "a", "return"), repeat=n)
    },
    "ret(urn)?( self)?": {"ret", "return", "ret self", "return self"},
    "x{2,4}y?": {"x" * n + y for n in (2, 3, 4) for y in ("", "y")},
}


def write(
    grammar: Grammar,
    noise: Noise | Script,
    verifier: str = "ar",
    max_tokens: int = 40,
    **plan: bool,
) -> Written:
    backend = FakeBackend(noise, small_config(verifier=verifier))
    sequence = backend.open(500)
    sequence.extend(np.asarray(PROMPT[:-1], np.int64))
    brief = Brief(
        config=backend.config,
        vocab_bytes=VOCAB,
        plan=Plan(threshold=0.9, **plan),
        limits=AnswerLimits(max_tokens=max_tokens),
        constraint=GrammarConstraint(grammar, TOKENIZER, END),
        source=np.asarray(PROMPT, np.int64),
    )
    return write_over(sequence, brief, last=PROMPT[-1])


def brute_force(texts: set[str], noise: Noise) -> list[int]:
    """Token by token the likeliest of all that keep the answer a beginning of one of ``texts``."""
    backend = FakeBackend(noise, small_config(verifier="ar"))
    whole, written = {text.encode() for text in texts}, []
    while True:
        logits = backend._causal([*PROMPT, *written])
        done = b"".join(VOCAB[token] for token in written)

        def legal(token: int, done: bytes = done) -> bool:
            if token == END:
                return done in whole
            more = done + VOCAB[token]
            return bool(VOCAB[token]) and any(text.startswith(more) for text in whole)

        best = max(filter(legal, range(len(VOCAB))), key=lambda token: logits[token])
        written.append(best)
        if best == END:
            return written


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("regex", LANGUAGES)
def test_a_judged_answer_is_what_brute_force_finds(regex: str, seed: int) -> None:
    noise = Noise(seed)
    (draft,) = write(Grammar("regex", regex), noise).drafts
    assert list(draft.token_ids) == brute_force(LANGUAGES[regex], noise)
    assert draft.text in LANGUAGES[regex]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("regex", LANGUAGES)
def test_an_answer_of_canvases_is_valid(regex: str, seed: int) -> None:
    (draft,) = write(Grammar("regex", regex), Noise(seed), verifier="none").drafts
    assert draft.text in LANGUAGES[regex]


def test_drafts_change_no_token_under_a_grammar() -> None:
    grammar = Grammar("regex", "(return self|ret| ){1,4}")
    for seed in range(8):
        drafted = write(grammar, Noise(seed)).drafts
        alone = write(grammar, Noise(seed), drafts=False, copies=False).drafts
        assert drafted[0].token_ids == alone[0].token_ids


def test_what_a_grammar_forces_costs_no_passes() -> None:
    grammar = Grammar("regex", "return self or nothing at all")
    text = Script(ids("return self or nothing at all"), always(0.9))
    written = write(grammar, text, max_tokens=64)
    (draft,) = written.drafts
    assert draft.text == "return self or nothing at all"
    assert written.passes * 3 < len(draft.token_ids)
    assert [each.source for each in written.drafted] == ["forced"]


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("verifier", ["ar", "none"])
@pytest.mark.parametrize("max_tokens", [24, 33, 60])
def test_an_answer_out_of_tokens_is_brought_to_its_end(verifier: str, max_tokens: int) -> None:
    grammar = Grammar("json_schema", json.dumps(SCHEMA))
    for seed in range(5):
        (draft,) = write(grammar, Noise(seed), verifier, max_tokens).drafts
        value = json.loads(draft.text)
        assert list(value) == ["a", "b"]
        assert all(isinstance(each, int) for each in value["a"]) and isinstance(value["b"], str)
        assert len([token for token in draft.token_ids if token != END]) <= max_tokens


def test_a_grammar_is_refused_with_the_tokens_it_needs() -> None:
    whole = GrammarConstraint(Grammar("json_schema", json.dumps(SCHEMA)), TOKENIZER, END)
    with pytest.raises(InvalidRequest, match=r"'max_tokens' is 5.*has 1[0-9] tokens"):
        whole.check_room(5)
    whole.check_room(40)


DEMANDS_ITSELF = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"not": {"type": "string"}}, 'Unimplemented keys: \\["not"\\]'),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "Unsatisfiable"),
        ({"enum": []}, "Unsatisfiable"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "cannot be fulfilled"),
        ({"$ref": "#/$defs/a", "$defs": {"a": DEMANDS_ITSELF}}, "cannot be fulfilled"),
        ({"description": "x" * 100_000}, "at most 65,536"),
    ],
)
def test_a_schema_that_cannot_be_fulfilled_is_refused(schema: object, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        GrammarConstraint(Grammar("json_schema", json.dumps(schema)), TOKENIZER, END).check_room(
            200
        )


def test_a_refusal_names_the_field_of_the_grammar() -> None:
    with pytest.raises(InvalidRequest, match=r"^'guided_regex': the regular expression cannot"):
        GrammarConstraint(Grammar("regex", "(a", "guided_regex"), TOKENIZER, END)


@pytest.mark.parametrize(
    "grammar",
    [Grammar("regex", "(a"), Grammar("lark", "start: nothing"), Grammar("json_schema", "[1")],
)
def test_a_grammar_that_cannot_be_read_is_refused(grammar: Grammar) -> None:
    with pytest.raises(InvalidRequest):
        GrammarConstraint(grammar, TOKENIZER, END)


@pytest.mark.parametrize(
    "grammar", [Grammar("regex", "[0-9]{3}"), Grammar("lark", "start: NUMBER\nNUMBER: /[0-9]{3}/")]
)
def test_what_must_come_first_precedes_the_grammar(grammar: Grammar) -> None:
    whole = GrammarConstraint(grammar, TOKENIZER, END, forced='re"t')
    assert whole.legal([], ids('re"t123')) == 7
    assert whole.legal([], ids("123")) == 0


def test_a_state_follows_the_text_back_and_forth() -> None:
    whole = GrammarConstraint(Grammar("regex", "ab*c"), TOKENIZER, END)
    for written, further in [("abb", "bc"), ("a", "bc"), ("abc", ""), ("", "a"), ("ab", "bc")]:
        mask = whole.token_mask(ids(written))
        allowed = {VOCAB[i].decode("latin1") for i in np.flatnonzero(mask) if i != END}
        assert allowed == set(further)
        assert mask[END] == (written == "abc")


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        ("line", "return a + b", "a\nb"),
        ("identifier", "count_2", "count-2"),
        ("string", r"it\'s so", "it's so"),
        ("comment", "why a * b", "ends */ here"),
    ],
)
def test_ready_made_answers_of_an_infill(kind: str, fits: str, does_not: str) -> None:
    whole = GrammarConstraint(Grammar("regex", INFILLS[kind]), TOKENIZER, END)
    assert whole.legal([], ids(fits)) == len(ids(fits))
    assert whole.legal([], ids(does_not)) < len(ids(does_not))
    assert re.fullmatch(INFILLS[kind], fits) and not re.fullmatch(INFILLS[kind], does_not)
