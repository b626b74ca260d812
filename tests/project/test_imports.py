"""Imports between packages; serving never imports torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from support.tree import PACKAGES, ROOT, modules

MAY_IMPORT = {
    "model": set(),
    "lsp": {"model"},
    "server": {"model", "lsp"},
    "evals": {"model", "lsp", "server"},
}
#: What makers need and users do not: no other package knows it, not even by name in a string.
LABORATORY = ("redraft.evals", "redraft.model.training")
#: The commands are the one place of ``server`` that may reach into the language server, and those
#: of ``evals`` the one that may reach into ``server``.
COMMANDS = {"server": ROOT / "server" / "commands", "evals": ROOT / "evals" / "commands"}
USES_TORCH = {
    "model/training/arithmetic.py",
    "model/training/batches.py",
    "model/training/checkpoints.py",
    "model/training/evaluate.py",
    "model/training/layers.py",
    "model/training/loop.py",
    "model/training/masks.py",
    "model/training/network.py",
}

#: Lowest first. A room imports from lower ones and from itself; those of one line do not import
#: each other. Modules at a package's door stand here by their names, those of one line together.
LEVELS = {
    "model": (
        "__init__ errors config silence memo validation release safe_files", "records",
        "wire remote",
        "text", "edits network", "rules places", "gate prompts", "weights",
        "runtime", "decode", "calibrate", "choice conversation predict",
        "load engine training",
    ),
    "server": (
        "settings", "http", "routes", "app", "engine_process", "scaling", "commands",
    ),
    "evals": (
        "example metrics provenance sandbox spec",
        "figures measured_model run sources replay.clock", "gather tables", "scorers", "compare",
        "replay.simulated_predictor", "latency",
        "predictors", "pipeline", "replay", "gate places report", "steps", "commands",
    ),
}  # fmt: skip


#: Groups of modules of the language server, lowest first. A module imports from the same group and
#: from those before it.
LSP_GROUPS = (
    "editor_settings documents policy context.index context.safe_reading context.git "
    "context.listing recording.recordings_folder recording.recording_events recording.counts",
    "renames recording.change_sources learning",
    "suggestions.suggestion suggestions.outcomes policy.pace",
    "snapshot",
    "question refusals policy.disabled_scopes schedule context",
    "workspace",
    "journal recording.own_gate suggestions",
    "precedence predictions edit_places edit_choice read_ahead renames.offer",
    "ghost_text edit_search",
    "recording",
    "session",
    "protocol server",
)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the dotted names that a module imports, relative ones resolved.

    ``from a import b`` gives both ``a`` and ``a.b``, which may be a module.
    """
    package = ["redraft", *path.relative_to(ROOT).parts[:-1]]
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            found |= {whole, *(f"{whole}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def named_in_strings(path: Path) -> set[str]:
    """Return the modules of ours that strings of a module name, docstrings aside."""
    tree = parsed(path)
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    strings = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    )
    return {name for text in strings for name in re.findall(r"\bredraft(?:\.\w+)+", text)}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_downwards(package: str) -> None:
    wrong = []
    for path in modules(package):
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "redraft" or len(parts) < 2 or parts[1] == package:
                continue
            allowed = MAY_IMPORT[package]
            if package in COMMANDS and COMMANDS[package] not in path.parents:
                allowed = allowed - {"lsp" if package == "server" else "server"}
            if parts[1] not in allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_the_product_does_not_know_the_laboratory() -> None:
    training = ROOT / "model" / "training"
    wrong = [
        f"{path.relative_to(ROOT)} names {name}"
        for package in ("model", "lsp", "server")
        for path in modules(package)
        if training not in path.parents
        for name in (*imported(path), *named_in_strings(path))
        if name.startswith(LABORATORY)
    ]
    assert not wrong


def lsp_modules() -> dict[str, Path]:
    """Return the modules of the language server by their dotted names within it."""
    root = ROOT / "lsp"
    named = {".".join(p.relative_to(root).with_suffix("").parts): p for p in modules("lsp")}
    return {name: path for name, path in named.items() if path.name != "__init__.py"}


def test_language_server_imports_only_downwards() -> None:
    level = {name: n for n, names in enumerate(LSP_GROUPS) for name in names.split()}
    found = lsp_modules()

    def group_of(name: str) -> int:
        return level[name] if name in level else level[name.partition(".")[0]]

    wrong = [
        f"{name} imports {other}"
        for name, path in found.items()
        for other in found.keys() & {each.removeprefix("redraft.lsp.") for each in imported(path)}
        if group_of(other) > group_of(name)
    ]
    assert not wrong


def test_only_server_and_protocol_take_the_session() -> None:
    wrong = []
    for name, path in lsp_modules().items():
        if name == "server" or name.startswith("protocol."):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.arg) and node.annotation is not None:
                words = {
                    each.id for each in ast.walk(node.annotation) if isinstance(each, ast.Name)
                }
                quoted = ast.unparse(node.annotation).strip("'\"")
                wrong += [f"{name}:{node.lineno}"] * ("Session" in words or quoted == "Session")
    assert not wrong


