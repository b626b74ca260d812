"""Ablations: what is left out of the context is absent, and each way asks the same steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from redraft.evals.example import Example
from redraft.evals.gather import KINDS, RELATED, ContextKind, GatheredRequest, gather
from redraft.evals.latency.workspace_costs import unpack
from redraft.evals.pipeline import ABLATIONS, evaluate_in_turn
from redraft.evals.predictors import ready_with
from redraft.evals.run import Run
from redraft.evals.scorers.next_edit_scores import BY_CONTEXT
from redraft.evals.sources.commits import CommitChange
from redraft.evals.sources.next_edits import steps_in
from redraft.evals.spec import RunSpec
from redraft.evals.tables import rows_of_parts
from redraft.model.errors import SettingsError
from redraft.model.predict import Model
from redraft.model.records import Candidate, Confidence, Prediction
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.fake_backend import FakeBackend, Noise, fake_tokenizer, small_config
from support.models.tiny import rendered
from support.weights.training_sources import write_lines

BUDGET = 8_000
HELPER = "def measured(value, unit):\n    scaled = value * unit\n    return scaled\n"
OLD = [f"row_{i} = compute({i})" for i in range(120)]
NEW = [f"row_{i} = measured({i}, unit)" if i in (50, 53, 56) else x for i, x in enumerate(OLD)]
CHANGES = [
    CommitChange("r@c:lib/helper.py", "r@c", "lib/helper.py", "python", "x = 1\n" + HELPER, HELPER),
    CommitChange("r@c:lib/rows.py", "r@c", "lib/rows.py", "python", "\n".join(OLD), "\n".join(NEW)),
]


def step() -> Example:
    found = [each for each in steps_in(CHANGES) if each.moment.path == "lib/rows.py"]
    return next(each for each in found if each.moment.edits and each.truth.texts)


def gathered(*without: ContextKind) -> GatheredRequest:
    return gather(step(), RunSpec("edits", context_tokens=BUDGET, without=without))


def prompt(*without: ContextKind) -> str:
    """Return what the model reads."""
    request, tokenizer = gathered(*without).request, fake_tokenizer()
    return tokenizer.decode(
        rendered(request, tokenizer, small_config(verifier="ar"), BUDGET).tokens
    )


def test_the_full_prompt_has_edits_and_definitions() -> None:
    text = prompt()
    assert "-row_50 = compute(50)" in text
    assert "\n    scaled = value * unit" in text, "the commit's other file is read"
    assert "row_1 = " in text and "row_118 = " in text
    parts = dict(gathered().parts)
    assert parts["edit"] >= 1 and parts["definition"] + parts["viewed"] >= 1


def test_ablation_removes_edits_or_other_files() -> None:
    assert "-row_50 = compute(50)" not in prompt("history")
    text = prompt(*RELATED)
    assert "\n    scaled = value" not in text and "-row_50 = compute(50)" in text


@pytest.mark.parametrize("kind", ["definitions", "viewed", "imports"])
def test_a_kind_of_excerpt_left_out_is_not_counted(kind: ContextKind) -> None:
    named = {"definitions": "definition", "viewed": "viewed", "imports": "import"}[kind]
    assert dict(gathered(kind).parts)[named] == 0


def test_ablating_far_lines_keeps_answer_positions() -> None:
    asked = gathered("far")
    text = prompt("far")
    assert "row_1 = " not in text and "row_118 = " not in text
    request, whole = asked.request, step().moment.text
    assert whole[asked.offset :].startswith(request.text)
    assert whole[asked.offset + request.cursor :] == step().moment.suffix
    sure = Confidence(0.9, 0.9, 0.9)
    said = Prediction("x", "m", (Candidate(3, 8, "new", sure, 3, 1, "end"),))
    (moved,) = asked.to_document(said).candidates
    assert whole[moved.start : moved.end] == request.text[3:8]


def test_an_ablation_asks_each_step_in_each_way(tmp_path: Path) -> None:
    backend = FakeBackend(Noise(), small_config())
    model = Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 30), 1_024)
    runs = {
        name: Run(RunSpec("edits", context_tokens=600, max_tokens=4, without=without))
        for name, without in ABLATIONS.items()
    }
    evaluate_in_turn([step()], runs.values(), ready_with(model))
    rows = {name: run.rows()[0] for name, run in runs.items()}
    assert rows["history"]["parts"]["edit"] == 0 < rows["nothing"]["parts"]["edit"]
    assert rows["everything"]["parts"].keys() == rows["nothing"]["parts"].keys()
    assert set().union(*ABLATIONS.values()) == set(KINDS)
    table = rows_of_parts("", BY_CONTEXT, {n: run.rows() for n, run in runs.items()}, 0)
    assert [row.n for row in table.rows] == [1] * len(ABLATIONS)


def test_unpacking_is_repeatable_and_stays_in_folder(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"repo": "a/b", "path": f"f{i}.py", "language": "python", "text": f"x = {i}\n"}
        for i in range(9)
    ]
    lines.append({"repo": "a/b", "path": "../../out.py", "language": "python", "text": ""})
    source = write_lines(tmp_path / "some-files.jsonl.zst", lines)
    assert unpack(source, tmp_path / "one", 4) == unpack(source, tmp_path / "two", 4) == 4
    one, two = (sorted(p.name for p in (tmp_path / n).rglob("*.py")) for n in ("one", "two"))
    assert one == two and not list(tmp_path.rglob("out.py"))
    (tmp_path / "bad.zst").write_text(json.dumps({}))
    with pytest.raises(SettingsError, match="not a file of files"):
        unpack(tmp_path / "bad.zst", tmp_path / "three")
