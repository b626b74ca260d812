"""Edits that follow from recent ones by rule: each family on an example, and all on bad input."""

from __future__ import annotations

import random

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.edits.origins import find_swap
from redraft.model.records import Diagnostic
from redraft.model.rules import propose as propose_module
from redraft.model.rules.propose import place_key
from redraft.model.rules.rule_edits import RuleEdit
from redraft.model.text.names import sentences_in
from support.rules import history, proposed, results


def texts(before: str, after: str) -> dict[str, RuleEdit]:
    """Return the edits that follow after ``before`` became ``after``, by the resulting text."""
    return results(proposed(history(before, after), after), after)


def test_nothing_present_or_proposed_is_proposed_again() -> None:
    before = "a = area(1)\nb = area(2)\nc = area(3)\n"
    after = before.replace("area(1)", "surface(1)", 1)
    lines, found = after.split("\n"), proposed(history(before, after), after)
    keys = [(each.first, each.last, each.lines) for each in found]
    assert len(keys) == len(set(keys)) >= 2
    assert all(tuple(lines[first:last]) != new for first, last, new in keys)


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "bound", "free"),
    [
        (
            "a.py",
            "def bake(dough, heat):\n    return cook(dough)\n\n\n"
            "def fry(dough, heat):\n    return cook(dough)\n\n\n"
            "def boil(dough):\n    return cook(dough)\n",
            *("    return cook(dough)", "    return cook(dough, heat)", 5, 9),
        ),
        (
            "a.ts",
            "function bake(dough: D, heat: H) {\n  cook(dough);\n}\n"
            "const fry = (dough: D, heat: H) => {\n  cook(dough);\n};\n"
            "const boil = (dough: D) => {\n  cook(dough);\n};\n",
            *("  cook(dough);", "  cook(dough, heat);", 4, 7),
        ),
        (
            "a.go",
            "package a\nfunc bake(dough D, heat H) {\n\tcook(dough)\n}\n"
            "func fry(dough D, heat H) {\n\tcook(dough)\n}\n"
            "func boil(dough D) {\n\tcook(dough)\n}\n",
            *("\tcook(dough)", "\tcook(dough, heat)", 5, 8),
        ),
    ],
)
def test_a_variable_is_repeated_only_where_it_is_bound(
    path: str, before: str, old: str, new: str, bound: int, free: int
) -> None:
    after = before.replace(old, new, 1)
    found = {each.first for each in proposed(history(before, after, path), after, path=path)}
    assert bound in found
    assert free not in found


def test_a_new_parameter_is_repeated_only_where_bound() -> None:
    before = "def rate(size):\n    return area(size)\n\n\ndef show(size):\n    return rate(size)\n"
    with_one = before.replace("def rate(size)", "def rate(size, width: float)")
    with_two = with_one.replace("area(size)", "area(size, width)")
    edits = (*history(before, with_one), *history(with_one, with_two))
    other = "def f(size):\n    return area(size)\n\n\ndef g(size, width):\n    return area(size)\n"
    found = {each.first for each in proposed(edits, other, path="b.py")}
    assert 5 in found
    assert 1 not in found


def test_chances_fall_and_lie_between_none_and_one() -> None:
    rest = "\nf(user_id)\nuser_id"
    chances = [each.chance for each in texts(f"x = user_id{rest}", f"x = item_id{rest}").values()]
    assert chances == sorted(chances, reverse=True)
    assert all(0 < chance < 1 for chance in chances)


def test_a_chain_ends_when_all_is_done() -> None:
    """Each edit accepted as it is proposed: the next one is another, until there is none."""
    before = "def user_id(row): ...\nuser_id(1)\nx = user_id\nuser_id(user_id(2))\nx = my_user_id"
    text = before.replace("def user_id", "def account_id", 1)
    edits = history(before, text)
    seen = {text}
    for _ in range(20):
        found = proposed(edits, text)
        if not found:
            break
        made = found[0].in_text(text).result
        assert made not in seen
        seen.add(made)
        edits, text = (*edits, *history(text, made)), made
    else:
        raise AssertionError(text)
    assert text == before.replace("user_id", "account_id").replace("my_account", "my_user")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('    raise Late(f"{team} has no time left")', None),
        ('    log("the left bank of %s", left)', '    log("the left bank of %s", seconds_left)'),
        ('    print(f"now {left} of all")', '    print(f"now {seconds_left} of all")'),
        ('    return data["left"]', '    return data["seconds_left"]'),
        ('    warn("`left` is negative")', '    warn("`seconds_left` is negative")'),
    ],
)
def test_a_plain_word_in_a_sentence_is_no_name(line: str, wanted: str | None) -> None:
    before = f"def left_of(left):\n    spend(left)\n    keep(left)\n{line}\n"
    after = before.replace("(left)", "(seconds_left)")
    found = {
        text.split("\n")[3] for text in results(proposed(history(before, after), after), after)
    }
    assert found - {line} == ({wanted} if wanted else set())


