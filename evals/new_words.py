"""Count the words of next edits that stand nowhere in the prompt, by where else they stand.

An edit with such a word cannot be copied from the prompt. The count says how many of the words more
context could bring.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from redraft.model.config import ModelConfig
from redraft.model.prompts.format import Prompt
from redraft.model.prompts.registry import format_of
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.training.rows import names_in
from redraft.model.training.shards import read_records

from .gather import SERVED, gather
from .scorers.next_edit import lines_written
from .sources.commits import changes_of
from .sources.next_edits import steps_in
from .spec import RunSpec

#: The first of these in which a word stands counts. Of a project, the data hold only the files of
#: commits; "earlier commits" are those of the same repository.
Where = Literal["the same file", "the same commit", "earlier commits", "nowhere in the data"]


@dataclass(slots=True)
class NewWords:
    """Counts over whole hunks."""

    hunks: int = 0
    with_new_word: int = 0
    reachable: int = 0  # of these: all new words stand elsewhere in the data
    words: Counter[Where] = field(default_factory=Counter)  # each word of a hunk once


def count_new_words(commits: Path, tokenizer: Tokenizer, config: ModelConfig) -> NewWords:
    """Count the new words of the next edits of held-out commits, with prompts as they are served.

    Args:
        commits: a ``*-commits.jsonl.zst``.
    """
    records = sorted(read_records(commits), key=lambda record: int(record["time"]))
    known: dict[str, set[str]] = {}  # by repository: names in the files of earlier commits
    spec, counts = RunSpec("edits", context_tokens=SERVED), NewWords()
    for record in records:
        earlier = known.setdefault(record["repo"], set())
        for example in steps_in(changes_of(record)):
            if not example.truth.texts:
                continue
            request = gather(example, spec).request
            prompt = format_of(config.prompt_format).render(request, tokenizer, config, SERVED)
            assert isinstance(prompt, Prompt)
            moment = example.moment
            new = names_in(lines_written(moment.text, example.truth.texts[0]))
            new -= names_in([tokenizer.decode(prompt.tokens)])
            counts.hunks += 1
            counts.with_new_word += bool(new)
            places: dict[Where, set[str]] = {
                "the same file": names_in([moment.text]),
                "the same commit": names_in(other.text for other in moment.others),
                "earlier commits": earlier,
            }
            left = set(new)
            for where, names in places.items():
                counts.words[where] += len(left & names)
                left -= names
            counts.words["nowhere in the data"] += len(left)
            counts.reachable += bool(new) and not left
        earlier |= _names_of(record)
    return counts


def _names_of(record: dict[str, Any]) -> set[str]:
    """Return the names in the files of a commit, before and after it."""
    return names_in(file[side] or "" for file in record["files"] for side in ("before", "after"))
