"""Definitions moved to another file: imports that follow them, in files that are not open too."""

from __future__ import annotations

import asyncio
import time

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.renames.removed_definitions import find_removed
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.records import RecentEdit
from redraft.model.text.syntax import language_of
from support.editors.predictor import ScriptedPredictor
from support.renames import moves, results

AREA = "def area(r):\n    return r * r\n"
OLD = f"import os\n\n\n{AREA}\n\ndef show(r):\n    return r\n"
LEFT = OLD.replace(f"{AREA}\n\n", "")
NEW = "import math\n"
HOME = f"{NEW}\n\n{AREA}"
TS_AREA = "export function area(r: number) {\n  return r;\n}\n"
TS_OLD = f"{TS_AREA}export const show = 1;\n"
TS_LEFT = "export const show = 1;\n"


def changed(
    others: dict[str, str],
    *,
    left: str = LEFT,
    home: str = HOME,
    old: str = OLD,
    new: str = NEW,
    user: str = "",
) -> dict[str, str] | None:
    """Return the files that follow after ``area`` went from pkg/old.py to pkg/new.py."""
    package = {"pkg/__init__.py": ""}
    saved = {"pkg/old.py": old, "pkg/new.py": new, **package, **others}
    found = moves(saved, {"pkg/old.py": left, "pkg/new.py": home}, "area", user=user)
    return results(found[0]) if found else None


def changed_script(
    others: dict[str, str], left: str = TS_LEFT, new: str = ""
) -> dict[str, str] | None:
    """Return the files that follow after ``area`` went from src/old.ts to src/lib/new.ts."""
    saved = {"src/old.ts": TS_OLD, "src/lib/new.ts": new, **others}
    found = moves(saved, {"src/old.ts": left, "src/lib/new.ts": f"{new}{TS_AREA}"}, "area")
    return results(found[0]) if found else None


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", "from pkg.old import area\n", "from pkg.new import area\n"),
        ("a.py", "from pkg.old import area as a\n", "from pkg.new import area as a\n"),
        ("pkg/a.py", "from .old import area\n", "from .new import area\n"),
        ("pkg/sub/a.py", "from ..old import area\n", "from ..new import area\n"),
        ("a.py", "from pkg.old import (\n    area,\n)\n",
         "from pkg.new import (\n    area,\n)\n"),
        ("a.py", "from pkg.old import show, area\n",
         "from pkg.old import show\nfrom pkg.new import area\n"),
        ("a.py", "from pkg.old import area, show\n",
         "from pkg.old import show\nfrom pkg.new import area\n"),
        ("a.py", "from pkg.old import (\n    area,\n    show,\n)\n\nshow()\n",
         "from pkg.old import (\n    show,\n)\nfrom pkg.new import area\n\nshow()\n"),
        ("a.py", "from pkg.new import zone\nfrom pkg.old import area, show\n",
         "from pkg.new import area, zone\nfrom pkg.old import show\n"),
        ("a.py", "def f():\n    from pkg.old import show, area\n    area(1)\n",
         "def f():\n    from pkg.old import show\n    from pkg.new import area\n    area(1)\n"),
        ("a.py", "from other.old import area\n", ""),
        ("a.py", "def f(area): return item.area\n", ""),
        ("a.py", "print('pkg.old.area')  # area\n", ""),
    ],
)  # fmt: skip
def test_files_import_the_name_from_its_new_file(path: str, before: str, after: str) -> None:
    assert changed({path: before}) == ({path: after} if after else None)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("src/a.ts", "import { area } from './old';\n", "import { area } from './lib/new';\n"),
        ("src/b/a.tsx", 'import { area } from "../old"\n', 'import { area } from "../lib/new"\n'),
        ("src/lib/a.js", "import { area } from '../old.js';\n",
         "import { area } from './new.js';\n"),
        ("a.ts", "import { area } from '@/old';\n", "import { area } from '@/lib/new';\n"),
        ("a.ts", "import { area } from 'src/old';\n", "import { area } from 'src/lib/new';\n"),
        ("src/a.ts", "export { area } from './old';\n", "export { area } from './lib/new';\n"),
        ("src/a.ts", "import { area as a, show } from './old';\n",
         "import { show } from './old';\nimport { area as a } from './lib/new';\n"),
        ("src/a.ts", "import all, { area } from './old';\n", ""),
        ("src/a.ts", "import area from './old';\n", ""),
        ("src/a.ts", "import * as old from './old';\nold.area(1);\n", ""),
        ("src/a.ts", "const { area } = require('./old');\n", ""),
        ("src/a.ts", "import { area } from 'old';\n", ""),
        ("src/a.ts", "import { area /* why */ } from './old';\n", ""),
    ],
)  # fmt: skip
def test_scripts_import_the_name_from_its_new_file(path: str, before: str, after: str) -> None:
    assert changed_script({path: before}) == ({path: after} if after else None)


