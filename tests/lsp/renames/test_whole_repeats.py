"""Changes made alike in two lines, carried on to the other places of that shape."""

from __future__ import annotations

import asyncio
import time

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.suggestion import Offer
from support.editors.predictor import ScriptedPredictor
from support.renames import repeats, results

PRINTS = """\
from log import logger


def run(name, both):
    print("start")
    print(name)
    print(f"{name} é", sep="")
    print(name, both)
    print(*both)
    print(run(name, both))  # a comment
    seen = print(name)
    text = 'print(name)'
    return f"{print(name)}"


def stop():
    print("stop")
    if stop:
        print("stopped")
"""
FIRST = ('print("start")', 'logger.info("start")')
SECOND = ("    print(name)\n    print(f", "    logger.info(name)\n    print(f")
CONFIG = """\
def load(config, other):
    a = config["host"]
    b = config["port"]
    c = config["user"]
    d = config["user-name"] + other["host"]
    config["user"] = 1
    return config['path'], config[a]


def save(config):
    return config["host"]
"""
TS = """\
function run(config: any) {
  assertEqual(config.a, 1);
  assertEqual(config.b, `two`);
  assertEqual(config.c, (x, y) => x);
  assertEqual(config.d);
  assertEqual(...config.e, 2);
  this.assertEqual(config.f, 1);
}
"""
GO = """\
package a

func TestOne(t *testing.T) {
	t.Fatal(one)
}

func TestTwo(t *testing.T) {
	t.Fatal(two)
}

func TestThree(t *testing.T) {
	t.Fatal(three)
}

func TestFour(t other.T) {
	t.Fatal(four)
}
"""


def one(path: str, text: str, *changes: tuple[str, str]) -> str:
    """Return the text after the only change that is carried on."""
    (found,) = repeats(path, text, *changes)
    (result,) = results(found).values()
    return result


def test_a_call_changed_twice_changes_its_like() -> None:
    (found,) = repeats("a.py", PRINTS, FIRST, SECOND)
    assert found.label == "change `print(…)` to `logger.info(…)` at 3 places"
    expected = PRINTS
    for text in ('"start"', "run(name, both)", '"stop"', '"stopped"'):
        expected = expected.replace(f"print({text})", f"logger.info({text})")
    expected = expected.replace(
        "    print(name)\n    print(f", "    logger.info(name)\n    print(f"
    )
    assert results(found) == {"a.py": expected}


def test_one_change_says_nothing_of_other_places() -> None:
    assert repeats("a.py", PRINTS, FIRST) == []


def test_a_key_that_became_a_member_goes_on() -> None:
    (found,) = repeats("a.py", CONFIG, ('config["host"]\n    b', "config.host\n    b"))
    expected = CONFIG.replace('config["host"]\n    b', "config.host\n    b")
    expected = expected.replace('config["port"]', "config.port").replace(
        'c = config["user"]', "c = config.user"
    )
    expected = expected.replace("config['path']", "config.path")
    assert results(found) == {"a.py": expected}


def test_another_object_of_the_same_name_is_left() -> None:
    text = "def f(a):\n    x = a['b']\n    a = g()\n    return a['c']\n"
    assert repeats("a.py", text, ("a['b']", "a.b")) == []


def test_parts_are_carried_over_in_their_new_places() -> None:
    changes = ('config["host"]\n    b', "config.host\n    b"), ('config["port"]', "config.port")
    after = one("a.py", CONFIG, *changes)
    assert "    c = config.user\n" in after
    assert 'config["user-name"] + other["host"]' in after
    assert 'config["user"] = 1' in after
    assert "return config.path, config[a]" in after
    assert after.endswith('    return config["host"]\n')


def test_a_place_with_new_errors_is_for_the_model() -> None:
    text = CONFIG.replace("config[a]", 'config["class"]')
    changes = ('config["host"]\n    b', "config.host\n    b"), ('config["port"]', "config.port")
    assert repeats("a.py", text, *changes) == []


def test_members_become_keys_but_methods_do_not() -> None:
    text = "def f(env):\n    a = env.host\n    b = env.port\n    env.items()\n    return env.user\n"
    after = one("a.py", text, ("env.host", 'env["host"]'), ("env.port", 'env["port"]'))
    assert after.endswith('    env.items()\n    return env["user"]\n')


def test_scripts() -> None:
    changes = (
        ("assertEqual(config.a, 1)", "expect(config.a).toBe(1)"),
        ("assertEqual(config.b, `two`)", "expect(config.b).toBe(`two`)"),
    )
    after = one("a.ts", TS, *changes)
    assert "  expect(config.c).toBe((x, y) => x);\n  assertEqual(config.d);\n" in after
    assert "assertEqual(...config.e, 2);\n  this.assertEqual(config.f, 1);\n" in after