@pytest.mark.parametrize("package", LEVELS)
def test_rooms_import_only_downwards(package: str) -> None:
    level = {room: n for n, rooms in enumerate(LEVELS[package]) for room in rooms.split()}

    def room_of(dotted: str) -> str:
        first, *rest = dotted.split(".")
        inner = ".".join([first, *rest[:1]])
        return inner if inner in level else first

    wrong = []
    for path in modules(package):
        here = ".".join(path.relative_to(ROOT / package).with_suffix("").parts)
        door = "." not in here
        for name in imported(path):
            if name.startswith(inside := f"redraft.{package}."):
                mine, other = room_of(here), room_of(name.removeprefix(inside))
                allowed = mine == other or level[other] < level[mine] + door
                wrong += [] if allowed else [f"{here} imports {name}"]
    assert not wrong


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in modules(package)}
    reached = {n: {f"redraft.{o}" for o in names} & imported(p) for n, p in names.items()}
    for through in names:  # Warshall's closure
        for ways in reached.values():
            ways |= reached[through] if f"redraft.{through}" in ways else set()
    circular = {name for name, ways in reached.items() if f"redraft.{name}" in ways}
    assert not circular


def test_torch_is_imported_by_training_and_reference() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in modules(package)
        if any(name.split(".")[0] == "torch" for name in imported(path))
    }
    assert users == USES_TORCH


@pytest.mark.parametrize(
    "module",
    [
        "redraft.server.commands.main",
        "redraft.server.app",
        "redraft.server.engine_process.host",
        "redraft.lsp.server",
    ],
)
@pytest.mark.usefixtures("spawn")
def test_serving_imports_neither_torch_nor_onnx(module: str, tmp_path: Path) -> None:
    check = f"import sys, {module}; sys.exit(bool({{'torch', 'onnx'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, timeout=120)
    assert done.returncode == 0


@pytest.mark.usefixtures("spawn")
def test_the_engine_process_imports_no_foreign_formats(tmp_path: Path) -> None:
    check = (
        "import sys, redraft.server.engine_process.host, redraft.server.engine_process.open\n"
        "formats = {m for m in sys.modules if m.startswith('redraft.server.routes.')}\n"
        "print(sorted(formats | {'prometheus_client', 'redraft.server.app'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=tmp_path, timeout=120, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "['redraft.server.routes.own_api']\n"


def test_no_test_module_is_imported_by_another() -> None:
    tests = ROOT / "tests"
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(tests.rglob("*.py"))
        for name in imported(path)
        if name.split(".")[0] == "conftest" or name.split(".")[0].startswith("test_")
    ]
    assert not wrong, "what several tests use belongs to tests/support"


def test_every_package_says_what_it_is_for() -> None:
    for folder in (*PACKAGES, "tests", "editor-clients"):
        assert (ROOT / folder / "README.md").is_file(), folder
