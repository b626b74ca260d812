"""Links for type checkers in a checkout that is not named ``redraft``.

Pyright, basedpyright and Pylance do not run the import hook of an editable install.
``[tool.pyright]`` in ``pyproject.toml`` gives them two paths to ``redraft.model``. The first is the
folder above the checkout: if the checkout is named ``redraft``, as ``git clone`` names it,
definitions open in the checkout and renames reach all files. The second is ``.links``, for a
checkout with another name: imports resolve and completion works, definitions open through the
link, and renames do not work. The build and the tests do not use the links, and git ignores them.
On Windows they are junctions, which need no privilege.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def packages(root: Path) -> dict[str, str]:
    """Return the folder of each top package by its import name, from ``pyproject.toml``."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    mapped: dict[str, str] = project["tool"]["setuptools"]["package-dir"]
    return mapped


def link_packages(root: Path) -> list[Path]:
    """Create the missing links and return all of them."""
    links = []
    for name, folder in packages(root).items():
        link = root.joinpath(".links", *name.split("."))
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            _link(link, root / folder)
        links.append(link)
    return links


def _link(link: Path, target: Path) -> None:
    if sys.platform == "win32":
        import _winapi

        _winapi.CreateJunction(str(target), str(link))
    else:
        link.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)


if __name__ == "__main__":
    for made in link_packages(ROOT):
        sys.stdout.write(f"{made.relative_to(ROOT).as_posix()}\n")
