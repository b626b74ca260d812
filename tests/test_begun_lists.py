"""What a list, a definition or a call got is carried on where the same is named, in its order."""

from __future__ import annotations

import pytest
from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.edits.origins import swapped
from redraft.model.proposals.chain_order import in_order, place_key
from redraft.model.proposals.propose import Proposed, propose
from redraft.model.records import RecentEdit


def history(before: str, after: str) -> tuple[RecentEdit, ...]:
    old = before.split("\n")
    hunks = hunks_of(old, after.split("\n"))
    return apply_history("a", old, hunks, len(hunks))[1]


def proposed(before: str, after: str, language: str = "", cursor: int = 0) -> dict[str, Proposed]:
    """What follows in ``after``, which ``before`` just became, by the text that comes of it."""
    lines = after.split("\n")
    found = propose(history(before, after), lines, 0, len(lines), cursor, (), language)
    return {
        "\n".join([*lines[: each.first], *each.lines, *lines[each.last :]]): each for each in found
    }


RIVER = """enum River {
    Rhine,
    Danube,
}

fn flows_to(river: River) -> &'static str {
    match river {
        River::Rhine => "rhine mouth",
        River::Danube => "danube mouth",
    }
}
"""

PLANETS = """class Planet(Enum):
    MARS = 1
    VENUS = 2

def colour(planet):
    match planet:
        case Planet.MARS:
            count("mars")
            return RED
        case Planet.VENUS:
            count("venus")
            return RED
        case _:
            return None
"""

METALS = """type Metal = "iron" | "copper";

const price = {
  iron: 2,
  copper: 9,
};

function parse(text) {
  return find(text, ["iron", "copper"]);
}
"""

GETTERS = """class Lake {
    private final String name;
    private final int depth;

    Lake(String name, int depth) {
        this.name = name;
        this.depth = depth;
    }
}
"""

CALLED = """var opened = List.of(
        "door",
        "window");

var closed = List.of(
        "door",
        "window");
"""


@pytest.mark.parametrize(
    ("text", "begun", "wanted", "language"),
    [
        (
            RIVER,
            ("    Danube,\n}", "    Danube,\n    Elbe,\n}"),
            ('"danube mouth",\n', '"danube mouth",\n        River::Elbe => "elbe mouth",\n'),
            "rust",
        ),
        (
            PLANETS,
            ("    VENUS = 2\n", "    VENUS = 2\n    PLUTO = 3\n"),
            (
                "        case _:",
                '        case Planet.PLUTO:\n            count("pluto")\n            return RED\n'
                "        case _:",
            ),
            "python",
        ),
        (
            METALS,
            ('"iron" | "copper"', '"iron" | "copper" | "zinc"'),
            ("  copper: 9,\n", "  copper: 9,\n  zinc: 9,\n"),
            "typescript",
        ),
        (
            METALS,
            ("  copper: 9,\n", "  copper: 9,\n  zinc: 4,\n"),
            ('["iron", "copper"]', '["iron", "copper", "zinc"]'),
            "typescript",
        ),
        (
            METALS,
            ("  copper: 9,\n", "  copper: 9,\n  zinc: 4,\n"),
            ('"iron" | "copper";', '"iron" | "copper" | "zinc";'),
            "typescript",
        ),
        (
            GETTERS,
            (
                "    private final int depth;\n",
                "    private final int depth;\n    private int area;\n",
            ),
            (
                "        this.depth = depth;\n",
                "        this.depth = depth;\n        this.area = area;\n",
            ),
            "java",
        ),
        (
            CALLED,
            ('"window");\n\nvar closed', '"window",\n        "gate");\n\nvar closed'),
            ('        "window");\n', '        "window",\n        "gate");\n'),
            "java",
        ),
    ],
)
def test_what_a_list_got_comes_where_its_siblings_are_named(
    text: str, begun: tuple[str, str], wanted: tuple[str, str], language: str
) -> None:
    after = text.replace(*begun, 1)
    assert after.replace(*wanted) != after
    assert after.replace(*wanted) in proposed(text, after, language)


