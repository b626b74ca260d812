"""Code of folders, of single files and of data files, read by repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redraft.model.errors import SettingsError
from redraft.model.training.shards import read_records

#: What counts as code in a folder.
SUFFIXES = frozenset({
    ".py", ".pyi", ".rs", ".go", ".java", ".kt", ".scala", ".js", ".jsx", ".mjs", ".ts", ".tsx",
    ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".swift", ".lua",
})  # fmt: skip
SKIPPED = frozenset({"node_modules", "vendor", "dist", "build", "target", "__pycache__"})


def read_sources(paths: Sequence[Path]) -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """Yield the repositories of folders, files and ``*.jsonl.zst``.

    Each is its name, and the path and the text of each file.

    Raises:
        SettingsError: a path is neither.
    """
    for path in paths:
        if path.is_dir():
            yield path.resolve().name, _folder(path)
        elif path.name.endswith(".jsonl.zst"):
            yield from _records(path)
        elif path.is_file():
            yield path.name, iter([(path.name, _text(path))])
        else:
            raise SettingsError(f"There is no {path}. Name files, folders or a *.jsonl.zst.")


def _folder(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in SKIPPED for part in inside.parts)
        if path.suffix in SUFFIXES and not hidden and path.is_file():
            yield inside.as_posix(), _text(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _records(path: Path) -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """Return the newest text of each file in a file of commits or of files, by repository."""
    found: dict[str, dict[str, str]] = {}
    for record in sorted(read_records(path), key=lambda each: each.get("time", 0)):
        files: list[dict[str, Any]] = record.get("files") or [record]
        for file in files:
            text = file.get("after") or file.get("text")
            if text:
                found.setdefault(record["repo"], {})[file["path"]] = text
    for repo, texts in sorted(found.items()):
        yield repo, iter(sorted(texts.items()))
