"""Ghost text before what already stands on the line: in the session, over LSP, HTTP, in Neovim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redraft.lsp.suggestions.suggestion import Offer
from support.editors.lsp import lsp_client
from support.editors.neovim import NeovimDesk, ghost, needs_neovim
from support.editors.predictor import ScriptedPredictor
from support.editors.workbench import Workbench, shown
from support.served import post

CODE = "def total(cart):\n    return sum(it)\n"
HERE = CODE.index(")\n", 20)


def at(text: str = CODE, cursor: int = HERE) -> Workbench:
    made = Workbench(text)
    made.cursor = cursor
    return made


def test_an_auto_closed_bracket_is_not_written_again() -> None:
    assert shown(at().answer("em.price for item in cart)")) == "em.price for item in cart"


def test_the_rest_of_the_line_is_replaced_if_repeated() -> None:
    here = at("x = sorted()\n", len("x = sorted("))
    decision = here.answer("items)[0]")
    assert isinstance(decision, Offer)
    assert decision.suggestion.result == "x = sorted(items)[0]\n"
    here.accept(decision)
    assert here.outcomes == ["accepted"]


def test_typing_along_keeps_a_replacing_answer() -> None:
    here = at("x = sorted()\n", len("x = sorted("))
    here.answer("items)[0]")
    here.type("ite")
    assert shown(here.consider()) == "ms)[0]"
    assert here.outcomes == []


def test_what_the_editor_closes_turns_nothing_down() -> None:
    here = at("x = \n", len("x = "))
    assert shown(here.answer("sum(items)")) == "sum(items)"
    here.becomes("x = sum()\n", len("x = sum("))
    kept = here.consider()
    assert shown(kept) == "items"
    assert here.outcomes == []
    here.accept(kept)
    assert here.text == "x = sum(items)\n"
    assert here.outcomes == ["accepted"]


def test_the_range_covers_what_is_replaced_behind() -> None:
    with lsp_client("items)[0]") as client:
        client.initialize()
        client.open("x = '😀' + sorted()\n")
        [item] = client.complete(0, 18)["result"]["items"]
        assert item["insertText"] == "items)[0]"
        assert item["range"]["start"] == {"line": 0, "character": 18}
        assert item["range"]["end"] == {"line": 0, "character": 19}


def posted(path: str, body: dict[str, Any], written: str) -> Any:
    return post(path, body, ScriptedPredictor([written]))[1]


def texts(before: str, after: str, written: str) -> Iterator[str]:
    """Ask the same question in every HTTP format."""
    asked = {"prompt": before, "suffix": after}
    for path in ("/v1/completions", "/v1/fim/completions"):
        yield posted(path, asked, written)["choices"][0]["text"]
    prompt = f"<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>"
    yield posted("/v1/completions", {"prompt": prompt}, written)["choices"][0]["text"]
    asked = {"prompt": prompt, "raw": True, "stream": False}
    yield posted("/api/generate", asked, written)["response"]
    body = {"input_prefix": "", "prompt": before, "input_suffix": after}
    yield posted("/infill", body, written)["content"]


@pytest.mark.parametrize(
    ("before", "after", "written", "fits"),
    [
        ("return sum(it", ")\n", "em.price for item in cart)", "em.price for item in cart"),
        ("print(a", ")\n", "rea(5, 6))", "rea(5, 6)"),
        ("print(a", "))\n", "rea(5, 6))", "rea(5, 6"),
        ("x = sorted(", ")\n", "items)[0]", "items"),
        ("for item in ", ":\n    pass\n", "cart.items:", "cart.items"),
        ("print(a", "r\n", "rea(5, 6))", ""),
        ("print(a", "rea(7, 8))\n", "rea(5, 6))", ""),
    ],
)
def test_http_answers_fit_before_a_suffix(before: str, after: str, written: str, fits: str) -> None:
    assert set(texts(before, after, written)) == {fits}


def test_over_http_it_is_said_why_nothing_fits() -> None:
    body = {"prompt": "print(a", "suffix": "rea(7, 8))\n"}
    said = posted("/v1/completions", body, "rea(5, 6))")["redraft"]
    assert said["abstained"] == "refused"
    assert "before 'rea(7, 8))'" in said["reason"]


@needs_neovim
def test_neovim_draws_around_and_replaces_the_rest(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("items)[0] + 1"))
    editor.keys("oy = sorted()<Left>i")
    editor.sees("y = sorted(iitems)[0] + 1")
    editor.picture("around")
    editor.keys("<Tab>")
    editor.has("x = 1", "y = sorted(iitems)[0] + 1")


@needs_neovim
def test_neovim_takes_the_words_of_it_one_by_one(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("items)[0]"))
    editor.keys("oy = sorted()<Left>i")
    editor.sees("y = sorted(iitems)[0]")
    editor.keys("<M-Right>")
    editor.has("x = 1", "y = sorted(iitems)")
    editor.sees("y = sorted(iitems)[0]")
    editor.keys("<M-Right>")
    editor.has("x = 1", "y = sorted(iitems)[")
    editor.keys("<Tab>")
    editor.has("x = 1", "y = sorted(iitems)[0]")


@needs_neovim
def test_neovim_asks_anew_where_a_plugin_closes(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("sum(items)"))
    editor.keys("oy = ")
    editor.sees("y = sum(items)")
    editor.lua("vim.keymap.set('i', '(', '()<Left>', { buffer = true })")
    editor.keys("sum(")
    editor.has("x = 1", "y = sum()")
    editor.until(lambda: editor.lua("return require('redraft').visible()") == "items")
    editor.keys("<Tab>")
    editor.has("x = 1", "y = sum(items)")
