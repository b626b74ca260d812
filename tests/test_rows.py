"""Training rows say what the editor's document says, and shards bring them back unchanged."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.rows import (
    Row,
    apply_history,
    edit_row,
    hunks_of,
    infill_row,
    recent_edit,
    rows_of_commit,
    rows_of_file,
    show_row,
)
from redraft.model.shards import pack, read_shards
from redraft.model.tokens import PREFIX
from tiny import tiny_config, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
CONFIG = tiny_config()
OLD = [f"value_{i} = compute({i})" for i in range(40)]


def changed(*places: int) -> list[str]:
    return [
        line.replace("compute", "measure") if i in places else line for i, line in enumerate(OLD)
    ]


def test_hunks_applied_in_order_give_the_new_text() -> None:
    new = [*changed(3, 10, 30)[:20], "inserted", *changed(3, 10, 30)[25:]]
    hunks = hunks_of(OLD, new)
    state, edits, _ = apply_history("a.py", OLD, hunks, len(hunks))
    assert state == new
    assert len(edits) == len(hunks)


def test_the_target_moves_with_the_edits_above_it() -> None:
    new = ["first", "second", *changed(30)]
    state, edits, target = apply_history("a.py", OLD, hunks_of(OLD, new), 1)
    assert len(edits) == 1
    assert state[target.first : target.last] == [OLD[30]]
    assert list(target.new) == [new[32]]


def test_an_edit_in_the_history_shows_both_sides_and_its_surroundings() -> None:
    edit = recent_edit("a.py", ["a", "b", "c", "d"], 1, 2, ("B", "BB"))
    assert edit.line == 0
    assert edit.diff == " a\n-b\n+B\n+BB\n c\n d\n"


def test_infill_prompt_and_answer_make_the_original_text() -> None:
    text = "def foo(x):\n    return x + 1\n\n\ndef bar(y):\n    return foo(y)\n"
    rng = random.Random(0)
    rows = [infill_row("a.py", text, TOKENIZER, CONFIG, rng) for _ in range(60)]
    found = [row for row in rows if row]
    assert len(found) > 30
    for row in found:
        marks = [i for i, t in enumerate(row.prompt) if t == TOKENIZER.mark(PREFIX)]
        before = TOKENIZER.decode(row.prompt[marks[-1] + 1 :])
        middle = TOKENIZER.decode(row.answer)
        assert (before + middle) in text
        assert row.plain == marks[-1] + 1


def test_an_edit_row_answers_with_the_commits_own_lines() -> None:
    rng = random.Random(1)
    before, after = "\n".join(OLD), "\n".join(changed(4, 8, 12))
    rows = [edit_row("a.py", before, after, TOKENIZER, CONFIG, rng) for _ in range(80)]
    kinds = {row.kind for row in rows if row}
    assert {"edit", "none"} <= kinds
    for row in rows:
        if row and row.kind == "edit":
            assert "measure" in TOKENIZER.decode(row.answer)
        if row and row.kind == "none":
            assert row.answer == ()


def test_a_row_can_be_printed_with_its_marks() -> None:
    row = infill_row("a.py", "x = 1\ny = foo(x)\n", TOKENIZER, CONFIG, random.Random(3))
    assert row is not None
    shown = show_row(row, TOKENIZER)
    assert "<jupyter_text>" in shown and "⟧END" in shown


def test_rows_are_the_same_for_the_same_seed() -> None:
    record = {"path": "a.py", "text": "\n".join(OLD), "repo": "r", "language": "python"}

    def make() -> list[Row]:
        return list(rows_of_file(record, TOKENIZER, CONFIG, random.Random(5)))

    assert make() == make()


def test_shards_bring_back_rows_of_both_tasks(packed: Path) -> None:
    rows = read_shards(packed, CONFIG)
    manifest = json.loads((packed / "manifest.json").read_text())
    assert len(rows) == manifest["rows"] > 20
    assert rows.is_edit.any() and not rows.is_edit.all()
    tokens, prompt, plain = rows[0]
    assert 0 < prompt <= len(tokens) and 0 <= plain < len(tokens)
    assert int(tokens.max()) < CONFIG.vocab
    assert np.sum(np.diff(rows.offset)) == manifest["tokens"]


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


def test_missing_data_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.jsonl\.zst"):
        pack(
            [tmp_path / "nowhere.jsonl.zst"],
            tmp_path / "out",
            tmp_path / "tokenizer.json",
            CONFIG,
            rows=1,
        )


def test_a_commit_without_usable_files_gives_no_rows() -> None:
    record = {"files": [{"path": "a.py", "before": "", "after": "x"}]}
    assert list(rows_of_commit(record, TOKENIZER, CONFIG, random.Random(0))) == []