def test_the_old_file_imports_what_it_still_uses() -> None:
    left = LEFT.replace("return r", "return area(r)")
    other = {"a.py": "from pkg.old import area\n"}
    after = left.replace("import os\n", "import os\n\nfrom .new import area\n")
    found = changed(other, left=left)
    assert found is not None and found["pkg/old.py"].replace("\n\n", "\n") == after.replace(
        "\n\n", "\n"
    )
    assert found["a.py"] == "from pkg.new import area\n"


def test_an_old_file_imports_as_others_do() -> None:
    left = LEFT.replace("return r\n", "return area(r)\n")
    others = {"run.py": "from pkg.old import area\n"}
    saved = {"pkg/old.py": OLD, "pkg/numbers.py": NEW, **others}
    for user in ("pkg/old.py", "pkg/numbers.py"):  # no package: no __init__.py
        (found, *_) = moves(saved, {"pkg/old.py": left, "pkg/numbers.py": HOME}, "area", user=user)
        assert "from pkg.numbers import area" in results(found)["pkg/old.py"]
    alone = {"pkg/old.py": OLD, "pkg/numbers.py": NEW, "run.py": "from old import area\n"}
    assert not moves(alone, {"pkg/old.py": left, "pkg/numbers.py": HOME}, "area", user="")


def test_an_old_script_imports_what_it_still_uses() -> None:
    found = changed_script({}, left="export const show = area(1);\n")
    assert found == {
        "src/old.ts": 'import { area } from "./lib/new";\n\nexport const show = area(1);\n'
    }


def test_the_new_file_no_longer_imports_its_own_name() -> None:
    new = "import math\nfrom .old import area\n"
    assert changed({}, new=new, home=f"{new}\n\n{AREA}") == {"pkg/new.py": HOME}
    new = "from .old import area, show\n"
    home = f"{new}\n\n{AREA}"
    assert changed({}, new=new, home=home) == {"pkg/new.py": home.replace("area, ", "", 1)}


def test_a_package_is_a_file_too() -> None:
    saved = {
        "pkg/__init__.py": AREA,
        "a.py": "from pkg import area\n",
        "pkg/b.py": "from . import area\n",
    }
    saved["pkg/new.py"] = ""
    (found,) = moves(saved, {"pkg/__init__.py": "", "pkg/new.py": AREA}, "area")
    after = {"a.py": "from pkg.new import area\n", "pkg/b.py": "from .new import area\n"}
    assert results(found) == after
    saved = {"pkg/new.py": AREA, "a.py": "from pkg.new import area\n", "pkg/__init__.py": ""}
    (found,) = moves(saved, {"pkg/new.py": "", "pkg/__init__.py": AREA}, "area")
    assert results(found) == {"a.py": "from pkg import area\n"}


def test_the_user_may_be_in_either_file() -> None:
    other = {"a.py": "from pkg.old import area\n"}
    assert changed(other, user="pkg/old.py") == changed(other)


@pytest.mark.parametrize(
    "others",
    [
        {"a.py": "from pkg.old import *\n\narea(1)\n"},
        {"a.py": "from pkg import old\n\nold.area(1)\n"},
        {"a.py": "import pkg.old\n\npkg.old.area(1)\n"},
        {"pkg/third.py": AREA},
        {"a.py": "from pkg.old import area  # why\n"},
        {"pkg/sub/__init__.py": "from ..old import *\n", "a.py": "from pkg.sub import area\n"},
    ],
)
def test_what_is_unclear_changes_nothing(others: dict[str, str]) -> None:
    assert changed({"b.py": "from pkg.old import area\n", **others}) is None


def test_a_name_still_defined_has_not_moved() -> None:
    assert changed({"b.py": "from pkg.old import area\n"}, left=OLD) is None


def test_a_name_not_exported_has_not_moved() -> None:
    saved = {"a.ts": TS_OLD, "b.ts": "", "c.ts": "import { area } from './a';\n"}
    private = TS_AREA.replace("export ", "")
    assert moves(saved, {"a.ts": TS_LEFT, "b.ts": private}, "area") == []
    assert moves(saved, {"a.ts": TS_LEFT, "b.ts": TS_AREA}, "area") != []


def test_a_namesake_is_not_the_removed_function() -> None:
    other = "def area(shape):\n    return shape.area\n"
    assert changed({"b.py": "from pkg.old import area\n"}, home=other) is None


