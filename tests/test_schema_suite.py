"""Schemas of the world: every answer fulfils its schema, or the request is refused and told why.

Needs a checkout of JSONSchemaBench (MIT) named by ``REDRAFT_SCHEMA_SUITE``. What is written is
noise that the schema alone makes sense of, over a vocabulary of bytes: the hardest writer there is.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from redraft.model.decode import speculative
from redraft.model.decode.completion import Brief, Plan
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.grammar import GrammarConstraint
from redraft.model.decode.passes import Passes
from redraft.model.errors import InvalidRequest
from redraft.model.records import Grammar
from support.fake_backend import END, VOCAB, FakeBackend, Noise, fake_tokenizer, ids, small_config

SUITE = os.environ.get("REDRAFT_SCHEMA_SUITE", "")
#: Schemas, drawn alike from every part of the suite; and tokens (bytes) an answer may have.
COUNT, MAX_TOKENS = 200, 2_000
PROMPT, TOKENIZER = ids("{"), fake_tokenizer()


def _drawn(folder: Path) -> list[Path]:
    parts = [sorted(part.glob("*.json")) for part in sorted(folder.glob("data/*")) if part.is_dir()]
    drawn = random.Random(7)
    each = -(-COUNT // len(parts))
    found = [file for part in parts for file in drawn.sample(part, min(each, len(part)))]
    return found[:COUNT]


def _answer(schema: str, seed: int) -> str:
    constraint = GrammarConstraint(Grammar("json_schema", schema), TOKENIZER, END)
    constraint.check_room(MAX_TOKENS)
    backend = FakeBackend(Noise(seed, scale=2.0), small_config(verifier="ar"))
    sequence = backend.open(3 * MAX_TOKENS)
    limits = AnswerLimits(max_tokens=MAX_TOKENS)
    brief = Brief(backend.config, VOCAB, Plan(threshold=0.9, copies=False), limits, constraint)
    rng = np.random.default_rng(seed)
    return speculative.write(Passes(sequence), PROMPT[-1], brief, rng).drafts[0].text


@pytest.mark.timeout(3_000)
@pytest.mark.skipif(not SUITE, reason="REDRAFT_SCHEMA_SUITE names no checkout of JSONSchemaBench")
def test_every_answer_fulfils_its_schema_or_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    became: Counter[str] = Counter()
    wrong: list[str] = []
    for seed, file in enumerate(_drawn(Path(SUITE))):
        schema = file.read_text(encoding="utf-8")
        try:
            text = _answer(schema, seed)
        except InvalidRequest as refusal:
            became["refused: " + " ".join(str(refusal).split()[3:8])] += 1
            continue
        try:
            value = json.loads(text)
            kind = jsonschema.validators.validator_for(json.loads(schema))
            kind(json.loads(schema)).validate(value)
            became["valid"] += 1
        except (ValueError, jsonschema.ValidationError) as error:
            wrong.append(f"{file.parent.name}/{file.name}: {str(error)[:200]} in {text[:200]!r}")
    with capsys.disabled():
        print("", *became.most_common(), *wrong, sep="\n")  # noqa: T201
    assert became["valid"] > COUNT // 2 and wrong == []
