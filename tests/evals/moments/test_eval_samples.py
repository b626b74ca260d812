"""Samples of held-out commits: true to the commits, and the same every time."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.evals.example import Example, Moment, Row, Truth
from redraft.evals.gather import gather
from redraft.evals.sandbox.sandbox import run_program
from redraft.evals.scorers.next_edit_scores import decide, find_difference, score
from redraft.evals.sources.commits import CommitChange, fingerprint, in_turn, read_changes
from redraft.evals.sources.gaps import gaps_of, human_eval, whole_files
from redraft.evals.sources.next_edits import steps_of
from redraft.evals.spec import RunSpec
from redraft.lsp.documents.history import SHOWN_EDITS
from redraft.model.edits.hunks import recent_edit
from redraft.model.errors import SettingsError
from redraft.model.prompts.redraft3 import window
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction, RecentEdit
from redraft.model.wire import check_request
from support.weights.training_sources import write_lines

OLD = [f"value_{i} = compute({i})" for i in range(90)]
PLACES = (3, 9, 30, 31, 80)  # two hunks in sight, one of two lines, one far off
NEW = [f"total_{i} = measure({i}, unit)" if i in PLACES else line for i, line in enumerate(OLD)]


def change(number: int = 0, language: str = "python") -> CommitChange:
    name = f"r@c{number}"
    return CommitChange(f"{name}:a.py", name, "a.py", language, "\n".join(OLD), "\n".join(NEW))


def commits(folder: Path) -> Path:
    record = {"repo": "r", "commit": "0123456789abc", "time": 0, "files": [
        {"path": "a.py", "language": "python", "before": "a\r\nb\r\n", "after": "a\r\nc\r\n"},
        {"path": "gone.py", "language": "python", "before": "a", "after": None},
        {"path": "new.py", "language": "python", "before": None, "after": "hello = world\n"},
    ]}  # fmt: skip
    return write_lines(folder / "dev-commits.jsonl.zst", [record])


def test_reading_commits_drops_crs_and_deleted_files(tmp_path: Path) -> None:
    first, second = read_changes(commits(tmp_path))
    assert first == CommitChange(
        "r@0123456789:a.py", "r@0123456789", "a.py", "python", "a\nb\n", "a\nc\n"
    )
    assert (second.path, second.before) == ("new.py", "")


def test_what_is_no_file_of_commits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.zst"
    path.write_text("plain")
    with pytest.raises(SettingsError, match="is not a file of commits"):
        list(read_changes(path))
    with pytest.raises(SettingsError, match="is not a file of commits"):
        list(read_changes(tmp_path / "missing"))


def test_samples_are_nested_and_alternate_languages() -> None:
    pool = [gap for i in range(30) for gap in gaps_of(change(i, "python" if i < 25 else "go"))]
    small, large = in_turn(pool, 10, seed=1), in_turn(pool, 40, seed=1)
    assert large[:10] == small
    assert sorted(gap.language for gap in small) == ["go"] * 5 + ["python"] * 5
    assert in_turn(reversed(pool), 10, seed=1) == small
    assert in_turn(pool, 10, seed=2) != small
    assert sorted(gap.id for gap in in_turn(pool, None, 1)) == sorted(gap.id for gap in pool)


def test_a_fingerprint_changes_with_any_text() -> None:
    one, other = list(gaps_of(change(0))), list(gaps_of(change(1)))
    assert fingerprint(one) == fingerprint(list(reversed(one))) != fingerprint(other)


def test_gaps_are_taken_out_of_what_the_commit_wrote() -> None:
    for number in range(40):
        found = {gap.kind: gap for gap in gaps_of(change(number))}
        assert set(found) <= {"line", "tail", "lines"} and "line" in found
        for kind, gap in found.items():
            assert gap.truth.texts == ("\n".join(NEW),)
            assert gap.middle == gap.middle.strip("\n") and gap.middle.strip()
            first = gap.moment.prefix.count("\n")
            last = first + gap.middle.count("\n")
            assert {first, last} <= set(PLACES)
            assert (last > first) == (kind == "lines")
            assert gap.moment.suffix.startswith("\n") or not gap.moment.suffix
            if kind == "line":
                assert gap.middle == NEW[first]
            if kind == "tail":
                assert NEW[first].endswith(gap.middle) and gap.middle != NEW[first]
            assert gap.truth.test == ""


#: A problem of each official file, cut out of one program: prompt, middle, suffix.
OFFICIAL = {
    "SingleLineInfilling/HumanEval/7/L1": ("def f(x):\n", "    y = x + 1\n", "    return y\n"),
    "MultiLineInfilling/HumanEval/7/L1_L2": ("def f(x):\n", "    y = x + 1\n    return y\n", ""),
    "RandomSpanInfilling/HumanEval/7/1": ("def f(x):\n    y", " = x + 1\n    re", "turn y\n"),
    "RandomSpanInfillingLight/HumanEval/7/1": ("def f(x):\n    y = x", " + ", "1\n    return y\n"),
}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", OFFICIAL)
@pytest.mark.usefixtures("spawn")
def test_official_files_are_read_and_pass(name: str, packed: bool, tmp_path: Path) -> None:
    prompt, middle, suffix = OFFICIAL[name]
    record = {
        "task_id": name, "entry_point": "f", "prompt": prompt, "suffix": suffix,
        "canonical_solution": middle, "test": "def check(f):\n    assert f(1) == 2\n",
    }  # fmt: skip
    path = tmp_path / f"HumanEval-{name.partition('/')[0]}.jsonl"
    data = json.dumps(record).encode() + b"\n"
    path.write_bytes(gzip.compress(data) if packed else data)
    (gap,) = human_eval(path)
    assert (gap.id, gap.group, gap.kind) == (name, "HumanEval/7", name.partition("/")[0])
    assert (gap.moment.prefix, gap.middle, gap.moment.suffix) == OFFICIAL[name]
    assert run_program(gap.truth.texts[0] + gap.truth.test, confined=False).passed
    assert not run_program(gap.moment.text + gap.truth.test, confined=False).passed


def test_what_is_no_file_of_human_eval_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "HumanEval-SingleLineInfilling.jsonl.gz"
    for nonsense in (b"not gzip", b"", gzip.compress(b"{}"), gzip.compress(b"{}")[:-9]):
        path.write_bytes(nonsense)
        with pytest.raises(SettingsError, match="is not a file of HumanEval-Infilling"):
            human_eval(path)


def test_gaps_of_whole_files_may_be_anywhere() -> None:
    text = "".join(f"value_{i} = compute({i})\n" for i in range(60))
    files = [("a.py", text), ("b.go", text.replace("\n", "\r\n")), ("c.unknown", text)]
    found = [gap for change in whole_files("repo", files) for gap in gaps_of(change)]
    assert {gap.group for gap in found} == {"repo:a.py", "repo:b.go"}
    assert {gap.language for gap in found} == {"python", "go"}
    assert {gap.kind for gap in found} == {"line", "tail", "lines"}
    assert all(gap.truth.texts == (text,) for gap in found)


def some_steps(count: int = 120) -> list[Example]:
    return [step for number in range(count) for step in steps_of(change(number))]


def test_a_moment_lies_between_the_commits_two_sides() -> None:
    lines = {f"{i}": (old, new) for i, (old, new) in enumerate(zip(OLD, NEW, strict=True))}
    for step in some_steps():
        moment, state = step.moment, step.moment.text.split("\n")
        assert all(line in lines[str(i)] for i, line in enumerate(state))
        made = sum(line != old for line, old in zip(state, OLD, strict=True))
        assert made >= 1 and 1 <= len(moment.edits) <= SHOWN_EDITS
        if step.kind == "nothing left":
            assert moment.text == step.truth.final == "\n".join(NEW) and not step.truth.texts
        else:
            wanted = step.truth.texts[0].split("\n")
            differs = [i for i, line in enumerate(wanted) if line != state[i]]
            assert differs and all(wanted[i] == NEW[i] for i in differs)


def test_the_next_edit_is_always_in_the_serving_window() -> None:
    kinds = set()
    for step in some_steps():
        kinds.add(step.kind)
        text = step.moment.text
        line = text.count("\n", 0, step.moment.cursor)
        first, last = window(line, len(OLD))
        begin, end = find_difference(text, (*step.truth.texts, text)[0])
        assert first <= begin and end <= last
    assert kinds == {"near the last edit", "elsewhere", "nothing left"}


def test_one_moment_in_ten_has_nothing_left_to_do() -> None:
    steps = some_steps(300)
    assert 0.06 < sum(step.kind == "nothing left" for step in steps) / len(steps) < 0.14


def test_no_range_is_revealed_and_the_history_is_sent() -> None:
    step = some_steps(1)[0]
    request = gather(step, RunSpec("edits", context_tokens=512, max_tokens=64)).request
    assert isinstance(request, EditRequest)
    check_request(request)
    assert (request.task, request.edits) == ("next_edit", step.moment.edits)
    assert (request.text, request.cursor) == (step.moment.text, step.moment.cursor)
    assert (request.min_tokens, request.max_tokens, request.context_tokens) == (1, 64, 512)
    line = request.text.count("\n", 0, request.cursor)
    assert request.region is not None and request.region[0] <= line < request.region[1]


TEXT = "a = 1\nb = 2\nc = 3\n"


def step_of(*wanted: str, edits: tuple[RecentEdit, ...] = ()) -> Example:
    """Return a moment at which ``wanted`` is right, else nothing."""
    moment = Moment("a.py", "python", TEXT, 0, edits)
    tags = {"kind": "near the last edit" if wanted else "nothing left"}
    return Example("s", "g", "next_edit", tags, moment, Truth(wanted, (*wanted, TEXT)[0]))


def episode(step: Example, prediction: Prediction, least: float = 0.0) -> Row:
    answered = replace(step, prediction=prediction)
    return score(replace(answered, decision=decide(answered, least)))


def saying(*change: tuple[int, int, str]) -> Prediction:
    sure = Confidence(0.9, 0.9, 0.9)
    candidates = tuple(Candidate(*each, sure, 4, 2, "end") for each in change)
    return Prediction("x", "m", candidates, "" if candidates else "would change nothing")


@pytest.mark.parametrize(
    ("change", "is_destructive"),
    [
        ((0, 6, ""), True),  # lines go without a reason
        ((6, 12, "b = 7\n"), False),
        ((6, 12, "b = 2\nold = 5\n"), True),  # what the user removed comes back
    ],
)
def test_destructive_answers_are_counted_and_not_shown(
    change: tuple[int, int, str], is_destructive: bool
) -> None:
    gone = RecentEdit("a.py", 2, " b = 2\n-old = 5\n c = 3\n")
    row = episode(step_of(WANTED, edits=(gone,)), saying(change))
    assert row["destructive"] == is_destructive
    assert row["destructive_shown"] == (None if is_destructive else False)
    assert row["true_refused"] is False


def test_emptying_the_whole_region_is_destructive() -> None:
    text, gone = "first = 1\nbeta = 2\n", (RecentEdit("a.py", 2, "-print(beta)\n"),)
    step = step_of("first = 1\n", edits=gone)
    step = replace(step, moment=replace(step.moment, text=text))
    for region, is_emptied in (((1, 2), True), ((0, 2), False)):
        request = EditRequest("next_edit", "a.py", text, 0, "python", region=region)
        row = episode(replace(step, request=request), saying((10, 19, "")))
        assert (row["destructive"], row["true_refused"]) == (is_emptied, False)


WANTED = "a = 1\nb = 7\nc = 3\n"


def test_an_edit_is_exact_when_the_document_is() -> None:
    found = episode(step_of(WANTED), saying((6, 12, "b = 7\n")))
    assert (found["exact"], found["shown"], found["place_shown"]) == (True, True, True)
    assert found["expected"] == found["found"] == {"first": 1, "last": 2, "text": "b = 7"}
    wider = episode(step_of(WANTED), saying((0, 12, "a = 1\nb = 7\n")))
    assert wider["exact"], "lines written again unchanged do no harm"
    assert (wider["quiet"], wider["right_quiet"]) == (None, None)


def test_a_filtered_candidate_is_never_shown() -> None:
    """The gate is the users': the first candidate that passes is what they see."""
    broken, right = (0, 6, "a = (1\n"), (6, 12, "b = 7\n")
    found = episode(step_of(WANTED), saying(broken, right))
    assert (found["exact"], found["shown"], found["exact_shown"]) == (False, True, True)
    assert (found["abstained"], found["barred"]) == (None, True)
    silent = episode(step_of(WANTED), saying(broken))
    assert (silent["shown"], silent["exact_shown"]) == (False, None)
    assert (silent["abstained"], silent["barred"]) == ("syntax_errors", True)
    unsure = episode(step_of(WANTED), saying(right), least=0.95)
    assert (unsure["shown"], unsure["exact"]) == (False, True)
    assert (unsure["abstained"], unsure["barred"]) == ("below_threshold", False)


