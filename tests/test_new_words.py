"""Words of a next edit that stand nowhere in its prompt are counted by where else they stand."""

from __future__ import annotations

from pathlib import Path

from redraft.evals.new_words import count_new_words
from support.tiny import tiny_config, tiny_tokenizer
from support.training_sources import write_lines

FAR = "\n".join(f"filler_{i} = {i}" for i in range(400))


def record(time: int, name: str, before: str, after: str) -> dict[str, object]:
    file = {"path": name, "language": "python", "before": before, "after": after}
    return {"repo": "r", "commit": f"{time:040x}", "time": time, "files": [file]}


def test_new_words_are_counted_by_the_nearest_place_that_has_them(tmp_path: Path) -> None:
    head = "first = 1\na = 1\nb = 2\nc = 3\nd = 4\nsecond = 2\n"
    before = f"{head}{FAR}\ndistant_name = 1\n"
    after = before.replace("first = 1", "first = 2").replace(
        "second = 2", "second = distant_name + other_name + unheard_name"
    )
    commits = [
        record(1, "b.py", "other_name = 1\n", "other_name = 2\n"),
        record(2, "a.py", before, after),
    ]
    path = write_lines(tmp_path / "x-commits.jsonl.zst", commits)
    found = count_new_words(path, tiny_tokenizer(), tiny_config(prompt_format="redraft-3"))
    assert (found.hunks, found.with_new_word, found.reachable) == (1, 1, 0)
    assert dict(found.words) == {
        "the same file": 1,
        "the same commit": 0,
        "earlier commits": 1,
        "nowhere in the data": 1,
    }
