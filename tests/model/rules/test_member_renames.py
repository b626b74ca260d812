"""Members renamed in their class, and the uses outside of it whose class is known."""

from __future__ import annotations

import pytest
from support.renames import results, whole_rename

PYTHON = """\
class Shop:
    area: int = 1

    def grow(self):
        self.area += 1


def show(shop: Shop):
    other = Shop()
    return shop.area, other.area, Shop().area, shop.name
"""
GO = """\
package a

type Shop struct {
	area int
}

func (s *Shop) Grow() { s.area++ }

func show(one Shop, area int) int {
	two := &Shop{area: area}
	return one.area + two.area
}
"""
TS = """\
export class Shop {
  area = 1;
  grow() { this.area++; }
}
function show(shop: Shop) {
  const other = new Shop();
  return shop.area + other.area;
}
"""


def test_uses_of_objects_whose_class_is_written_down() -> None:
    found = results(whole_rename({"a.py": PYTHON}, "area: int", "size: int"))
    assert found == {"a.py": PYTHON.replace("area", "size")}
    found = results(whole_rename({"a.ts": TS}, "  area = 1", "  size = 1"))
    assert found == {"a.ts": TS.replace("area", "size")}
    found = results(whole_rename({"a.go": GO}, "\tarea int", "\tsize int"))
    after = GO.replace("\tarea int\n", "\tsize int\n").replace(".area", ".size")
    assert found == {"a.go": after.replace("{area:", "{size:")}


def test_files_that_import_the_class() -> None:
    other = "from a import Shop\n\n\ndef f(shop: Shop, area):\n    return shop.area + area\n"
    found = results(whole_rename({"a.py": PYTHON, "b.py": other}, "area: int", "size: int"))
    assert found["b.py"] == other.replace("shop.area", "shop.size")
    other = "import { Shop } from './a';\nexport const f = (shop: Shop) => shop.area;\n"
    found = results(whole_rename({"a.ts": TS, "b.ts": other}, "  area = 1", "  size = 1"))
    assert found["b.ts"] == other.replace("area", "size")
    other = "from a import Shop\n\nsize = Shop().area\n"
    found = results(whole_rename({"a.py": PYTHON, "b.py": other}, "area: int", "size: int"))
    assert found["b.py"] == other.replace("area", "size")
    other = "package a\n\nfunc f(s Shop) int { return s.area }\n"
    found = results(whole_rename({"x/a.go": GO, "x/b.go": other}, "\tarea int", "\tsize int"))
    assert found["x/b.go"] == other.replace("area", "size")


def test_keywords_of_a_data_class() -> None:
    text = "from dataclasses import dataclass\n\n\n@dataclass\n" + PYTHON + "\n\nShop(area=2)\n"
    found = results(whole_rename({"a.py": text}, "area: int", "size: int"))
    assert found["a.py"].endswith("Shop(size=2)\n")


@pytest.mark.parametrize(
    "more",
    [
        "def f(shop):\n    return shop.area\n",
        "def f(shop: Other):\n    return shop.area\n",
        "def f(shop: Shop):\n    shop = other()\n    return shop.area\n",
        "def f(shop: list[Shop]):\n    return shop[0].area\n",
        "class Big(Shop):\n    def f(self):\n        return self.area\n",
        "class Big(Shop): ...\n\n\ndef f(shop: Big):\n    return shop.area\n",
        "Shop(area=2)\n",
        "def f(shops):\n    for shop in shops:\n        return shop.area\n",
    ],
)
def test_uses_of_an_unknown_class_are_for_the_model(more: str) -> None:
    sure = PYTHON.replace("area", "size")
    found = whole_rename({"a.py": f"{PYTHON}\n\n{more}"}, "area: int", "size: int")
    assert isinstance(found, str) or results(found) == {"a.py": f"{sure}\n\n{more}"}
    assert isinstance(found, str) == (more == "Shop(area=2)\n")
    other = f"from a import Shop\n\n\n{more}".replace("Shop(area=2)", "Shop(area=area)")
    found = whole_rename({"a.py": PYTHON, "b.py": other}, "area: int", "size: int")
    assert isinstance(found, str) or results(found) == {"a.py": sure}


def test_a_class_bound_again_is_known_by_self_alone() -> None:
    text = f"{PYTHON}\n\ndef f(Shop):\n    return Shop().area\n"
    found = results(whole_rename({"a.py": text}, "area: int", "size: int"))
    assert found == {
        "a.py": text.replace("area: int", "size: int").replace("self.area", "self.size")
    }


def test_a_class_that_may_inherit_is_left_to_the_model() -> None:
    more = "\n\nclass Big(Shop):\n    area: int = 2\n"
    found = whole_rename({"a.py": PYTHON + more}, "area: int = 1", "size: int = 1")
    assert isinstance(found, str), results(found)


def test_a_local_of_the_same_name_stays() -> None:
    more = (
        "\n\ndef f(shop: Shop, area: int):\n    area += shop.area\n    return f'{shop.area} area'\n"
    )
    found = results(whole_rename({"a.py": PYTHON + more}, "area: int = 1", "size: int = 1"))
    assert found["a.py"].endswith(more.replace("shop.area", "shop.size"))


@pytest.mark.parametrize(
    "more",
    [
        "const f = (shop: Other) => shop.area;\n",
        "const f = ({ area }: Shop) => area;\n",
        "const shop: Shop = { area: 1 };\n",
        "const f = (shop: Shop | Other) => shop.area;\n",
        "const f = (shop: other.Shop) => shop.area;\n",
    ],
)
def test_scripts_whose_objects_are_not_known(more: str) -> None:
    found = whole_rename({"a.ts": f"{TS}{more}"}, "  area = 1", "  size = 1")
    sure = TS.replace("area", "size") + more
    assert isinstance(found, str) or results(found) == {"a.ts": sure}
    assert isinstance(found, str) == ("({ area }" in more)


def test_methods_of_go_may_belong_to_an_interface() -> None:
    found = whole_rename({"a.go": GO.replace("one.area", "one.Grow()")}, ") Grow()", ") Rise()")
    assert results(found) == {}
