"""The wheel: one package, everything in it, nothing generic at the top level."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("spawn")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel as it would be published, from a clean copy of what git tracks."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files to build from")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(copy)],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_nothing_generic_lands_at_the_top_level(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert all(top == "redraft" or top.endswith(".dist-info") for top in tops), tops


def test_the_wheel_holds_every_module_and_data_file(wheel: zipfile.ZipFile) -> None:
    packed = set(wheel.namelist())
    for package in ("model", "lsp", "server", "evals"):
        for path in (ROOT / package).rglob("*.py"):
            assert f"redraft/{path.relative_to(ROOT).as_posix()}" in packed
        assert f"redraft/{package}/py.typed" in packed
    data = [*(ROOT / "model/shipped").iterdir(), *(ROOT / "model/configs").glob("*.toml")]
    data += (ROOT / "evals/sources/scenarios").glob("*.toml")
    data.append(ROOT / "evals/steps/scenes.jsonl")
    data += [*(ROOT / "server/playground").iterdir(), *(ROOT / "server/tour").iterdir()]
    data += (ROOT / "model/places").glob("ranker.[ms]*")
    clients, carried = ROOT / "editor-clients", {"/".join(n.split("/")[2:]) for n in packed}
    for path in (*(clients / "neovim").rglob("*.lua"), *(clients / "vscode/bundle").iterdir()):
        assert path.relative_to(clients).as_posix() in carried
    assert {"neovim/doc/redraft.txt", "vscode/media/icon.png", "zed/settings.json"} <= carried
    for path in data:
        assert f"redraft/{path.relative_to(ROOT).as_posix()}" in packed


def test_licences_travel_along(wheel: zipfile.ZipFile) -> None:
    names = {Path(name).name for name in wheel.namelist()}
    assert {"LICENSE", "THIRD_PARTY_NOTICES.md"} <= names


def test_onnxruntime_and_torch_are_only_extras() -> None:
    required = importlib.metadata.requires("redraft") or []
    core = [r for r in required if "extra ==" not in r]
    assert not [r for r in core if r.startswith(("onnxruntime", "torch"))]
    extras = importlib.metadata.metadata("redraft").get_all("Provides-Extra") or []
    assert {"cpu", "gpu", "lab", "dev"} <= set(extras)


def test_shipped_files_are_small_enough_for_git() -> None:
    for path in (ROOT / "model/shipped").iterdir():
        assert path.stat().st_size < 95_000_000, path


def test_help_works_outside_the_checkout(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "redraft.server.commands.main", "--help"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