def test_a_parameter_of_the_same_type_is_the_same_name() -> None:
    changes = (
        ("t.Fatal(one)", "require.NoError(t, one)"),
        ("t.Fatal(two)", "require.NoError(t, two)"),
    )
    after = one("a_test.go", GO, *changes)
    assert "require.NoError(t, three)" in after
    assert "t.Fatal(four)" in after


LOADS = "def f(x, y, z):\n    a = load(x)\n    b = load(y)\n{}    d = load(z)\n"
LOADED = ("load(x)", "fetch(x, 1)"), ("load(y)", "fetch(y, 1)")


@pytest.mark.parametrize(
    ("more", "is_offered"),
    [
        ("    load(z)\n", True),
        ("    c = load(load(z))\n", False),  # a place within a place
        ("    load = z\n", False),  # the name is bound in between
        ("    c = [load(fetch) for fetch in z]\n", True),  # but there
    ],
)
def test_names_must_mean_the_same_everywhere(more: str, is_offered: bool) -> None:
    found = repeats("a.py", LOADS.format(more), *LOADED)
    assert bool(found) == is_offered
    assert all("fetch(fetch" not in results(each)["a.py"] for each in found)


@pytest.mark.parametrize(
    ("path", "head", "end"),
    [
        ("a.py", "def f(rows):\n    for row in rows:", ""),
        ("a.py", "def f(rows):\n    for i, (row, j) in rows:", ""),
        ("a.py", "def f(rows):\n    if row := rows.pop():", ""),
        ("a.py", "def f(rows):\n    with rows.one() as row:", ""),
        ("a.py", "def f(rows):\n  try:\n    g()\n  except E as row:", ""),
        ("a.py", "def f(rows):\n  match rows:\n   case [row, *_]:", ""),
        ("a.js", "for (const row of rows) {", "}"),
        ("a.js", "for (const [i, row] of rows) {", "}"),
        ("a.js", "const { row } = rows;", ""),
        ("a.js", "const { a: row = 1 } = rows;", ""),
        ("a.js", "rows.map((row) => {", "});"),
        ("a.js", "rows.map(row => {", "});"),
        ("a.js", "rows.map(({ row }) => {", "});"),
        ("a.js", "try { f() } catch (row) {", "}"),
        ("a.go", "func f() {\nfor _, row := range rows {", "}}"),
        ("a.go", "func f() {\nif row := g(); row != nil {", "}}"),
        ("a.go", "func f() {\nswitch row := g().(type) {\ncase A:", "}}"),
        ("a.go", "func f() {\nselect {\ncase row := <-rows:", "}}"),
        ("a.rs", "fn f() {\nfor row in rows {", "}}"),
        ("a.rs", "fn f() {\nif let Some(row) = rows {", "}}"),
        ("a.rs", "fn f() {\nwhile let Some(row) = rows.next() {", "}}"),
        ("a.rs", "fn f() {\nlet Some(row) = rows else { return; };", "}"),
        ("a.rs", "fn f() {\nmatch rows { Some(row) => {", "}}}"),
        ("a.rs", "fn f() {\nrows.map(|row| {", "})}"),
        ("A.java", "class A { void f() { for (Row row : rows) {", "}}}"),
        ("A.java", "class A { void f() { try (Row row = g()) {", "}}}"),
        ("A.java", "class A { void f() { try { g(); } catch (E row) {", "}}}"),
        ("A.java", "class A { void f() { rows.map(row -> {", "});}}"),
        ("A.java", "class A { void f() { if (a instanceof Row row) {", "}}}"),
    ],
)
def test_a_name_that_a_loop_or_a_block_binds(path: str, head: str, end: str) -> None:
    mark = "" if path == "a.py" else ";"
    body = "".join(f"        row.get({each}){mark}\n" for each in "123")
    changes = ("row.get(1)", "row.take(1)"), ("row.get(2)", "row.take(2)")
    assert "row.take(3)" in one(path, f"{head}\n{body}{end}\n", *changes)


def test_a_name_beside_a_place_is_no_definition() -> None:
    text = "row = g()\na = row.get(1)\nb = row.get(2)\nc = row or row.get(3)\nf(row=row.get(4))\n"
    changes = ("row.get(1)", "row.take(1)"), ("row.get(2)", "row.take(2)")
    after = one("a.py", text, *changes)
    assert "row or row.take(3)" in after and "f(row=row.take(4))" in after
    text = "let row = g();\na(row.get(1));\na(row.get(2));\na(row && row.get(3));\n"
    assert "row && row.take(3)" in one("a.js", text, *changes)


