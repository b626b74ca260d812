"""Files that training and evaluation read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import zstandard

with suppress(ImportError):  # the extra 'lab' has it; its first import starts a process
    import matplotlib.font_manager  # noqa: F401

OLD = [f"value_{i} = compute({i})" for i in range(40)]
NEW = [s.replace("compute", "measure") if i in (4, 8, 12) else s for i, s in enumerate(OLD)]

#: A file with names that come with several lines each.
CHAINED = '''"""Sums of money."""

import json
from pathlib import Path

TIMEOUT = 30
CURRENCY = "EUR"


class Shop:
    def __init__(self, path, timeout=TIMEOUT, currency=CURRENCY):
        self.path = Path(path)
        self.timeout = timeout
        self.currency = currency

    def prices(self, discount):
        items = json.loads(self.path.read_text())
        return [price(item, discount, self.currency) for item in items]

    def describe(self):
        return {
            "path": str(self.path),
            "timeout": self.timeout,
            "currency": self.currency,
        }


def price(item, discount, currency):
    amount = item["amount"] * (1 - discount)
    return f"{amount:.2f} {currency}"


def main():
    shop = Shop("items.json", timeout=TIMEOUT)
    print(shop.prices(0.1))
    print(shop.describe())
'''


def commit(number: int = 0) -> dict[str, object]:
    """Return the record of a commit that renames three calls of one file."""
    files = [
        {"path": "a.py", "language": "python", "before": "\n".join(OLD), "after": "\n".join(NEW)}
    ]
    return {"repo": "r", "commit": f"{number:040x}", "time": number, "files": files}


def write_lines(path: Path, records: list[dict[str, object]]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(zstandard.ZstdCompressor().compress(text.encode()))
    return path


def write_sources(folder: Path, copies: int) -> tuple[Path, Path]:
    """Training data: a commit and a file, each so many times."""
    plain: dict[str, object] = {"repo": "r", "path": "b.py", "language": "python"}
    plain["text"] = CHAINED
    commits = write_lines(folder / "x-commits.jsonl.zst", [commit()] * copies)
    return commits, write_lines(folder / "x-files.jsonl.zst", [plain] * copies)
