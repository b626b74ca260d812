"""Made-up chains of edits: what was begun is carried on to its end, and what parsed still does."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.model.edits.hunks import apply_history
from redraft.model.text.syntax import count_errors, language_of, parse
from redraft.model.training.chains import (
    KINDS,
    Chain,
    draw_chain,
    key_added,
    literal_changed,
    made_async,
    misspelt,
    parameter_added,
    renamed,
    wrapped,
)
from redraft.model.training.commits import FileChange
from redraft.model.training.half_typed import half_typed

SOURCES = {
    "shop.py": """
CURRENCY = "euro"


def load_items(store, limit):
    found = store.read(limit)
    return [item for item in found if item.open]


def first_item(store):
    items = load_items(store, 1)
    return items[0]


def table(store):
    rows = load_items(store, 500)
    head = {"name": "Name", "width": 500}
    foot = {"name": "Sum", "width": 20}
    return [head, *rows, foot]


def price(item):
    amount = str(item.price)
    tax = str(item.tax)
    return amount + tax + CURRENCY + "euro"
""",
    "shop.ts": """
export async function loadItems(store: Store, limit: number): Promise<Item[]> {
  const found = store.read(limit);
  return found;
}

function cheapest(items: Item[]): Item {
  const sorted = order(items, "price");
  return sorted[0];
}

export function report(items: Item[]): string {
  const best = cheapest(items);
  const worst = order(items, "price");
  const head = { title: "Best", width: 500 };
  const foot = { title: "Worst", width: 500 };
  return print(head, best) + print(foot, worst);
}
""",
    "shop.js": """
const cheapest = (items) => {
  const sorted = order(items, "price");
  return sorted[0];
};

function report(items) {
  const best = cheapest(items);
  const worst = order(items, "price");
  const head = { title: "Best", width: 500 };
  const foot = { title: "Worst", width: 500 };
  return print(head, best) + print(foot, worst);
}
""",
    "shop.go": """package shop

func (s *Store) load(limit int) []Item {
	found := s.read(limit, "price")
	return found
}

func (s *Store) First() Item {
	items := s.load(500)
	return items[0]
}

func (s *Store) Table() []Row {
	items := s.load(500)
	head := Row{Name: "Name", Width: 20}
	foot := Row{Name: "price", Width: len(items)}
	return []Row{head, foot}
}
""",
    "shop.rs": """
fn load_items(store: &Store, limit: usize) -> Vec<Item> {
    let found = store.read(limit, "price");
    found
}

fn first_item(store: &Store) -> Row {
    let items = load_items(store, 500);
    Row { name: items[0].name, width: 20 }
}

fn table(store: &Store) -> Row {
    let items = load_items(store, 500);
    Row { name: "price".into(), width: items.len() }
}
""",
    "Shop.java": """
class Shop {
    private List<Item> loadItems(int limit) {
        List<Item> found = store.read(limit, "price");
        return found;
    }

    Item first() {
        List<Item> items = loadItems(500);
        return items.get(0);
    }

