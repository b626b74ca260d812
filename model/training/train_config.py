"""What one training run is: every knob with its unit and why, read from TOML.

A file under ``model/configs/`` sets what differs from these defaults. Knows nothing of how a run
is carried out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from ..errors import SettingsError
from .appraisal import Extent
from .batches import Laying
from .noise import NOISE, Noise


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One run. A TOML file under ``model/configs/`` sets what differs from these defaults."""

    adapter: Literal["canvas", "all", "full"] = "canvas"  # where it is active; full: no adapter,
    # every matrix trains, and the low-rank part of its change is what ships
    rank: int = 64
    learning_rate: float = 6e-4
    warmup_steps: int = 40
    final_rate: float = 0.1  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.99  # decay of the weights' moving average, per step
    width: int = 0  # of a canvas; 0: as the model has it
    canvases: int = 5  # per row; 0: the causal loss alone, to make the base ready for infill
    batch_tokens: int = 3_000  # context tokens of a batch, padding included
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    masks: int = 0  # of a group of mask drafts, trained instead of canvases; see mask_drafts.py
    groups: int = 32  # of mask drafts per row
    sampler: int = 0  # width of the masks' sampler, trained along; 0: there is none
    align: float = 1.0  # weight of the mask drafts' hidden states being the judge's
    causal_weight: float = 0.0  # of the autoregressive loss on the answer; not with "canvas"
    code_tokens: int = 0  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside an answer's token
    noise: Noise = NOISE  # a table of its fields
    late_noise: Noise = NOISE  # the same from step ``late_from`` on; what is not named as in noise
    sharpen: float = 0.0  # weight, from step ``late_from`` on, of the entropy of predictions that
    # are right already: surer ones, so that more positions pass the threshold in one step
    late_from: int = 0  # 0: never
    compile: bool = False  # torch.compile for each block; needs a C++ compiler
    loaders: int = 0  # processes that lay batches ahead; 0: this one, in between
    steps: int = 2_000
    minutes: float = 60.0  # of this and earlier runs together; whichever ends first
    save_every_s: float = 240.0
    evaluate_every: int = 200  # steps
    evaluate_rows: int = 128  # for the loss
    exact_rows: int = 24  # of them also decoded, for exact match and tokens per step
    seed: int = 0

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """From TOML.

        Raises:
            SettingsError: the file cannot be read or names an unknown field.
        """
        try:
            data = tomllib.loads(path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"Cannot read the training config {path}: {error}.") from error
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise SettingsError(f"{path} has unknown fields {unknown}; see TrainConfig for names.")
        usual = data.get("noise", {})
        for name in ("noise", "late_noise"):
            table = {**usual, **data.get(name, {})}
            strange = sorted(set(table) - {f.name for f in fields(Noise)})
            if strange:
                raise SettingsError(f"{path} has unknown fields {strange} in [{name}]; see Noise.")
            data[name] = Noise(**table)
        return cls(**data)

    @classmethod
    def to_judge(cls, said: Mapping[str, str], rank: int, rows: int, exact: int) -> TrainConfig:
        """By which a finished adapter is judged: as it was trained.

        Args:
            said: metadata of the adapter. rows, exact: ``evaluate_rows`` and ``exact_rows``.
        """
        masks = int(said.get("masks", "0"))
        return cls(
            adapter="all" if said.get("adapter") == "all" and not masks else "canvas",
            rank=rank,
            masks=masks,
            sampler=int(said.get("sampler", "0")),
            causal_weight=float(said.get("verifier") == "ar"),
            evaluate_rows=rows,
            exact_rows=exact,
        )

    @property
    def active(self) -> Literal["canvas", "all", "masks"]:
        """Where what is shipped is active."""
        if self.masks:
            return "masks"
        return "canvas" if self.adapter == "canvas" else "all"

    def laying(self, processes: int = 1) -> Laying:
        own = {f.name: getattr(self, f.name) for f in fields(Laying)}
        own["late_from"] = self.late_from * self.accumulate * processes
        return Laying(**own)

    @property
    def extent(self) -> Extent:
        return Extent(
            self.evaluate_rows,
            self.exact_rows,
            self.max_context,
            canvas=self.canvases > 0 and not self.masks,
            masks=self.masks,
            causal=self.causal_weight > 0,
        )
