"""Bounds and simulations as plain JSON values, for machines and for tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import (
    Branch,
    LinearSetting,
    below_trivial_from,
    linear_from,
    premise_from,
    premise_sigma,
    regret_bound,
)
from tidepull.paper.theory.lemmas import Promise
from tidepull.paper.theory.simulate import Exponent, Simulation, promises

_TERMS = ("mismatch", "exploration", "rare", "luck", "base", "linear")


def bound_report(setting: LinearSetting, horizon: int) -> dict[str, Any]:
    """The bound at one horizon: its terms, its ingredients, both branches, and the horizons that matter."""
    bound = regret_bound(horizon, setting)
    return {
        "horizon": horizon,
        **setting.to_mapping(),
        "bound": float(bound.total),
        "trivial": 2.0 * horizon,
        "branch": str(bound.branch),
        "branches": {name: _branch(setting, horizon, name) for name in ("dimension", "arms")},
        **{name: float(getattr(bound, name)) for name in _TERMS},
        "p": float(theory.p(horizon, setting)),
        "nu": float(theory.nu(horizon, setting)),
        "l": float(theory.l(horizon, setting)),
        "c": float(theory.c(horizon, setting)),
        "g": float(theory.g(horizon, setting)),
        "linear_from": linear_from(setting),
        "below_trivial_from": below_trivial_from(setting),
        "premise_from": premise_from(setting),
        "premise_sigma": premise_sigma(setting),
    }


def _branch(setting: LinearSetting, horizon: int, branch: Branch) -> dict[str, float]:
    return {
        "bound": float(regret_bound(horizon, setting, branch).total),
        "c": float(theory.c(horizon, setting, branch)),
        "g": float(theory.g(horizon, setting, branch)),
    }


def _step(step: Promise) -> dict[str, Any]:
    return {**asdict(step), "kept": step.kept}


def simulation_report(result: Simulation, exponents: Sequence[Exponent] = ()) -> dict[str, Any]:
    """What a simulation measured, beside what was promised."""
    final = result.regret[:, -1]
    scenario, bound = result.scenario, float(result.bound[-1])
    kept = promises(result, premise_holds=premise_from(result.setting) == 1)
    return {
        **result.setting.to_mapping(),
        **scenario.to_mapping(),
        "regret": {"mean": float(final.mean()), "worst": float(final.max()), "trials": final.tolist()},
        "bound": bound,
        "bound_over_worst": bound / float(final.max()) if final.max() > 0 else None,
        "trivial": 2.0 * scenario.horizon,
        "potential": {
            "worst": float(result.potential[:, -1].max()),
            "limit": float(result.potential_limit[-1]),
        },
        "trials_with_w_always": float(np.mean(result.clean_w)),
        "nearest_w": {"first": float(result.nearest_w[0]), "last": float(result.nearest_w[-1])},
        "promises": {**asdict(kept), "steps": [_step(step) for step in kept.steps], "kept": kept.kept},
        "saturated": result.saturated,
        "exponents": [asdict(exponent) for exponent in exponents],
        "rounds_per_second": scenario.horizon * scenario.seeds / result.seconds,
    }


STEPS = ("step", "measured", "worst / allowed", "without its premise", "nearest / limit", "kept")
"""What `worst_steps` says of each step."""


def worst_steps(reports: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Every step of the proof in words and figures, the worst of all configurations."""
    rows = []
    for steps in zip(*(report["promises"]["steps"] for report in reports), strict=True):
        promised = [step for step in steps if step["promised"]]
        near = [step["nearest"] for step in steps if step["nearest"] is not None]
        rows.append(
            [
                steps[0]["lemma"],
                steps[0]["what"],
                _worst(promised),
                _worst([step for step in steps if not step["promised"]]),
                f"{max(near):.2f}" if near else "",
                f"{sum(step['kept'] for step in promised)} of {len(promised)}",
            ]
        )
    return rows


def _worst(steps: Sequence[dict[str, Any]]) -> str:
    """The measurement that comes nearest to breaking its promise, or breaks it."""
    if not steps:
        return ""
    signed = [(s["measured"] - s["allowed"]) * (1 if s["at_least"] else -1) for s in steps]
    worst = steps[signed.index(min(signed))]
    return f"{worst['measured']:.3g} {'≥' if worst['at_least'] else '≤'} {worst['allowed']:.3g}"