GETS = "def f(row, rows):\n" + "".join(f"    a = row.get({each})\n" for each in "123")
GOT = ("row.get(1)", "row.take(1)"), ("row.get(2)", "row.take(2)")


def test_a_comprehensions_name_stops_no_other_place() -> None:
    more = "    return [row.get(4) for row in rows]\n"
    after = one("a.py", GETS + more, *GOT)
    assert "row.take(3)" in after and "[row.get(4) for row in rows]" in after
    text = "def f(rows):\n    return [\n        (\n"
    text += "".join(f"            row.get({each}),\n" for each in "123")
    text += "        )\n        for row in rows\n        if row.get(4)\n    ]\n"
    after = one("a.py", text, *GOT)
    assert "row.take(3)," in after and "if row.take(4)" in after


def test_a_name_unclear_elsewhere_stops_no_place() -> None:
    more = "\n\ndef g():\n    row = h()\n    row = row.get(4)\n    return row.get(5)\n"
    after = one("a.py", GETS + more, *GOT)
    assert "row.take(3)" in after and after.endswith(more)


def test_a_place_passed_over_leaves_all_to_the_model() -> None:
    text = LOADS.format("")
    first, last = ("load(x)", "fetch(x, 1)"), ("load(z)", "fetch(z, 1)")
    assert repeats("a.py", text, first, last) == []


def test_different_changes_of_one_shape_are_no_series() -> None:
    text = LOADS.format("    c = load(q)\n")
    assert repeats("a.py", text, *LOADED, ("load(q)", "keep(q)")) == []
    assert repeats("a.py", text, LOADED[0], ("load(y)", "fetch(y, 2)")) == []


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        # what is called, and the object of a member, are not carried over
        ("one(a)\ntwo(b)\nthree(c)\n", [("one(a)", "one(a, 1)"), ("two(b)", "two(b, 1)")]),
        ("a.size()\nb.size()\nc.size()\n", [("a.size()", "len(a)"), ("b.size()", "len(b)")]),
        # nothing but an operator or a number is alike
        ("x = a + 1\ny = b + 1\nz = c + 1\n", [("a + 1", "a + 2"), ("b + 1", "b + 2")]),
        # a part that differs is dropped or doubled
        ("save(a, 1)\nsave(b, 1)\nsave(c(), 1)\n",
         [("save(a, 1)", "save(1)"), ("save(b, 1)", "save(1)")]),
        ("save(a)\nsave(b)\nsave(c())\n",
         [("save(a)", "save(a, a)"), ("save(b)", "save(b, b)")]),
        # operators bind the part in another way
        ("diff(a, x)\ndiff(b, y)\ndiff(c, d - e)\n",
         [("diff(a, x)", "mapped - a - x"), ("diff(b, y)", "mapped - b - y")]),
        ("wrap(a)\nwrap(b)\nwrap(x + y)\n", [("wrap(a)", "a.wrap()"), ("wrap(b)", "b.wrap()")]),
        # the second change is still being typed
        ("load(a)\nload(b)\nload(c)\n", [("load(a)", "fetch(a)"), ("load(b)", "fetc(b)")]),
        # only some functions may wait
        ("load(a)\nload(b)\nload(c)\n", [("load(a)", "await load(a)"),
                                         ("load(b)", "await load(b)")]),
        # comments and other literals
        ("log('a')\nlog('b')\nlog(c)\n", [("log('a')", "info('a')"), ("log('b')", "info('b')")]),
        ("load(a)\nload(b)\nload(c,\n  # why\n  )\n",
         [("load(a)", "fetch(a)"), ("load(b)", "fetch(b)")]),
    ],
)  # fmt: skip
def test_what_is_unclear_is_left_to_the_model(text: str, changes: list[tuple[str, str]]) -> None:
    assert repeats("a.py", text, *changes) == []


def test_an_unused_value_is_no_example_for_a_used_one() -> None:
    text = "load(a)\nload(b)\nx = load(c)\nload(d)\n"
    after = one("a.py", text, ("load(a)", "fetch(a)"), ("load(b)", "fetch(b)"))
    assert after == "fetch(a)\nfetch(b)\nx = load(c)\nfetch(d)\n"


def test_a_place_read_in_another_way_is_left_out() -> None:
    text = "x = join(a, 'b')\ny = join(c, 'd')\nz = join(e or f, 'g')\nz = join(e, 'h')\n"
    after = one("a.py", text, ("join(a, 'b')", "a / 'b'"), ("join(c, 'd')", "c / 'd'"))
    assert after.endswith("z = join(e or f, 'g')\nz = e / 'h'\n")