def test_a_place_is_likelier_than_a_text_that_says_more_than_the_name() -> None:
    text = RIVER.replace('"rhine mouth"', "North").replace('"danube mouth"', "Black")
    after = text.replace("    Danube,\n}", "    Danube,\n    Elbe,\n}")
    wanted = after.replace("=> Black,\n", "=> Black,\n        River::Elbe => Black,\n")
    found = proposed(text, after, "rust", 2)[wanted]
    assert found.place > 2 * found.chance > 0


def test_a_list_that_names_but_one_sibling_gets_nothing() -> None:
    text = "names = [\n    'anna',\n    'boris',\n]\n\nprint('anna', first)\nanna = 1\n"
    after = text.replace("'boris',\n", "'boris',\n    'clara',\n")
    assert not [each for each in proposed(text, after).values() if each.family == "listed"]


def test_what_is_listed_there_already_is_not_put_there_again() -> None:
    before = METALS.replace("copper: 9,", "copper: 9,\n  zinc: 4,")
    after = before.replace('"iron" | "copper"', '"iron" | "copper" | "zinc"')
    assert all(each.first > 6 for each in proposed(before, after).values())


DRAWN = """func (c *Canvas) Line(width int, from, to Point) {
}

func (c *Canvas) Frame(width int, a, b Point) {
	c.Line(width, a, b)
	c.Line(2, b, a)
}
"""


def test_parameters_that_changed_places_change_them_in_calls() -> None:
    after = DRAWN.replace("Line(width int, from, to Point)", "Line(from, to Point, width int)")
    found = proposed(DRAWN, after, "go")
    assert after.replace("c.Line(width, a, b)", "c.Line(a, b, width)") in found
    assert after.replace("c.Line(2, b, a)", "c.Line(b, a, 2)") in found


def test_calls_that_have_the_new_order_already_stay() -> None:
    text = "check(3, size())\ncheck(4, area())\ncheck(depth(), 5)\n"
    after = text.replace("check(3, size())", "check(size(), 3)")
    wanted = after.replace("check(4, area())", "check(area(), 4)")
    assert [*proposed(text, after)] == [wanted]


@pytest.mark.parametrize(
    ("language", "before", "after", "wanted"),
    [
        (
            "java",
            "void log(String text) {\n}\n\nvoid run(Level level) {\n    log(name);\n}",
            "void log(Level level, String text) {\n}\n\nvoid run(Level level) {\n    log(name);\n}",
            ("log(name);", "log(level, name);"),
        ),
        (
            "go",
            "func load(id int) {\n}\n\nfunc all(ctx context.Context) {\n\tload(3)\n}",
            "func load(ctx context.Context, id int) {\n}\n\nfunc all(ctx context.Context) {\n"
            "\tload(3)\n}",
            ("load(3)", "load(ctx, 3)"),
        ),
        (
            "python",
            "def load(self, id):\n    pass\n\ndef all(self, limit):\n    self.load(3)",
            "def load(self, id, limit=9):\n    pass\n\ndef all(self, limit):\n    self.load(3)",
            ("self.load(3)", "self.load(3, limit=limit)"),
        ),
    ],
)
def test_a_parameter_more_is_given_by_name_at_its_place(
    language: str, before: str, after: str, wanted: tuple[str, str]
) -> None:
    found = proposed(before, after, language)
    assert after.replace(*wanted) in found
    declared = ("Level level, name", "ctx context.Context, 3", "limit=9)\n", "(3, limit=9)")
    assert not [text for text in found if any(each in text.split("\n\n")[-1] for each in declared)]


def test_calls_that_give_the_argument_already_stay() -> None:
    before = "function send(to) {}\n\nsend(you, urgent);\nsend(me);\n"
    after = before.replace("send(to)", "send(to, flag)")
    assert [*proposed(before, after, "javascript")] == [after.replace("send(me)", "send(me, flag)")]


