"""Training run of the ranker of places: rows, fit, validation, weights and card."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ...errors import SettingsError
from ...places.ranker import Ranker, save_ranker
from ..shards import read_records
from .fit import Fit, fit
from .judged import area_of_left, hit_rate, judge_all
from .place_moments import MomentMix, PlaceMoment, moments_of, with_open_files
from .place_rows import choose_commits, is_held_out, make_rows

FIRST_ROUND = 0.25  # share of the commits for the model that finds hard negatives
_EPOCHS = 8
_VALIDATION_SEED = 77  # chooses commits of validation repositories that no row is made of

Report = Callable[[str, int, int | None], None]  # what is done, how far, and of how much


@dataclass(frozen=True, slots=True)
class PlacesCard:
    """Facts of a training run."""

    data: str  # file names
    commits: int
    repositories: int
    moments: int
    rows: int
    seed: int
    command: str
    trained: str  # date
    train_loss: float  # nats per moment
    validation_repositories: int
    validation_moments: int
    validation_loss: float  # nats per moment
    hit_at_1: float  # of validation moments with something left in the file
    hit_at_3: float
    auc_left: float  # "anything is left in this file"

    def as_text(self) -> dict[str, str]:
        """Return the facts as metadata of a file."""
        return {
            name: f"{value:.4f}" if isinstance(value, float) else str(value)
            for name, value in asdict(self).items()
        }


def train(
    sources: list[Path], out: Path, per_repo: int, seed: int, command: str, report: Report
) -> PlacesCard:
    """Train the ranker and write ``ranker.safetensors`` and ``ranker.md``.

    Args:
        sources: files of commits, one repository after the other.
        per_repo: commits of each repository.
        command: for the card.

    Raises:
        SettingsError: the files hold no commit to train on, or none of a validation repository.
    """

    def records() -> Iterator[dict[str, Any]]:
        return (each for path in sources for each in read_records(path) if "files" in each)

    # 1. A first model from few commits, which then finds hard negatives.
    miner: Ranker | None = None
    for name, share in (("first rows", FIRST_ROUND), ("rows", 1.0)):
        commits = max(1, round(per_repo * share))

        def tell(repo: str, done: int, name: str = name) -> None:
            report(f"{name}: {repo}", done, None)

        rows, counts = make_rows(records(), commits, seed, miner, tell)
        if not (rows.is_held_out.any() and (~rows.is_held_out).any()):
            raise SettingsError(
                f"{', '.join(path.name for path in sources)} needs commits of a repository to "
                "train on and of one for validation (a tenth of all names is)."
            )
        # 2. The fit.
        found: Fit = fit(rows, _EPOCHS, seed, lambda step, of, _: report("fitting", step, of))
        miner = found.ranker
    # 3. Validation on all lines of other repositories.
    report("validation", 0, None)
    judged = judge_all(found.ranker, _validation(records(), per_repo))
    # 4. Weights and card.
    card = PlacesCard(
        data=", ".join(path.name for path in sources),
        commits=sum(counts.values()),
        repositories=len(counts),
        moments=found.lists,
        rows=len(rows.is_right),
        seed=seed,
        command=command,
        trained=date.today().isoformat(),
        train_loss=found.train_loss,
        validation_repositories=len({one.repo for one in judged}),
        validation_moments=len(judged),
        validation_loss=found.held_out_loss,
        hit_at_1=hit_rate(judged, 1),
        hit_at_3=hit_rate(judged, 3),
        auc_left=area_of_left(judged),
    )
    out.mkdir(parents=True, exist_ok=True)
    sha256 = save_ranker(found.ranker, out / "ranker.safetensors", card.as_text())
    (out / "ranker.md").write_text(_page(card, sha256), encoding="utf-8")
    return card


def _validation(records: Iterator[dict[str, Any]], per_repo: int) -> Iterator[PlaceMoment]:
    """Yield moments of the validation repositories, the same for every seed."""
    choose = choose_commits(max(1, per_repo // 2), _VALIDATION_SEED)
    held_out = (record for record in records if is_held_out(record["repo"]))
    for record, others in with_open_files(held_out, choose):
        rng = random.Random(f"{record['commit']}{_VALIDATION_SEED}")
        yield from moments_of(record, others, MomentMix(), rng)


def _page(card: PlacesCard, sha256: str) -> str:
    """Return the card for people."""
    return f"""# Card of the ranker of places

`ranker.safetensors` ranks the lines of the open files by how likely the next edit is there. It is a
perceptron of 80 columns and 32 hidden units, without a language model. SHA-256: `{sha256}`.

| | |
|---|---|
| trained | {card.trained}, `{card.command}` |
| data | {card.data}: {card.commits:,} commits of {card.repositories} repositories |
| moments, lines | {card.moments:,} to train on; {card.rows:,} lines with those of validation |
| loss in nats a moment | {card.train_loss:.3f}, {card.validation_loss:.3f} in validation |
| validation | {card.validation_moments:,} moments of {card.validation_repositories} others |
| hit@1, hit@3 | {card.hit_at_1:.1%}, {card.hit_at_3:.1%} of those with something left in the file |
| AUC "anything left in this file" | {card.auc_left:.3f} |

All lines of a file are ranked in validation. A hit is a place within two lines of a remaining
change. The data has permissive licences. Held-out commits and recorded steps:
`redraft eval places`, figures in `evals/LOG.md`.

**Limits.** Training orders the hunks of a commit; people may go another way. 35 % of the hunks are
made in two steps to make up for lines that a commit changes once. One seed.
"""
