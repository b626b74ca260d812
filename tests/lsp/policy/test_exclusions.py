"""Files excluded by ``.redraftignore`` and by patterns of secrets, and what says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.lsp.context.listing import find_files
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.policy.exclusions import Exclusions, refuse_file
from redraft.lsp.policy.ignore_files import IgnoreRules, folders_above
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.model.gate.reasons import Abstain
from support.editors.predictor import ScriptedPredictor

CODE = "def f():\n    return 1\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of which two ``.redraftignore`` files exclude parts."""
    for name in ("a.py", "gen/b.py", "src/c.py", "src/gen/d.py", "src/keep/e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CODE)
    (tmp_path / ".redraftignore").write_text("# made by a program\n\ngen/\n")
    (tmp_path / "src" / ".redraftignore").write_text("*.py\n!keep/*.py\n")
    return tmp_path


def exclusions_of(folder: Path) -> Exclusions:
    return Exclusions(LspSettings, lambda: [folder.as_uri()])


def why(folder: Path, name: str) -> str:
    exclusions, uri = exclusions_of(folder), (folder / name).as_uri()
    exclusions.on_open(uri)
    return exclusions.why(name, uri)


def test_the_innermost_fitting_pattern_excludes_a_file(project: Path) -> None:
    assert why(project, "a.py") == ""
    assert why(project, "gen/b.py") == "gen/b.py is excluded by line 3 of .redraftignore: gen/"
    assert why(project, "src/c.py") == "src/c.py is excluded by line 1 of src/.redraftignore: *.py"
    assert why(project, "src/keep/e.py") == ""
    assert exclusions_of(project).why("gen/b.py") == "", "nothing is read until a file is opened"


@pytest.mark.usefixtures("spawn")  # git
def test_index_and_prompt_leave_out_the_same_files(project: Path) -> None:
    rules = IgnoreRules()
    listed = {each.path for each in find_files(project, lambda _: "", rules)}
    assert listed == {"a.py", "src/keep/e.py"}
    assert rules.why(project, "src/gen/d.py")


def test_a_file_elsewhere_is_not_excluded(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "gen"
    other.mkdir()
    exclusions = exclusions_of(project)
    exclusions.on_open((project / "a.py").as_uri())
    assert exclusions.why("gen/b.py", (other / "b.py").as_uri()) == ""
    assert exclusions.why("gen/b.py", (project / "gen/b.py").as_uri())


def test_only_the_user_takes_a_pattern_from_defaults(project: Path) -> None:
    settings, problems = update_settings(LspSettings(), {"secretGlobs": ["!*.PEM", "mine.*"]})
    settings, _ = update_settings(settings, {"eagerness": "low"})
    assert not problems and refuse_file("a.pem", settings) == ""
    assert refuse_file("mine.py", settings) and refuse_file("a.key", settings)
    assert 'pattern *.key; "!*.key" there allows such files' in refuse_file("a.key", settings)
    (project / ".redraftignore").write_text("!*.key\n")
    assert "secretGlobs" in why(project, "a.key")


def test_a_pattern_of_no_list_cannot_be_taken_out() -> None:
    settings, problems = update_settings(LspSettings(), {"secretGlobs": ["!*.pen"]})
    assert settings == LspSettings()
    assert (
        len(problems) == 1
        and "secret_globs" in problems[0]
        and "no pattern is *.pen" in problems[0]
    )


async def decision(session: Session, file: Path) -> object:
    document = session.workspace.documents.get(file.as_uri()) or session.open(
        file.as_uri(), CODE, 1, "python"
    )
    return await session.ghost_text(session.at(document.uri, len(CODE), RequestFlags()))


@pytest.mark.usefixtures("spawn")  # git
async def test_a_document_obeys_at_once_and_later_ones_too(project: Path) -> None:
    session = Session(ScriptedPredictor(), LspSettings(), lambda: 100.0)
    session.workspace.folders = [project.as_uri()]
    try:
        refused = await decision(session, project / "gen" / "b.py")
        assert isinstance(refused, Abstain) and "line 3 of .redraftignore" in refused.reason
        (project / ".redraftignore").write_text("a.*\n")
        rules = IgnoreRules()
        find_files(project, lambda _: "", rules)
        session.workspace.context.indexer.rules = (
            rules  # as the index does when it has looked again
        )
        refused = await decision(session, project / "a.py")
        assert isinstance(refused, Abstain) and "line 1 of .redraftignore: a.*" in refused.reason
        allowed = await decision(session, project / "gen" / "b.py")
        assert "redraftignore" not in getattr(allowed, "reason", "")
    finally:
        await session.leave()


def test_folders_above_a_path() -> None:
    assert folders_above("a/b/c.py") == ["", "a/", "a/b/"]
    assert folders_above("c.py") == [""]