def test_an_argument_whose_name_is_not_in_scope_has_a_place_but_no_chance() -> None:
    before = "def log(text):\n    pass\n\ndef run():\n    log(name)\n"
    after = before.replace("log(text)", "log(text, level)")
    found = proposed(before, after, "python", 1)[after.replace("log(name)", "log(name, level)")]
    assert found.chance == 0 < found.place


# --- asynchronous ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "before", "begun", "wanted"),
    [
        (
            "python",
            "def load(x):\n    return 1\n\nasync def all(self):\n    y = self.load(3)\n",
            ("def load", "async def load"),
            ("self.load(3)", "await self.load(3)"),
        ),
        (
            "python",
            "async def f():\n    pass\n\ndef run():\n    a = f()\n    b = g()\n",
            ("a = f()", "a = await f()"),
            ("def run", "async def run"),
        ),
        (
            "typescript",
            "function load(x: number) {\n}\n\nexport async function all() {\n"
            "  return load(3).length;\n}\n",
            ("function load", "async function load"),
            ("load(3).length", "(await load(3)).length"),
        ),
        (
            "javascript",
            "class A {\n  load() {\n  }\n\n  all(x) {\n    this.load();\n  }\n}\n",
            ("    this.load();", "    await this.load();"),
            ("  all(x) {", "  async all(x) {"),
        ),
        (
            "rust",
            "fn load(x: u8) -> u8 {\n    1\n}\n\nasync fn all() {\n    let y = load(3);\n}\n",
            ("fn load", "async fn load"),
            ("load(3);", "load(3).await;"),
        ),
    ],
)
def test_what_became_asynchronous_is_awaited_and_so_on_outwards(
    language: str, before: str, begun: tuple[str, str], wanted: tuple[str, str]
) -> None:
    after = before.replace(*begun, 1)
    assert after.replace(*wanted) in proposed(before, after, language)


def test_what_is_awaited_already_stays_and_a_constructor_is_never_asynchronous() -> None:
    before = "class A:\n    def __init__(self):\n        pass\n\n    def f(self):\n        pass\n"
    before += "\n    async def g(self):\n        await self.f()\n"
    after = before.replace("def f(", "async def f(")
    assert not [text for text in proposed(before, after, "python") if "async def __init__" in text]
    assert not [text for text in proposed(before, after, "python") if "await await" in text]


def test_prose_and_definitions_are_no_calls_to_await() -> None:
    before = 'def load(x):\n    pass\n\ndef f():\n    """Then calls load(3) and\n    ends."""\n'
    after = before.replace("def load", "async def load")
    assert not [text for text in proposed(before, after, "python") if "await" in text]


# --- removed -----------------------------------------------------------------------------------


def test_lines_of_a_kind_follow_those_that_were_removed() -> None:
    text = 'a = 1\nprint("a", a)\nb = 2\nprint("b", b)\nc = 3\nprint("c", c)\nd = 4\n'
    after = text.replace('print("a", a)\n', "").replace('print("b", b)\n', "")
    assert after.replace('print("c", c)\n', "") in proposed(text, after)
    again = after.replace("d = 4", 'print("d")')
    assert not [each for each in proposed(text, again).values() if each.family == "removed"]


# --- order -------------------------------------------------------------------------------------


def test_a_definition_comes_first_then_uses_downwards_and_then_those_above() -> None:
    lines = ["import total", "x = 1", "use(total)", "", "print(total)", "def total():", "total()"]
    keys = [place_key(line, "total", at, 3) for at, line in enumerate(lines)]
    order = sorted((at for at, line in enumerate(lines) if "total" in line), key=keys.__getitem__)
    assert order == [5, 4, 6, 2, 0]


def test_chances_of_a_chain_are_dealt_out_in_its_order() -> None:
    keys = [(True, False, 4), (True, False, 1), (False, True, 9)]
    assert in_order([0.5, 0.2, 0.1], keys) == [0.1, 0.2, 0.5]
    assert in_order([], []) == []


