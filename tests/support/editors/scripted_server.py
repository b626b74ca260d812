"""A language server with a scripted model: ``python scripted_server.py '{"answers": ["text"]}'``.

What the model is asked and what becomes of it goes to the file named by ``log``, one JSON object a
line.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from redraft.evals.predictors import repeat_edits
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.protocol.stdio import run_stdio
from redraft.model import errors
from redraft.model.gate import gate
from redraft.model.records import EditRequest, ModelStatus, Prediction, StepCallback

from support.editors.predictor import Answer, ScriptedPredictor, infill, predicted, rewrite
from support.models.gates import write_plain


def answer(entry: Any) -> Answer:
    """Return the answer of an ``entry`` of the script."""
    if isinstance(entry, str):
        return entry
    if "text" in entry:
        return lambda request: infill(request, entry["text"], confidence=entry["confidence"])
    if "edit" in entry:  # next edits change text, questions for ghost text get nothing
        return lambda request: (
            infill(request)
            if request.task == "infill"
            else rewrite(request, *entry["edit"], confidence=entry.get("confidence", 0.9))
        )
    if "rules" in entry:  # the engine's own rules, without a model to judge them
        return lambda request: (
            infill(request) if request.task == "infill" else repeat_edits(request)
        )
    if "ghost" in entry:  # whatever is asked, in any order
        return lambda request: by_rules(request, **entry)
    error: BaseException = getattr(errors, entry["error"], RuntimeError)(entry["message"])
    return error


def by_rules(
    request: EditRequest,
    ghost: str,
    edits: list[list[str]],
    confidence: float = 0.99,
    others: Sequence[str] = (),
    several: bool = False,
) -> Prediction:
    """``ghost`` at the cursor, and ``others`` if asked; the first of ``edits`` that can be made.

    Args:
        several: all of ``edits`` that can be made, the first being the best.
    """
    if request.task == "infill":
        texts = (ghost, *others)[: request.candidates]
        return infill(request, *texts, confidence=confidence)
    made = [rewrite(request, old, new, confidence=confidence) for old, new in edits]
    if several:
        return predicted(*(candidate for each in made for candidate in each.candidates))
    return next((each for each in made if each.candidates), rewrite(request, "", ""))


class LoggedPredictor(ScriptedPredictor):
    """A scripted model that passes each question and its outcome to ``note``."""

    def __init__(self, script: dict[str, Any], note: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(
            [answer(entry) for entry in script["answers"]] or [""],
            delay_s=script.get("delay_s", 0.0),
            statuses=[ModelStatus(**status) for status in script.get("statuses", [])],
        )
        self._note = note
        self.delays_s = script.get("delays_s")  # before each answer, the last one ever after

    def process(self) -> None:
        """Return no process: the model is on this machine."""

    def note(self, event: str, cursor: int, **more: Any) -> None:
        self._note({"event": event, "cursor": cursor, **more})

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        more: dict[str, Any] = {}
        if request.task != "infill":
            more |= {"task": request.task, "region": request.region}
        if request.related:
            more["related"] = [[each.path, each.text] for each in request.related]
        if request.stop:
            more["stop"] = request.stop
        if request.edits:
            more["edits"] = [[edit.path, edit.diff] for edit in request.edits]
        self.note("asked", request.cursor, **more)
        known = len(self.cancelled)
        if self.delays_s:
            self.delay_s = self.delays_s[min(len(self.requests), len(self.delays_s) - 1)]
        try:
            return await super().predict(request, on_step)
        finally:
            if len(self.cancelled) > known:
                self.note("cancelled", request.cursor)


def main() -> int:
    script = json.loads(sys.argv[1])
    if "outcomes" in script:
        logging.basicConfig(filename=script["outcomes"], format="%(message)s")
        logging.getLogger("redraft.lsp.session").setLevel(logging.DEBUG)
    log = Path(script["log"])

    def note(entry: dict[str, Any]) -> None:
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        os.write(1, b"a stray line, as native libraries write them\n")

    predictor = LoggedPredictor(script, note)
    with tempfile.TemporaryDirectory() as folder:
        gate.SHIPPED = write_plain(Path(folder))
        code = run_stdio(predictor, LspSettings(**script.get("settings", {})))
    predictor.note("closed" if predictor.closed else "left open", 0)
    return code


if __name__ == "__main__":
    sys.exit(main())
