"""Gathering of context: what is chosen for a place, why, and within which budget.

Typing changes none of it.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redraft.lsp.context.gatherer import Gathered
from redraft.lsp.context.scored_excerpts import Diagnostic, ScoredExcerpt
from redraft.lsp.snapshot import RequestFlags
from redraft.model.prompts.tokenizer import REGION
from redraft.model.records import EditRequest, RecentEdit, Task
from redraft.model.text.common import common_head
from redraft.model.text.definitions import Definition, definitions, definitions_by_keyword
from redraft.model.text.imported_files import find_imported_modules, is_meant, stem_of
from redraft.model.text.lines import estimate_text
from redraft.model.text.syntax import LANGUAGES, parse
from support.definitions import SAMPLES
from support.editors.shop import AT, CART, FILES, MAIN, Shop
from support.models.tiny import rendered, tiny_config, tiny_tokenizer

#: Whatever else the machine is doing.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=20)


def names(pieces: tuple[ScoredExcerpt, ...]) -> list[str]:
    return [piece.name or piece.kind for piece in pieces]


def request_of(shop: Shop, gathered: Gathered, task: Task = "next_edit") -> EditRequest:
    seen = shop.snapshot()
    return EditRequest(
        *(task, seen.path, seen.text, seen.cursor),
        related=gathered.related,
        region=gathered.region.lines,
    )


def tokens_of(shop: Shop, gathered: Gathered, task: Task = "next_edit") -> tuple[int, ...]:
    request = request_of(shop, gathered, task)
    return rendered(request, tiny_tokenizer(), tiny_config(), 40_000).tokens


def test_definitions_near_the_cursor_come_with_reason() -> None:
    found = Shop().gather()
    (piece,) = [each for each in found.pieces if each.name == "Cart"]
    assert piece.path == "shop/cart.py"
    assert piece.text.startswith("class Cart:")
    assert piece.why == "definition of Cart"
    assert piece.tokens > 20
    assert found.related[0].why
    assert [each.path for each in found.related] == [each.path for each in found.pieces]


def test_an_import_tells_which_definition_is_meant() -> None:
    text = MAIN.replace("    return cart\n", "    return total_price(cart, discount)\n")
    found = Shop(text=text).gather()
    assert ("shop/cart.py", "total_price") in [(p.path, p.name) for p in found.pieces]
    assert "till/desk.py" not in [piece.path for piece in found.pieces]


def test_what_the_prompt_shows_anyway_is_no_piece() -> None:
    text = MAIN + "class Cart:\n    pass\n"
    shop = Shop({**FILES, "shop/main.py": text}, text, budget=32_000)
    assert "Cart" not in names(shop.gather().pieces)


def test_a_definition_far_away_in_the_same_file_is_one() -> None:
    text = CART + MAIN.split("\n", 1)[1] + "".join(f"spare_{n} = {n}\n" for n in range(2_000))
    found = Shop({"shop/main.py": text}, text, budget=1_500).gather()
    assert [(piece.path, piece.name) for piece in found.pieces] == [("shop/main.py", "Cart")]


def test_an_imported_file_at_the_cursor_is_outlined() -> None:
    text = MAIN.replace("from shop.cart import Cart, total_price", "from till import desk")
    used = "    desk.unheard_of(customer)\n"
    (piece,) = Shop(text=text.replace(AT, used), at=used).gather().pieces
    assert (piece.kind, piece.path) == ("import", "till/desk.py")
    assert piece.text == "def total_price(receipt):\ndef open_drawer(till):"


def test_names_in_recent_edits_count() -> None:
    text = MAIN.replace(AT, "    pass\n")
    edit = RecentEdit("shop/other.py", 3, "-    old(x)\n+    total_price(x)\n")
    assert "total_price" not in names(Shop(text=text, at="    pass\n").gather().pieces)
    found = Shop(text=text, at="    pass\n", edits=(edit,)).gather()
    assert "total_price" in names(found.pieces)


def test_the_place_before_is_shown_for_a_while() -> None:
    shop = Shop(kinds=frozenset({"viewed"}))
    main, shop.now_s = shop.document, 10.0
    shop.document = cart = shop.open("shop/cart.py", CART)
    shop.gather(CART.index("def total_price"))
    shop.document, shop.cursor, shop.now_s = main, MAIN.index(AT) + len(AT), 15.0
    (piece,) = shop.gather().pieces
    assert (piece.kind, piece.path) == ("viewed", "shop/cart.py")
    assert "def total_price(cart, discount):" in piece.text
    for later_s, is_open in ((3_600, True), (0, False)):
        if not is_open:
            shop.close(cart)
        shop.gatherer.exclusions_changed()  # it is chosen anew
        shop.now_s = 15.0 + later_s
        assert shop.gather().pieces == ()


def test_diagnostics_but_of_the_typed_line_are_shown() -> None:
    line = MAIN[: MAIN.index("    return cart")].count("\n")
    shop = Shop({})
    shop.on_diagnostics(
        (
            Diagnostic(line, "undefined\n  name 'cart'"),
            Diagnostic(line - 1, "incomplete"),
            Diagnostic(0, "far away"),
            Diagnostic(line, "a hint", severity=4),
        )
    )
    (piece,) = shop.gather().pieces
    assert piece.text == "undefined name 'cart': return cart"
    assert piece.why == "1 of the diagnostics here"


def test_a_large_file_is_served_by_lines_until_parsed() -> None:
    text = MAIN * 40
    shop = Shop({}, text, "def padding_3", reads=True)
    assert shop.gather().region.why == "lines around the cursor"
    shop.gatherer.indexer.start()
    done: list[None] = []
    shop.gatherer.indexer.later(lambda rest: done.append(None))
    shop.gatherer.stop(60.0)
    assert shop.gatherer._trees.get(shop.snapshot()) is not None


def test_what_has_no_room_is_named_with_the_reason() -> None:
    found = Shop(budget=300).gather()
    assert found.pieces == ()
    assert "no room" in found.left_out[0].reason


@PATIENT
@given(
    st.integers(64, 40_000),
    st.integers(0, len(MAIN)),
    st.lists(st.integers(0, 120), max_size=5),
    st.booleans(),
)
def test_the_region_keeps_budget(budget: int, cursor: int, errors: list[int], edited: bool) -> None:
    edits = (RecentEdit("shop/cart.py", 3, "-a\n" + "+total_price Cart add_item\n" * 30),)
    shop = Shop(budget=budget, edits=edits if edited else ())
    shop.on_diagnostics(Diagnostic(line, "wrong " * 20) for line in errors)
    found = shop.gather(cursor)
    line = MAIN.count("\n", 0, cursor)
    assert found.region.first <= line < found.region.last
    assert found.spent <= found.room
    alone = found.region.lines == (line, line + 1)
    assert found.cost + found.spent <= budget or (alone and not found.pieces)


@pytest.mark.parametrize("budget", [512, 1_024, 4_096])
def test_the_prompt_drops_none_of_the_pieces(budget: int) -> None:
    shop = Shop(budget=budget)
    request = request_of(shop, shop.gather())
    # The tiny vocabulary takes about two and a half times the tokens that budgets count in.
    cut = rendered(request, tiny_tokenizer(), tiny_config(), int(2.5 * budget)).cut
    assert "related" not in cut


def test_32k_tokens_are_gathered_where_files_have_them() -> None:
    def module(of: str) -> str:
        return "".join(
            f"def {of}_{n}(first, second):\n    total = first * {n}\n    return total\n\n\n"
            for n in range(150)
        )

    files = {f"shop/part_{n}.py": module(f"part_{n}") for n in range(12)}
    lines = [f"from shop.part_{n} import part_{n}_7" for n in range(6)]
    text = "\n".join(lines) + "\n\n\ndef main():\n    return part_3_7(1, 2)\n"
    small = Shop(files, text, "return ", budget=2_048).gather()
    assert max(piece.text.count("\n") for piece in small.pieces) < 14
    shop = Shop(files, text, "return ", budget=32_768)
    found = shop.gather()
    assert 0.75 * 32_768 < found.spent + estimate_text(text) < 32_768
    assert found.pieces[-1].name == "part_3_7"  # the best one is nearest to the cursor
    parts = [
        (piece.path, line) for piece in found.pieces for line in range(*(piece.first, piece.last))
    ]
    assert len(parts) < 1.01 * len(set(parts)), "lines are shown twice"
    imports = {f"shop/part_{n}.py" for n in range(6)}
    assert imports < {piece.path for piece in found.pieces}


@PATIENT
@given(st.text("total_price(Cart.add_item) =:'", max_size=30))
def test_typing_in_a_line_keeps_pieces_and_prefix(text: str) -> None:
    shop = Shop()
    first = shop.gather()
    start = tokens_of(shop, first)
    for character in text:
        shop.type(character)
        found = shop.gather()
        assert found.pieces == first.pieces
        assert found.region.lines == first.region.lines
    before_region = start.index(tiny_tokenizer().mark(REGION))
    assert common_head(start, tokens_of(shop, shop.gather())) > before_region


def test_moving_within_the_region_only_adds_behind() -> None:
    shop = Shop(budget=8_000)
    before = shop.gather()
    starts = [0, *(at + 1 for at, char in enumerate(MAIN) if char == "\n")]
    for start in starts[before.region.first + 4 : before.region.last - 4]:
        found = shop.gather(start)
        assert found.region.lines == before.region.lines
        assert found.pieces[: len(before.pieces)] == before.pieces
        before = found


def test_a_name_in_the_region_adds_its_definition() -> None:
    shop = Shop()
    first = shop.gather()
    assert "add_item" not in names(first.pieces)
    shop.type("    cart.add_item(1)")
    assert shop.gather().pieces == first.pieces
    shop.type("\n    ")
    found = shop.gather()
    assert found.region.first == first.region.first
    assert found.region.last == first.region.last + 1
    assert found.pieces[: len(first.pieces)] == first.pieces


def test_lines_added_at_the_end_stay_in_the_region() -> None:
    shop = Shop(text=MAIN.rstrip("\n"), at="def padding_39(x):\n    return x - 39")
    first = shop.gather()
    shop.type("\n\n\ndef more(x):\n    ")
    assert shop.gather().region.first == first.region.first


def test_a_changed_definition_is_shown_as_it_is_now() -> None:
    shop = Shop()
    assert "Cart" in names(shop.gather().pieces)
    shop.put("shop/cart.py", CART.replace("def __init__(self, owner)", "def __init__(self)"))
    shop.type("x")
    assert "owner)" in shop.gather().related[0].text  # not while typing
    at = "def check_out(customer, discount):\n"
    texts = [each.text for each in shop.gather(MAIN.index(at) + len(at)).related]
    assert any("def __init__(self):" in text for text in texts)
    assert not any("def __init__(self, owner)" in text for text in texts)


def test_both_tasks_begin_with_the_same_excerpts() -> None:
    shop = Shop()
    found = shop.gather()
    infill, edit = tokens_of(shop, found, "infill"), tokens_of(shop, found)
    shared = next(i for i, (a, b) in enumerate(zip(infill, edit, strict=False)) if a != b)
    tokenizer = tiny_tokenizer()
    head = [tokenizer.decode([token]) for token in infill[:shared]]
    assert "".join(head).count(CART.split("\n")[0]) == 1
    assert found.related
    assert all(each.text.rstrip("\n") in "".join(head) for each in found.related)


def test_looking_at_other_places_keeps_what_is_known() -> None:
    shop = Shop()
    found, seen = shop.gather(), shop.snapshot()
    away = shop.snapshot(MAIN.index("padding_30"))
    there = shop.gatherer.region_at(away)
    assert there.first <= away.line < there.last
    assert there.lines != found.region.lines
    for number in range(8):
        text = f"def other_{number}():\n    pass\n"
        other = shop.open(f"{number}.py", text)
        shop.gatherer.region_at(shop.workspace.snapshot(other.uri, 0, RequestFlags()))
    assert shop.gatherer.look(away).region.lines == there.lines
    longer = away.with_text(f"{seen.text}# more\n", away.cursor)
    assert shop.gatherer.region_at(longer).lines == there.lines
    again = shop.gather()
    assert again.region is found.region
    assert again.pieces == found.pieces


#: Per language: a text, and the names it defines in order, each with kind and lines.
def shown(found: list[Definition]) -> str:
    return " ".join(f"{each.name}:{each.kind}:{each.first}-{each.last}" for each in found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_definitions_are_found_with_kinds_and_lines(language: str) -> None:
    text, wanted = SAMPLES[language]
    syntax = parse(text, language)
    assert syntax is not None
    assert shown(definitions(syntax)) == wanted


def test_broken_code_still_defines_what_can_be_read() -> None:
    syntax = parse("def good():\n    pass\n\nclass (:\n\ndef also(x):\n    return (\n", "python")
    assert syntax is not None
    assert "good" in [each.name for each in definitions(syntax)]


def test_endless_nesting_is_not_followed() -> None:
    assert parse("class A:\n" + "if x:\n" + "(" * 50_000, "python") is None
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
    modules = find_imported_modules(text, language, path)
    assert is_meant(meant, modules)
    assert not is_meant(others, modules)


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("a/__init__.py", "a"),
        ("a/main.py", "a/main"),
        ("a/index.tsx", "a"),
        ("a/lib.ts", "a/lib"),
        ("src/shop/mod.rs", "src/shop"),
        ("a/init.lua", "a"),
        ("index.ts", "index"),
        ("a/main.go", "a/main"),
    ],
)
def test_some_files_are_imported_by_their_folders_name(path: str, stem: str) -> None:
    assert stem_of(path) == stem.split("/")


def test_imports_of_a_slow_page_are_found_at_once() -> None:
    """Ends at all: looking from each tag to the end of the page takes minutes here."""
    page = '<script src="./shop/cart.js"></script>' + "<script " * 50_000
    assert find_imported_modules(page, "html", "a.html") == (("shop", "cart"),)
