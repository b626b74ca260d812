"""Dictionaries and maps that the user writes as values of a type, carried on to the others."""

from __future__ import annotations

import pytest
from support.renames import literals, results

PY = """\
@dataclass
class Knot:
    name: str
    ropes: int
    load: float = 1.0


def bowline(é):
    return {
        "name": "Bowline — é",  # a loop
        "ropes": é + 1,
        "load": 0.6,
    }


def hitch(ropes):
    return {"name": "hitch", "ropes": ropes}


def wrong(x):
    save({"name": x, "ropes": 1})
    a = {"name": x, "load": 2.0}
    b = {"name": x, "ropes": 1, "colour": "red"}
    c = {"name": x, "ropes": 1}["name"]
    d = {"name": x, **a}
    return f"{ {'name': x, 'ropes': 1} }"
"""
OPENING = ("    return {\n", "    return Knot(\n")
REST = (
    '"name": "Bowline — é",  # a loop\n        "ropes": é + 1,\n        "load": 0.6,\n    }\n',
    'name="Bowline — é",  # a loop\n        ropes=é + 1,\n        load=0.6,\n    )\n',
)
GO = """\
package a

type Wind struct {
	Speed   int `json:"speed"`
	Heading int `json:"heading"`
	URL     string
}

func one() any {
	return map[string]any{
		"speed":   1,
		"heading": 2,
	}
}

func two() any {
	return map[string]any{"speed": 3, "heading": 4}
}
"""


def test_the_rest_of_a_literal_follows_its_opening() -> None:
    (found,) = literals({"a.py": PY}, OPENING)
    assert results(found) == {"a.py": PY.replace(*OPENING).replace(*REST)}
    assert found.places == 1


def test_other_literals_follow_each_by_itself() -> None:
    (found,) = literals({"a.py": PY}, OPENING, REST)
    expected = PY.replace(*OPENING).replace(*REST)
    old, new = '{"name": "hitch", "ropes": ropes}', 'Knot(name="hitch", ropes=ropes)'
    assert results(found) == {"a.py": expected.replace(old, new)}


def test_maps_become_structs() -> None:
    opening = ("map[string]any{\n", "Wind{\n")
    (rest,) = literals({"a.go": GO}, opening)
    whole = GO.replace(*opening).replace('"speed":   1', "Speed:   1")
    whole = whole.replace('"heading": 2', "Heading: 2")
    assert results(rest) == {"a.go": whole}
    keys = ('"speed":   1,\n\t\t"heading": 2', "Speed:   1,\n\t\tHeading: 2")
    (other,) = literals({"a.go": GO}, opening, keys)
    old, new = 'map[string]any{"speed": 3, "heading": 4}', "Wind{Speed: 3, Heading: 4}"
    assert results(other) == {"a.go": whole.replace(old, new)}


def test_the_type_may_be_in_another_file() -> None:
    text = PY[PY.index("\n\ndef bowline") :]
    (found,) = literals({"a.py": text, "b.py": PY[: PY.index("\n\ndef")]}, OPENING)
    assert [*results(found)] == ["a.py"]


@pytest.mark.parametrize(
    "text",
    [
        PY.replace("class Knot", "class Rope"),  # nothing is known of the type
        PY.replace("    load: float = 1.0\n", ""),  # it lacks a key
        PY.replace("load: float", "load: float\n    colour: str\n    x: int"),  # or needs another
        PY.replace('"ropes": é', '"ropes " "x": é'),  # a key is no name
        PY.replace("class Knot:", "class Knot(Base):"),
    ],
)
def test_an_unclear_literal_is_left_to_the_model(text: str) -> None:
    assert literals({"a.py": text}, OPENING) == []


def test_a_literal_the_user_made_different_is_left() -> None:
    assert literals({"a.py": PY}, OPENING, ('"ropes": é + 1', "ropes=é + 2")) == []
