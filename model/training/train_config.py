"""Configuration of a training run, read from TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from ..errors import SettingsError


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Settings of a training run. A TOML file under ``model/configs/`` overrides these defaults.

    The run ends with the first of its budgets: ``steps``, ``tokens``, ``minutes``.
    """

    rank: int = 32
    low: int = 0  # layers below this one have no adapter; a third of the backward pass at 8
    learning_rate: float = 6e-4
    warmup_steps: int = 10
    final_rate: float = 0.05  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.97  # decay of the weights' moving average, per step; the average ships
    batch_tokens: int = 1_600  # of a batch: prompts and answers
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    masks: int = 0  # of a group of mask drafts; 0: the causal loss trains; see mask_drafts.py
    groups: int = 32  # of mask drafts per row
    sampler: int = 0  # width of the masks' sampler, trained along; 0: there is none
    align: float = 1.0  # weight of the cosine between hidden states of masks and of the verifier
    code_tokens: int = 32  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside a token of the answer
    compile: bool = False  # torch.compile for each block; needs a C++ compiler
    loaders: int = 0  # processes that prepare batches ahead; 0: this one, in between
    steps: int = 1_000_000
    tokens: int = 1_000_000_000  # read in this and earlier runs together
    minutes: float = 60.0  # of this and earlier runs together
    save_every_s: float = 240.0
    evaluate_every: int = 200  # steps
    evaluate_rows: int = 128  # for the loss
    exact_rows: int = 24  # of them also decoded, for exact match and tokens per step
    seed: int = 0

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """Read a TOML file.

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
    def to_evaluate(
        cls, metadata: Mapping[str, str], rank: int, rows: int, exact: int
    ) -> TrainConfig:
        """Return the run as which a finished adapter is evaluated.

        Args:
            metadata: of the adapter. rows, exact: ``evaluate_rows`` and ``exact_rows``.
        """
        return cls(
            rank=rank,
            masks=int(metadata.get("masks", "0")),
            sampler=int(metadata.get("sampler", "0")),
            evaluate_rows=rows,
            exact_rows=exact,
        )

    @property
    def active(self) -> Literal["all", "masks"]:
        """Return where the shipped adapter is active."""
        return "masks" if self.masks else "all"
