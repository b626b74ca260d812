"""The checkout: its packages and their modules."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("model", "lsp", "server", "evals")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))