    Item last() {
        List<Item> items = this.loadItems(500);
        return order(items, "price");
    }
}
""",
}
PATHS = sorted(SOURCES)
SCRIPTS = ("shop.py", "shop.ts", "shop.js")


def drawn(kind: Chain, path: str, seeds: int = 60) -> list[FileChange]:
    found = (kind(path, SOURCES[path], random.Random(seed)) for seed in range(seeds))
    return [change for change in found if change is not None]


def states(change: FileChange) -> Iterator[str]:
    """The text before the first hunk, and after each."""
    for made in range(len(change.hunks) + 1):
        yield "\n".join(apply_history(change.path, change.old, change.hunks, made)[0])


def errors(text: str, path: str) -> int:
    syntax = parse(text, language_of(path) or "")
    assert syntax is not None
    return count_errors(syntax)


# --- all kinds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_chain_leads_to_a_text_that_parses_no_worse(name: str, path: str) -> None:
    found = drawn(KINDS[name][0], path)
    impossible = (name == "async" and path not in SCRIPTS) or (name, path) == (
        "key added",
        "Shop.java",
    )
    assert bool(found) != impossible
    for change in found:
        assert len(change.hunks) >= 2
        first, *_, last = states(change)
        assert last == "\n".join(change.new) != first
        assert errors(last, path) == errors(SOURCES[path], path) == 0


@pytest.mark.parametrize("path", PATHS)
def test_a_chain_begins_at_the_definition_and_goes_down_from_there(path: str) -> None:
    for change in drawn(parameter_added, path, 20):
        heads = ("def ", "function ", "func ", "fn ", "private ", "=> {")
        assert any(head in change.hunks[0].new[0] for head in heads)
        below = [h.first for h in change.hunks if h.first >= change.hunks[0].first]
        above = [h.first for h in change.hunks if h.first < change.hunks[0].first]
        assert [h.first for h in change.hunks] == [*sorted(below), *sorted(above)[::-1]]


def test_the_same_draw_makes_the_same_chain() -> None:
    for path, text in SOURCES.items():
        one, other = (draw_chain(path, text, random.Random(7)) for _ in range(2))
        assert one == other is not None


@settings(deadline=None)
@given(st.text(alphabet="ab_(),= \n\"'{}:.", max_size=200), st.integers(0, 1_000))
def test_any_text_is_survived(text: str, seed: int) -> None:
    for path in ("x.py", "x.go", "x.txt"):
        draw_chain(path, text, random.Random(seed))
        half_typed(path, text, random.Random(seed))


# --- names ----------------------------------------------------------------------------------------


def test_a_local_name_is_changed_in_its_function_alone() -> None:
    text = "def one(store):\n    row = store\n    return row\n\n\ndef two(row):\n    return row\n"
    found = [c for seed in range(60) if (c := renamed("a.py", text, random.Random(seed)))]
    untouched = set()
    for change in found:
        halves = zip(text.split("\n\n\n"), "\n".join(change.new).split("\n\n\n"), strict=True)
        untouched |= {at for at, (old, new) in enumerate(halves) if old == new}
        assert len(change.hunks) == 2
    assert untouched == {0, 1}
    at_module = "row = 1\n\n\ndef two(row):\n    return row\n"
    assert renamed("a.py", at_module, random.Random(0)) is None


def test_what_strings_and_keywords_say_keeps_its_name() -> None:
    in_string = 'def go(path):\n    print("path")\n    return path\n'
    keyword = "def go(size):\n    call(size=1)\n    return size\n"
    shorthand = "function go(size) {\n  call({ size });\n  return size;\n}\n"
    foreign = "def close(file):\n    file.close()\n    return 1\n"
    for path, text, name in (
        ("a.py", in_string, "path"),
        ("a.py", keyword, "size"),
        ("a.js", shorthand, "size"),
        ("a.py", foreign, "close"),
    ):
        for seed in range(40):
            change = renamed(path, text, random.Random(seed))
            assert change is None or name in "\n".join(change.new)


def test_a_misspelt_name_is_made_right_after_the_lines_behind_it() -> None:
    for path in PATHS:
        for change in drawn(misspelt, path, 20):
            typed, fixed = change.hunks
            assert typed.first == typed.last == fixed.first + 1
            wrong, right = change.old[fixed.first], fixed.new[0]
            assert wrong != right and abs(len(wrong) - len(right)) <= 1
            assert "\n".join(change.new) == SOURCES[path]


# --- functions and their calls --------------------------------------------------------------------


def test_a_parameter_reaches_every_call_by_place_or_by_name() -> None:
    said = set()
    for change in drawn(parameter_added, "shop.py"):
        if change.hunks[0].new[0].startswith("def load_items"):
            calls = [line for line in change.new if "= load_items(" in line]
            extra = {line.partition(", ")[2].partition(", ")[2] for line in calls}
            assert len(calls) == 2 and len(extra) == 1
            said.add("=" in extra.pop())
    assert said == {True, False}


def test_calls_that_may_be_of_another_function_are_left_alone() -> None:
    text = "def save(a):\n    return a\n\n\ndef run(store, b):\n    return store.save(b)\n"
    assert all(parameter_added("a.py", text, random.Random(seed)) is None for seed in range(20))
    text = text.replace("store.save", "save")
    assert parameter_added("a.py", text, random.Random(0)) is not None


def test_async_goes_on_to_the_callers() -> None:
    found = [c for c in drawn(made_async, "shop.py") if "def load_items" in c.hunks[0].new[0]]
    assert found
    for change in found:
        new = "\n".join(change.new)
        assert new.count("await load_items(") == 2
        made = [hunk.new[0].split("(")[0] for hunk in change.hunks]
        assert made == [
            "async def load_items",
            "    items = await load_items",
            "async def first_item",
            "    rows = await load_items",
            "async def table",
        ]
    arrow = drawn(made_async, "shop.js")[0]
    assert "const cheapest = async (items) => {" in arrow.new
    assert "  const best = await cheapest(items);" in arrow.new


def test_calls_are_wrapped_and_taken_out_again() -> None:
    ways = set()
    for change in drawn(wrapped, "shop.py"):
        old, new = "\n".join(change.old), "\n".join(change.new)
        ways.add(len(new) > len(old))
        assert SOURCES["shop.py"] in (old, new)
    assert ways == {True, False}


# --- values ---------------------------------------------------------------------------------------


def test_a_literal_is_changed_wherever_it_stands() -> None:
    for path in PATHS:
        for change in drawn(literal_changed, path):
            old, new = "\n".join(change.old), "\n".join(change.new)
            said = ("500", '"price"', '"euro"', '"Name"', '"name"', '"width"')
            was, now = (Counter(re.findall(r'"\w+"|\b\d+\b', text)) for text in (old, new))
            (gone,) = [each for each in said if was[each] and not now[each]]
            assert was[gone] > 1 and now[next(iter(now - was))] == was[gone]


def test_all_records_of_a_kind_get_the_key() -> None:
    for path in ("shop.py", "shop.ts", "shop.js", "shop.go", "shop.rs"):
        for change in drawn(key_added, path, 10):
            assert len(change.hunks) == 2 or len(change.hunks[0].new) == 2
            added = {
                line.rsplit(", ", 1)[1] for h in change.hunks for line in h.new if ", " in line
            }
            assert len(added) == 1


def test_a_key_stands_in_a_line_of_its_own_where_the_others_do() -> None:
    text = 'a = {\n    "x": 1,\n    "y": 2\n}\nb = {\n    "x": 3,\n    "y": 4,\n}\n'
    change = key_added("a.py", text, random.Random(1))
    assert change is not None
    new = "\n".join(change.new)
    assert new.count('\n    "') == 6 and errors(new, "a.py") == 0
    assert '"y": 2,\n' in new and '"y": 4,\n' in new


# --- half-typed lines -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_of_a_half_typed_line_the_rest_is_wanted(path: str) -> None:
    told = set()
    for seed in range(40):
        moment = half_typed(path, SOURCES[path], random.Random(seed))
        assert moment is not None and moment.target is not None and moment.kind == "typing"
        at, column = moment.cursor
        (whole,) = moment.target.new
        assert (moment.target.first, moment.target.last) == (at, at + 1)
        assert moment.lines[at] == whole[:column] != whole
        assert "\n".join([*moment.lines[:at], whole, *moment.lines[at + 1 :]]) == SOURCES[path]
        told.add(bool(moment.edits))
        assert all(f"+{whole}" not in edit.diff for edit in moment.edits)
    assert told == {True, False}
