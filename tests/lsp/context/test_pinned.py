"""Pinned files: read in the background, in front of every prompt, the same at every key."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.lsp.context.pinned import match_pinned, read_pinned
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.policy.ignore_files import IgnoreRules
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace
from redraft.model.prompts.redraft3 import render_infill
from redraft.model.records import EditRequest, RelatedFile
from support.models.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
API = "def charge(amount: int, currency: str) -> None: ...\n"
LONG = "".join(f"value_{number} = {number}\n" for number in range(400))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.md").write_text(API)
    (tmp_path / "docs" / "long.md").write_text(LONG)
    (tmp_path / "docs" / ".env").write_text("KEY=1\n")
    return tmp_path


def pinned(folder: Path, *patterns: str, tokens: int = 1_024) -> list[tuple[str, str]]:
    names = [each.relative_to(folder).as_posix() for each in folder.rglob("*")]
    listed = {folder: match_pinned(patterns, names)}
    refuse = lambda path: "secret" * path.endswith(".env")  # noqa: E731
    found = read_pinned([folder], patterns, tokens, refuse, listed, IgnoreRules())
    return [(each.path, each.text) for each in found]


def test_files_follow_pattern_order_and_end_at_a_line(folder: Path) -> None:
    assert pinned(folder, "docs/api.md") == [("docs/api.md", API.rstrip())]
    found = dict(pinned(folder, "docs/api.md", "docs/*.md", tokens=200))
    assert list(found) == ["docs/api.md", "docs/long.md"]
    assert LONG.startswith(found["docs/long.md"] + "\n") and len(found["docs/long.md"]) < 2_000


@pytest.mark.parametrize(
    "pattern", ["docs/.env", "../api.md", "/etc/hosts", "docs/none.md", "docs"]
)
def test_what_may_not_be_read_is_left_out(folder: Path, pattern: str) -> None:
    assert pinned(folder, pattern, "docs/api.md") == [("docs/api.md", API.rstrip())]


@pytest.mark.usefixtures("spawn")  # git
def test_they_stand_first_in_every_prompt_and_stay(folder: Path) -> None:
    settings = LspSettings(pinned_files=("docs/api.md",), context_tokens=512)
    workspace = Workspace(settings, lambda: 100.0, reads=False)
    workspace.folders = [folder.as_uri()]
    workspace.context.start()
    workspace.context.catch_up()
    code = workspace.open((folder / "a.py").as_uri(), "x = 1\ncharge(\n", 1, "python")
    prompts = []
    for cursor in (5, 13):
        snapshot = workspace.snapshot(code.uri, cursor, RequestFlags())
        related = workspace.context.gather(snapshot).related
        assert related[0].path == "docs/api.md" and related[0].pinned
        asked = EditRequest("infill", "a.py", code.text, cursor, related=related)
        made = render_infill(asked, TOKENIZER, 512)
        prompts.append(made.tokens)
    front = TOKENIZER.encode(API)
    same = next(at for at, (one, two) in enumerate(zip(*prompts, strict=False)) if one != two)
    assert same > len(front)
    assert any(list(prompts[0][at : at + len(front)]) == front for at in range(same))


def test_pinned_files_stay_where_others_find_no_room() -> None:
    others = tuple(RelatedFile(f"b{number}.py", LONG) for number in range(3))
    asked = EditRequest(
        "infill", "a.py", "x = 1\n", 0, related=(RelatedFile("api.md", API, pinned=True), *others)
    )
    made = render_infill(asked, TOKENIZER, 400)
    wanted = TOKENIZER.encode(API)
    tokens = list(made.tokens)
    assert any(tokens[at : at + len(wanted)] == list(wanted) for at in range(20))


def test_a_bad_value_names_the_setting() -> None:
    _, problems = update_settings(LspSettings(), {"pinnedTokens": 3})
    assert len(problems) == 1 and "pinned_tokens" in problems[0]
