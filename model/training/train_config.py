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


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One run. A TOML file under ``model/configs/`` sets what differs from these defaults."""

    adapter: Literal["all", "full"] = "all"  # all: low-rank, by the causal loss; full: every matrix
    # trains, and the low-rank part of its change is what ships. With masks: on these alone
    rank: int = 64
    learning_rate: float = 6e-4
    warmup_steps: int = 40
    final_rate: float = 0.1  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.99  # decay of the weights' moving average, per step
    batch_tokens: int = 3_000  # context tokens of a batch, padding included
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    masks: int = 0  # of a group of mask drafts; 0: the causal loss trains; see mask_drafts.py
    groups: int = 32  # of mask drafts per row
    sampler: int = 0  # width of the masks' sampler, trained along; 0: there is none
    align: float = 1.0  # weight of the mask drafts' hidden states being the judge's
    code_tokens: int = 0  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside an answer's token
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
        return cls(**data)

    @classmethod
    def to_judge(cls, said: Mapping[str, str], rank: int, rows: int, exact: int) -> TrainConfig:
        """Return the run as which a finished adapter is evaluated.

        Args:
            said: metadata of the adapter. rows, exact: ``evaluate_rows`` and ``exact_rows``.
        """
        return cls(
            rank=rank,
            masks=int(said.get("masks", "0")),
            sampler=int(said.get("sampler", "0")),
            evaluate_rows=rows,
            exact_rows=exact,
        )

    @property
    def active(self) -> Literal["all", "masks"]:
        """Return where the shipped adapter is active."""
        return "masks" if self.masks else "all"

    @property
    def laying(self) -> Laying:
        """Return the part that decides the batches."""
        return Laying(**{each.name: getattr(self, each.name) for each in fields(Laying)})

    @property
    def extent(self) -> Extent:
        return Extent(
            self.evaluate_rows,
            self.exact_rows,
            self.max_context,
            masks=self.masks,
        )
