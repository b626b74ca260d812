"""Changes of an expression, proposed at the other places of its shape."""

from __future__ import annotations

import pytest
from support.rules import history, proposed


def restyled(path: str, text: str, *changes: tuple[str, str]) -> list[tuple[int, str]]:
    """Return the rows and the new lines that are proposed after changes, one after another."""
    edits = ()
    for old, new in changes:
        after = text.replace(old, new, 1)
        edits, text = (*edits, *history(text, after, path)), after
    found = (each for each in proposed(edits, text, path=path) if each.family == "restyle")
    return sorted((each.first, "\n".join(each.lines).strip()) for each in found)


ASSERTS = """\
def test_soup(self):
    assert taste(soup) == "salty"
    assert smell(soup) == "sweet"
    assert look(soup) == "red"
    assert soup.heat == 80
    assert len(soup.guests) == 4, "guests"
    assert a == b == c
    assert spoon
    assert bowl == "é" or cup
    text = "assert x == y"
"""
UNWRAPS = """\
fn read(path: &Path) -> Result<Song> {
    let file = open(path).unwrap();
    let size = file.size().unwrap();
    // file.size().unwrap()
    Ok(song)
}

fn play(song: Song) {
    let line = song.next().unwrap();
}

fn stop(song: Song) -> Result<()> {
    song.end().unwrap();
    Ok(())
}
"""
CHAINS = """\
const name = boat.crew && boat.crew.name;
const age = boat.mast && boat.mast.age;
const other = boat.mast && boat.sail.age;
const text = `${boat.sail && boat.sail.colour}`;
const call = (boat.keel && boat.keel.weigh(rope)) || 1;
const three = boat.oar && boat.oar.end && boat.oar.end.x;
const odd = boat.sailor && boat.sailors.x;
"""
KEYS = """\
def load(lamp):
    print(lamp["volts"])
    b = lamp["watts"] + other["volts"]
    lamp["watts"] = lamp["not a name"]
    return f"{lamp['colour']}"


def save(lamp):
    return lamp["watts"]


def drop(x):
    return lamp["watts"]
"""


def test_statements() -> None:
    first = 'assert taste(soup) == "salty"', 'self.assertEqual(taste(soup), "salty")'
    assert restyled("a.py", ASSERTS, first) == []  # fewer than half of such changes go on
    second = 'assert smell(soup) == "sweet"', 'self.assertEqual(smell(soup), "sweet")'
    found = restyled("a.py", ASSERTS, first, second)
    assert found == [(3, 'self.assertEqual(look(soup), "red")')]


def test_a_question_mark_needs_a_fallible_function() -> None:
    found = restyled("a.rs", UNWRAPS, ("open(path).unwrap()", "open(path)?"))
    assert found == [(2, "let size = file.size()?;")]


def test_chains_of_scripts() -> None:
    found = restyled("a.ts", CHAINS, ("boat.crew && boat.crew.name", "boat.crew?.name"))
    assert found == [
        (1, "const age = boat.mast?.age;"),
        (3, "const text = `${boat.sail?.colour}`;"),
        (4, "const call = boat.keel?.weigh(rope) || 1;"),
    ]


def test_calls_of_another_function() -> None:
    text = (
        "def f(x):\n    print(x)\n    print('a')\n    print(x, 1)\n    print(*x)\n    x.print(x)\n"
    )
    found = restyled("a.py", text, ("print(x)", "logger.info(x)"))
    assert found == [(2, "logger.info('a')")]


def test_keys_of_the_same_object() -> None:
    found = restyled("a.py", KEYS, ('lamp["volts"]', "lamp.volts"))
    assert found == [
        (2, 'b = lamp.watts + other["volts"]'),
        (4, 'return f"{lamp.colour}"'),
        (8, "return lamp.watts"),
    ]


def test_a_place_between_two_changes_was_passed_over() -> None:
    text = "a = load(x)\nb = load(y)\nc = load(z)\nd = load(w)\n"
    changes = ("load(x)", "fetch(x, 1)"), ("load(z)", "fetch(z, 1)")
    assert [row for row, _ in restyled("a.py", text, *changes)] == [3]


def test_a_long_sum_is_read_without_recursion() -> None:
    long = " + ".join(["name"] * 3_000)
    text = f'const a = "b" + c;\nconst d = {long};\nconst e = f + " cm";\n'
    assert restyled("a.js", text, ('"b" + c', "`b${c}`")) == [(2, "const e = `${f} cm`;")]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = a + 1\ny = b + 1\n", "a + 1", "1 + a"),  # no name
        ("x = save(a)\ny = save(b)\n", "save(a)", "save(a, a)\n"),
        ("x = size(a)\ny = size(b - c)\n", "size(a)", "10 - a"),  # operators bind otherwise
        ("x = load(a)\ny = 'load(b)'\n# load(c)\n", "load(a)", "fetch(a)"),
        ("x = load(a)\ny = load(b\n", "load(a)", "fetch(a)"),  # broken
        ("load(a)\n" * 60, "load(a)", "fetch(a)"),  # too many
    ],
)
def test_nothing_follows(text: str, old: str, new: str) -> None:
    assert restyled("a.py", text, (old, new)) == []


TEXTS = """\
a = "%s: %s" % (pond.name, frogs)
b = "<%s>" % ", ".join(frogs)
c = "%d of 100%% {frogs}" % count("pond")
d = "%(frog)s" % pond
e = "%s %s" % pair
f = 7 % frogs
g = b"%s" % frogs
h = '%s' % f("a", 'b')
# "%s" % frog
"""
FORMATS = """\
a = "{} and {}".format(toad, newt)
b = "{!r} in {{}} {:.2f}".format(pond["x"], depth)
c = "{0}".format(toad)
d = "{}".format(*toads)
e = "{name}".format(name=toad)
"""
SUMS = """\
const a = "hop " + frog.name + "!";
const b = depth + " cm";
const c = depth + width + " cm";
const d = "a" + "b";
const e = say("é " + (depth + 1));
const f = depth + width;
const g = depth + ' it\\'s';
const h = depth + "`";
"""


@pytest.mark.parametrize(
    ("path", "text", "change", "expected"),
    [
        (
            "a.py",
            TEXTS,
            ('"%s: %s" % (pond.name, frogs)', 'f"{pond.name}: {frogs}"'),
            [
                (1, "b = f\"<{', '.join(frogs)}>\""),
                (2, "c = f\"{count('pond')} of 100% {{frogs}}\""),
            ],
        ),
        (
            "a.py",
            FORMATS,
            ('"{} and {}".format(toad, newt)', 'f"{toad} and {newt}"'),
            [(1, "b = f\"{pond['x']!r} in {{}} {depth:.2f}\"")],
        ),
        (
            "a.ts",
            SUMS,
            ('"hop " + frog.name + "!"', "`hop ${frog.name}!`"),
            [(1, "const b = `${depth} cm`;"), (4, "const e = say(`é ${(depth + 1)}`);")],
        ),
    ],
)
def test_texts_become_templates(
    path: str, text: str, change: tuple[str, str], expected: list[tuple[int, str]]
) -> None:
    assert restyled(path, text, change) == expected
