"""Chains: what exists for one name is cut out of a file, and put back edit by edit."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.edits.hunks import apply_history
from redraft.model.text.names import whole_name
from redraft.model.text.syntax import count_errors, language_of, parse
from redraft.model.training.chains import Chain, chain_of, moment_of
from redraft.model.training.cuts import NamedFile, spans_of, whole_lines, without
from support.weights.training_sources import CHAINED

GO = """package shop

import "fmt"

type Order struct {
	Name     string
	Discount int
	Count    int
}

func NewOrder(name string, discount int) Order {
	return Order{
		Name:     name,
		Discount: discount,
		Count:    1,
	}
}

func (o Order) Print() {
	fmt.Println(o.Name)
	fmt.Println(o.Discount)
	fmt.Println("a line that makes the file long enough to be used for training")
}

func main() {
	order := NewOrder("tea", 5)
	order.Print()
	other := NewOrder("milk", 10)
	other.Print()
}
"""
TYPESCRIPT = """import { readFile, writeFile } from "fs/promises";

interface Settings {
  path: string;
  timeout: number;
  retries: number;
}

const DEFAULTS: Settings = {
  path: "settings.json",
  timeout: 30,
  retries: 2,
};

export async function load(path: string, timeout: number): Promise<Settings> {
  const text = await readFile(path, { encoding: "utf8" });
  return { ...DEFAULTS, ...JSON.parse(text), timeout };
}

export async function save(settings: Settings): Promise<void> {
  await writeFile(settings.path, JSON.stringify(settings));
}
"""
FILES = {"a.py": CHAINED, "a.go": GO, "a.ts": TYPESCRIPT}


def without_name(path: str, name: str, seed: int = 1) -> str | None:
    file = NamedFile.of(path, FILES[path])
    assert file is not None
    spans = spans_of(file, name, random.Random(seed))
    return None if spans is None else without(file.text, spans)


def test_a_field_goes_with_its_parameter_and_its_uses() -> None:
    found = without_name("a.go", "Discount")
    assert found is not None
    assert "iscount" not in found and 'NewOrder("tea")' in found and 'NewOrder("milk")' in found
    assert "func NewOrder(name string) Order {" in found


def test_a_list_element_goes_with_one_comma() -> None:
    found = without_name("a.ts", "writeFile")
    assert found is not None
    assert 'import { readFile } from "fs/promises";' in found and "await writeFile" not in found


def test_lines_go_with_the_comment_above_them() -> None:
    text = "a = 1\n# about b\nb = 2\nc = 3\n"
    start = text.index("b = 2")
    assert whole_lines(text, start, start + 5) == (6, text.index("c = 3"))
    assert whole_lines("x = f(a); y = 2\n", 4, 8) is None, "something else stands in the line"


def test_a_file_with_errors_has_no_chain() -> None:
    assert chain_of("a.py", CHAINED + "\ndef broken(:\n", random.Random(0)) is None
    assert chain_of("a.txt", CHAINED, random.Random(0)) is None


@pytest.mark.parametrize("path", FILES)
def test_every_state_on_the_way_is_free_of_errors(path: str) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(40):
        chain = chain_of(path, FILES[path], random.Random(seed))
        if chain is None:
            continue
        kinds[chain.kind] += 1
        ends = apply_history(path, chain.change.old, chain.change.hunks, len(chain.change.hunks))
        assert ends[0] == chain.change.new
        for lines in (chain.change.old, chain.change.new):
            syntax = parse("\n".join(lines), str(language_of(path)))
            assert syntax is not None and count_errors(syntax) == 0
        assert FILES[path].split("\n") in (chain.change.old, chain.change.new)
        steps = len(chain.change.hunks)
        assert 2 <= steps <= 9 and chain.foreseen and set(chain.foreseen) <= set(range(1, steps))
    assert kinds["added"] and kinds["renamed"]


def test_a_renaming_changes_one_name_in_all_its_lines() -> None:
    found = [chain for chain in _chains(60) if chain.kind == "renamed"]
    assert found
    for chain in found:
        name, old = chain.name, "\n".join(chain.change.old)
        assert name in "\n".join(chain.change.new) and not whole_name(name).search(old)
        for hunk in chain.change.hunks:
            assert len(hunk.old) == len(hunk.new) and any(name in line for line in hunk.new)


def test_a_removal_is_a_chain_played_backwards() -> None:
    gone = [chain for chain in _chains(300) if chain.kind == "removed"]
    assert gone
    for chain in gone:
        assert "\n".join(chain.change.old) == CHAINED
        assert len("\n".join(chain.change.new)) < len(CHAINED)


@given(st.integers(0, 500))
def test_a_moment_of_a_chain_lies_on_its_way(seed: int) -> None:
    rng = random.Random(seed)
    chain = chain_of("a.py", CHAINED, rng)
    if chain is None:
        return
    hunks = chain.change.hunks
    for step in (*chain.foreseen, len(hunks)):
        moment = moment_of(chain, step, 0.3, rng)
        line, column = moment.cursor
        assert 0 <= line < len(moment.lines) and 0 <= column <= len(moment.lines[line])
        assert len(moment.edits) == step
        if moment.target is None:
            assert (moment.kind, moment.lines) == ("none", chain.change.new)
            continue
        done = [*moment.lines]
        done[moment.target.first : moment.target.last] = moment.target.new
        assert done == apply_history("a.py", chain.change.old, hunks, step + 1)[0]


def _chains(count: int) -> list[Chain]:
    found = (chain_of("a.py", CHAINED, random.Random(seed)) for seed in range(count))
    return [chain for chain in found if chain]
