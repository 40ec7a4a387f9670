"""A candidate takes decisions over, a share at a time, and the recipe for the next step.

While a candidate has a share s of the decisions, both policies see every decision and reward, and
the arm is drawn from the chances of both together, (1 - s) policy + s candidate. So its propensity is
exact, and every decision tells of both. The agent's own policy takes decisions over from the control
group: its share is 1 - control.

The recipe bounds the loss, as conservative bandits do (Wu, Shariff, Lattimore and Szepesvari,
Conservative Bandits, ICML 2016): at the worst end of the confidence sequence of the gain, the loss of
all decisions together stays within `TOLERANCE`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tidepull.agent.settings import AgentSettings, plain_settings
from tidepull.agent.shadow import ShadowReport
from tidepull.errors import ParameterError
from tidepull.registry import Named

FIRST, LEAST = 0.05, 0.01
"""Share of the first step, and the smallest."""

TOLERANCE = 0.02
"""Part of the reward that a step may lose, at the worst end of the confidence sequence."""

COST = 0.0025
"""Part of the reward that a candidate may lose by the estimate, while that is negative."""

UNPROVEN = 0.25
"""Largest share of a candidate whose gain is not significant."""

PATIENCE = 1000
"""Decisions that the weighted ones must be worth before a candidate is given up: one that learns is
worse at first."""

LAST = 0.95
"""Last step of the agent's own policy: the rest goes on measuring its gain."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """A step of a candidate: its share of the decisions before and after, and why."""

    policy: str
    before: float
    share: float
    why: str

    def __str__(self) -> str:
        return f"{self.policy} has {self.share:.0%} of decisions ({self.before:.0%} before): {self.why}."


def is_own(settings: AgentSettings, policy: str, parameters: Any) -> bool:
    """Whether a policy is the agent's own."""
    return settings.policy == policy and dict(settings.parameters) == dict(parameters)


def shadowed(settings: AgentSettings) -> list[Any]:
    """The candidates that are reported: those of the setting, and the agent's own policy where the
    control has most decisions."""
    own = [settings.policy, settings.parameters]
    in_shadow = settings.control > 0.5 and own not in settings.shadow
    return [own, *settings.shadow] if in_shadow else settings.shadow


def find_candidate(settings: AgentSettings, policy: Named) -> list[Any]:
    """The candidate of that name, or of that name and those parameters, as settings have it."""
    (wanted,) = plain_settings({"shadow": [policy]})["shadow"]
    known = [*settings.shadow, [settings.policy, settings.parameters]]
    named = [one for n, one in enumerate(known) if one[0] == wanted[0] and one not in known[:n]]
    candidates = named if isinstance(policy, str) else [one for one in named if one == wanted]
    if not candidates:
        raise ParameterError(
            f"promote: {wanted[0]} is no candidate of this agent (candidates: "
            f"{', '.join(name for name, _ in known)}); name it in the setting shadow first"
        )
    if len(candidates) > 1:
        raise ParameterError(
            f"promote: there are {len(candidates)} candidates {wanted[0]}; give its parameters too, "
            "as (policy, parameters)"
        )
    return list(candidates[0])


def share_before(settings: AgentSettings, candidate: list[Any]) -> float:
    """A candidate's present share of the decisions; another one may have none."""
    if is_own(settings, *candidate):
        return round(1 - settings.control, 9)
    if settings.promotion is None:
        return 0.0
    policy, parameters, share = settings.promotion
    if [policy, parameters] != candidate:
        raise ParameterError(
            f"promote: {policy} has {share:.0%} of decisions; take them back first (share=0)"
        )
    return float(share)


def require_share(share: Any) -> float:
    """A share from 0 to 1."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ParameterError(f"share must be a number from 0 to 1, got {share!r}")
    return float(share)


def next_share(report: ShadowReport, *, own: bool) -> tuple[float, str]:
    """The share that a candidate has after the next step, and why; `own`: it is the agent's own
    policy."""
    share = report.share
    if own and report.against == "random arms":
        raise ParameterError(
            "promote: the control is random arms, no rule to take over from; name your rule "
            "(choose with baseline=..., or control_arm), or give share"
        )
    if not report.known or report.own <= 0:
        return (FIRST, "the first step") if not share else (share, "too little is known yet")
    low, high = report.low / report.own, report.high / report.own
    interval = f"{low:+.1%} to {high:+.1%} against {report.against}"
    if high < TOLERANCE and low <= 0 and report.effective >= PATIENCE:
        return 0.0, f"there is no gain worth it, {interval}"
    if report.gain <= 0:
        most = min(FIRST, max(LEAST, COST * report.own / max(-report.gain, 1e-12)))
    else:
        safe = TOLERANCE / max(-low, TOLERANCE)
        most = max(FIRST, min(safe, UNPROVEN if low <= 0 else LAST if own else 1.0))
    step = min(most, max(FIRST, 2 * share))
    step = most if most == 1.0 and step > 0.5 else math.floor(100 * step + 1e-9) / 100
    words = "more" if step > share else "less" if step < share else "no change"
    return step, f"{words} is safe, {interval}" if step != share else f"no change, {interval}"
