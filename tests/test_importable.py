"""Names that one place of the workspace defines: what they are imported from, and when not."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.lsp.context.importable import Asker, Importer
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import fill
from redraft.model.records import Importable
from redraft.model.text.syntax import language_of
from support.lsp import lsp_client

PYTHON = {
    "src/shop/__init__.py": "",
    "src/shop/dates.py": "class Money:\n    def pay(self): ...\n\n\ndef parse_date(text): ...\n",
    "src/shop/more/__init__.py": "from .deep import Deep\n",
    "src/shop/more/deep.py": "class Deep: ...\n\n\nclass _Hidden: ...\n",
    "src/shop/round.py": "from shop.cart import Cart\n\n\nclass Circle: ...\n",
    "tests/helpers.py": "class Fixture: ...\n",
    "tests/test_x.py": "class OnlyHere: ...\n",
}
SCRIPT = {
    "web/a.ts": "export const fooBar = 1\nexport interface Shape {}\nclass Hidden {}\n",
    "web/widget.ts": "class Widget {}\n\nexport default Widget\n",
    "web/lib/index.ts": "export function deepOne() {}\n",
    "web/old.js": "function makeOld() {}\n\nmodule.exports = { makeOld }\n",
    "packages/one/a.ts": "export class InOne {}\n",
}
GO = {
    "go.mod": "module example.com/shop\n\ngo 1.22\n",
    "pkg/money/money.go": "package money\n\nfunc Parse() {}\n\nfunc hidden() {}\n",
    "pkg/a/internal/deep/deep.go": "package deep\n\nfunc Dig() {}\n",
    "other/go.mod": "module example.com/other\n",
    "other/far/far.go": "package far\n\nfunc Go() {}\n",
}
RUST = {
    "src/lib.rs": "pub mod a;\nmod money;\n",
    "src/money.rs": "pub struct Money;\n\nstruct Purse;\n\npub(crate) fn parse_money() {}\n",
    "src/a/mod.rs": "mod shut;\npub mod open;\n",
    "src/a/shut.rs": "pub struct Shut;\n",
    "src/a/open.rs": "pub struct Open;\n",
}
JAVA = {
    "src/main/java/com/shop/money/Money.java": "package com.shop.money;\n\npublic class Money {}\n",
    "src/main/java/com/shop/money/Purse.java": "package com.shop.money;\n\nclass Purse {}\n",
}


SUB = {"pkg/__init__.py": "", "pkg/sub/b.py": "class Widget: ...\n"}
ROUND = {"shop/__init__.py": ""}
API = "export class Api {}\n"
#: A package, and what says only how files are read.
APART = {"api/a.ts": API, "api/package.json": '{"name": "api"}'}
ESM = '{"type": "module"}'
#: Files, the path and the text of the document, names of which nothing is to be told.
SILENT: list[tuple[dict[str, str], str, str, str]] = [
    (PYTHON | {"src/shop/b.py": "class Money: ...\n"}, "src/shop/cart.py", "", "Money"),
    (PYTHON, "src/shop/dates.py", "class Money: ...\n", "Money"),  # it is its own
    (PYTHON, "src/shop/cart.py", "from shop.dates import *\n", "Money"),
    (PYTHON, "src/shop/cart.py", "", "pay"),  # a method
    (PYTHON, "src/shop/cart.py", "", "_Hidden"),
    (PYTHON, "src/shop/cart.py", "", "Fixture"),  # of tests
    (PYTHON, "tests/test_y.py", "", "OnlyHere"),  # of a test itself
    (PYTHON, "src/shop/cart.py", "", "Circle"),  # would go round in a circle
    (PYTHON | {"src/shop/b.py": "def print(): ...\n"}, "src/shop/cart.py", "", "print"),
    (PYTHON | {"a.py": "if x:\n    class Late: ...\n"}, "b.py", "", "Late"),
    (SCRIPT, "web/b.ts", "", "Hidden"),  # not exported
    (SCRIPT, "web/b.ts", "", "makeOld"),  # exported in another way
    (SCRIPT, "web/b.ts", "import x from '@/x'\n", "fooBar"),  # by names of its own
    (SCRIPT, "packages/two/b.ts", "", "InOne"),  # of another package
    (SCRIPT, "web/b.js", "import x from './x.js'\nimport y from './y'\n", "fooBar"),
    (GO, "cmd/run/main.go", "package main\n", "money.hidden"),
    (GO, "pkg/money/more.go", "package money\n", "money.Parse"),  # the same package
    (GO, "cmd/run/main.go", "package main\n", "deep.Dig"),  # internal to another
    (GO, "cmd/run/main.go", "package main\n", "far.Go"),  # of another module
    ({k: v for k, v in GO.items() if k != "go.mod"}, "cmd/m.go", "", "money.Parse"),
    (RUST, "src/a/open.rs", "", "Purse"),  # private
    (RUST, "src/money.rs", "", "Shut"),  # in a private module
    (RUST, "other/src/money.rs", "", "Open"),  # of another crate
    ({"__init__.py": "class Root: ...\n"}, "a.py", "", "Root"),  # of what package?
    ({"__init__.py": "", "b.py": "class Root: ...\n"}, "a.py", "", "Root"),
    (PYTHON | {"src/shop/a(b.py": "class Odd: ...\n"}, "src/shop/cart.py", "", "Odd"),
    (RUST | {"src/a(b/c.rs": "pub struct Odd;\n"}, "src/money.rs", "", "Odd"),
    (JAVA, "src/main/java/com/shop/money/A.java", "package com.shop.money;\n", "Money"),
    (JAVA, "src/main/java/com/shop/A.java", "package com.shop;\n", "Purse"),
    (JAVA, "x/src/main/java/com/shop/A.java", "package com.shop;\n", "Money"),
    # the line does not define the name
    ({"wiring.py": "app.url_map = 1\n"}, "b.py", "", "url_map"),
    ({"wiring.py": 'REG["Widget"] = 1\n'}, "b.py", "", "Widget"),
    ({"src/routes.js": 'export default { Home: "/h" };\n'}, "src/b.js", "import './a'\n", "Home"),
    # Go
    (GO | {"money2/a.go": "package main\n\nfunc Run() {}\n"}, "c/m.go", "", "money2.Run"),
    (
        GO | {"pkg/money/up.go": 'package money\n\nimport "example.com/shop/cmd"\n'},
        "cmd/m.go",
        "package cmd\n",
        "money.Parse",
    ),
    (GO | {"testing/fake/a.go": "package fake\n\nfunc Run() {}\n"}, "c/m.go", "", "fake.Run"),
    (GO, "/elsewhere/m.go", "package main\n", "far.Go"),
    # folders without __init__.py
    (SUB, "pkg/sub/a.py", "", "Widget"),
    ({"sub/b.py": "class Widget: ...\n"}, "sub/a.py", "from sub.c import d\n", "Widget"),
    ({"x/sub/b.py": "class Widget: ...\n"}, "x/sub/a.py", "import x.sub.c\n", "Widget"),
    ({"sub/b.py": "class Widget: ...\n"}, "sub/a.py", "from .c import d\n", "Widget"),
    # round in a circle
    (ROUND | {"shop/a.py": "from shop import b\n\nclass A: ...\n"}, "shop/b.py", "", "A"),
    (ROUND | {"shop/a.py": "from . import (\n  b as c,\n)\nclass A: ...\n"}, "shop/b.py", "", "A"),
    (ROUND | {"shop/a.py": "from shop import x\n\nclass A: ...\n"}, "shop/__init__.py", "", "A"),
    (ROUND | {"shop/a.py": "from . import x\n\nclass A: ...\n"}, "shop/__init__.py", "", "A"),
    # packages of one repository
    ({"server/api.ts": "export class Api {}\n"}, "client/src/a.ts", "", "Api"),
    ({"client/src/api.ts": "export class Api {}\n"}, "server/a.ts", "", "Api"),
    ({"x/packages/one/a.ts": "export class Api {}\n"}, "x/packages/two/a.ts", "", "Api"),
    (APART | {"web/package.json": '{"name": "web"}'}, "web/a.ts", "", "Api"),
    (APART, "tools/a.ts", "", "Api"),
    (APART | {"package.json": '{"name": "all"}'}, "tools/a.ts", "", "Api"),
    (APART | {"api/package.json": "{"}, "tools/a.ts", "", "Api"),
    (APART | {"api/package.json": "[\n" * 9_999}, "tools/a.ts", "", "Api"),
    ({"a.mts": "export class Api {}\n"}, "b.js", "import x from './x.js'\n", "Api"),
    ({"a.js": "export class Event {}\n"}, "b.js", "import x from './x.js'\n", "Event"),
]


def importer(folder: Path, files: dict[str, str]) -> Importer:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    index = Index()
    fill(index, [folder], lambda path: "", lambda done, total: None)
    return Importer(index.snapshot, index.text)


def told(
    folder: Path, files: dict[str, str], path: str, text: str, *names: str
) -> dict[str, Importable]:
    asker = Asker(path, language_of(path) or "", text)
    return {one.name: one for one in importer(folder, files).find(names, asker)}


@pytest.mark.parametrize(
    ("files", "path", "text", "name", "wanted"),
    [
        (PYTHON, "src/shop/cart.py", "", "Money", "shop.dates"),
        (PYTHON, "src/shop/cart.py", "from .x import y\n", "Money", ".dates"),
        (PYTHON, "src/shop/more/cart.py", "from .x import y\n", "Money", "..dates"),
        (PYTHON, "src/shop/cart.py", "from shop.x import y\n", "parse_date", "shop.dates"),
        (PYTHON, "tests/test_cart.py", "", "Money", "shop.dates"),
        (PYTHON, "tests/test_cart.py", "", "Fixture", "helpers"),
        (PYTHON, "src/shop/cart.py", "", "Deep", "shop.more"),  # that hands it on
        (PYTHON, "src/shop/more/cart.py", "", "Deep", "shop.more.deep"),
        (SCRIPT, "web/sub/b.ts", "", "fooBar", "../a"),
        (SCRIPT, "web/sub/b.ts", "import x from './y.js'\n", "fooBar", "../a.js"),
        (SCRIPT, "web/b.ts", "", "deepOne", "./lib"),
        (SCRIPT, "web/b.js", "const x = require('x')\n", "makeOld", "./old"),
        (SCRIPT, "packages/one/b.ts", "", "InOne", "./a"),
        ({"package.json": "{}", "api/a.ts": API}, "web/a.ts", "", "Api", "../api/a"),
        (APART | {"api/package.json": ESM}, "web/a.ts", "", "Api", "../api/a"),
        (APART | {"api/esm/package.json": ESM}, "api/esm/a.ts", "", "Api", "../a"),
        (GO, "cmd/run/main.go", "package main\n", "money.Parse", "example.com/shop/pkg/money"),
        (GO, "pkg/a/a.go", "package a\n", "deep.Dig", "example.com/shop/pkg/a/internal/deep"),
        (RUST, "src/a/open.rs", "", "Money", "crate::money"),
        (RUST, "src/a/open.rs", "", "parse_money", "crate::money"),
        (RUST, "src/money.rs", "", "Open", "crate::a::open"),
        (RUST, "src/a/open.rs", "", "Shut", "crate::a::shut"),
        (
            JAVA
            | {
                "src/main/java/com/shop/money/Coin.java": "package com.shop.money;\n\n"
                '@JsonTypeName("Coin")\npublic final class Coin {}\n'
            },
            "src/main/java/com/shop/A.java",
            "package com.shop;\n",
            "Coin",
            "com.shop.money",
        ),
        ({"srv/go.mod": "module ex.com/srv\n", "srv/a.go": "package srv\n\nfunc Run() {}\n"},
         "srv/cmd/m.go", "package main\n", "srv.Run", "ex.com/srv"),
        ({"sub/b.py": "class Widget: ...\n"}, "sub/a.py", "import os\n", "Widget", "b"),
        ({"b.py": "class Event: ...\n"}, "a.py", "", "Event", "b"),
        (ROUND | {"shop/a.py": "class A: ...\n"}, "shop/__init__.py", "from .b import x\n", "A",
         ".a"),
        (SCRIPT, "web/b.ts", "import './style.css'\nimport x from './x.js'\n", "fooBar", "./a.js"),
        ({".storybook/x.ts": "export const theme = 1\n"}, "b.ts", "", "theme", "./.storybook/x"),
        ({"src/modules/a/x.ts": "export class X {}\n"}, "src/modules/b/y.ts", "", "X", "../a/x"),
        (JAVA, "src/test/java/com/shop/ATest.java", "package com.shop;\n", "Money",
         "com.shop.money"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("spawn")
def test_the_module_is_named_as_the_document_would_name_it(
    tmp_path: Path, files: dict[str, str], path: str, text: str, name: str, wanted: str
) -> None:
    (found,) = told(tmp_path, files, path, text, name).values()
    assert (found.name, found.module) == (name.partition(".")[0], wanted)


@pytest.mark.parametrize(("files", "path", "text", "name"), SILENT)
@pytest.mark.usefixtures("spawn")
def test_what_only_looks_importable_is_not_told(
    tmp_path: Path, files: dict[str, str], path: str, text: str, name: str
) -> None:
    assert not told(tmp_path, files, path, text, name)


@pytest.mark.parametrize(
    ("init", "wanted"),
    [
        ("from .core import Engine\n", "eng"),
        ("from .core import (\n    Other,  # (one)\n    Engine,\n)\n", "eng"),
        ("from .core import Engine as Engine\n", "eng"),
        ("from .core import Engine as _Engine\n", "eng.core"),
        ('"""\nfrom .core import Engine\n\n    Engine\n"""\n', "eng.core"),
        ("def f():\n    from .core import Engine\n    return Engine\n", "eng.core"),
        ("from .core import run  # Engine\n", "eng.core"),
    ],
)
@pytest.mark.usefixtures("spawn")
def test_a_package_hands_on_its_imports(tmp_path: Path, init: str, wanted: str) -> None:
    files = {"eng/__init__.py": init, "eng/core.py": "class Engine: ...\n"}
    assert told(tmp_path, files, "main.py", "", "Engine")["Engine"].module == wanted


@pytest.mark.usefixtures("spawn")
def test_two_packages_of_one_name_are_a_choice(tmp_path: Path) -> None:
    files = GO | {
        "a/conf/a.go": "package conf\n\nfunc Load() {}\n\nfunc Save() {}\n",
        "b/conf/b.go": "package conf\n\nfunc Path() {}\n",
    }
    assert not told(tmp_path, files, "m.go", "package main\n", "conf.Load", "conf.Path")
    assert told(tmp_path / "x", files, "m.go", "package main\n", "conf.Load", "conf.Save")


@pytest.mark.usefixtures("spawn")
def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    known = importer(tmp_path / "w", SCRIPT)
    gone.rmdir()
    (found,) = known.find(["fooBar"], Asker("web/sub/b.ts", "typescript", ""))
    assert found.module == "../a"


@pytest.mark.usefixtures("spawn")
def test_a_default_and_a_type_are_told_apart(tmp_path: Path) -> None:
    found = told(tmp_path, SCRIPT, "web/b.ts", "", "Widget", "Shape", "fooBar")
    assert found["Widget"].whole and not found["fooBar"].whole
    assert found["Shape"].is_type and not found["fooBar"].is_type


@pytest.mark.usefixtures("spawn")
def test_a_line_typed_in_a_workspace_is_imported_in_the_editor(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    importer(workspace, PYTHON)
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