def test_an_import_that_is_all_of_a_block_stays() -> None:
    new = "if TYPE_CHECKING:\n    from .old import area\n"
    assert changed({}, new=new, home=f"{new}\n\n{AREA}") is None


def test_no_import_makes_a_circle() -> None:
    new = "from .a import x\n"
    others = {"pkg/a.py": "from .b import x\n", "pkg/b.py": "from .old import area\n"}
    assert changed(others, new=new, home=f"{new}\n\n{AREA}") is None
    left = LEFT.replace("return r", "return area(r)")
    new = "from .old import show\n"
    assert changed({}, left=left, new=new, home=f"{new}\n\n{AREA}") is None


def test_several_names_move_together() -> None:
    text = "def area(r): ...\n\n\ndef edge(r): ...\n"
    saved = {"old.py": text, "new.py": "", "a.py": "from old import area, edge\n"}
    (found,) = moves(saved, {"old.py": "", "new.py": text}, "area", "edge")
    assert found.label == "import `area`, `edge` from `new.py` at 1 place"
    assert results(found) == {"a.py": "from new import area, edge\n"}


def test_a_pasted_long_function_is_followed_at_once() -> None:
    """Cut and paste are no edits of the history, and no other next edit is offered after them."""
    area = "def area(r):\n" + "    r += 1\n" * 20 + "    return r\n"

    async def follow(again: bool) -> str:
        session = Session(ScriptedPredictor(), LspSettings(), time.monotonic, reads=False)
        session.open("file:///w/a.py", "from old import area\n", 1, "python")
        old = session.open("file:///w/old.py", f"{area}\n\nx = 1\n", 1, "python")
        new = session.open("file:///w/new.py", "y = 2\n", 1, "python")
        session.change(old.uri, [ContentChange("x = 1\n")], 2)
        session.change(new.uri, [ContentChange(f"y = 2\n\n\n{area}")], 2)
        if again:
            session.change(old.uri, [ContentChange(f"{area}\n\nx = 1\n")], 3)
        query = session.at(new.uri, 6, RequestFlags(False, whole_renames=True))
        decision = await session.next_edit(query)
        if not isinstance(decision, Offer) or decision.suggestion.rename is None:
            return ""
        return decision.suggestion.rename.label

    assert asyncio.run(follow(again=False)) == "import `area` from `new.py` at 1 place"
    assert asyncio.run(follow(again=True)) == ""


@pytest.mark.parametrize(
    ("path", "diff", "expected"),
    [
        ("a.py", "-def area(r):\n-    return r\n", ["area"]),
        ("a.py", "-def area(r):\n+def area(r, s):\n", []),
        ("a.py", "-    def area(self):\n-        return 1\n", []),
        ("a.py", "-def area():\n-    def inner():\n-        pass\n", ["area"]),
        ("a.py", "-LIMIT = 3\n", ["LIMIT"]),
        ("a.ts", "-export const area = (r: number) => r;\n", ["area"]),
        ("a.ts", "-export class Disc {\n-  area() {}\n-}\n", ["Disc"]),
        ("a.go", "-func Area() {}\n", []),
    ],
)
def test_definitions_that_an_edit_removed(path: str, diff: str, expected: list[str]) -> None:
    edits = [RecentEdit(path, 0, diff)]
    assert [*find_removed(edits, path, language_of(path) or "")] == expected


def test_the_imports_of_a_definition_come_along() -> None:
    area = "def area(r):\n    return math.pi * np.abs(scale(r)) * later\n"
    imports = "import math\nimport numpy as np\n\nfrom .units import other, scale as scale\n"
    old = f"{imports}later = 1\n\n\n{area}"
    for home_imports, added in (
        ("", ["import math", "import numpy as np", "from .units import scale as scale"]),
        ("import math\n", ["import numpy as np", "from .units import scale as scale"]),
        ("from shop import math, np, scale\n", []),  # they mean something else here
    ):
        found = changed(
            {"a.py": "from pkg.old import area\n"},
            left=f"{imports}later = 1\n",
            home=f"{home_imports}\n\n{area}",
            old=old,
            new=home_imports,
        )
        assert found is not None
        after = found.get("pkg/new.py", home_imports)
        assert all(after.count(line) == 1 for line in added), after
        assert bool(added) is ("pkg/new.py" in found)
        assert "later" not in after.replace(area, "")


def test_names_of_other_definitions_are_left() -> None:
    area = "def area(math):\n    return math\n"
    home = f"def other():\n    return math.pi\n\n\n{area}"
    found = changed({}, left="import math\n", home=home, old=f"import math\n{area}", new=home)
    assert found is None
