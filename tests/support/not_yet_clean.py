"""Lists of files that do not keep the rules of style yet. The lists may only shrink.

``not_yet_clean.toml`` beside this file lists the violations that :mod:`support.style` finds, and
``[lint.per-file-ignores]`` in ``ruff.toml`` lists those of ruff. Run this file to remove what is
clean or gone: ``python tests/support/not_yet_clean.py``. It fails, and writes nothing, if a
violation is missing in the lists. An entry of a file that moved is kept under the new path.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.style import ROOT, violations

LISTS = Path(__file__).with_suffix(".toml")
RUFF = ROOT / "ruff.toml"
_RUFF_TABLE = "[lint.per-file-ignores]\n"

Entries = dict[str, list[str]]

#: Ignored for good: arguments of tests are fixtures, and fakes take those of what they replace;
#: the options of a command are its arguments.
RUFF_ALWAYS: Entries = {"server/commands/**": ["PLR0913"], "tests/**": ["ARG", "PLR0913"]}


def listed() -> Entries:
    """Return what ``not_yet_clean.toml`` lists, by check."""
    entries: Entries = tomllib.loads(LISTS.read_text(encoding="utf-8"))
    return entries


def ruff_listed() -> Entries:
    """Return the codes that ``ruff.toml`` ignores, by file."""
    ruff = tomllib.loads(RUFF.read_text(encoding="utf-8"))
    ignores: Entries = ruff["lint"]["per-file-ignores"]
    return {name: codes for name, codes in ignores.items() if name not in RUFF_ALWAYS}


def ruff_found() -> Entries:
    """Return the codes that ruff reports without the list, by file."""
    always = ", ".join(f'"{name}" = {json.dumps(codes)}' for name, codes in RUFF_ALWAYS.items())
    ignores = f"lint.per-file-ignores = {{ {always} }}"
    options = ("--output-format", "json", "--config", ignores)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", ".", "--quiet", *options],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found: dict[str, set[str]] = {}
    for report in json.loads(done.stdout):
        name = Path(report["filename"]).relative_to(ROOT).as_posix()
        found.setdefault(name, set()).add(report["code"])
    return {name: sorted(codes) for name, codes in sorted(found.items())}


def grown(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return the new entries of a list, apart from files that moved."""
    old = set(before)
    gone = [PurePosixPath(name).name for name in old if not (ROOT / name).exists()]
    new = []
    for name in sorted(set(now) - old):
        if PurePosixPath(name).name in gone:
            gone.remove(PurePosixPath(name).name)
        else:
            new.append(name)
    return new


def _grown_codes(before: Entries, now: Entries) -> list[str]:
    codes = sorted({code for found in now.values() for code in found})
    return [
        f"{name} {code}"
        for code in codes
        for name in grown(*([n for n in each if code in each[n]] for each in (before, now)))
    ]


def _write(entries: Mapping[str, Iterable[str]]) -> None:
    text = "# Written by not_yet_clean.py. These lists may only shrink.\n"
    for check, names in entries.items():
        quoted = "".join(f'  "{name}",\n' for name in sorted(names))
        text += f"\n{check} = [\n{quoted}]\n" if quoted else f"\n{check} = []\n"
    LISTS.write_text(text, encoding="utf-8")


def _write_ruff(found: Entries) -> None:
    head = RUFF.read_text(encoding="utf-8").partition(_RUFF_TABLE)[0]
    rows = "".join(
        f'"{name}" = {json.dumps(codes)}\n' for name, codes in (RUFF_ALWAYS | found).items()
    )
    RUFF.write_text(f"{head}{_RUFF_TABLE}{rows}", encoding="utf-8")


def main(*, may_write: bool) -> int:
    """Compare both lists with what is found, and write the shorter lists; return an exit code."""
    found, known, ruff, ruff_known = violations(), listed(), ruff_found(), ruff_listed()
    new = [
        f"{check}: {name}: {', '.join(found[check][name])}"
        for check in found
        for name in grown(known.get(check, []), found[check])
    ]
    new += [f"ruff: {pair}" for pair in _grown_codes(ruff_known, ruff)]
    out = sys.stdout.write
    if new:
        out("Not listed, and not to be added. Clean these:\n" + "".join(f"  {x}\n" for x in new))
        return 1
    same = ruff == ruff_known and all(sorted(found[x]) == sorted(known.get(x, [])) for x in found)
    if not same and not may_write:
        out("Some listed files are clean. Run: python tests/support/not_yet_clean.py\n")
        return 1
    if not same:
        _write(found)
        _write_ruff(ruff)
    counts = ", ".join(f"{check} {len(names)}" for check, names in found.items())
    out(f"Not yet clean: {counts}, ruff {len(ruff)} files.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(may_write="--check" not in sys.argv))
