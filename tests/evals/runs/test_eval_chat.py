"""Fifty small requests: they are well made, and their answers are judged as they should be."""

from __future__ import annotations

from functools import partial

import pytest
from redraft.evals.sandbox import sandbox
from redraft.evals.scorers.small_questions import ChatTask, is_done, tasks

run_program = partial(sandbox.run_program, confined=False)
BY_QUESTION = {task["question"]: task for task in tasks().values()}


def task_of(beginning: str) -> ChatTask:
    [found] = [task for question, task in BY_QUESTION.items() if question.startswith(beginning)]
    return found


@pytest.mark.usefixtures("spawn")
def test_there_are_fifty_and_each_wants_something() -> None:
    found = tasks().values()
    assert len(found) == len(BY_QUESTION) == 50
    for task in found:
        assert task.keys() & {"all", "any", "pattern", "holds"}, task["question"]
        assert not is_done(task, "", run_program), task["question"]


@pytest.mark.parametrize(
    ("beginning", "text", "done"),
    [
        ("What is the capital of France", "PARIS.", True),
        ("What is the capital of France", "London.", False),
        ("Which git command makes a new branch", "Use `git switch -c dev`.", True),
        ("List the three primary colours", "blue, red, yellow", True),
        ("List the three primary colours", "red, blue, yellow", False),
        ("Say only the word OK", "OK.", True),
        ("Say only the word OK", "OK, I will do that.", False),
        ("Summarise in five words", "A fox jumps over a dog.", True),
        (
            "Summarise in five words",
            "The quick brown fox jumps over the dog, then it rests.",
            False,
        ),
        ("Write a Python function add", "```python\ndef add(a, b):\n    return a + b\n```", True),
        ("Write a Python function add", "def add(a, b):\n    return a - b\n", False),
        ("Write a Python function add", "Sorry, I cannot.", False),
    ],
)
@pytest.mark.usefixtures("spawn")
def test_answers_are_judged_by_what_they_hold(beginning: str, text: str, done: bool) -> None:
    assert is_done(task_of(beginning), text, run_program) is done
