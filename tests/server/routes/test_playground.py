"""The playground: its headers, its key and origin, and the page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import SecretStr
from redraft.model.gate.eagerness import Eagerness, threshold
from redraft.model.records import EditRequest
from redraft.server.app import create_app
from redraft.server.routes.playground import FILES
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import (
    WRITTEN,
    Answer,
    ScriptedPredictor,
    change,
    editing,
    predicted,
    rewrite_lines,
)
from support.editors.vscode_studio import no_browser
from support.models.onnx_models import register
from support.models.tiny import tiny_config, tiny_tokenizer
from support.playground import Page, page, redraft_serve, served_beside
from support.served import events, post, send, served

KEYED = Settings(api_key=SecretStr("secret-key"), shutdown_s=0.1)
FIM, EDIT = "/v1/fim/completions", "/v1/edit/completions"
INFILL = {"prompt": "a", "suffix": "b"}
FOLDER = Path(__file__).parents[3] / "server" / "playground"


# --- what the server sends ----------------------------------------------------------------------


async def test_the_page_needs_no_key_and_is_the_same_with_it() -> None:
    for path, (name, media_type) in FILES.items():
        for settings in (None, KEYED):
            async with (
                served(ScriptedPredictor(), settings) as (_, client),
                client.get(path) as answer,
            ):
                assert (answer.status, answer.content_type) == (200, media_type)
                assert await answer.text() == (FOLDER / name).read_text(encoding="utf-8")


async def test_the_page_may_load_and_call_this_server_alone() -> None:
    async with served(ScriptedPredictor()) as (_, client):
        for path in FILES:
            async with client.get(path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
                assert parts["default-src"] == parts["frame-ancestors"] == "'none'"
                assert parts["script-src"] == parts["style-src"] == parts["connect-src"] == "'self'"
                assert "unsafe" not in policy and "http" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in answer.headers


async def test_without_the_key_only_state_and_page_are_sent() -> None:
    async with served(ScriptedPredictor(), KEYED) as (_, client):
        app = create_app(ScriptedPredictor(), KEYED)
        sent = set()
        for route in app.router.routes():
            assert route.resource is not None
            path = route.resource.canonical
            async with client.request(route.method, path.replace("{name}", "fake-1m")) as answer:
                if answer.status != 401:
                    sent.add(path)
        assert sent == {"/health", *FILES}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_a_rebound_name_and_another_site_get_no_page(path: str, headers: dict[str, str]) -> None:
    status, _, error = send(path, None, "GET", headers)
    assert (status, error["code"]) == (403, "forbidden")


def test_the_page_makes_no_html_and_names_no_address() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {name for name, _ in FILES.values()}
    for name, _ in FILES.values():
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(r"(?:inner|outer|Adjacent)HTML|document\.write|\beval\b", text), name
        assert not re.search(r"\w://|['\"`]//\w", text), name
        assert not re.search(r"\bon\w+=|\bstyle=", text), f"{name}: the policy refuses these"


def test_its_thresholds_are_those_of_next_edits() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    shown = dict(re.findall(r'<option value="(\w+)"[^>]*>from (\d+) %', page))
    wanted = {each: f"{100 * threshold(each, 'next_edit'):.0f}" for each in get_args(Eagerness)}
    assert shown == wanted


def test_its_colours_are_readable_in_light_and_dark() -> None:
    css = (FOLDER / "playground.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", css)
    for theme in (1, 2):
        colours = {
            name: luminance(value) for name, *values in pairs for value in [values[theme - 1]]
        }
        for text, back in (
            *(("text", back) for back in ("back", "gone", "come", "select")),
            ("quiet", "back"),
        ):
            low, high = sorted((colours[text], colours[back]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (theme, text, back)  # WCAG 2.2, 1.4.3


def luminance(colour: str) -> float:
    """Return the relative luminance of "#rgb" or "#rrggbb", as WCAG defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_answers_carry_confidence_and_stage_times() -> None:
    stages = {"queue_ms", "prompt_ms", "prefill_ms", "denoise_ms", "total_ms"}
    _, infill = post(FIM, INFILL)
    assert infill["confidence"] == pytest.approx(0.9)
    assert set(infill["timings"]) == stages
    assert infill["timings"]["denoise_ms"] == 20.0
    *_, last = events(FIM, {**INFILL, "diffusing": True}, ScriptedPredictor())
    assert (last["confidence"], last["timings"]) == (infill["confidence"], infill["timings"])
    body = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))
    _, edit = post(EDIT, body, editing((1, 1, ["x = 2"]), confidence=0.8))
    assert edit["confidence"] == pytest.approx(0.8)
    _, nothing = post(EDIT, body, editing(None))
    assert nothing["confidence"] is None and set(nothing["timings"]) == stages


