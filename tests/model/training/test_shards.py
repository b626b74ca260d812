"""Packing: rows in the asked number and mix, the same everywhere, none lost on the way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import zstandard
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.training import shards
from redraft.model.training.moments import EditClass
from redraft.model.training.rows import Recipe
from redraft.model.training.shards import pack, read_shards
from support.models.tiny import tiny_config, tiny_tokenizer
from support.weights.training_sources import CHAINED, write_lines

CONFIG = tiny_config()
RECIPE = Recipe(max_answer=200, max_region=2_000)  # the tiny tokenizer writes long answers
OLD = [f"value_{i} = compute({i})" for i in range(40)]
NEW = [s.replace("compute", "measure") if i in (4, 20, 36) else s for i, s in enumerate(OLD)]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    tiny_tokenizer().save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    files = [{"path": "a.py", "before": "\n".join(OLD), "after": "\n".join(NEW)}]
    plain = {"repo": "r", "path": "b.py", "text": CHAINED}
    return [
        write_lines(tmp_path / "one.jsonl.zst", [{"repo": "r", "files": files}] * 40),
        write_lines(tmp_path / "two.jsonl.zst", [plain] * 90),
    ]


def test_shards_bring_back_rows_of_both_tasks(packed: Path) -> None:
    rows = read_shards(packed, CONFIG)
    manifest = json.loads((packed / "manifest.json").read_text())
    assert len(rows) == manifest["rows"] > 20
    assert rows.is_edit.any() and not rows.is_edit.all()
    tokens, prompt, plain = rows[0]
    assert 0 < prompt <= len(tokens) and 0 <= plain < len(tokens)
    assert int(tokens.max()) < CONFIG.vocab
    assert np.sum(np.diff(rows.offset)) == manifest["tokens"]


@pytest.mark.parametrize("wanted", [100, 400])  # some of the lines; each several times
def test_packing_gives_about_the_asked_rows_and_mix(
    wanted: int, sources: list[Path], tokenizer: Path, tmp_path: Path
) -> None:
    said: list[tuple[int, int]] = []

    def progress(done: int, of: int) -> None:
        said.append((done, of))

    manifest = pack(
        sources, tmp_path / "out", tokenizer, CONFIG, RECIPE, rows=wanted, jobs=1, progress=progress
    )
    rows = read_shards(manifest.parent, CONFIG)
    assert len(rows) == pytest.approx(wanted, rel=0.25)
    assert rows.is_edit.mean() == pytest.approx(0.6, abs=0.1)
    chains = rows.is_edit & (rows.kind & EditClass.CHAIN > 0)
    assert chains.sum() / rows.is_edit.sum() == pytest.approx(0.25, abs=0.05)
    assert said[-1] == (len(rows), wanted)
    groups = json.loads(manifest.read_text())["groups"]
    assert sum(groups.values()) == len(rows)
    assert sum(groups.values()) - groups["infill"] == rows.is_edit.sum()


def test_one_source_can_give_all_rows(sources: list[Path], tokenizer: Path, tmp_path: Path) -> None:
    manifest = pack(sources[1:], tmp_path / "out", tokenizer, CONFIG, RECIPE, rows=80, jobs=1)
    rows = read_shards(manifest.parent, CONFIG)
    assert len(rows) == pytest.approx(80, rel=0.25)
    edits = rows.kind[rows.is_edit]
    assert (edits & EditClass.CHAIN > 0).all(), "there are no commits to take others from"


@pytest.mark.usefixtures("spawn")
def test_processes_pack_the_same(sources: list[Path], tokenizer: Path, tmp_path: Path) -> None:
    found = []
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        manifest = pack(sources, out, tokenizer, CONFIG, RECIPE, rows=150, jobs=jobs)
        found.append(manifest.read_text())
    assert found[0] == found[1]


def test_rows_are_spread_over_shards_and_none_is_lost(
    sources: list[Path], tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pack(sources, tmp_path / "a", tokenizer, CONFIG, RECIPE, rows=150, jobs=1)
    monkeypatch.setattr(shards, "TOKENS_PER_SHARD", 40_000)
    spread = pack(sources, tmp_path / "b", tokenizer, CONFIG, RECIPE, rows=150, jobs=1)
    entries = json.loads(spread.read_text())["shards"]
    assert len(json.loads(whole.read_text())["shards"]) == 1 < len(entries)
    found = []
    for manifest in (whole, spread):
        rows = read_shards(manifest.parent, CONFIG)
        found.append([(*rows[i][0].tolist(), *rows[i][1:]) for i in range(len(rows))])
    assert sorted(found[0]) == sorted(found[1])
    assert found[0] != found[1]  # shuffled
    left = sorted(path.name for path in spread.parent.iterdir())
    assert left == sorted(["manifest.json", *(entry["file"] for entry in entries)])


def test_a_damaged_shard_is_refused(packed: Path) -> None:
    shard = next(packed.glob("*.npz.zst"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(bytes(data))
    with pytest.raises(WeightsError, match="damaged"):
        read_shards(packed, CONFIG)


def test_shards_of_another_prompt_format_are_refused(packed: Path) -> None:
    with pytest.raises(SettingsError, match="Pack them again"):
        read_shards(packed, tiny_config(prompt_format="other"))


def test_missing_data_names_the_path(tokenizer: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.jsonl\.zst"):
        pack([tmp_path / "nowhere.jsonl.zst"], tmp_path / "out", tokenizer, CONFIG, RECIPE, rows=1)


@pytest.mark.parametrize(
    "content", [b"no zstd", zstandard.compress(b"no json\n"), zstandard.compress(b'{"a": 1}\n')]
)
def test_another_kind_of_source_is_refused(content: bytes, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.zst").write_bytes(content)
    source, out = tmp_path / "x.jsonl.zst", tmp_path / "out"
    with pytest.raises(SettingsError, match=r"x\.jsonl\.zst"):
        pack([source], out, tokenizer, CONFIG, RECIPE, rows=1, jobs=1)
