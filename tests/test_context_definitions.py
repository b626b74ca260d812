"""What a text defines and imports, in every language."""

from __future__ import annotations

import pytest
from redraft.lsp.context.definitions import Definition, definitions, definitions_by_keyword
from redraft.lsp.context.imports import imported, is_meant
from redraft.model.text.syntax import LANGUAGES, parse
from support.definitions import SAMPLES


#: Per language: a text, and the names it defines in order, each with kind and lines.
def shown(found: list[Definition]) -> str:
    return " ".join(f"{each.name}:{each.kind}:{each.first}-{each.last}" for each in found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_definitions_are_found_with_their_kinds_and_lines(language: str) -> None:
    text, wanted = SAMPLES[language]
    syntax = parse(text, language)
    assert syntax is not None
    assert shown(definitions(syntax)) == wanted


def test_broken_code_still_defines_what_can_be_read() -> None:
    syntax = parse("def good():\n    pass\n\nclass (:\n\ndef also(x):\n    return (\n", "python")
    assert syntax is not None
    assert "good" in [each.name for each in definitions(syntax)]


def test_endless_nesting_is_not_followed() -> None:
    syntax = parse("class A:\n" + "if x:\n" + "(" * 50_000, "python")
    assert syntax is not None
    definitions(syntax)
    deep = "".join(f"{'  ' * level}class C{level}:\n" for level in range(300))
    syntax = parse(f"{deep}{'  ' * 300}pass\n", "python")
    assert syntax is not None
    assert 10 < len(definitions(syntax)) < 300


def test_languages_without_a_grammar_go_by_keywords() -> None:
    text = "public final class Shop {\n  func sell(item: Item) {\n  }\n}\nprotocol Seller {}\n"
    assert shown(definitions_by_keyword(text)) == (
        "Shop:type:0-1 sell:function:1-4 Seller:type:4-6"
    )


@pytest.mark.parametrize(
    ("language", "path", "text", "meant", "others"),
    [
        ("python", "a/x/m.py", "from ..model.records import X", "a/model/records.py", "a/m.py"),
        ("python", "a.py", "import shop.cart as c", "src/shop/cart/__init__.py", "shop/till.py"),
        ("python", "pkg/a.py", "from . import rules", "pkg/rules.py", "other/rules.py"),
        ("typescript", "src/a/m.ts", "import { a } from './b/c.js'", "src/a/b/c.ts", "src/c.ts"),
        ("javascript", "src/m.js", "const q = require('../lib')", "lib/index.js", "src/index.js"),
        ("go", "m/x.go", 'import (\n\t"fmt"\n\t"example.com/store"\n)', "store/db.go", "a/x.go"),
        ("rust", "src/main.rs", "use crate::store::Db;", "src/store.rs", "src/shop.rs"),
        ("java", "src/M.java", "import org.shop.Cart;", "src/org/shop/Cart.java", "org/Cart.java"),
        ("kotlin", "M.kt", "import org.shop.Cart", "src/org/shop/Cart.kt", "src/org/shop/Till.kt"),
        ("csharp", "M.cs", "using Org.Shop;", "src/Org/Shop/Cart.cs", "src/Org/Cart.cs"),
        ("cpp", "src/m.cc", '#include "shop/cart.h"', "src/shop/cart.h", "src/shop/till.h"),
        ("ruby", "lib/m.rb", "require_relative 'shop/cart'", "lib/shop/cart.rb", "lib/till.rb"),
        ("php", "m.php", "<?php\nuse App\\Shop\\Cart;", "src/App/Shop/Cart.php", "src/Cart2.php"),
        ("lua", "m.lua", 'local c = require("shop.cart")', "lua/shop/cart.lua", "shop/till.lua"),
        ("shellscript", "bin/m.sh", "source ./lib.sh", "bin/lib.sh", "etc/lib.sh"),
        ("css", "m.css", '@import "base/reset.css";', "base/reset.css", "base/grid.css"),
    ],
)  # fmt: skip
def test_imports_tell_files(language: str, path: str, text: str, meant: str, others: str) -> None:
    modules = imported(text, language, path)
    assert is_meant(meant, modules)
    assert not is_meant(others, modules)


def test_imports_of_a_page_made_to_take_minutes_are_found_at_once() -> None:
    """Ends at all: looking from each tag to the end of the page takes minutes here."""
    page = '<script src="./shop/cart.js"></script>' + "<script " * 50_000
    assert imported(page, "html", "a.html") == (("shop", "cart"),)