def test_steps_of_one_chain_are_told_by_the_words_that_gave_way() -> None:
    assert swapped("a = old(1)", "a = new(1)") == swapped("return old()", "return new()")
    assert swapped("a = old(1)", "a = new(1)") != swapped("a = old(1)", "b = old(1)")


def test_a_rename_begun_at_a_use_goes_to_the_definition_and_on_from_there() -> None:
    text = "def total():\n    pass\n\n\nx = total()\n\ny = total()\nz = total()"
    edits, seen, cursor = history(text, text.replace("x = total", "x = amount")), [], 4
    text = text.replace("x = total", "x = amount")
    for _ in range(5):
        lines = text.split("\n")
        found = propose(edits, lines, 0, len(lines), cursor)
        if not found:
            break
        step = found[0]
        made = "\n".join([*lines[: step.first], *step.lines, *lines[step.last :]])
        edits, text, cursor = (*edits, *history(text, made)), made, step.first
        seen.append(step.first)
    assert "total" not in text
    assert seen[0] == 0 and sorted(seen[1:]) == seen[1:]


def test_what_is_written_in_lines_too_long_to_read_is_left_as_it_is() -> None:
    long = "f(" * 300 + "a, b" + ")" * 300
    for old, new in (("f(a, b)", "f(a, b, c)"), ("def f(a, b):", "def f(b, a):")):
        assert not proposed(f"{long}\n{old}", f"{long}\n{new}")
        assert proposed(f"x = f(1, 2)\n{old}", f"x = f(1, 2)\n{new}")


def test_remarks_are_no_items() -> None:
    before = "class A:\n    red: int\n    blue: int\n\n\npaint(red, blue)\n"
    grown = before.replace("blue: int", "blue: int\n    # green: int")
    assert not proposed(before, grown, "python")
    assert proposed(before, grown.replace("# ", ""), "python")


@pytest.mark.parametrize(
    ("language", "head", "line"),
    [
        ("python", "def load(n):", "x = load(2)"),  # in no function
        ("python", "def load(n):", "@load(2)"),
        ("python", "def load(n):", "def f():\n    g(lambda: load(2))"),
        ("python", "def load(n):", "def f():\n    task = create_task(load(2))"),
        ("python", "def load(n):", 'def f():\n    print("load(2)")'),
        ("python", "def load(n):", 'def f():\n    """Then\n\n    load(2)\n    """'),
        ("rust", "fn load(n: i32) {", "fn f() {\n    x.map(|y| load(y))"),
        ("typescript", "function load(n) {", "x.map(y => load(y))"),
        ("typescript", "function load(n) {", "class A {\n  load(n) {"),
        ("typescript", "function load(n) {", "interface A { load(n: number): string }"),
        ("typescript", "function load(n) {", "Promise.all([load(2)])"),
    ],
)
def test_nothing_is_awaited_where_it_cannot_be(language: str, head: str, line: str) -> None:
    before = f"{head}\n\n{line}\n"
    made = proposed(before, f"async {before}", language).values()
    assert not [one for one in made if one.family == "awaited"]


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "    if load(2): stop()"),
        ("python", "    found = [load(a) for a in b]"),
        ("typescript", "  if (load(2)) { stop(); }"),
        ("typescript", "  return a ? load(2) : 3;"),
        ("typescript", "  if (a) { load(2); }"),
        ("rust", "    match load(2) {"),
    ],
)
def test_calls_are_awaited_wherever_they_can_be(language: str, line: str) -> None:
    begin = {"python": "def {}(n):", "rust": "fn {}(n: i32) {{"}.get(language, "function {}(n) {{")
    before = f"{begin.format('load')}\n\n{begin.format('f')}\n{line}\n"
    made = proposed(before, f"async {before}", language)
    assert [one for one in made.values() if one.family == "awaited"]
