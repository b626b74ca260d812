"""The page about runs: what it holds, and that nothing in it is executed."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from redraft.evals.example import Example, gap
from redraft.evals.pipeline import judge
from redraft.evals.report import page
from redraft.evals.run import Run, open_run
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.model.records import Candidate, Confidence, Prediction, Stats
from redraft.server.commands.main import app
from typer.testing import CliRunner

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install '.[lab]'")

HOSTILE = "<script>alert(1)</script>"
SPEC = RunSpec("infill", HOSTILE, "same")


def filled(number: int, right: bool) -> Example:
    """Return a gap that is filled with the truth, or with something that no page may execute."""
    parts = (f"x = '{HOSTILE}'\n", f"y = {number}", "\n")
    tags = {"kind": "line" if number % 2 else "tail", "language": "python"}
    example = gap(f"{HOSTILE} {number}", f"g{number}", tags, "a.py", parts)
    sure = Confidence(0.9 if right else 0.3, 0.9, 0.9, total=-0.1)
    text = parts[1] if right else f"y = '{HOSTILE}'"
    made = Candidate(len(parts[0]), len(parts[0]), text, sure, 3, 1, "end")
    stats = Stats(total_ms=100.0 + number, denoise_steps=2, canvas_tokens=3)
    prediction = Prediction("1", "m", (made,), stats=stats)
    return judge(replace(example, prediction=prediction), SPEC)


def run_of(rights: int, path: Path | None = None) -> Run:
    with open_run(path, SPEC, {"processor": "<b>slow</b>"}, resume=False) as run:
        for number in range(120):
            run.add(filled(number, right=number < rights))
    return run


class Parsed(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_report_page_has_no_script_from_its_data() -> None:
    found = Parsed(page({"a": run_of(20), "b <i>": run_of(80)}))
    assert "script" not in found.tags and "i" not in found.tags and "b" not in found.tags
    assert not [name for name in found.attributes if name.startswith("on")]
    assert HOSTILE in found.text and "<b>slow</b>" in found.text
    assert found.tags.count("svg") == 4
    assert found.tags.count("details") == 2 * 40
    assert "n = 120" in found.text and "The first 40 of 120." in found.text
    assert "b <i> less a" in found.text and "exact, %" in found.text and "+50.00" in found.text


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    run_of(30, tmp_path / "run.jsonl")
    file = tmp_path / "page.html"
    command = ["eval", "report", str(tmp_path / "run.jsonl"), "--html", str(file)]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_run_without_figures_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="empty holds no figures"):
        page({"empty": Run(SPEC)})
