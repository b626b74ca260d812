"""Git histories as recordings: not typed by a person, and marked so."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from redraft.evals.sources.documents import Texts
from redraft.evals.sources.git_history import Wanted
from redraft.evals.sources.recorded_moments import coalesce
from redraft.evals.sources.recordings import Recording, read_recording
from redraft.evals.sources.typed_commits import Imported, Simulation, import_git, plan_of
from redraft.lsp.recording.events import Closed, Encountered, Header, SelectionChanged
from redraft.lsp.recording.format import encode, encode_all
from redraft.model.errors import SettingsError
from support.training_sources import write_lines

OLD = "".join(f"def step_{n}(value):\n    return value + {n}\n\n\n" for n in range(12))


def commit(before: str, after: str, path: str = "a.py", name: str = "c0ffee") -> dict[str, Any]:
    files = [{"path": path, "language": "python", "before": before, "after": after}]
    return {"repo": "shop", "commit": name, "time": 1_700_000_000, "files": files}


def renamed(count: int, old: str = OLD) -> str:
    """Return ``count`` functions of OLD with another body, and a new one at the end."""
    for n in range(count):
        old = old.replace(f"return value + {n}\n", f"return combine(value, {n} * factor)\n")
    return old


def typed(tmp_path: Path, *records: dict[str, Any], seed: int = 0) -> Recording:
    simulation, path = Simulation(), tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.write(encode(Header(0, "u", "", "tests", simulated=True)))
        for record in records:
            plan = plan_of(record, seed)
            assert plan is not None
            file.write(encode_all(simulation.type(plan)))
    return read_recording(path)


def texts_at_close(stream: Recording) -> dict[str, str]:
    documents, found = Texts(), {}
    for event in stream.events:
        documents.apply(event)
        if isinstance(event, Closed):
            found[documents.path(event.document)] = documents.text(event.document)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_commit_of_few_edits_is_typed_to_its_end(tmp_path: Path, seed: int) -> None:
    after = renamed(3)
    stream = typed(tmp_path, commit(OLD, after), seed=seed)
    assert texts_at_close(stream) == {"a.py": after}
    assert stream.header.simulated
    assert {change.source for change in stream.changes} == {"user"}


@pytest.mark.parametrize("seed", range(20))
def test_any_edits_are_typed_exactly(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    while True:
        before = [f"line {n} of «text» 😀 {rng.random()}" for n in range(40)]
        after = edited(before, rng)
        record = commit("\n".join(before), "\n".join(after))
        plan = plan_of(record, 0)
        if plan is not None and len(plan.steps) == len(plan.steps[0][0].hunks):
            break  # else it has too few edits, or more than are typed
    assert texts_at_close(typed(tmp_path, record)) == {"a.py": "\n".join(after)}


def edited(before: Sequence[str], rng: random.Random) -> list[str]:
    """Return the lines, some gone, some new, some changed, the first and the last too."""
    after = list(before)
    for at in sorted(rng.sample(range(2, 38, 6), rng.randint(3, 5)), reverse=True):
        come = [f"  new {rng.random()} (it, is)" for _ in range(rng.randrange(4))]
        after[at : at + rng.randrange(3)] = come
        after[at] = after[at].replace("of", rng.choice(("of", "off", "", "of 𝒳, and")))
    return after[rng.randrange(2) : len(after) - rng.randrange(2)]


def test_each_edit_is_an_edit_event_and_the_last_is_left_in_mid_line(tmp_path: Path) -> None:
    plan = plan_of(commit(OLD, renamed(12)), 3)
    assert plan is not None
    stream = typed(tmp_path, commit(OLD, renamed(12)), seed=3)
    events = coalesce(stream)
    assert len(events) == len(plan.steps) + 1
    rest = stream.events[: events[-2].last + 2]  # the cursor, too
    documents = Texts()
    for event in rest:
        documents.apply(event)
    cursor = rest[-1]
    assert isinstance(cursor, SelectionChanged)
    at = documents.index(0, cursor.selections[0][0])
    before = documents.text(0)[:at].rsplit("\n", 1)[-1]
    change, number = plan.steps[-1]
    written = change.hunks[number].new[0]
    assert before.strip() and before != written
    assert written.startswith(before)


def test_definitions_are_typed_before_their_uses(tmp_path: Path) -> None:
    body = "\n".join(f"    value_{n} = {n}" for n in range(30))
    before = (
        f"def run():\n{body}\n    return 1\n\n\ndef other():\n{body}\n    return 2\n\n\nLAST = 1\n"
    )
    after = before.replace("return 1", "return helper(1)").replace("return 2", "return helper(2)")
    after += "\n\ndef helper(count):\n    return count\n"
    began = [
        typed(tmp_path, commit(before, after), seed=seed).changes[0].edits[0].start
        for seed in range(30)
    ]
    # One commit in five is left in the order of the file.
    assert sum(start > before.index("return 2") for start in began) > 15


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(repo: Path, *arguments: str, when: int = 1_700_000_000) -> None:
    me = {"NAME": "T", "EMAIL": "t@example.org", "DATE": f"{when} +0000"}
    named = {
        f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in me.items()
    }
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(repo), "-c", "core.autocrlf=false", *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **named, **plain})


def repository(folder: Path, *versions: dict[str, str | bytes]) -> Path:
    repo = folder / "shop"
    repo.mkdir()
    git(repo, "init")
    for number, files in enumerate(versions):
        for name, content in files.items():
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            (repo / name).write_bytes(data)
        git(repo, "add", "--all")
        when = 1_700_000_000 + 86_400 * number
        git(repo, "commit", "--allow-empty", "-m", f"version {number}", when=when)
    return repo


def imported(repo: Path, out: Path, **wanted: Any) -> tuple[Imported, Recording]:
    shown: list[float | None] = []
    made = import_git(repo, out, Wanted(**wanted), "tests", lambda _, share: shown.append(share))
    assert all(share is None or 0 <= share <= 1 for share in shown)
    return made, read_recording(out)


@needs_git
@pytest.mark.usefixtures("spawn")
def test_a_git_history_becomes_a_simulated_recording(tmp_path: Path) -> None:
    names = ("a b/ünïcode.py", "b.ts")
    repo = repository(
        tmp_path,
        {names[0]: OLD, names[1]: OLD, ".env": OLD, "blob.py": b"\0\xff" * 100},
        {names[0]: renamed(3), ".env": renamed(3), "blob.py": b"\0\xff" * 99},
        {names[1]: renamed(3)},
        {"c.py": OLD},
    )
    made, stream = imported(repo, tmp_path / "out.jsonl")
    assert (made.commits, made.looked_at) == (2, 2)
    assert made.changes == len(stream.changes)
    assert stream.header.simulated
    assert texts_at_close(stream) == {names[0]: renamed(3), names[1]: renamed(3)}


@needs_git
@pytest.mark.usefixtures("spawn")
def test_only_what_is_wanted_is_imported(tmp_path: Path) -> None:
    texts = [renamed(3 * n) for n in range(4)]
    repo = repository(tmp_path, *({"a.py": text, "b.ts": text} for text in texts))

    def named(**wanted: Any) -> list[str]:
        _, stream = imported(repo, tmp_path / "out.jsonl", **wanted)
        return sorted({e.path for e in stream.events if isinstance(e, Encountered)})

    def count(**wanted: Any) -> int:
        return imported(repo, tmp_path / "out.jsonl", **wanted)[0].commits

    assert count() == 3
    assert count(most=2) == 2
    assert count(since="2023-11-17T12:00:00Z") == 1
    assert named(language="typescript") == ["b.ts"]
    _, newest = imported(repo, tmp_path / "out.jsonl", most=1)
    assert texts_of(newest) >= {texts[3]}


def texts_of(stream: Recording) -> set[str]:
    return set(texts_at_close(stream).values())


def test_a_file_of_commits_will_do_for_a_repository(tmp_path: Path) -> None:
    packed = write_lines(tmp_path / "x-commits.jsonl.zst", [commit(OLD, renamed(4))])
    made, stream = imported(packed, tmp_path / "out.jsonl")
    assert (made.commits, stream.header.simulated) == (1, True)
    for wanted in ({"language": "rust"}, {"since": "2024-01-01"}):
        with pytest.raises(SettingsError):
            imported(packed, tmp_path / "out.jsonl", **wanted)
    with pytest.raises(SettingsError, match="nor a file of commits"):
        imported(tmp_path / "out.jsonl", tmp_path / "other.jsonl")


@needs_git
@pytest.mark.usefixtures("spawn")
def test_what_cannot_be_imported_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not a git repository"):
        imported(tmp_path, tmp_path / "out.jsonl")
    empty = repository(tmp_path)
    with pytest.raises(SettingsError, match="that has commits"):
        imported(empty, tmp_path / "out.jsonl")
    git(empty, "commit", "--allow-empty", "-m", "nothing")
    with pytest.raises(SettingsError, match="None of the 0 commits"):
        imported(empty, tmp_path / "out.jsonl")
    with pytest.raises(SettingsError, match="git cannot read"):
        imported(tmp_path / "missing", tmp_path / "out.jsonl")
