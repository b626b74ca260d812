"""Changes of arguments that are carried on to all other calls, in other files too."""

from __future__ import annotations

import pytest
from support.renames import results, series

LOAD = """\
def load(path, strict):
    return path


load("a", True)
load("b")
load(name)
load(*both)
load("c", False)
"""
OTHER = "from store import load\n\n\ndef run(path):\n    return load(\n        path,\n    )\n"
DROPPED = """\
def load(path, strict, *, retry=1):
    return path


load("a", True)
load("b", strict=False, retry=2)
load(strict=False, path="c")
load("d", retry=3)
other.load("e", True)
"""
TS = "export function pick(a: string, deep: boolean) { return a }\npick('x')\npick('y')\n"
MEMBER = """\
class Store:
    def load(self, path, strict):
        return path

    def all(self):
        return [self.load("a"), self.load("b")]
"""


def test_an_argument_that_the_definition_needs_is_added_everywhere() -> None:
    (found,) = series({"store.py": LOAD, "run.py": OTHER}, ('load("b")', 'load("b", True)'))
    assert found.label == "add `True` at 2 calls (2 files)"
    after = LOAD.replace('load("b")', 'load("b", True)').replace("load(name)", "load(name, True)")
    assert results(found) == {
        "store.py": after,
        "run.py": OTHER.replace("        path,\n", "        path,\n        True,\n"),
    }


def test_a_keyword_goes_behind_the_last_argument() -> None:
    (found,) = series({"store.py": LOAD}, ('load("b")', 'load("b", strict=True)'))
    assert results(found)["store.py"].count("strict=True") == 2


def test_what_the_definition_does_not_need_is_carried_on_after_the_second_time() -> None:
    text = LOAD.replace("strict)", "strict=True, retry=1)")
    first, second = ('load("b")', 'load("b", retry=2)'), ("load(name)", "load(name, retry=2)")
    assert series({"store.py": text}, first) == []
    (found,) = series({"store.py": text}, first, second)
    assert results(found)["store.py"].count("retry=2") == 4


@pytest.mark.parametrize("argument", ["user", "strict=flag", "self.x"])
def test_a_variable_of_one_place_is_not_carried_on(argument: str) -> None:
    assert series({"store.py": LOAD}, ('load("b")', f'load("b", {argument})')) == []


def test_a_dropped_parameter_goes_at_all_calls() -> None:
    (found,) = series({"store.py": DROPPED}, ("(path, strict, *", "(path, *"))
    assert found.label == "drop `strict` at 3 calls"
    (after,) = results(found).values()
    assert 'load("a")\nload("b", retry=2)\nload(path="c")\nload("d", retry=3)\n' in after
    assert 'other.load("e", True)' in after


def test_a_function_of_two_definitions_is_left_alone() -> None:
    files = {"store.py": LOAD, "b.py": "def load(x):\n    return x\n"}
    assert series(files, ('load("b")', 'load("b", True)')) == []


def test_scripts_and_members() -> None:
    (found,) = series({"a.ts": TS}, ("pick('x')", "pick('x', true)"))
    assert results(found)["a.ts"].endswith("pick('y', true)\n")
    (found,) = series({"s.py": MEMBER}, ('self.load("a")', 'self.load("a", False)'))
    assert '[self.load("a", False), self.load("b", False)]' in results(found)["s.py"]
