"""The ways of decoding that benchmarks compare, by name. Knows nothing of how they work."""

from __future__ import annotations

from dataclasses import replace

from redraft.model.config import ModelConfig
from redraft.model.denoise import AUTOREGRESSIVE, LEFTMOST_FIRST, Plan, plan_for
from redraft.model.errors import SettingsError

PLANS: dict[str, Plan] = {
    "low": plan_for("low"),
    "medium": plan_for("medium"),
    "high": plan_for("high"),
    "leftmost-first": LEFTMOST_FIRST,
    "autoregressive": AUTOREGRESSIVE,
}


def plan_named(name: str, threshold: float | None = None) -> Plan:
    """A plan, with another threshold if given.

    Raises:
        SettingsError: there is no such plan, or it has no threshold to set.
    """
    plan = PLANS.get(name)
    if plan is None:
        raise SettingsError(f"There is no plan {name!r}; choose one of {', '.join(PLANS)}.")
    if threshold is None:
        return plan
    if plan.threshold > 1:
        raise SettingsError(f"The plan {name} places one token a step and has no threshold.")
    return replace(plan, threshold=threshold)


def check_plan(plan: Plan, config: ModelConfig) -> None:
    """Refuse to let weights write causally that were not trained to.

    Raises:
        SettingsError: they were not.
    """
    if not plan.drafts and config.verifier == "none":
        raise SettingsError(
            "These weights were not trained to write autoregressively (verifier none); their "
            "control is --plan leftmost-first."
        )