@pytest.mark.parametrize(("head", "is_right"), [("async def", True), ("def", False)])
def test_only_asynchronous_functions_are_awaited(head: str, is_right: bool) -> None:
    before = f"async def a(x):\n    return one(x)\n\n{head} two(x):\n    return two(x)\n"
    after = before.replace("return one", "return await one")
    found = {each for each in texts(before, after) if "await two" in each}
    assert bool(found) is is_right


@pytest.mark.parametrize(
    "line",
    [
        "fn area<'a>(side: &'a str) -> &'a str { side }",
        "fn area<'a, 'b>(side: &'b str, other: &'b str) {}",
        "it's the side that doesn't count",
    ],
)
def test_apostrophes_and_lifetimes_are_no_strings(line: str) -> None:
    assert list(sentences_in(line)) == []
    assert len(list(sentences_in("log(f'the side', rb)"))) == 1


def test_a_constant_is_not_set_to_itself() -> None:
    before = "const DAY = 86400;\nwait(86400);\nwait(86400);\nstay(86400);\n"
    after = before.replace("wait(86400)", "wait(DAY)", 1)
    assert not any("DAY = DAY" in each for each in texts(before, after))
    assert any("\nwait(DAY);\nwait(DAY)" in each for each in texts(before, after))


HOSTILE = {
    "50,000 lines": "x = old_name(1)\n" * 50_000,
    "minified": "function old_name(){};" * 5_000,
    "mixed line ends": "old_name = 1\r\nold_name()\rold_name\n",
    "tabs and spaces": "\told_name()\n    \told_name()\n\t    old_name()\n",
    "right to left": "old_name = 'שלום עולם'\nold_name('مرحبا')\n",
    "unclosed": "old_name(\"abc\nold_name('''\nold_name((((\n",
    "brackets": "old_name(" * 300 + "\n" + ")" * 300 + "\nold_name(1)\n",
    "no text": "\n\n",
    "marks": "old_name \\1 \\g<0> (?P<x>[ \nold_name *+?{}|^$\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_bad_input_changes_only_lines_asked_about(kind: str) -> None:
    before = HOSTILE[kind]
    for after in (
        before.replace("old_name", "new_label", 1),
        before.replace("old_name(", "old_name(x, ", 1),
        "value = [\\g<1>, 'a']\n" + before,
        before[len(before) // 2 :],
    ):
        lines = after.split("\n")
        first, last = len(lines) // 3, len(lines)
        edits = (
            history(before, after)
            if len(lines) < 10_000
            else history("\n".join(before.split("\n")[:50]), "\n".join(lines[:50]))
        )
        for each in proposed(edits, after, first, (first, last)):
            assert first <= each.first <= each.last <= last
            assert all("\n" not in line for line in each.lines)
            assert tuple(lines[each.first : each.last]) != each.lines


def test_random_histories_do_no_harm() -> None:
    rng = random.Random(3)
    pieces = ["a", "foo_bar", "FooBar(", ")", ", ", " = ", '"x"']
    pieces += ["'''", "\\", "(", "é", "\u202e", "\t", "1.0"]
    for _ in range(150):
        old = ["".join(rng.choices(pieces, k=rng.randrange(9))) for _ in range(12)]
        new = [
            "".join(rng.choices(pieces, k=rng.randrange(9))) if rng.random() < 0.3 else line
            for line in old
        ]
        text = "\n".join(new)
        for each in proposed(history("\n".join(old), text), text, 5):
            assert 0 <= each.first <= each.last <= 12


@pytest.mark.parametrize(
    ("message", "line", "wanted"),
    [
        ('"acount" is not defined', "x = acount + 1", "x = account + 1"),
        ("undefined name 'acount'", "x = acount + 1", "x = account + 1"),
        ("Cannot find name 'acount'.", "let x = acount", "let x = account"),
        ("cannot find value `acount` in this scope", "let x = acount;", "let x = account;"),
        ("undefined: acount", "x := acount", "x := account"),
        ("Cannot find name 'a'. Did you mean 'total'?", "f(a)", "f(total)"),
        ("`os.path` imported but unused", "from os import path, sep", "from os import sep"),
        ("'os' imported but unused", "import os", None),
        ('Argument missing for parameter "depth"', "walk(tree)", "walk(tree, depth)"),
        ("missing 1 required positional argument: 'depth'", "walk()", "walk(depth)"),
    ],
)
def test_a_reported_error_opens_a_fix_there(message: str, line: str, wanted: str | None) -> None:
    text = f"account = depth = 1\n{line}\naccount += 1"
    found = proposed((), text, diagnostics=(Diagnostic(1, message),))
    made = [(each.first, each.last, each.lines) for each in found if each.family == "diagnosed"]
    assert made == [(1, 2, () if wanted is None else (wanted,))]


@pytest.mark.parametrize("message", ["", "Too complex", "'x' is not defined", "undefined: " * 50])
def test_a_message_not_about_the_line_proposes_nothing(message: str) -> None:
    assert proposed((), "a = b\nc = d", diagnostics=(Diagnostic(0, message),)) == []
    far = Diagnostic(7, '"b" is not defined')
    assert proposed((), "a = b", diagnostics=(far,)) == []


@pytest.mark.parametrize(
    ("before", "begun", "wrong"),
    [
        ("def f(a):\n    pass\n\nx = f(a)", ("f(a)", "f(a, b=1)"), "x = f(a, b"),
        ("function f(a) {\n}\nx = f(a);", ("f(a)", "f(a, b: T)"), "x = f(a, b: T"),
        (
            "def f(a):\n    pass\n\ndef __init__(a):\n    f()",
            ("def f", "async def f"),
            "async def _",
        ),
    ],
)
def test_nothing_goes_where_it_cannot_be(before: str, begun: tuple[str, str], wrong: str) -> None:
    assert not [text for text in texts(before, before.replace(*begun, 1)) if wrong in text]


def test_a_definition_comes_first_then_uses_downwards() -> None:
    lines = ["import total", "x = 1", "use(total)", "", "print(total)", "def total():", "total()"]
    keys = [place_key(line, "total", at, 3) for at, line in enumerate(lines)]
    order = sorted((at for at, line in enumerate(lines) if "total" in line), key=keys.__getitem__)
    assert order == [5, 4, 6, 2, 0]


def test_steps_of_a_chain_are_told_by_the_words_gone() -> None:
    assert find_swap("a = old(1)", "a = new(1)") == find_swap("return old()", "return new()")
    assert find_swap("a = old(1)", "a = new(1)") != find_swap("a = old(1)", "b = old(1)")


def test_a_rename_begun_at_a_use_goes_on_from_its_def() -> None:
    text = "def total():\n    pass\n\n\nx = total()\n\ny = total()\nz = total()"
    edits, seen, cursor = history(text, text.replace("x = total", "x = amount")), [], 4
    text = text.replace("x = total", "x = amount")
    for _ in range(5):
        found = proposed(edits, text, cursor)
        if not found:
            break
        step = found[0]
        made = step.in_text(text).result
        edits, text, cursor = (*edits, *history(text, made)), made, step.first
        seen.append(step.first)
    assert "total" not in text
    assert seen[0] == 0 and sorted(seen[1:]) == seen[1:]


CALL = "handler(\n    first,\n    second,\n)\n\n"
BEGUN = CALL.replace("    second", "    key=value,\n    second")
LIST = "other = [\n    first,\n    second,\n]\n"
OTHER_CALL = "other(\n    first,\n    second,\n)\n"


def test_lines_that_break_the_file_are_not_inserted() -> None:
    def after(language: str, rest: str) -> dict[str, RuleEdit]:
        text = BEGUN + rest
        return results(proposed(history(CALL + rest, text), text, 2, language=language), text)

    broken = BEGUN + LIST.replace("    second", "    key=value,\n    second")
    assert broken in after("plaintext", LIST)
    assert broken not in after("python", LIST)
    fine = BEGUN + OTHER_CALL.replace("    second", "    key=value,\n    second")
    assert fine in after("python", OTHER_CALL)


def test_syntax_is_checked_for_the_edits_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of these would break the list."""
    asked, count = [], propose_module.count_added_errors

    def counting(edit: Edit, path: str, language: str) -> int:
        asked.append(edit)
        return count(edit, path, language)

    monkeypatch.setattr(propose_module, "count_added_errors", counting)
    rest = LIST + 4 * OTHER_CALL
    edits, text = history(CALL + rest, BEGUN + rest), BEGUN + rest
    all_ = proposed(edits, text, 2, language="python")
    every = len(asked)
    for most in (0, 1, 2):
        asked.clear()
        few = proposed(edits, text, 2, most=most, language="python")
        assert few == all_[:most] and len(asked) <= most + 1 < every


@pytest.mark.parametrize(
    ("text", "edit", "wanted"),
    [
        ("a\nb", (1, 2, ()), "a\n"),  # the last line, which has no end
        ("a\nb", (1, 2, ("c", "d")), "a\nc\nd"),
        ("a", (1, 1, ("b",)), "a\nb"),  # behind it
        ("a\n", (0, 1, ("a", "b")), "a\nb\n"),
        ("a\nb\nc", (1, 1, ("x",)), "a\nx\nb\nc"),
    ],
)
def test_lines_become_text(text: str, edit: tuple[int, int, tuple[str, ...]], wanted: str) -> None:
    assert RuleEdit(*edit, "repeat", 0.5).in_text(text).result == wanted
