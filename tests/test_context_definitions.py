"""What a text defines and imports, in every language."""

from __future__ import annotations

import pytest
from redraft.lsp.context.definitions import Definition, definitions, definitions_by_keyword
from redraft.lsp.context.imports import imported, is_meant
from redraft.model.text.syntax import LANGUAGES, parse

#: Per language: a text, and the names it defines in order, each with kind and lines.
SAMPLES = {
    "python": (
        "import a\nLIMIT = 2\n@cached\ndef f(x):\n    y = 1\n    def inner(): pass\n"
        "class A(B):\n    field: int = 1\n    MOST = 3\n    @property\n    def m(self):\n"
        "        return 1\nif X:\n    async def h(): pass\n",
        "LIMIT:value:1-2 f:function:2-6 A:type:6-12 MOST:value:8-9 m:method:9-12 h:function:13-14",
    ),
    "typescript": (
        "export const x = 1, f = (a) => a;\nexport default class A<T> {\n  p = 1;\n  m(): void {}\n"
        "}\ninterface I {\n  q(): void;\n}\ntype T = string;\nenum E { A }\n"
        "namespace N {\n  export function h() {}\n}\nconst { skipped } = x;\n",
        "x:value:0-1 f:function:0-1 A:type:1-5 m:method:3-4 I:type:5-8 q:method:6-7 T:type:8-9 "
        "E:type:9-10 h:function:11-12",
    ),
    "typescriptreact": (
        "export function App() {\n  return <p>{x}</p>;\n}\n",
        "App:function:0-3",
    ),
    "javascript": (
        "module.exports.f = function () {};\nclass A {\n  #p = 1;\n  m() {}\n}\n"
        "function* gen() {}\nvar o = 1;\n",
        "f:function:0-1 A:type:1-5 m:method:3-4 gen:function:5-6 o:value:6-7",
    ),
    "javascriptreact": ("const App = () => <p/>;\n", "App:function:0-1"),
    "go": (
        "package a\nconst (\n\tD = 2\n)\nvar v int\ntype S struct {\n\tx int\n}\n"
        "type I interface {\n\tM()\n}\nfunc f() {}\nfunc (s *S) m() {}\n",
        "D:value:2-3 v:value:4-5 S:type:5-8 I:type:8-11 M:method:9-10 f:function:11-12 "
        "m:function:12-13",
    ),
    "rust": (
        "mod m { pub fn q() {} }\npub struct S<T> { x: T }\nenum E { A }\n"
        "pub trait T {\n    fn m(&self);\n}\nimpl T for S {\n    fn k(&self) {}\n}\n"
        "const C: u8 = 1;\nstatic D: u8 = 1;\ntype X = u8;\nmacro_rules! mac { () => {} }\n",
        "q:function:0-1 S:type:1-2 E:type:2-3 T:type:3-6 m:method:4-5 k:function:7-8 C:value:9-10 "
        "D:value:10-11 X:type:11-12 mac:function:12-13",
    ),
    "java": (
        "package a.b;\n@Ann\npublic class A<T> {\n  private int f = 1;\n  A() {}\n"
        "  @Override\n  public int g(int x) { return x; }\n  enum E { P, Q }\n}\n"
        "record R(int a) {}\ninterface I { void m(); }\n",
        "A:type:1-9 A:method:4-5 g:method:5-7 E:type:7-8 R:type:9-10 I:type:10-11 m:method:10-11",
    ),
    "c": (
        "#ifndef A_H\n#define A_H 1\n#define M(x) (x)\ntypedef struct P { int x; } P;\n"
        "struct Q { int y; };\nenum E { X, Y };\nint f(int x);\nstatic char *g(int a)\n{\n"
        "  return 0;\n}\nvoid h(struct Q *q);\n#endif\n",
        "A_H:value:1-2 M:function:2-3 P:type:3-4 Q:type:4-5 E:type:5-6 f:function:6-7 "
        "g:function:7-11 h:function:11-12",
    ),
    "cpp": (
        "namespace n {\ntemplate <typename T>\nclass A : B {\n public:\n  int f(int x) const {\n"
        "    return x;\n  }\n  void proto();\n  int member_;\n};\nusing U = int;\n}\n"
        "int n::A::proto() { return 1; }\nenum class E { X };\n",
        "A:type:1-10 f:method:4-7 proto:method:7-8 U:type:10-11 proto:function:12-13 E:type:13-14",
    ),
    "csharp": (
        "namespace N.M {\n  public class A : B {\n    public int Price { get; set; }\n"
        "    public A() {}\n    public int F(int x) { return 1; }\n  }\n"
        "  interface I { void M(); }\n  record R(int X);\n  delegate void D();\n}\n",
        "A:type:1-6 A:method:3-4 F:method:4-5 I:type:6-7 M:method:6-7 R:type:7-8 D:function:8-9",
    ),
    "ruby": (
        "module M\n  class A < B\n    X = 1\n    def f(x)\n      1\n    end\n"
        "    def self.g?; end\n  end\nend\n",
        "M:type:0-9 A:type:1-8 X:value:2-3 f:method:3-6 g?:method:6-7",
    ),
    "php": (
        "<?php\nnamespace A\\B;\ninterface I { function m(); }\ntrait T {}\n"
        "abstract class A {\n  const X = 1;\n  private $p;\n  public function f($x) {\n"
        "    return 1;\n  }\n}\nfunction g() {}\nconst Y = 2;\n",
        "I:type:2-3 m:method:2-3 T:type:3-4 A:type:4-11 X:value:5-6 f:method:7-10 g:function:11-12 "
        "Y:value:12-13",
    ),
    "lua": (
        "local M = {}\nfunction M.f(x)\n  return 1\nend\nfunction M:g() end\n"
        "local function h() end\nM.k = function(a) end\nreturn M\n",
        "M:value:0-1 f:function:1-4 g:function:4-5 h:function:5-6 k:function:6-7",
    ),
    "shellscript": (
        "X=1\nexport Y=2\nf() {\n  echo\n}\nfunction g { :; }\n",
        "X:value:0-1 Y:value:1-2 f:function:2-5 g:function:5-6",
    ),
    "kotlin": (
        "package a\nconst val X = 1\ndata class A(val x: Int) : B() {\n  val p = 1\n"
        "  fun f(x: Int): Int = 1\n  companion object {\n    fun g() {}\n  }\n}\nobject O {\n}\n"
        "interface I {\n  fun m()\n}\nfun <T> List<T>.ext() {\n}\n",
        "X:value:1-2 A:type:2-9 f:method:4-5 g:method:6-7 O:type:9-11 I:type:11-14 m:method:12-13 "
        "ext:function:14-16",
    ),
    "css": (
        ".card, #top .item {\n  color: red;\n}\n@keyframes spin {\n  from {}\n}\n"
        "@media print {\n  .paper-sheet { }\n}\n",
        "card:value:0-3 top:value:0-3 item:value:0-3 spin:value:3-6 paper-sheet:value:7-8",
    ),
    "html": ("<body>\n<div id='x'>\n<p id=z>t</p>\n", "x:value:1-2 z:value:2-3"),
    "json": ('{"a": {"b": 1},\n "c": [1]}\n', "a:value:0-1 c:value:1-2"),
    "jsonc": ('// said\n{"a": 1}\n', "a:value:1-2"),
}


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
def test_imports_tell_which_file_is_meant(
    language: str, path: str, text: str, meant: str, others: str
) -> None:
    modules = imported(text, language, path)
    assert is_meant(meant, modules)
    assert not is_meant(others, modules)


def test_a_file_that_imports_nothing_means_no_file() -> None:
    assert imported("x = 1\n", "python", "a.py") == ()
    assert imported("whatever", "markdown", "a.md") == ()
    assert not is_meant("a/b.py", ())


def test_imports_of_a_page_made_to_take_minutes_are_found_at_once() -> None:
    """Ends at all: looking from each tag to the end of the page takes minutes here."""
    page = '<script src="./shop/cart.js"></script>' + "<script " * 50_000
    assert imported(page, "html", "a.html") == (("shop", "cart"),)
