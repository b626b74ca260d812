"""Scopes without suggestions, eagerness by language, and ghost text while the user deletes."""

from __future__ import annotations

import pytest
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.model.gate.reasons import Abstain
from redraft.model.text.code_queries import scope_at
from redraft.model.text.syntax import parse_cached
from support.editors.next_edits import edited
from support.editors.predictor import infill, rewrite
from support.editors.workbench import Ask, Workbench, reason

CASES = [  # "|" is the cursor
    ("python", "# abc|\nx = 1", "comments"),
    ("python", "# a\n|x = 1", ""),
    ("python", 'def f():\n    """Do |it."""\n', "comments"),
    ("python", "x = 'ab|c'", "strings"),
    ("python", "x = 'abc'|", ""),
    ("python", "x = |'abc'", ""),
    ("python", 'x = f"a{b|}"', ""),
    ("python", 'x = f"a{b} |c"', "strings"),
    ("python", 'x = "hel|', "strings"),
    ("python", 'x = f("a", |', ""),
    ("typescript", "const a = `x ${b|} c`;", ""),
    ("typescript", "const a = `x| ${b} c`;", "strings"),
    ("typescript", "/* a */| let b = 1", ""),
    ("typescript", "// é|\n", "comments"),
    ("go", 'x := "a|b"', "strings"),
    ("rust", "/// doc|\nfn f() {}", "comments"),
    ("rust", "/// doc\n|fn f() {}", ""),
    ("java", "/** a\n * b|\n */ class A {}", "comments"),
    ("shellscript", 'echo "a $(b|) c"', ""),
    ("json", '{"a|": 1}', "strings"),
    ("html", "<!-- a| -->", "comments"),
    ("kotlin", 'val a = "x${b|}"', ""),
    ("csharp", 'var a = $"x|{b}";', "strings"),
]


@pytest.mark.parametrize(("language", "marked", "wanted"), CASES)
def test_comments_and_strings_are_told_from_code(language: str, marked: str, wanted: str) -> None:
    syntax = parse_cached(marked.replace("|", ""), language)
    if syntax is None:
        pytest.skip(f"no grammar of {language} is installed")
    assert scope_at(syntax, marked.index("|")) == wanted


@pytest.mark.parametrize(
    ("setting", "text", "is_quiet"),
    [
        ("comments", "x = 1  # a", True),
        ("python:comments", "x = 1  # a", True),
        ("go:comments", "x = 1  # a", False),
        ("strings", "x = 1  # a", False),
        ("strings", 'x = "a', True),
        ("comments", "x = ", False),
    ],
)
def test_a_scope_switched_off_is_quiet_but_by_gesture(
    setting: str, text: str, is_quiet: bool
) -> None:
    desk = Workbench(text, disabled_scopes=(setting,))
    decision = desk.consider()
    assert isinstance(decision, Abstain) is is_quiet
    if is_quiet:
        assert "(setting disabledScopes)" in reason(decision)
        assert isinstance(desk.consider(invoked=True), Ask)


def test_without_a_grammar_a_first_comment_counts() -> None:
    desk = Workbench("-- a", disabled_scopes=("comments",))
    assert isinstance(desk.consider(language="sql"), Abstain)


@pytest.mark.parametrize(("scopes", "is_shown"), [((), True), (("comments",), False)])
def test_edits_of_comments_alone_are_held_back(scopes: tuple[str, ...], is_shown: bool) -> None:
    desk = Workbench("total = 1\n# the sum of all\n", disabled_scopes=scopes)
    desk.swap("total = 1", "total = 2")
    ask = desk.ask_edit()
    decision = desk.settle(ask, rewrite(ask.request, "of all", "of it"))
    assert isinstance(decision, Abstain) is not is_shown
    if not is_shown:
        assert reason(decision) == "Redraft is switched off in comments (setting disabledScopes)"


def test_a_languages_eagerness_precedes_the_general() -> None:
    settings = LspSettings(eagerness="high", eagerness_by_language={"markdown": "low"})
    assert settings.threshold_in("markdown", "infill") == 0.5
    assert settings.threshold_in("go", "infill") == 0.1
    for languages, is_shown in (({}, True), ({"python": "low"}, False)):
        desk = edited(eagerness_by_language=languages)
        decision = desk.edit("3.14 * r", "pi * r", confidence=0.2)
        assert isinstance(decision, Abstain) is not is_shown


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"disabledScopes": ["comment"]}, "setting disabled_scopes cannot be ['comment']"),
        ({"eagernessByLanguage": {"go": "max"}}, "setting eagerness_by_language cannot be"),
    ],
)
def test_bad_values_are_named(sent: dict[str, object], says: str) -> None:
    settings, (problem,) = update_settings(LspSettings(), sent)
    assert says in problem and settings == LspSettings()


def test_ghost_text_waits_until_a_deletion_is_over() -> None:
    desk = Workbench("x = compute")
    desk.type("r")
    assert desk.ask().delay_ms == 100
    desk.erase(1)
    assert desk.ask().delay_ms == pytest.approx(700)
    assert desk.ask(invoked=True).delay_ms == 0
    desk.clock.now += 0.5
    assert desk.ask().delay_ms == pytest.approx(200)
    desk.type("d")
    assert desk.ask().delay_ms == 100


def test_an_answer_that_is_known_waits_too() -> None:
    desk = Workbench("x = comput")
    ask = desk.ask()
    desk.settle(ask, infill(ask.request))
    desk.type("e")
    desk.erase(1)
    assert desk.consider().delay_ms == pytest.approx(700)  # type: ignore[union-attr]
    desk.clock.now += 0.7
    assert isinstance(desk.consider(), Abstain)
