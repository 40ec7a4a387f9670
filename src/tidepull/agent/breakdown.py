"""Rewards of each arm, in all and by the values of a context's field, with intervals."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tidepull.agent.insight import Insight
from tidepull.agent.records import Kind
from tidepull.errors import InputError
from tidepull.types import FloatArray

MOST_VALUES = 8
"""Values of a field that have rows of their own; the others share one."""

_NORMAL = 1.96
MISSING, OTHERS = "(missing)", "(others)"


@dataclass(frozen=True, slots=True)
class ArmRate:
    """An arm's decisions, those with a reward, and their mean with its 95% interval (NaN: not
    known)."""

    value: str | None
    arm: str
    decisions: int
    rewarded: int
    mean: float
    low: float
    high: float


def arm_rates(insight: Insight, field: str | None, since: float | None = None) -> list[ArmRate]:
    """A row for each arm, or for each value of a field and arm; decisions of all groups count."""
    log = insight.log()
    groups = np.zeros(len(log), np.int64) if field is None else None
    names: list[str | None] = [None]
    if field is not None:
        values = _values(insight, field)
        texts = _texts([values.get(seq) for seq in log.seq.tolist()])
        names = [name for name, _ in Counter(texts).most_common()]
        groups = np.array([names.index(text) for text in texts], np.int64)
    assert groups is not None
    counts = np.ones(len(log), bool) if since is None else log.at >= since
    rows = []
    for n, name in enumerate(names):
        for place, label in insight.labels.items():
            mine = counts & (groups == n) & (log.arm == place)
            if mine.any():
                reward = log.reward[mine]
                reward = reward[~np.isnan(reward)]
                rows.append(ArmRate(name, label, int(mine.sum()), len(reward), *interval(reward)))
    return rows


def _values(insight: Insight, field: str) -> dict[int, Any]:
    """A field's value in every decision that had one."""
    schema = insight.state.learning.schema
    if schema is None or field not in schema.fields:
        known = "none yet" if schema is None else ", ".join(schema.fields) or "none"
        raise InputError(f"there is no field '{field}'; fields: {known}")
    if field in schema.private:
        raise InputError(f"the field '{field}' is private")
    values = {}
    for record in insight.ledger.tail(0):
        if record.kind is Kind.DECISION and record.context is not None:
            value = json.loads(record.context).get(field)
            if value is not None:
                values[record.seq] = value
    return values


def _texts(values: list[Any]) -> list[str]:
    """Values as few texts: numbers by quarters, of others the most frequent ones."""
    present = [value for value in values if value is not None]
    numbers = [v for v in present if isinstance(v, int | float) and not isinstance(v, bool)]
    if numbers and len(numbers) == len(present) and len(set(numbers)) > MOST_VALUES:
        edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75])).tolist()
        names = [f"under {edges[0]:.3g}"]
        names += [f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges)]
        names += [f"{edges[-1]:.3g} and more"]
        texts = [
            None if v is None else names[int(np.searchsorted(edges, v, "right"))] for v in values
        ]
    else:
        texts = [None if value is None else _text(value) for value in values]
    frequent = {
        name for name, _ in Counter(t for t in texts if t is not None).most_common(MOST_VALUES)
    }
    return [MISSING if t is None else t if t in frequent else OTHERS for t in texts]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:60]


def interval(reward: FloatArray) -> tuple[float, float, float]:
    """The mean of rewards and its 95% interval: Wilson's where all are 0 or 1.

    >>> [round(end, 2) for end in interval(np.zeros(10))]
    [0.0, 0.0, 0.28]
    """
    n = len(reward)
    if n == 0:
        return math.nan, math.nan, math.nan
    mean = float(reward.mean())
    if np.isin(reward, (0.0, 1.0)).all():
        square = _NORMAL**2
        middle = (mean + square / (2 * n)) / (1 + square / n)
        spread = mean * (1 - mean) / n + square / (4 * n**2)
        half = _NORMAL / (1 + square / n) * math.sqrt(spread)
        return mean, max(0.0, middle - half), min(1.0, middle + half)
    if n < 2:
        return mean, math.nan, math.nan
    half = _NORMAL * float(reward.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half