# --- the page -----------------------------------------------------------------------------------

in_a_browser = pytest.mark.skipif(bool(no_browser()), reason=no_browser())


@pytest.fixture(scope="module")
def browser(pictures: Path) -> Iterator[Page]:
    with page() as opened:
        yield opened


def rename(request: EditRequest) -> Answer:
    """Answer "return a + b" at the cursor, and carry on a parameter's new name."""
    if request.task == "infill":
        return ("return", " a", " +", " b")
    for old, new in (("balance", "total"), ("owner", "holder")):
        if f", {new}" in request.text and f"= {old}" in request.text:
            return rewrite_lines(request, change(f"= {old}", f"= {new}")(request))
    return predicted(reason="nothing to change")


@in_a_browser
def test_it_opens_with_text_and_a_next_edit(browser: Page) -> None:
    with served_beside(ScriptedPredictor([rename])) as url:
        browser.open(url)
        browser.await_text("#said", "Tab takes the text, then the edit")
        assert browser.text(".ghost") == "return a + b"
        assert (texts(browser, "#drawn del"), browser.text("ins")) == (["owner"], "holder")
        browser.press("Tab")
        assert browser.code().endswith("self.balance return a + b")
        assert (browser.text(".ghost"), browser.text("ins")) == ("", "holder")
        browser.press("Tab")
        assert "self.name = holder\n" in browser.code()
        browser.press("Control+z")
        assert "self.name = owner\n" in browser.code()


@in_a_browser
def test_escape_hides_the_text_and_then_the_edit(browser: Page) -> None:
    with served_beside(ScriptedPredictor([rename])) as url:
        browser.open(url)
        browser.await_text("#said", "Tab takes the text, then the edit")
        browser.press("Escape")
        assert (browser.text(".ghost"), browser.text("ins")) == ("", "holder")
        browser.press("Escape")
        assert browser.text("ins") == browser.text("#drawn del") == ""


@in_a_browser
def test_only_the_words_that_change_are_struck_out(browser: Page) -> None:
    lines = ["    def __init__(self, holder: str, balance=0):", "        self.balance = 0"]
    with served_beside(editing((2, 4, lines), confidence=0.9)) as url:
        browser.open(url)
        browser.evaluate("document.getElementById('ask-edit').click()")
        browser.await_text("ins", "self.balance")
        assert "holder" not in texts(browser, "#drawn del")
        assert texts(browser, "ins b")[:1] == [":"]
        first, second = browser.text("ins").split("\n")
        assert (first, second) == (
            "def __init__(self, holder: str, balance=0):",
            f"    {lines[1].strip()}",
        )


@in_a_browser
def test_grey_text_comes_while_typing_and_tab_takes_it(browser: Page) -> None:
    with served_beside(ScriptedPredictor([rename])) as url:
        browser.open(url)
        browser.await_text("#server", "fake-1m")
        browser.select(browser.code())
        browser.type("def f(a, b):\n    ")
        browser.await_text(".ghost", "return a + b")
        browser.type("ret")  # the rest stays
        assert browser.text(".ghost") == "urn a + b"
        browser.press("Tab")
        assert browser.code() == "def f(a, b):\n    return a + b"
        assert browser.text(".ghost") == ""
        browser.press("Control+z")
        assert browser.code() == "def f(a, b):\n    ret"


@in_a_browser
def test_text_within_a_line_is_asked_for_one_line(browser: Page) -> None:
    predictor = ScriptedPredictor([", more\nlines"])
    with served_beside(predictor) as url:
        browser.open(url)
        browser.select("amount")
        browser.press("ArrowRight")
        browser.type("s")
        browser.await_text(".ghost", ", more")
        assert predictor.requests[-1].stop == ("\n",)


@in_a_browser
def test_every_step_is_shown_with_its_masks(browser: Page) -> None:
    with served_beside(ScriptedPredictor([rename])) as url:
        browser.open(url)
        browser.select("    self.name = owner")
        browser.type("a")
        browser.await_text("#steps", "return a + b")
        assert texts(browser, "#steps li") == ["░░░ b", "░░ + b", "░ a + b", "return a + b"]
        assert "90 %" in browser.text("#text-answer")
        assert {"12", "20", "33"} <= set(texts(browser, "#text-answer td"))


