"""The ways of decoding that benchmarks compare, by name. Knows nothing of how they work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

from redraft.model.config import ModelConfig
from redraft.model.decode.completion import AUTOREGRESSIVE, Plan, plan_for
from redraft.model.errors import SettingsError

PLANS: dict[str, Plan] = {
    "low": plan_for("low"),
    "medium": plan_for("medium"),
    "high": plan_for("high"),
    "autoregressive": AUTOREGRESSIVE,
}


def plan_named(name: str, changes: Sequence[str] = ()) -> Plan:
    """Return a plan with ``field=value`` changes of its fields.

    Raises:
        SettingsError: there is no such plan or field.
    """
    plan = PLANS.get(name)
    if plan is None:
        raise SettingsError(f"There is no plan {name!r}; choose one of {', '.join(PLANS)}.")
    for change in changes:
        field, _, value = change.partition("=")
        plan = replace(plan, **{field: _read(field, value)})
    return plan


def _read(field: str, value: str) -> Any:
    """``value`` as the plan's field holds it: a number, or yes or no."""
    known = [f.name for f in fields(Plan)]
    if field not in known:
        raise SettingsError(f"A plan has no field {field!r}; it has {', '.join(known)}.")
    kinds = _kinds(field)
    if bool in kinds:
        if value not in ("yes", "no"):
            raise SettingsError(f"{field} is yes or no, not {value!r}.")
        return value == "yes"
    try:
        return float(value) if float in kinds else int(value)
    except ValueError as error:
        what = "a number" if float in kinds else "a whole number"
        raise SettingsError(f"{field} is {what}, not {value!r}.") from error


def _kinds(field: str) -> set[Any]:
    """The types that a field of a plan may have: its value may be None."""
    hint = get_type_hints(Plan)[field]
    return set(get_args(hint)) or {hint}


def check_plan(plan: Plan, config: ModelConfig) -> None:
    """Refuse to let weights write causally that were not trained to.

    Raises:
        SettingsError: they were not.
    """
    if not plan.drafts and config.verifier == "none":
        raise SettingsError(
            "These weights were not trained to write autoregressively (verifier none); their "
            "control is --set threshold=inf, one token a step."
        )
