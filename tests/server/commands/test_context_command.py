"""``redraft context``: every part of the prompt with its reason and its cost, as it really is."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.evals.commands.bench import measure_workspace
from redraft.model.errors import InvalidRequest, SettingsError, WeightsError
from redraft.server.commands import show_context as command
from redraft.server.commands.complete import FilePlace
from redraft.server.commands.show_context import (
    PromptPart,
    parts_of,
    request_for,
    spell,
    workspace_of,
)
from redraft.server.settings import Settings
from support.command import call, is_one_red_line
from support.editors.shop import FILES, MAIN, Shop
from support.models.tiny import rendered, tiny_config, tiny_tokenizer


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


LINE = MAIN[: MAIN.index("    return cart")].count("\n")


def parts(shop: Shop, task: str, budget: int) -> list[PromptPart]:
    gathered = shop.gather()
    request = request_for(shop.snapshot(), gathered, task)  # type: ignore[arg-type]
    kit = command._Kit(tiny_tokenizer(), tiny_config())
    return list(parts_of(request, gathered, kit, budget))


@pytest.mark.parametrize("task", ["infill", "next_edit"])
def test_the_parts_add_up_to_the_prompt(task: str) -> None:
    shop = Shop()
    gathered = shop.gather()
    request = request_for(shop.snapshot(), gathered, task)  # type: ignore[arg-type]
    prompt = rendered(request, tiny_tokenizer(), tiny_config(), 4_000)
    found = parts(shop, task, 4_000)
    assert sum(part.tokens for part in found) == len(prompt.tokens)
    assert [part.what for part in found if part.tokens] == [
        *["definition"] * len(gathered.pieces),
        *("path", "lines below", "lines above"),
        "region" if task == "next_edit" else "near window",
    ]
    assert found[0].where.startswith("shop/cart.py:")
    assert "definition of" in found[0].why


def test_a_piece_without_room_in_the_prompt_is_named() -> None:
    found = parts(Shop(), "next_edit", 40)
    told = [part for part in found if part.what == "left out" and "no room" in part.why]
    assert [part.where for part in told] == ["shop/cart.py"]


def test_the_prompt_is_spelled_with_its_marks_by_name() -> None:
    shop = Shop()
    request = request_for(shop.snapshot(), shop.gather(), "next_edit")
    text = spell(request, tiny_tokenizer(), tiny_config(), 20_000)
    assert text.startswith("<file_sep>shop/cart.py\n")
    assert "\n<jupyter_output>" in text and "<issue_comment>" in text
    assert text.endswith("\n<jupyter_script>")


def test_outside_git_it_is_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "er" / "a.py"
    file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert workspace_of(file) == tmp_path.resolve()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert workspace_of(file) == file.parent.resolve()


@pytest.mark.usefixtures("spawn")
def test_it_prints_pieces_reasons_costs(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An empty folder of models: costs are estimates then.
    code, out, err = call(
        *("context", f"{workspace / 'shop' / 'main.py'}:{LINE}:5", "--budget", "1024"),
        environment={"REDRAFT_CACHE": str(workspace / "none"), "XDG_CACHE_HOME": str(workspace)},
    )
    assert code == 0, err
    assert "definition of Cart" in out
    assert "shop/cart.py:1-" in out
    assert "region" in out
    assert "3 files indexed" in out


def test_secrets_are_not_shown(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ready_variants", lambda model: [])
    place = FilePlace(workspace / "shop" / "main.py", LINE, 1)
    with pytest.raises(WeightsError, match="redraft model pull"):
        command.show(Settings(), place, "next_edit", 1024, prompt=True)
    (workspace / ".env").write_text("KEY=1\n")
    with pytest.raises(InvalidRequest, match="secretGlobs"):
        command.show(Settings(), FilePlace(workspace / ".env", 1, 1), "infill", 1024, prompt=False)


@pytest.mark.usefixtures("spawn")
def test_wrong_places_are_told_in_one_line(workspace: Path) -> None:
    code, _, err = call("context", f"{workspace / 'shop' / 'main.py'}:99999:1")
    assert code == 1
    assert is_one_red_line(err)
    code, _, err = call("context", "main.py")
    assert code == 2
    assert "FILE:LINE:COL" in err


@pytest.mark.usefixtures("spawn")
def test_a_workspace_is_measured(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = workspace / "figures.json"
    measure_workspace(workspace, figures)
    assert "MB held by the index itself" in capsys.readouterr().out
    assert '"files": 3' in figures.read_text()
    with pytest.raises(SettingsError, match="neither a folder nor a file"):
        measure_workspace(workspace / "nowhere", None)