def test_an_edit_that_undoes_typing_is_not_shown() -> None:
    typed = recent_edit("a.py", ["a = 1", "c = 3"], 1, 1, ("b = 2",))
    found = episode(step_of(edits=(typed,)), saying((6, 12, "")))
    assert (found["quiet"], found["abstained"]) == (True, "reversal")


def test_a_wrong_edit_may_be_at_the_right_place() -> None:
    right = episode(step_of(WANTED), saying((6, 12, "b = 8\n")))
    assert (right["exact"], right["place_shown"]) == (False, True)
    wrong = episode(step_of(WANTED), saying((12, 18, "c = 8\n")))
    assert (wrong["exact"], wrong["place_shown"]) == (False, False)


def test_silence_is_right_only_where_nothing_is_left() -> None:
    silent = episode(step_of(WANTED), saying())
    assert (silent["exact"], silent["shown"], silent["right_quiet"]) == (False, False, False)
    assert (silent["exact_shown"], silent["place_shown"], silent["quiet"]) == (None, None, None)
    done = episode(step_of(), saying())
    assert (done["quiet"], done["right_quiet"]) == (True, True)
    assert (done["exact"], done["shown"]) == (None, None)
    noisy = episode(step_of(), saying((0, 6, "a = 9\n")))
    assert (noisy["quiet"], noisy["right_quiet"], noisy["exact_shown"]) == (False, None, None)
