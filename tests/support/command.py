"""The ``redraft`` command, called as people call it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUN = "import sys; from redraft.server.commands.main import main; sys.argv[0] = 'redraft'; main()"

#: Refuses to import what a user may not have.
ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("redraft.evals", "redraft.model.training", "torch", "matplotlib")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from redraft.server.commands.main import main
sys.argv = ["redraft", *sys.argv[1:]]
main()
"""


async def redraft(
    *arguments: str, environment: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of one call."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200", **(environment or {})},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def call(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    return asyncio.run(redraft(*arguments, environment=environment))


def is_one_red_line(err: str) -> bool:
    return err.startswith("error: ") and err.count("\n") == 1


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a new Python process and check that it ends without an error."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done


def without_laboratory(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``redraft`` in a folder as if what makers need were not installed."""
    return subprocess.run(
        [sys.executable, "-c", ALONE, *arguments],
        cwd=folder,
        env={**os.environ, "REDRAFT_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
    )
