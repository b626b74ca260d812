"""Perplexity over long contexts: no token lost, the same end, the scaling that was asked for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from redraft.evals.benchmarks.perplexity import (
    BLOCK,
    CHUNK,
    Rescaled,
    Scaling,
    cells,
    documents,
    measure,
    perplexity,
    prepare,
    score_tail,
    sources,
)
from redraft.evals.figures.runs import open_run
from redraft.model.errors import SettingsError
from support.fake_backend import FakeBackend, Noise, small_config
from support.onnx_models import store
from support.tiny import tiny_config, tiny_tokenizer
from support.training_sources import write_lines

CONFIG = tiny_config(head_dim=16, max_positions=2_304)  # 4,352 are stretched by 2
CODE = "".join(f"def foo_{i}(x):\n    return foo(x) + {i}\n" for i in range(300))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = store(CONFIG, "fp32", tmp_path_factory.mktemp("tiny"))
    tiny_tokenizer().save(made / "tokenizer.json")
    return made


def project(root: Path) -> Path:
    (root / "p" / "node_modules").mkdir(parents=True)
    (root / "p" / "b.py").write_text(CODE)
    (root / "p" / "a.py").write_text("first = 1")
    (root / "p" / "node_modules" / "c.py").write_text("not ours")
    (root / "p" / "notes.txt").write_text("no code")
    return root / "p"


def test_no_token_is_lost_between_chunks() -> None:
    backend = FakeBackend(Noise(), small_config())
    tokens = np.random.default_rng(0).integers(17, 200, CHUNK + 40).astype(np.int64)
    whole = backend.open(1_000).score(tokens).target_logprob[:-1]
    for count in (1, 39, 40, 60, len(tokens) - 1):
        found = score_tail(backend.open(1_000), tokens, count)
        assert found.shape == (count,)
        np.testing.assert_array_equal(found, whole[-count:])
    with pytest.raises(SettingsError, match="too few"):
        score_tail(backend.open(1_000), tokens, len(tokens))


def test_files_of_a_folder_stand_one_behind_the_other_under_their_marks(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    (made,) = documents(sources([project(tmp_path)]), tokenizer, 3_000, 5)
    mark = tokenizer.mark("<file_sep>")
    starts = np.flatnonzero(made.tokens == mark).tolist()
    assert (made.name, len(made.tokens), starts[0], len(starts)) == ("p", 3_000, 0, 2)
    text = tokenizer.decode(made.tokens.tolist())
    assert text.startswith("a.py\nfirst = 1\nb.py\ndef foo_0(x):\n")


def test_the_newest_text_of_each_file_of_a_repository_is_taken(tmp_path: Path) -> None:
    def commit(time: int, path: str, after: str) -> dict[str, object]:
        return {"repo": "r", "commit": "c", "time": time, "files": [{"path": path, "after": after}]}

    lines = [commit(2, "a.py", "newer"), commit(1, "a.py", "older"), commit(1, "b.py", "other")]
    path = write_lines(tmp_path / "x-commits.jsonl.zst", lines)
    found = {name: list(files) for name, files in sources([path])}
    assert found == {"r": [("a.py", "newer"), ("b.py", "other")]}


def test_too_little_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="are needed"):
        documents(sources([project(tmp_path)]), tiny_tokenizer(), 100_000, 1)
    with pytest.raises(SettingsError, match="There is no"):
        documents(sources([tmp_path / "missing"]), tiny_tokenizer(), 10, 1)


def test_perplexity_is_that_of_the_mean_over_all_tokens() -> None:
    blocks = [[2.0 * BLOCK, BLOCK], [1.0 * BLOCK, BLOCK], [0.0, BLOCK // 2]]
    found = perplexity([{"blocks": blocks}], seed=0)
    assert found.value == pytest.approx(math.exp(3 / 2.5))
    assert found.n == 2 * BLOCK + BLOCK // 2
    assert found.low is not None and found.high is not None
    assert found.low < found.value < found.high


def test_scaling_changes_only_what_lies_beyond(folder: Path, tmp_path: Path) -> None:
    found = prepare(folder, [project(tmp_path)], [1_100, 3_000], ["none", "linear", "yarn"], 1)
    asked: list[Scaling] = []

    def load(scaling: Scaling) -> Rescaled:
        asked.append(scaling)
        backend = Rescaled(folder, "CPU", 1, scaling)
        assert backend.config.rope_scaling == scaling
        return backend

    told: list[tuple[int, int]] = []
    path = tmp_path / "run.jsonl"
    with open_run(path, {}, {}, resume=False) as run:
        measure(found, load, run, lambda done, total: told.append((done, total)))
        shown = list(cells(run, found, 0))
    assert asked == ["none", "linear", "yarn"]
    assert told[-1] == (1_100 + 3 * 3_000,) * 2 and told == sorted(told)
    assert [(c.length, c.scaling) for c in shown] == [
        (1_100, "any"), (3_000, "none"), (3_000, "linear"), (3_000, "yarn"),
    ]  # fmt: skip
    values = [cell.perplexity.value for cell in shown]
    assert len(set(values)) == 4 and all(value and value > 1 for value in values)
    with open_run(path, {}, {}, resume=True) as run:
        measure(found, _unasked, run)


def _unasked(scaling: Scaling) -> Rescaled:
    raise AssertionError(f"{scaling} was loaded again")
