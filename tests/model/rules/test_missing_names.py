"""Names just written that nothing imports, and where they come from."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit, LineChange
from redraft.model.gate.filters import Situation, far_away
from redraft.model.records import Importable, RelatedFile
from redraft.model.rules.imports import names_to_look_up
from redraft.model.rules.rule_edits import RuleEdit
from redraft.model.text.code_queries import imports_of
from redraft.model.text.syntax import parse
from support.rules import history, proposed, results


def imports_after(
    before: str, after: str, language: str, elsewhere: tuple[str, ...] = (), *known: Importable
) -> dict[str, RuleEdit]:
    """Return the imports that are proposed after a text became another one."""
    related = tuple(RelatedFile("b", text) for text in elsewhere)
    all_ = proposed(
        history(before, after), after, language=language, related=related, importable=known
    )
    families = ("imported", "standard", "workspace")
    return results([each for each in all_ if each.family in families], after)


def changed(before: str, after: str, language: str, *known: Importable) -> list[str]:
    return [*imports_after(before, after, language, (), *known)]


@pytest.mark.parametrize(
    "prose", ["one at a\n    time.", "Load(er) of a\n    Set, or of\n    Path"]
)
def test_prose_imports_nothing(prose: str) -> None:
    before = "import os\n\n\ndef run():\n    return os\n"
    after = before.replace("():", f'():\n    """{prose}\n    """')
    assert not imports_after(before, after, "python")
    code = after.replace("return os", "return os, time.time()")
    assert imports_after(before, code, "python")


def test_a_glob_opens_no_remark() -> None:
    before = "const a = glob('src/*/b.ts');\n"
    after = f"{before}f(readFileSync(a));\n"
    assert imports_after(before, after, "typescript")
    assert not imports_after(before, after.replace("f(", "/*\nf(") + "*/\n", "typescript")


@pytest.mark.parametrize(
    ("language", "before", "written", "known", "wanted"),
    [
        ("python", '"""Doc."""\n\nimport os\nimport sys\n\nx = 1\n', "y = json.loads(x)\n", None,
         ("import os\n", "import json\nimport os\n")),
        # Iterator is known from typing and from collections.abc.
        ("python", "import os\nfrom typing import Any\n\nx = 1\n",
         "def f() -> Iterator[int]: ...\n", None, None),
        ("python", "import os\nfrom pathlib import PurePath\n\nx = 1\n", "y = Path(x)\n", None,
         ("import PurePath\n", "import Path, PurePath\n")),
        ("python", '"""Doc."""\n\nx = 1\n', "y = re.sub(x)\n", None,
         ('"""\n\n', '"""\n\nimport re\n\n')),
        ("javascript", "const path = require('path')\n\nlet x = 1\n",
         "let y = fs.readFileSync(x)\n", None,
         ("const path", "const fs = require('fs')\nconst path")),
        ("typescript", 'import { join } from "node:path";\n\nlet x = 1;\n',
         "let y = basename(x);\n", None, ("{ join }", "{ basename, join }")),
        ("go",
         'package a\n\nimport (\n\t"fmt"\n\t"strings"\n\n\t"github.com/x/y"\n)\n\nvar x = 1\n',
         "var y = os.Args\n", None, ('\t"strings"', '\t"os"\n\t"strings"')),
        ("rust", "use std::fs;\nuse std::sync::Arc;\n\nconst X: u8 = 1;\n", "type Y = Mutex<u8>;\n",
         None, ("std::sync::Arc;", "std::sync::{Arc, Mutex};")),
        ("java", "import java.util.List;\nimport org.junit.Test;\n\nclass A {\n",
         "    Map<String, Integer> counts;\n", None,
         ("java.util.List;\n", "java.util.List;\nimport java.util.Map;\n")),
        ("python", "import os\n\nfrom shop.cart import Cart\nfrom shop.user import User\n\nx = 1\n",
         "class Purse(Money):\n", Importable("Money", "shop.dates"),
         ("from shop.user", "from shop.dates import Money\nfrom shop.user")),
        ("python", "from shop.dates import (\n    Day,\n    Week,\n)\n\nx = 1\n", "y = Money()\n",
         Importable("Money", "shop.dates"), ("    Week", "    Money,\n    Week")),
        ("python", "from a import B\nfrom a import C\n\nx = 1\n", "y = Money()\n",
         Importable("Money", "a"), ("import C\n", "import C\nfrom a import Money\n")),
        ("typescript", "import x from './x'\n\nlet x = 1\n", "const y = <Widget />\n",
         Importable("Widget", "./widget", whole=True),
         ("import x from './x'\n", "import Widget from './widget'\nimport x from './x'\n")),
        ("typescript", "import type { A } from './x';\nimport { b } from './x';\n\nlet x = 1;\n",
         "let y = makeOne();\n", Importable("makeOne", "./x"), ("{ b }", "{ b, makeOne }")),
        ("typescript", "import React, { useState as s } from 'react';\n\nlet x = 1;\n",
         "useMemo(x);\n", Importable("useMemo", "react"), ("{ use", "{ useMemo, use")),
        ("go", 'package a\n\nimport (\n\t"fmt"\n\n\t"ex.com/m/b"\n)\n\nvar x = 1\n',
         "var y = money.Parse()\n", Importable("money", "ex.com/m/money", whole=True),
         ('m/b"\n', 'm/b"\n\t"ex.com/m/money"\n')),
        ("rust", "use std::fs;\n\nuse crate::a::A;\nuse crate::z::Z;\n\nconst X: u8 = 1;\n",
         "type Y = Money;\n", Importable("Money", "crate::money"),
         ("use crate::z", "use crate::money::Money;\nuse crate::z")),
        ("java", "package a;\n\nimport com.shop.Cart;\nimport com.shop.User;\n\nclass A {\n",
         "    Money money;\n", Importable("Money", "com.shop.money"),
         ("User;\n", "User;\nimport com.shop.money.Money;\n")),
    ],
)  # fmt: skip
def test_a_name_first_used_is_imported_as_in_the_file(
    language: str, before: str, written: str, known: Importable | None,
    wanted: tuple[str, str] | None,
) -> None:  # fmt: skip
    after = before + written
    found = changed(before, after, language, *filter(None, [known]))
    assert found == ([] if wanted is None else [after.replace(*wanted, 1)])
    assert known is None or not changed(before, after, language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "x = 1\ny = self.json\n"),
        ("python", "x = 1\n# json.loads reads it\n"),
        ("python", "x = 1\nfor json in x:\n    json.load()\n"),
        ("python", "from a import (\n    json,\n)\nx = json.loads(1)\n"),
        ("rust", "const X: u8 = 1;\ntype Y = std::sync::Mutex<u8>;\n"),
        ("go", "var x = 1\nvar y = s.os.Args\n"),
        ("markdown", "x\njson.loads\n"),
    ],
)
def test_what_is_no_use_of_the_name_imports_nothing(language: str, text: str) -> None:
    assert not imports_after("x = 1\n", text, language)


def test_a_name_that_stood_in_the_file_needs_no_import() -> None:
    before = "from a import *\njson.dumps(1)\n"
    assert not imports_after(before, before + "json.loads(2)\n", "python")
    before = "import re\nx = 1\n"
    assert not imports_after(before, before + "y = re.sub('a', 'b', x)\n", "python")


@pytest.mark.parametrize(
    ("written", "family"), [("re.sub('a', 'b', x)", "standard"), ("np.zeros(3)", "imported")]
)
def test_standard_library_imports_are_their_own_family(written: str, family: str) -> None:
    imports = imports_after("x = 1\n", f"x = 1\ny = {written}\n", "python").values()
    assert {each.family for each in imports} == {family}


def test_what_another_file_imports_is_known() -> None:
    elsewhere = ("from shop.prices import Price\n\nx = Price(1)\n",)
    imports = imports_after("import os\n", "import os\ny = Price(3)\n", "python", elsewhere)
    assert [*imports] == ["import os\n\nfrom shop.prices import Price\ny = Price(3)\n"]


@pytest.mark.parametrize(
    ("language", "line", "wanted"),
    [
        ("python", "import os, numpy as np", [("os", "whole", "os"), ("numpy", "alias", "np")]),
        ("python", "from a.b import (\n    c,\n    d as e,\n)", [("a.b", "name", "c e")]),
        ("python", "from . import *", [(".", "all", "*")]),
        ("typescript", "import React, { useState as s } from 'react';",
         [("react", "whole", "React"), ("react", "name", "s")]),
        ("javascript", 'import * as fs from "node:fs"', [("node:fs", "alias", "fs")]),
        ("javascript", 'const { a, b } = require("./c"), d = f("e")', [("./c", "name", "a b")]),
        ("typescript", "export { a } from './b'; import './c'", []),
        ("go", 'import (\n\t"a/b"\n\tx "c"\n)', [("a/b", "whole", "b"), ("c", "whole", "x")]),
        ("rust", "use a::b;\nuse c::{d, e};", [("a", "name", "b"), ("c", "name", "d e")]),
        ("rust", "pub use a::b;\nuse c::*;", [("c", "all", "*")]),
        ("java", "import a.B;\nimport c.*;", [("a", "name", "B"), ("c", "all", "*")]),
        ("java", "import static a.B.c;", [("a.B", "static", "c")]),
    ],
)  # fmt: skip
def test_imports_are_read(language: str, line: str, wanted: list[tuple[str, str, str]]) -> None:
    syntax = parse(f"{line}\n", language)
    assert syntax is not None
    found = [(one.module, one.form, " ".join(one.bound)) for one in imports_of(syntax)]
    assert found == wanted


MONEY = Importable("Money", "shop.dates")


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\nf(Money=1)\n",  # a keyword argument
        "x = 1\ny = bank.Money()\n",  # an attribute
        "x = 1\n# Money() is asked\n",
        'x = 1\ny = "Money()"\n',
        'x = 1\ny = """\nMoney()\n"""\n',
        "x = 1\nMoney = f()\nMoney()\n",  # a local variable
        "x = 1\nfor Money in x:\n    Money()\n",
        "x = 1\ndef f(a: int, Money):\n    Money()\n",  # a parameter
        "class Money: ...\nx = 1\nMoney()\n",
        "from bank import Money\nx = 1\nMoney()\n",
        "from bank import (\n    Money,\n)\nx = 1\nMoney()\n",
        "import bank as Money\nx = 1\nMoney()\n",
        "x = 1\nfrom bank import Money\n",
    ],
)
def test_bound_or_apparent_names_are_left_alone(text: str) -> None:
    before = text[: text.index("x = 1\n")] + "x = 1\n"
    assert not changed(before, text, "python", MONEY)


@pytest.mark.parametrize(
    "written",
    [
        "const { Money, b } = x\nMoney()\n",
        "const f = (Money, b) => Money(b)\n",
        "function f(a, Money) { Money() }\n",
        "export { Money } from './bank'\n",
        "class A {\n  async Money(id: string) {\n  }\n}\n",
        "const a = <h1>Money</h1>\n",
        "const a = <h1>No Money today</h1>\n",
        "const a = $Money(1)\n",
    ],
)
def test_parameters_and_parts_of_an_object_are_local(written: str) -> None:
    before = "import a from './a'\n"
    money = Importable("Money", "./money")
    assert not changed(before, before + written, "typescriptreact", money)
    assert changed(before, f"{before}f(Money, 1)\n", "typescriptreact", money)


@pytest.mark.parametrize(
    ("language", "before", "use", "module", "plain"),
    [
        ("typescript", "export {\n  parse,\n} from './util';\n", "x = format(1);", "./util", True),
        (
            "typescript",
            "import type {\n  parse,\n} from './util';\n",
            "x = format(1);",
            "./util",
            True,
        ),
        (
            "rust",
            "pub use crate::a::{\n    parse,\n};\n",
            "fn y() { format(1); }",
            "crate::a",
            False,
        ),
    ],
)
def test_passed_or_type_names_take_no_called_name(
    language: str, before: str, use: str, module: str, plain: bool
) -> None:
    known = Importable("format", module)
    made = changed(before, f"{before}\n{use}\n", language, known)
    assert all("format,\n" not in text for text in made)
    if plain:
        before = f"import {before[before.index('{') :]}"
        (taken,) = changed(before, f"{before}\n{use}\n", language, known)
        assert "  format,\n  parse,\n" in taken


def test_a_library_name_defined_here_too_is_a_choice() -> None:
    before, path = "import os\nx = 1\n", Importable("Path", "shop.path")
    assert changed(before, f"{before}Path(x)\n", "python")
    assert not changed(before, f"{before}Path(x)\n", "python", path)


def test_names_just_written_are_looked_up() -> None:
    written = ["for a in Money(b=1, c=d.Inner):", "# Word", "a()"]
    text = "import os\nx = Older()\n{}\n{}\n    {}\n".format(*written)
    assert names_to_look_up(text, "python", written, lambda _: True) == ["Money"]
    assert names_to_look_up(text, "python", written, lambda _: False) == []
    assert names_to_look_up(
        "x := money.Parse(y)\n", "go", ["x := money.Parse(y)"], lambda _: False
    ) == ["money.Parse"]


STATIC = "import static org.junit.Assert.*;"


@pytest.mark.parametrize(
    ("imports", "module", "wanted"),
    [
        ("com.a.Coin com.a.Purse", "com.a", "com.a.Coin com.a.Money com.a.Purse"),
        ("com.a.Coin java.util.List", "org.x", "com.a.Coin java.util.List org.x.Money"),
        ("java.util.List org.junit.Test", "com.a", "com.a.Money java.util.List org.junit.Test"),
        ("java.util.List org.b.B com.c.C", "com.d", "java.util.List org.b.B com.c.C com.d.Money"),
        ("java.util.List | org.b.B", "net.x", "java.util.List | net.x.Money org.b.B"),
        ("org.b.B com.b.B | com.a.A", "com.a.z", "org.b.B com.b.B | com.a.A com.a.z.Money"),
        ("java.io.* javax.a.A", "java.util", "java.io.* java.util.Money javax.a.A"),
        ("com.b.B | static", "com.c", "com.b.B com.c.Money | static"),
        ("static | com.b.B", "com.a", "static | com.a.Money com.b.B"),
        ("com.b.B static", "com.c", "com.b.B com.c.Money static"),
        ("static", "com.c", "static | com.c.Money"),
    ],
)
def test_java_imports_keep_the_groups_of_the_file(imports: str, module: str, wanted: str) -> None:
    def written(words: str) -> list[str]:
        lines = {"|": "", "static": STATIC}
        return [lines.get(word, f"import {word};") for word in words.split()]

    before, after = ("\n".join([*written(each), "", "class A {", ""]) for each in (imports, wanted))
    use = "    Money money;\n"
    assert changed(before, before + use, "java", Importable("Money", module)) == [after + use]


def test_a_static_import_elsewhere_is_no_class_import() -> None:
    elsewhere = ("import static org.x.Y.zap;\n",)
    before = "package a;\n\nclass A {\n"
    assert not imports_after(before, f"{before}int i = zap(1);\n", "java", elsewhere)


def test_an_import_of_a_written_name_is_never_too_far() -> None:
    text = "import os\n" + "x = 1\n" * 80 + "y = json.loads(x)\n"
    written = LineChange(81, ("y = x",), ("y = json.loads(x)",))
    cursor = len(text) - 1
    here = Situation("next_edit", "a.py", "python", text, cursor, 0.0, [written], last_edit=81)
    for name, shown in (("json", True), ("csv", False)):
        edit = Edit(text, 0, 0, f"import {name}\n")
        assert (far_away(edit, here) is None) == shown
