"""Trees of documents that change key by key."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from redraft.lsp.context import trees
from redraft.lsp.context.trees import Trees
from redraft.model.text.syntax import Syntax, parse

CODE = "".join(
    f"function f{n}(a, b) {{\n  const s = `x ${{a + {n}}} y`;\n  return {{ k: s }};\n}}\n\n"
    for n in range(12)
)


def at(text: str) -> Any:
    return SimpleNamespace(uri="file:///w/a.js", path="a.js", language="javascript", text=text)


def broken(count: int, seed: int) -> list[str]:
    """Return the texts of a document that is edited at random and stays broken."""
    rng, text, found = random.Random(seed), CODE, list[str]()
    for _ in range(count):
        place = rng.randrange(len(text))
        new = rng.choice(["(", "`", "{", "}", "    ", "\n", "if ("])
        text = text[:place] + new + text[place + rng.randrange(3) :]
        found.append(text)
    return found


def test_a_broken_text_is_parsed_from_the_last_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    bases: list[str] = []

    def noting(text: str, language: str, earlier: Syntax | None = None) -> Syntax | None:
        bases.append(earlier.text if earlier is not None else "")
        return parse(text, language, earlier)

    monkeypatch.setattr(trees, "parse", noting)
    kept = Trees(lambda job: None)
    texts = [CODE, CODE + "f(", CODE + "f((", CODE + "f(1)", CODE + "f(1) + ("]
    for text in texts:
        kept.get(at(text))
    assert bases == ["", CODE, CODE, CODE, CODE + "f(1)"]


@pytest.mark.parametrize("seed", [1, 2])
def test_trees_of_a_broken_text_equal_a_fresh_parse(seed: int) -> None:
    kept = Trees(lambda job: None)
    kept.get(at(CODE))
    same = 0
    texts = broken(60, seed)
    for text in texts:
        tree, fresh = kept.get(at(text)), parse(text, "javascript")
        assert tree is not None and fresh is not None
        same += str(tree.tree.root_node) == str(fresh.tree.root_node)
    assert same >= len(texts) - 2  # one step may differ too: it is tree-sitter's nature