def texts(browser: Page, selector: str) -> list[str]:
    """Return the texts of all elements of a selector."""
    script = f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"
    found: list[str] = browser.evaluate(script)
    return found


@in_a_browser
def test_a_next_edit_follows_an_edit_and_tab_takes_it(browser: Page) -> None:
    predictor = ScriptedPredictor([rename])
    with served_beside(predictor) as url:
        browser.open(url)
        browser.select("balance")
        browser.type("total")
        browser.await_text("ins", "total")
        assert texts(browser, "#drawn del") == ["balance"]
        assert "line 4" in browser.text("#said")
        asked = next(one for one in predictor.requests if one.task == "next_edit")
        assert asked.path == "account.py"
        assert [edit.diff for edit in predictor.requests[-1].edits] == [
            " class Account:\n"
            "-    def __init__(self, owner, balance=0):\n"
            "+    def __init__(self, holder, total=0):\n"
            "         self.name = owner\n         self.balance = balance\n \n"
        ]
        browser.press("Tab")
        assert "self.name = owner\n        self.balance = total\n" in browser.code()
        assert browser.text("del") == browser.text("ins") == ""
        browser.await_text("ins", "holder")
        browser.press("Tab")
        browser.await_text("#said", "No next edit: nothing to change")
        assert predictor.requests[-1].edits[-1].accepted


@in_a_browser
def test_an_edit_that_is_held_back_has_its_reason(browser: Page) -> None:
    unsure = editing((1, 1, ["x"]), confidence=0.1)
    with served_beside(unsure) as url:
        browser.open(url)
        browser.evaluate("document.getElementById('ask-edit').click()")
        browser.await_text("#said", "10 % likely to be kept (medium shows from 11 %)")
        assert "10 % likely" in browser.text("#edit-answer")
        assert browser.text("ins") == ""


@in_a_browser
def test_the_keyboard_hides_suggestions_and_leaves(browser: Page) -> None:
    focus = "document.activeElement.id"
    with served_beside(editing(None)) as url:
        browser.open(url)
        reached = [browser.evaluate(focus)]
        for _ in range(5):
            browser.press("Shift+Tab")
            reached.append(browser.evaluate(focus))
        assert reached == ["code", "ask-edit", "ask-text", "key", "eagerness", "path"]
        browser.evaluate("document.getElementById('code').focus()")
        browser.type("a")
        browser.await_text(".ghost", "".join(WRITTEN))
        browser.press("Escape")
        assert browser.text(".ghost") == ""
        browser.press("Tab")
        assert browser.evaluate(focus) == "steps"


@in_a_browser
def test_a_server_with_a_key_asks_and_keeps_it_nowhere(browser: Page) -> None:
    with served_beside(ScriptedPredictor([rename]), KEYED) as url:
        browser.open(url)
        browser.await_text("#server", "401: the server demands its API key")
        browser.select("    self.name = owner")
        browser.type("a")
        browser.await_text("#said", "demands its API key")
        browser.evaluate("document.getElementById('key').focus()")
        browser.type("wrong")
        browser.press("Enter")
        browser.await_text("#server", "401: this is not the API key")
        browser.press("Control+a")
        browser.type("secret-key")
        browser.press("Enter")
        browser.await_text("#server", "fake-1m")
        browser.evaluate("document.getElementById('ask-text').click()")
        browser.await_text(".ghost", "return a + b")
        kept = "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])"
        assert "secret" not in browser.evaluate(kept)


@in_a_browser
def test_text_of_a_model_is_never_html(browser: Page) -> None:
    evil = "<img src=x onerror=document.title='run'>"
    with served_beside(ScriptedPredictor([evil])) as url:
        browser.open(url)
        browser.select("    self.name = owner")
        browser.type("a")
        browser.await_text(".ghost", evil)
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert browser.evaluate("document.title") == "Redraft playground"


@in_a_browser
@pytest.mark.usefixtures("spawn")
def test_redraft_serve_prints_a_working_pages_address(browser: Page, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
    config = tiny_config(head_dim=16, verifier="none")
    register(tmp_path, "tiny", config, tiny_tokenizer())
    with redraft_serve(models=str(tmp_path), model="tiny", threads="1") as url:
        browser.open(url)
        browser.await_text("#server", "ready")
        browser.until("document.querySelectorAll('#text-answer td').length === 8")
        assert "░" in browser.text("#steps")
        *_, total, round_trip = map(int, texts(browser, "#text-answer td")[2:])
        assert 0 < total <= round_trip
