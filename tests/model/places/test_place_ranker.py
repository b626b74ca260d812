"""Ranker of places: scores, places, chances, and the file that is shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from redraft.model.errors import WeightsError
from redraft.model.places import ranker as ranking
from redraft.model.places.last_edits import LastEdits
from redraft.model.places.line_features import COLUMNS, columns_of
from redraft.model.places.line_index import Floats, LineIndex
from redraft.model.places.ranker import (
    APART,
    HIDDEN,
    INPUTS,
    File,
    Ranker,
    find_shared_word,
    inputs_of,
    load_ranker,
    load_shipped_ranker,
    places_of,
    save_ranker,
)
from redraft.model.records import RecentEdit

FILLER = [f"value_{number} = {number}" for number in range(40)]
CALLER = "    total = fetch(url)"
TEXT = ["def fetch(url, timeout):", "    return get(url)", *FILLER, CALLER, *FILLER, CALLER]
EDITS = LastEdits(
    [RecentEdit("a.py", 0, "-def fetch(url):\n+def fetch(url, timeout):\n     return get(url)\n")]
)


def a_file(lines: list[str], path: str = "a.py") -> File:
    return File(path, "python", LineIndex.of(lines))


def scored(*best: tuple[int, float], total: int = 60) -> Floats:
    found = np.full(total, -9.0, np.float32)
    for line, score in best:
        found[line] = score
    return found


def random_ranker() -> Ranker:
    rng = np.random.default_rng(1)
    shapes = {"input": (INPUTS, HIDDEN), "input_bias": (HIDDEN,), "output": (HIDDEN,)}
    tensors = {name: rng.normal(0, 0.3, shape) for name, shape in shapes.items()}
    tensors["output_bias"] = rng.normal(0, 1, 1)
    return Ranker({name: each.astype(np.float32) for name, each in tensors.items()})


@pytest.mark.parametrize("path", ["a.py", "b.py"])
def test_scores_equal_a_plain_forward_pass(path: str) -> None:
    ranker = random_ranker()
    columns = columns_of(LineIndex.of(TEXT), EDITS, path, "python")
    inputs = inputs_of(np.stack([columns[name] for name in COLUMNS], axis=1))
    hidden = np.maximum(inputs @ ranker.tensors["input"] + ranker.tensors["input_bias"], 0)
    slow = hidden @ ranker.tensors["output"] + ranker.tensors["output_bias"]
    assert np.allclose(ranker.scores(columns), slow, atol=1e-3)


def test_places_are_apart_and_the_best_is_first() -> None:
    scores = scored((10, 3.0), (40, 2.5), (43, 2.0), (40 + APART + 1, 1.0), total=80)
    places = places_of([a_file(FILLER + FILLER)], [scores], EDITS, 3)
    assert [place.line for place in places] == [10, 40, 47]
    assert places[0].lead == pytest.approx(0.5, abs=0.01)


def test_chances_and_nothing_left_sum_to_one_at_most() -> None:
    files = [a_file(FILLER), a_file(FILLER, "b.py")]
    scores = [scored((3, 1.0), total=40), scored((30, 4.0), total=40)]
    places = places_of(files, scores, EDITS, 8)
    assert [(place.file, place.line) for place in places[:2]] == [(1, 30), (0, 3)]
    assert 0 < sum(place.chance for place in places) < 1
    assert all(0 < place.left_in_file < 1 for place in places)


def test_lines_around_a_place_count_for_its_chance() -> None:
    alone, pair = (
        places_of([a_file(FILLER)], [scored(*best, total=40)], EDITS, 1)[0].chance
        for best in ([(10, 1.0)], [(10, 1.0), (12, 1.0)])
    )
    assert pair > alone


@pytest.mark.parametrize(("line", "is_far"), [(1, False), (12, False), (13, True)])
def test_a_far_place_is_beyond_twelve_lines(line: int, is_far: bool) -> None:
    [place] = places_of([a_file(FILLER)], [scored((line, 1.0), total=40)], EDITS, 1)
    assert place.is_far == is_far
    [other] = places_of([a_file(FILLER, "b.py")], [scored((line, 1.0), total=40)], EDITS, 1)
    assert other.is_far


def test_shared_word_of_a_caller_is_the_function() -> None:
    index = LineIndex.of(TEXT)
    assert find_shared_word(index, TEXT.index(CALLER), EDITS) == "fetch"
    assert find_shared_word(index, 20, EDITS) == ""


def test_shipped_ranker_finds_the_callers() -> None:
    places = load_shipped_ranker().rank([a_file(TEXT)], EDITS, 5)
    callers = [number for number, line in enumerate(TEXT) if line == CALLER]
    assert {place.line for place in places if place.is_far} >= set(callers)


def test_an_empty_file_has_a_place_without_error() -> None:
    assert len(load_shipped_ranker().rank([a_file([""])], LastEdits(()), 3)) == 1


def test_shipped_weights_are_small_and_have_a_card() -> None:
    assert ranking.SHIPPED.stat().st_size < 24_000
    page = ranking.SHIPPED.with_suffix(".md").read_text(encoding="utf-8")
    assert ranking.SHIPPED_SHA256 in page and "hit@1" in page


def test_weights_come_back_as_they_were_saved(tmp_path: Path) -> None:
    ranker, path = random_ranker(), tmp_path / "r.safetensors"
    sha256 = save_ranker(ranker, path, {"seed": "1"})
    again = load_ranker(path, sha256)
    assert all((again.tensors[name] == each).all() for name, each in ranker.tensors.items())


def test_other_weights_than_the_shipped_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.safetensors"
    save_ranker(random_ranker(), path, {})
    with pytest.raises(WeightsError, match="Reinstall"):
        load_ranker(path, "0" * 64)


def test_weights_for_other_features_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.safetensors"
    save_ranker(random_ranker(), path, {})
    monkeypatch.setattr(ranking, "COLUMNS", COLUMNS[1:])
    with pytest.raises(WeightsError, match="train places"):
        load_ranker(path)
