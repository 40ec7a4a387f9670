"""What somebody should look at: rewards that have stopped, starved arms, contexts that drift out of their range."""

from __future__ import annotations

import numpy as np

from tidepull.agent.fields import Category, Number, Tags, Timestamp
from tidepull.agent.learning import Learning
from tidepull.agent.log import Log
from tidepull.agent.records import Group

UNLIKELY = 1e-4
"""Chance below which silence is no accident."""

STARVED, RECENT = 0.005, 1000
OUTSIDE = 0.05


def alarms(log: Log, labels: dict[int, str], now: float) -> list[str]:
    """One sentence each; none is good news. `labels` are those of the arms that can be chosen."""
    return [*_silence(log, now), *_starved(log, labels)]


def _silence(log: Log, now: float) -> list[str]:
    """No reward since: how likely is that, given how many decisions got one before, and how fast?"""
    paid = ~np.isnan(log.reward)
    if paid.sum() < 20:
        return []
    patience = float(np.quantile((log.paid_at - log.at)[paid], 0.95))
    last = float(np.nanmax(log.paid_at))
    ripe = log.at + patience < now
    before, after = ripe & (log.at + patience <= last), ripe & (log.at > last - patience)
    after &= log.at + patience > last
    if not before.any() or paid[after].any():
        return []
    rate, silent = float(paid[before].mean()), int(after.sum())
    if silent < 10 or (1 - min(rate, 0.9)) ** silent >= UNLIKELY:
        return []
    return [
        f"Rewards have stopped coming: none for the last {silent:,} decisions that should have one by now, "
        f"while {rate:.0%} had one before."
    ]


def _starved(log: Log, labels: dict[int, str]) -> list[str]:
    recent = log.where(log.group == Group.POLICY).where(slice(-RECENT, None))
    if len(recent) < RECENT:
        return []
    counts = {place: int((recent.arm == place).sum()) for place in labels}
    return [
        f"Arm '{labels[place]}' got {count} of the last {RECENT:,} decisions of the policy: what is known of it is "
        "old. Retire it, or give it a least share."
        for place, count in counts.items()
        if count < STARVED * RECENT
    ]


def drift(learning: Learning) -> list[str]:
    """Fields whose values are not what they used to be."""
    said = []
    for name, field in (learning.schema.fields if learning.schema is not None else {}).items():
        seen = learning.seen[name]
        if isinstance(field, Number | Timestamp) and seen[3] > OUTSIDE:
            said.append(f"Field '{name}' is far outside its usual range in {seen[3]:.0%} of late decisions.")
        elif isinstance(field, Category | Tags) and field.values and not field.unseen and seen[1] >= 20:
            said.append(f"Field '{name}' had values {seen[1]:,} times that its list does not have.")
    return said
