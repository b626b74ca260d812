"""``redraft eval`` as people call it, on a model made in a second; and which model is judged."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.evals.commands import run_options as opt
from redraft.evals.example import Example, Row, gap
from redraft.evals.gather import gather
from redraft.evals.measured_model import MeasuredModel, bare, check_plan, find_model, plan_of, with_adapter
from redraft.evals.run import open_run, read_run
from redraft.evals.sandbox import sandbox
from redraft.evals.scorers.infill import decide, score
from redraft.evals.spec import RunSpec
from redraft.model.decode.completion import Plan, plan_for
from redraft.model.errors import RedraftError, SettingsError, WeightsError
from redraft.model.records import EditRequest
from redraft.model.weights import catalog
from redraft.server.commands.main import app
from safetensors.numpy import save_file
from support.editors.predictor import infill as offering
from support.models.tiny import tiny_config
from support.weights.training_sources import NEW, OLD, commit, write_lines
from typer.testing import CliRunner

PROBLEMS = [
    {
        "task_id": f"SingleLineInfilling/HumanEval/{i}/L1", "entry_point": "f",
        "prompt": "def f(x):\n", "suffix": "    return y\n",
        "canonical_solution": f"    y = x + {i}\n",
        "test": f"def check(f):\n    assert f(1) == {1 + i}\n",
    }
    for i in range(3)
]  # fmt: skip


@pytest.fixture
def human_eval(tmp_path: Path) -> Path:
    path = tmp_path / "HumanEval-SingleLineInfilling.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(p) + "\n" for p in PROBLEMS).encode()))
    return path


@pytest.fixture
def commits(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "dev-commits.jsonl.zst", [commit(i) for i in range(4)])


def redraft(*arguments: object) -> str:
    """Return the output of a successful call."""
    done = CliRunner().invoke(app, [str(argument) for argument in ("eval", *arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_of(path: Path) -> list[Row]:
    return read_run(path).rows()


@pytest.mark.usefixtures("spawn")
def test_human_eval_from_file_to_figures(tiny: Path, human_eval: Path, tmp_path: Path) -> None:
    run, summary = tmp_path / "run.jsonl", tmp_path / "summary.json"
    options = ("infill", "--human-eval", human_eval, "--weights", tiny, "--threads", 1)
    options = (*options, "--no-sandbox", "--max-tokens", 12, "--out", run, "--json", summary)
    first = redraft(*options, "--limit", 2)
    header, *examples = lines_of(run)
    assert header["run"]["task"] == "infill" and header["run"]["variant"] == "fp32"
    assert len(examples) == 2
    for each in rows_of(run):
        assert each["outcome"] in ("passed", "failed", "timeout", "died")
        assert each["steps"] >= 1 and each["tokens"] >= 1
    assert "pass@1" in first and "n = 2" in first and "can read and delete your files" in first
    (table,) = json.loads(summary.read_text())["tables"][:1]
    figure = table["rows"][0]["pass@1"]
    assert figure["n"] == 2 and figure["low"] <= figure["value"] <= figure["high"]

    redraft(*options, "--resume")
    assert lines_of(run)[:3] == [header, *examples], "what was there is neither redone nor lost"
    assert len(lines_of(run)) == 4
    with pytest.raises(SettingsError, match="is there already"):
        redraft(*options)
    with pytest.raises(SettingsError, match="made with quality"):
        redraft(*options, "--resume", "--quality", "low")


def test_tests_of_a_model_demand_bubblewrap(
    human_eval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)
    run = tmp_path / "run.jsonl"
    for command in (("infill", "--human-eval", human_eval, "--baseline", "none"), ("chat",)):
        with pytest.raises(SettingsError, match="Install the package bubblewrap"):
            redraft(*command, "--out", run)
    assert not run.exists()


@pytest.mark.usefixtures("spawn")
def test_commits_are_measured_and_compared(tiny: Path, commits: Path, tmp_path: Path) -> None:
    shared = ("--commits", commits, "--weights", tiny, "--threads", 1, "--max-tokens", 12)
    gaps = redraft("infill", *shared, "--limit", 4)
    assert "exact" in gaps and "pass@1" not in gaps
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    edits = redraft("edits", *shared, "--out", a)
    assert "quiet where nothing is left" in edits
    redraft("edits", *shared, "--out", b, "--quality", "low", "--set", "drafts=no")
    compared = redraft("compare", a, b)
    assert "quality medium" in compared and "quality low" in compared
    assert "shown" in compared and "steps" in compared


@pytest.mark.usefixtures("spawn")
def test_a_run_is_scored_again_without_a_model(commits: Path, tmp_path: Path) -> None:
    run, strict = tmp_path / "run.jsonl", tmp_path / "strict.jsonl"
    redraft("edits", "--commits", commits, "--baseline", "copy-last-edit", "--out", run)
    before = read_run(run)
    told = redraft("score", run, "--out", tmp_path / "same.jsonl")
    assert "next edit" in told
    assert read_run(tmp_path / "same.jsonl").examples == before.examples
    redraft("score", run, "--threshold", "1", "--out", strict)
    assert any(each["shown"] for each in before.rows())
    assert not any(each["shown"] for each in rows_of(strict))
    assert "B - A" in redraft("compare", run, run, "--check")
    name = next(iter(before.examples))
    assert json.loads(redraft("show", run, name))["id"] == name
    with pytest.raises(SettingsError, match="has no example 'x'"):
        redraft("show", run, "x")


def test_a_check_fails_where_a_run_is_worse(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, exact in zip(paths, (True, False), strict=True):
        with open_run(path, RunSpec("edits"), {}, resume=False) as run:
            for number in range(40):
                name = str(number)
                run.add(Example(name, name, score={"exact": exact and number % 8 > 0}))
    command = ["eval", "compare", *map(str, paths), "--check"]
    assert CliRunner().invoke(app, command).exit_code == 1
    assert CliRunner().invoke(app, command[:-1]).exit_code == 0


@pytest.mark.usefixtures("spawn")
def test_gaps_of_held_out_files(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.py").write_text("\n".join(NEW))
    options = ("--files", tmp_path / "p", "--weights", tiny, "--threads", 1, "--max-tokens", 8)
    told = redraft("infill", *options)
    assert "parses as well as the truth" in told and "n = 3" in told
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match="holds no gap"):
        redraft("infill", "--files", tmp_path / "empty")


@pytest.mark.usefixtures("spawn")
def test_baselines_are_judged(tiny: Path, human_eval: Path, commits: Path, tmp_path: Path) -> None:
    runs = [tmp_path / f"{name}.jsonl" for name in ("none", "copy", "quiet")]
    redraft("infill", "--human-eval", human_eval, "--weights", tiny, "--baseline", "none",
            "--no-sandbox", "--out", runs[0])  # fmt: skip
    redraft("edits", "--commits", commits, "--baseline", "copy-last-edit", "--out", runs[1])
    redraft("edits", "--commits", commits, "--baseline", "none", "--out", runs[2])
    filled, copied, quiet = (rows_of(run) for run in runs)
    assert [each["passed"] for each in filled] == [False] * 3
    spec = read_run(runs[0]).spec
    assert spec.model == "none" and not spec.model_sha256
    assert not any(each["shown"] for each in quiet)
    assert any(each["shown"] for each in copied), "every hunk renames the same"
    assert "parts" in copied[0]
    assert "copy-last-edit" in redraft("compare", runs[2], runs[1])
    for arguments, says in (
        (("infill", "--human-eval", human_eval, "--no-sandbox"), "choose none"),
        (("edits", "--commits", commits), "choose none or copy-last-edit"),
    ):
        with pytest.raises(SettingsError, match=says):
            redraft(*arguments, "--baseline", "bold")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("infill",), "one of them"),
        (("infill", "--human-eval", "x", "--commits", "y"), "one of them"),
        (("infill", "--human-eval", "missing.gz"), "is not a file of HumanEval"),
        (("edits", "--commits", "missing.zst"), "is not a file of commits"),
        (("compare", "missing", "missing"), "cannot be read"),
        (("edits", "--commits", "x", "--json", "no/folder/x.json"), "does not exist"),
    ],
)
def test_what_cannot_be_done_is_said(options: tuple[str, ...], says: str) -> None:
    with pytest.raises(RedraftError, match=says):
        redraft(*options)


TEST = "\nassert f(3) == 3\n"
PARTS = ("def f(x):\n", "    y = x\n", "    return y\n")


def a_gap(parts: tuple[str, str, str] = PARTS, test: str = "", language: str = "python") -> Example:
    return gap("i", "g", {"kind": "line", "language": language}, "solution.py", parts, test)


GAP = a_gap(test=TEST)


def asked() -> EditRequest:
    return gather(GAP, RunSpec("infill", max_tokens=64)).request


def scored(example: Example, text: str) -> Row:
    """Return the score of ``text`` in a gap."""
    answered = replace(example, prediction=offering(asked(), text))
    execute = partial(sandbox.run_program, confined=False)
    return score(replace(answered, decision=decide(answered)), execute)


def test_an_infill_request_has_only_prefix_and_suffix() -> None:
    request = asked()
    assert (request.text, request.cursor) == (PARTS[0] + PARTS[2], len(PARTS[0]))
    assert (request.task, request.edits, request.related) == ("infill", (), ())
    assert request.max_lines is None and GAP.middle not in request.text


@pytest.mark.parametrize(
    ("completion", "passed", "exact", "first_line"),
    [
        ("    y = x\n", True, True, True),
        ("    y = x * 1\n", True, False, False),
        ("    y = x", False, True, True),  # the newline is missing: exact, and yet no program
        ("    y = x\n    y = 4\n", False, False, True),
        ("", False, False, False),
    ],
)
@pytest.mark.usefixtures("spawn")
def test_an_answer_is_scored(completion: str, passed: bool, exact: bool, first_line: bool) -> None:
    found = scored(GAP, completion)
    assert (found["passed"], found["exact"], found["first_line"]) == (passed, exact, first_line)
    assert found["completion"] == completion


@pytest.mark.usefixtures("spawn")
def test_only_new_syntax_errors_count_as_broken() -> None:
    parsed = {
        text: scored(GAP, text)["parse_ok"]
        for text in ("    y = x\n", "    y = 3 * x\n", "    y = (x\n")
    }
    assert list(parsed.values()) == [True, True, True], "what breaks the file is held back"
    opened = a_gap(("def f(x):\n    y = (x\n", "    )\n", PARTS[2]))
    left_open = scored(opened, "    + 1\n")
    assert left_open["parse_ok"] is False, "the truth closes what is open there"
    broken = a_gap((*PARTS[:2], "    return (y\n"))
    found = scored(broken, "    y = x\n")
    assert found["parse_ok"] is True, "the truth has that error too"
    assert scored(a_gap(language="klingon"), "x")["parse_ok"] is None


def test_set_options_change_the_plan_of_a_quality() -> None:
    def plan(*changes: str) -> Plan:
        return plan_of(RunSpec("infill", set=changes))

    assert plan("threshold=0.7") == replace(plan_for("medium"), threshold=0.7)
    changed = plan("draft_above=0.4", "copies=no", "second_tries=2")
    assert (changed.draft_above, changed.copies, changed.second_tries) == (0.4, False, 2)
    after = plan("max_steps=0", "deadline_ms=1")
    assert (repr(after.max_steps), repr(after.deadline_ms)) == ("0", "1.0")
    for wrong, says in (
        ("accept=0.3", "no decoding setting accept"),
        ("copies=maybe", "copies=maybe: input should be a valid boolean"),
        ("draft_above=much", "valid number"),
        ("max_steps=2.5", "valid integer"),
        ("copies", "valid boolean"),
    ):
        with pytest.raises(SettingsError, match=says):
            plan(wrong)
    with pytest.raises(SettingsError, match="not trained to write autoregressively"):
        check_plan(plan("drafts=no"), tiny_config(verifier="none"))
    check_plan(plan("drafts=no"), tiny_config())


def measured(adapter: str = "shipped", weights: Path | None = None) -> MeasuredModel:
    model = RunSpec("edits", model="tiny", adapter=adapter, weights=weights)
    if weights is None:
        model = replace(model, variant="fp32", provider="CPU")
    return find_model(model)


def test_a_ready_folder_is_judged_as_it_is(tiny: Path, tmp_path: Path) -> None:
    found = measured(weights=tiny)
    assert (found.folder, found.variant) == (tiny, "fp32")
    with pytest.raises(SettingsError, match="holds no ready model"):
        measured(weights=tmp_path)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """SHA-256 of the base of a model called "tiny", which lies in the cache already."""
    tiny_gguf = pytest.importorskip("support.weights.tiny_gguf")
    for name in list(os.environ):
        if name.startswith("REDRAFT_"):
            monkeypatch.delenv(name)
    gguf = tmp_path / "tiny.gguf"
    tiny_gguf.write_llama(gguf)
    sha = hashlib.sha256(gguf.read_bytes()).hexdigest()
    (tmp_path / "cache" / "base").mkdir(parents=True)
    gguf.rename(tmp_path / "cache" / "base" / f"{sha[:16]}.gguf")
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path / "cache"))
    from redraft.model.weights.gguf import GGUFFile, read_checkpoint

    fields, _ = read_checkpoint(GGUFFile(tmp_path / "cache" / "base" / f"{sha[:16]}.gguf"))
    shipped = catalog.info("redraft-0.5b").describe()
    described = shipped | {
        "name": "tiny", "adapter": None, "config": {**fields, "adapter": "none"},
        "base": {**shipped["base"], "gguf_sha256": sha},
    }  # fmt: skip
    (tmp_path / "cache" / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "cache" / "models" / "tiny" / "model.json").write_text(json.dumps(described))
    yield sha


def adapter_at(path: Path, sha: str, **metadata: str) -> Path:
    rng = np.random.default_rng(0)
    tensors = {
        "blocks.1.attn.q.lora_a": rng.normal(size=(4, 64)).astype(np.float32),
        "blocks.1.attn.q.lora_b": rng.normal(size=(64, 4)).astype(np.float32),
        "mask_embedding": rng.normal(size=64).astype(np.float32),
    }
    save_file(
        tensors, path, metadata={"base_sha256": sha, "adapter": "all", "verifier": "ar", **metadata}
    )
    return path


def test_an_adapter_is_judged_as_it_was_trained(base: str, tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "a.safetensors", base, verifier="ar", canvas="8")
    found = measured(str(adapter))
    assert found.identity == hashlib.sha256(adapter.read_bytes()).hexdigest()
    assert found.folder == catalog.cache_dir() / "judged" / found.identity[:16] / "fp32"
    config = json.loads((found.folder / "config.json").read_text())
    assert (config["adapter"], config["verifier"], config["canvas_width"]) == ("all", "ar", 8)
    before = (found.folder / "graphs.json").stat().st_mtime_ns
    again = measured(str(adapter))
    assert again == found
    assert (found.folder / "graphs.json").stat().st_mtime_ns == before, "it was made once"


def test_an_adapter_sets_masks_and_ranks_of_the_config(
    tmp_path: Path,
) -> None:
    shipped = catalog.info("redraft-0.5b")
    causal = {"adapter": "all", "verifier": "ar", "masks": "0", "sampler": "0", "rank": "32"}
    masks = {**causal, "adapter": "masks", "masks": "2", "sampler": "8", "rank": "4"}
    assert not (plain := bare(shipped).config).masks and not plain.mask_rank and not plain.sampler
    for says, expected in ((causal, ("all", 0, 0, 0)), (masks, ("masks", 2, 4, 8))):
        path = adapter_at(tmp_path / f"{says['adapter']}.safetensors", "0" * 64, **says)
        config = with_adapter(shipped, path).config
        assert (config.adapter, config.masks, config.mask_rank, config.sampler) == expected
    odd = adapter_at(tmp_path / "odd.safetensors", "0" * 64, **{**masks, "masks": "few"})
    with pytest.raises(WeightsError, match="masks = 'few'"):
        with_adapter(shipped, odd)


def test_the_bare_base_writes_causally(base: str) -> None:
    found = measured("none")
    assert (found.label, found.identity) == ("bare base", base)
    config = json.loads((found.folder / "config.json").read_text())
    assert (config["adapter"], config["verifier"]) == ("none", "ar")


def test_an_adapter_of_another_base_is_refused(base: str, tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "a.safetensors", "0" * 64)
    with pytest.raises(WeightsError, match="base_sha256"):
        measured(str(adapter))
    odd = adapter_at(tmp_path / "b.safetensors", base, verifier="oracle")
    with pytest.raises(WeightsError, match="causal-cpu"):
        measured(str(odd))
    with pytest.raises(SettingsError, match="No adapter at"):
        measured("missing")


def test_settings_say_where_the_judged_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_VARIANT", "q4")
    monkeypatch.setenv("REDRAFT_PROVIDER", "cpu")
    told = opt.apply_user_settings(RunSpec("edits"))
    assert (told.variant, told.provider) == ("q4", "CPU")
    for asked in (
        RunSpec("edits", variant="fp32", provider="CUDA"),
        RunSpec("edits", weights=Path("b")),
    ):
        assert opt.apply_user_settings(asked) == asked
