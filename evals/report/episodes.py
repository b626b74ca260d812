"""The episodes of a report's browser, packed: every text once, every episode a short row.

Four runs over the same problems share most of their texts, so ten thousand episodes stay a page
that a browser opens at once. Knows nothing of HTML; whatever stands in an episode is only data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures.before_after import LEFT_OUT
from ..figures.runs import Episode
from .build import Section
from .views import View

#: What a row holds, by place. Texts are indices into the table of texts.
COLUMNS = (
    "id", "language", "part", "shown", "right", "exact", "score", "ms", "outcome", "path", "line",
    "above", "was", "predicted", "expected", "below", "facts",
)  # fmt: skip
#: Fields told beside an episode, where it has them.
FACTS = (
    "kind", "task", "group", "answer_tokens", "detail", "reason", "similarity", "chrf",
    "delta_chrf", "tokens", "steps", "prompt_tokens", "cut",
)  # fmt: skip
MOST_CHARS = 600  # of a fact


class Texts:
    """Every text once; what is no character (half of a pair, as broken files hold) becomes "?"."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        whole = text.encode("utf-8", "replace").decode()
        return self.places.setdefault(whole, len(self.places))


def rows_of(sections: Sequence[Section]) -> dict[str, Any]:
    """Runs with their rows, and the table of texts."""
    texts = Texts()
    runs = [
        {
            "name": run.name,
            "title": f"{section.benchmark.title} {section.source}".strip(),
            "right": section.benchmark.right,
            "rows": [
                _row(
                    each,
                    view,
                    section.benchmark.parts[-1][1](each),
                    section.benchmark.stages,
                    texts,
                )
                for each, view in zip(run.episodes, measured.views, strict=True)
            ],
        }
        for section in sections
        for run, measured in zip(section.runs, section.measured, strict=True)
    ]
    return {
        "columns": list(COLUMNS),
        "runs": runs,
        "texts": list(texts.places),
        "left_out": LEFT_OUT,
    }


def _row(
    each: Episode, view: View, part: str, stages: Sequence[str], texts: Texts
) -> list[int | float | None]:
    scene, place = _scene(each), texts.place
    took = each.get(stages[0]) if stages else None
    return [
        place(str(each["id"])),
        place(str(each.get("language", ""))),
        place(part),
        _flag(view.shown),
        _flag(view.right),
        _flag(view.exact),
        round(view.score, 4) if view.score is not None else None,
        round(took, 1) if isinstance(took, int | float) else None,
        place(view.outcome),
        place(str(scene["path"])),
        int(scene["line"]),
        *(place(str(scene[text])) for text in ("above", "was", "predicted", "expected", "below")),
        place(_facts(each)),
    ]


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _scene(each: Episode) -> dict[str, Any]:
    """The episode's scene; of runs made before there were scenes, what they have."""
    scene: dict[str, Any] = {"path": "", "line": 0, "above": "", "was": "", "below": ""}
    if isinstance(each.get("scene"), dict):
        scene.update({"predicted": "", "expected": ""} | each["scene"])
        return scene
    if "suggested" in each:  # a repeated suggestion
        moved = {"was": _text(each.get("was")), "predicted": _text(each["suggested"])}
        return scene | {"path": str(each.get("path", "")), "expected": ""} | moved
    expected, found = each.get("expected", ""), each.get("found", each.get("completion", ""))
    line = expected["first"] if isinstance(expected, dict) else 0
    texts = {"predicted": _text(found), "expected": _text(expected)}
    return scene | {"path": str(each["id"]), "line": line} | texts


def _text(change: Any) -> str:
    text = str(change["text"]) if isinstance(change, dict) else str(change or "")
    return text if text.endswith("\n") or not text else f"{text}\n"


def _facts(each: Episode) -> str:
    """Names and values, a line each."""
    told = []
    for name in FACTS:
        value = each.get(name)
        if value is None or value == "":
            continue
        shown = f"{value:.3f}" if isinstance(value, float) else str(value)
        told.append(f"{name.replace('_', ' ')}\t{shown[:MOST_CHARS]}".replace("\n", " "))
    return "\n".join(told)