def test_a_place_with_another_new_name_is_left_out() -> None:
    text = LOADS.format("    c = (lambda fetch: load(z))(1)\n")
    after = one("a.py", text, *LOADED)
    assert after.endswith("(lambda fetch: load(z))(1)\n    d = fetch(z, 1)\n")


def test_calls_become_statements() -> None:
    text = "class T:\n    def t(self):\n"
    text += "".join(
        f"        self.same({each})\n" for each in ("a, 1", "b, 2", "f(c), 3", "d, 4, 5")
    )
    text += "\n    def u(self):\n        x = self.same(e, 6)\n        self.same(f, 7)\n"
    changes = ("self.same(a, 1)", "assert a == 1"), ("self.same(b, 2)", "assert b == 2")
    after = one("a.py", text, *changes)
    assert "        assert f(c) == 3\n        self.same(d, 4, 5)\n" in after
    assert after.endswith("        x = self.same(e, 6)\n        assert f == 7\n")


def test_a_line_that_was_changed_in_two_steps() -> None:
    text = "load(a)\nload(b)\nload(c)\n"
    steps = ("load(a)", "fetch(a)"), ("fetch(a)", "fetch(a, 1)"), ("load(b)", "fetch(b, 1)")
    assert one("a.py", text, *steps) == "fetch(a, 1)\nfetch(b, 1)\nfetch(c, 1)\n"


def test_a_name_that_is_bound_further_down() -> None:
    text = "load(a)\n\n\ndef f():\n    load(b)\n\n\nfetch = 1\nload(c)\nload(d)\n"
    changes = ("load(c)", "fetch(c)"), ("load(d)", "fetch(d)")
    after = one("a.py", text, *changes)
    assert after.startswith("load(a)\n") and "    fetch(b)\n" in after


def test_rust_and_java() -> None:
    warnings = "".join(f'    warn!("{name} {{}}", a.{name});\n' for name in "xyz")
    text = f"fn f(a: A) {{\n{warnings}}}\n"
    changes = (
        ('warn!("x {}", a.x)', 'error!("x {}", a.x)'),
        ('warn!("y {}", a.y)', 'error!("y {}", a.y)'),
    )
    assert 'error!("z {}", a.z)' in one("a.rs", text, *changes)
    text = "class A {\n  void f() {\n    check(1, a);\n    check(2, b);\n    check(3, c);\n  }\n}\n"
    changes = ("check(1, a)", "Assert.same(a, 1)"), ("check(2, b)", "Assert.same(b, 2)")
    assert "Assert.same(c, 3);" in one("A.java", text, *changes)


def test_the_body_of_a_function_just_extracted_stays() -> None:
    text = "def area(a):\n    return scale(a, 2)\n\n\nx = scale(1, 2)\ny = scale(z, 2)\n"
    text += "z = scale(x, 2)\n"
    changes = ("= scale(1, 2)", "= area(1)"), ("y = scale(z, 2)", "y = area(z)")
    assert one("a.py", text, *changes).endswith("(z)\nz = area(x)\n")
    assert "return scale(a, 2)" in one("a.py", text, *changes)


def test_a_session_offers_the_change_and_takes_it_once() -> None:
    text = "".join(f"load({name})\n" + "x = 1\n" * 9 for name in "abcd")

    async def follow() -> None:
        session = Session(ScriptedPredictor(), LspSettings(), time.monotonic, reads=False)
        document = session.open("file:///w/a.py", text, 1, "python")

        async def decide(now: str, version: int) -> str:
            session.change(document.uri, [ContentChange(now)], version)
            flags = RequestFlags(is_invoked=True, whole_renames=True)
            decision = await session.next_edit(session.at(document.uri, 0, flags))
            is_offer = isinstance(decision, Offer) and decision.suggestion.rename is not None
            if not is_offer:
                return ""
            assert isinstance(decision, Offer) and decision.suggestion.rename is not None
            return decision.suggestion.rename.label

        first = text.replace("load(a)", "fetch(a)")
        assert await decide(first, 2) == ""
        second = first.replace("load(b)", "fetch(b)")
        assert await decide(second, 3) == "change `load(…)` to `fetch(…)` at 2 places"
        (shown,) = [session.memory.outcomes.find_shown_edit(document.uri, second)]
        assert shown is not None
        rename = await session.edits.renames.accept(shown.id)
        session.report_accepted(shown.id)
        (file,) = rename.files
        assert file.result == text.replace("load", "fetch")
        assert await decide(file.result, 4) == ""

    asyncio.run(follow())
