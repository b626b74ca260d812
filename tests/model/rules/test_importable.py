"""Names that one file of the workspace defines: what they are imported from, and when not."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import fill
from redraft.model.records import Importable
from redraft.model.rules.modules import find_modules
from redraft.model.text.syntax import language_of
from support.editors.lsp import lsp_client

PYTHON = {
    "src/shop/__init__.py": "",
    "src/shop/dates.py": "class Money:\n    def pay(self): ...\n\n\ndef parse_date(text): ...\n",
    "src/shop/more/__init__.py": "",
    "src/shop/more/deep.py": "class Deep: ...\n\n\nclass _Hidden: ...\n",
    "src/shop/circle.py": "from shop.cart import Cart\n\n\nclass Circle: ...\n",
    "src/shop/till.py": "from .dates import Money\nfrom shop.circle import Circle\n",
    "src/desk/main.py": "from shop.dates import parse_date\nfrom shop.more import Deep\n",
    "tests/helpers.py": "class Fixture: ...\n",
    "tests/test_x.py": "from helpers import Fixture\nfrom shop.dates import Money\n",
}
SCRIPT = {
    "web/a.ts": "export const fooBar = 1\nexport interface Shape {}\nclass Hidden {}\n",
    "web/widget.ts": "class Widget {}\n\nexport default Widget\n",
    "web/main.ts": "import { fooBar } from './a'\nimport Widget from './widget'\n",
    "web/types.ts": "import type { Shape } from './a'\n",
    "server/x.js": "const { makeOld } = require('./old')\n",
    "server/old.js": "function makeOld() {}\n\nmodule.exports = { makeOld }\n",
}
GO = {
    "go.mod": "module example.com/shop\n\ngo 1.22\n",
    "pkg/money/money.go": "package money\n\nfunc Parse() {}\n\nfunc hidden() {}\n",
    "cmd/till/main.go": 'package main\n\nimport "example.com/shop/pkg/money"\n',
}
RUST = {
    "src/lib.rs": "pub mod a;\nmod money;\nuse crate::money::Money;\n",
    "src/money.rs": "pub struct Money;\n\nstruct Purse;\n\npub(crate) fn parse_money() {}\n",
    "src/b.rs": "use super::other::Thing;\n",
    "src/other.rs": "pub struct Thing;\n",
}
JAVA = {
    "src/main/java/com/shop/money/Money.java": "package com.shop.money;\n\npublic class Money {}\n",
    "src/main/java/com/shop/money/Coin.java": "package com.shop.money;\n\npublic class Coin {}\n",
    "src/main/java/com/shop/money/Purse.java": "package com.shop.money;\n\nclass Purse {}\n",
    "src/main/java/com/shop/Till.java": "package com.shop;\n\nimport com.shop.money.Money;\n",
}
#: Files, the path and the text of the document, and a name of which nothing is returned.
SILENT: list[tuple[dict[str, str], str, str, str]] = [
    (PYTHON | {"src/shop/b.py": "class Money: ...\n"}, "src/shop/cart.py", "", "Money"),
    (PYTHON, "src/shop/dates.py", "class Money: ...\n", "Money"),  # the file defines it
    (PYTHON, "src/shop/cart.py", "from shop.dates import *\n", "Money"),
    (PYTHON, "src/shop/cart.py", "", "pay"),  # a method
    (PYTHON, "src/shop/cart.py", "", "_Hidden"),
    (PYTHON, "src/shop/cart.py", "", "Fixture"),  # of tests
    (PYTHON, "src/shop/cart.py", "", "Circle"),  # would be circular
    (PYTHON | {"src/shop/b.py": "def print(): ...\n"}, "src/shop/cart.py", "", "print"),
    (PYTHON | {"src/shop/alone.py": "class Alone: ...\n"}, "src/shop/cart.py", "", "Alone"),
    ({"a/b.py": "class B: ...\n", "a/c.py": "from .b import B\n"}, "x.py", "", "B"),
    (SCRIPT, "web/b.ts", "", "Hidden"),  # not exported
    (SCRIPT | {"web/e.js": "import {Event} from './v'", "web/v.js": "export class Event {}\n"},
     "web/b.js", "", "Event"),
    (GO, "cmd/run/main.go", "package main\n", "money.hidden"),
    (GO, "pkg/money/more.go", "package money\n", "money.Parse"),  # the same package
    (GO | {"pkg/money/money.go": 'package money\nimport "example.com/shop/cmd"\nfunc Parse() {}\n'},
     "cmd/m.go", "package cmd\n", "money.Parse"),
    (RUST, "src/lib.rs", "", "Purse"),  # private
    (RUST, "src/a/open.rs", "", "Thing"),  # imported as "super", which is another module here
    (JAVA, "src/main/java/com/shop/A.java", "package com.shop;\n", "Purse"),
]  # fmt: skip


def modules(
    folder: Path, files: dict[str, str], path: str, text: str, *names: str
) -> dict[str, Importable]:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    index = Index()
    fill(index, [folder], lambda path: "", lambda done, total: None)
    found = find_modules(names, path, language_of(path) or "", text, index.workspace())
    return {one.name: one for one in found}


@pytest.mark.parametrize(
    ("files", "path", "text", "name", "wanted"),
    [
        (PYTHON, "src/shop/cart.py", "", "Money", ".dates"),  # as the nearest file has it
        (PYTHON, "src/shop/more/cart.py", "", "Money", "..dates"),
        (PYTHON, "src/shop/cart.py", "from shop.dates import Money\n", "parse_date", "shop.dates"),
        (PYTHON, "src/shop/cart.py", "", "Deep", "shop.more"),  # re-exported
        (PYTHON, "src/desk/cart.py", "", "Money", "shop.dates"),
        (PYTHON, "tests/test_cart.py", "", "Money", "shop.dates"),
        (PYTHON, "tests/test_cart.py", "", "Fixture", "helpers"),
        (SCRIPT, "web/sub/b.ts", "", "fooBar", "../a"),
        (SCRIPT, "web/b.ts", "", "Widget", "./widget"),
        (SCRIPT, "web/b.ts", "", "Shape", "./a"),
        (SCRIPT, "server/b.js", "const x = require('x')\n", "makeOld", "./old"),
        (SCRIPT | {"web/main.ts": "import { fooBar } from '@/a'\n"}, "web/b.ts", "", "fooBar",
         "@/a"),
        ({"web/other.ts": "export const barFoo = 1\n",
          "web/main.ts": "import { x } from './other.js'\n"}, "web/b.ts", "", "barFoo",
         "./other.js"),
        (GO, "cmd/run/main.go", "package main\n", "money.Parse", "example.com/shop/pkg/money"),
        (RUST, "src/a/open.rs", "", "Money", "crate::money"),
        (RUST, "src/a/open.rs", "", "parse_money", "crate::money"),
        (JAVA, "src/main/java/com/shop/A.java", "package com.shop;\n", "Money", "com.shop.money"),
        (JAVA, "src/main/java/com/shop/A.java", "package com.shop;\n", "Coin", "com.shop.money"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("spawn")
def test_a_module_is_named_as_in_the_nearest_file(
    tmp_path: Path, files: dict[str, str], path: str, text: str, name: str, wanted: str
) -> None:
    (found,) = modules(tmp_path, files, path, text, name).values()
    assert (found.name, found.module) == (name.partition(".")[0], wanted)


@pytest.mark.parametrize(("files", "path", "text", "name"), SILENT)
@pytest.mark.usefixtures("spawn")
def test_a_name_without_a_certain_import_has_no_module(
    tmp_path: Path, files: dict[str, str], path: str, text: str, name: str
) -> None:
    assert not modules(tmp_path, files, path, text, name)


@pytest.mark.usefixtures("spawn")
def test_two_packages_of_one_name_are_ambiguous(tmp_path: Path) -> None:
    files = GO | {
        "a/conf/a.go": "package conf\n\nfunc Load() {}\n\nfunc Save() {}\n",
        "b/conf/b.go": "package conf\n\nfunc Path() {}\n",
        "c/m.go": 'package main\n\nimport "example.com/shop/a/conf"\n',
        "d/m.go": 'package main\n\nimport "example.com/shop/b/conf"\n',
    }
    assert not modules(tmp_path, files, "m.go", "package main\n", "conf.Load", "conf.Path")
    assert modules(tmp_path / "x", files, "m.go", "package main\n", "conf.Load", "conf.Save")


@pytest.mark.usefixtures("spawn")
def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    (found,) = modules(tmp_path / "w", SCRIPT, "web/sub/b.ts", "", "fooBar").values()
    assert found.module == "../a"


@pytest.mark.usefixtures("spawn")
def test_a_default_and_a_type_are_told_apart(tmp_path: Path) -> None:
    found = modules(tmp_path, SCRIPT, "web/b.ts", "", "Widget", "Shape", "fooBar")
    assert found["Widget"].whole and not found["fooBar"].whole
    assert found["Shape"].is_type and not found["fooBar"].is_type


@pytest.mark.usefixtures("spawn")
def test_a_line_typed_in_a_workspace_gets_its_import(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    modules(workspace, PYTHON, "src/shop/cart.py", "")
    cart = '"""The cart."""\n\nimport os\n\nfrom shop.base import Base\n\nwhen = Base(os)\n'
    uri = (workspace / "src/shop/cart.py").as_uri()
    with lsp_client({"rules": True}, settings={"prefetch": False}) as client:
        client.initialize(rootUri=workspace.as_uri())
        client.open(cart, uri=uri, version=0)
        client.insert(7, 0, "day = parse_date(when)\n", 1, uri=uri)
        for version in range(2, 300):  # until the index got there
            client.insert(8, 0, "#", version, uri=uri)
            edits = client.edits(7, 6, version, uri=uri)
            if edits:
                break
        assert edits[0]["text"].strip() == "from shop.dates import parse_date"
        assert edits[0]["range"]["start"]["line"] == 5
