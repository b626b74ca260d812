"""Description of an evaluation run: what is asked of which model, and how.

The fields are also the options of ``redraft eval`` and ``redraft bench``: the metadata of a field
say which tasks read it and what its help text is. A run on disk begins with its description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from redraft.model.config import AUTO
from redraft.model.gate.eagerness import Eagerness
from redraft.model.records import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS, Quality

SHIPPED = "shipped"
BARE = "none"

_ANY = ("infill", "edits", "replay", "steps", "scenes", "chat", "outcomes", "bench")
_WRITTEN = (
    "infill",
    "edits",
    "replay",
    "steps",
    "chat",
    "bench",
)  # tasks whose answers are written


def _option(help_text: str, tasks: Iterable[str], saved: bool = True, **how: Any) -> dict[str, Any]:
    """Return the metadata of a field that is an option of some tasks.

    Args:
        saved: False for what does not change an answer, or only this machine understands.
        how: further arguments of ``typer.Option``.
    """
    return {"tasks": tasks, "saved": saved, "option": {"help": help_text, **how}}


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Description of a run. Fields that its task does not read keep their defaults."""

    task: str  # infill, edits, carry-on, outcomes, replay, steps, chat, bench
    source: str = ""  # names of the files, or of the suite
    sample: str = ""  # fingerprint of all examples of the source
    model_sha256: str = ""  # of what makes the answers: adapter, or the folder's manifest
    without: tuple[str, ...] = ()  # kinds of context left out
    model: str = field(
        default=AUTO,
        metadata=_option(
            "Measure this model (see 'redraft model list'). auto: the one users get here.", _ANY
        ),
    )
    adapter: str = field(
        default=SHIPPED,
        metadata=_option(
            "Use the shipped adapter, 'none' for the bare base, or this .safetensors file.",
            ("infill", "edits", "replay", "steps", "scenes", "outcomes"),
            saved=False,
        ),
    )
    weights: Path | None = field(
        default=None,
        metadata=_option(
            "Measure this ready model folder instead.",
            ("infill", "edits"),
            saved=False,
            metavar="FOLDER",
        ),
    )
    variant: str = field(
        default="",
        metadata=_option(
            "Run the weights in this format: int8, q4 or fp32; fp16 or q4f16 on CUDA.", _ANY
        ),
    )
    provider: str = field(
        default="",
        metadata=_option("Run on cpu or cuda.", _ANY, saved=False),
    )
    threads: int | None = field(
        default=None,
        metadata=_option(
            "Use this many CPU threads. Default: one per core, less one from four on.",
            _ANY,
            saved=False,
            min=1,
        ),
    )
    baseline: str = field(
        default="",
        metadata=_option(
            "Measure no model. none: show nothing; copy-last-edit: repeat the last substitution; "
            "rules: propose edits by rule alone.",
            ("infill", "edits", "replay", "steps", "scenes"),
            metavar="RULE",
        ),
    )
    server: str = field(
        default="",
        metadata=_option(
            "Ask this Redraft server instead of loading a model.", ("replay",), metavar="URL"
        ),
    )
    key: str | None = field(
        default=None,
        repr=False,
        metadata=_option("Key of that server.", ("replay",), saved=False, envvar="REDRAFT_API_KEY"),
    )
    quality: Quality = field(
        default="medium", metadata=_option("Spend this much effort on an answer.", _WRITTEN)
    )
    set: tuple[str, ...] = field(
        default=(),
        metadata=_option(
            "Change a decoding setting, such as second_tries=0. May be given several times.",
            ("infill", "edits", "chat"),
            metavar="FIELD=VALUE",
        ),
    )
    context_tokens: int | None = field(
        default=None,
        metadata=_option(
            "Limit a prompt to this many tokens.",
            ("infill", "edits", "replay", "steps", "scenes", "outcomes", "bench"),
            min=MIN_CONTEXT_TOKENS,
            max=MAX_CONTEXT_TOKENS,
        ),
    )
    max_tokens: int | None = field(
        default=None,
        metadata=_option(
            "Limit an answer to this many tokens.",
            ("infill", "edits", "chat"),
            min=1,
            max=1_024,
        ),
    )
    threshold: float | None = field(
        default=None,
        metadata=_option("Show an edit whose score is at least this.", ("edits",), min=0, max=1),
    )
    likelihood: bool = field(
        default=False,
        metadata=_option("Measure only how likely the true edit is; write no answer.", ("edits",)),
    )
    eagerness: Eagerness = field(
        default="medium",
        metadata=_option(
            "Show suggestions rarely (low), medium or often (high).", ("replay", "steps", "scenes")
        ),
    )
    latency_ms: float | None = field(
        default=None,
        metadata=_option(
            "Let every answer take this many milliseconds. Default: as measured.",
            ("replay", "steps", "scenes"),
            min=0,
        ),
    )
    share: float = field(
        default=0.05,
        metadata=_option(
            "Look at this share of the lines of the files.", ("outcomes",), min=0, max=1
        ),
    )
    limit: int | None = field(
        default=None,
        metadata=_option(
            "Measure at most this many examples; a larger sample contains a smaller one.",
            ("infill", "edits", "replay", "steps", "chat", "outcomes", "bench"),
            saved=False,
            min=1,
        ),
    )
    seed: int = field(
        default=0,
        metadata=_option(
            "Draw another sample.", ("infill", "edits", "steps", "chat", "outcomes"), min=0
        ),
    )

    def options(self) -> dict[str, Mapping[str, Any]]:
        """Return the fields that are options of the task, with the arguments of each option."""
        return {each.name: each.metadata["option"] for each in fields(self) if self._reads(each)}

    def key_fields(self) -> dict[str, Any]:
        """Return the fields that runs must share to be continued, as JSON has them."""
        whole = asdict(self)
        return {each.name: whole[each.name] for each in fields(self) if _is_saved(each)}

    def about(self) -> dict[str, Any]:
        """Return the fields that are set and that the task reads, for people."""
        read = {each.name for each in fields(self) if "tasks" not in each.metadata}
        read |= self.options().keys()
        return {
            name: value
            for name, value in self.key_fields().items()
            if name in read and value not in ("", None, ())
        }

    def _reads(self, one: Any) -> bool:
        task = "edits" if self.task == "carry-on" else self.task
        return task in one.metadata.get("tasks", ())


def _is_saved(one: Any) -> bool:
    return bool(one.metadata.get("saved", True))


def spec_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a saved description, those of older releases under their new names."""
    known = {each.name for each in fields(RunSpec) if _is_saved(each)}
    found = {name: data[name] for name in known & data.keys() if data[name] not in ("", None)}
    if data.get("plan"):
        found["quality"] = data["plan"]
    return found
