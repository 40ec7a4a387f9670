"""The first card of a diagnosis: what to do, what it would bring, the week as a picture, and the
commands that deploy it."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from tidepull.logs import Diagnosis
from tidepull.logs.diagnosis.advice import action, worth
from tidepull.logs.log import Log, hour_of, local_seconds, weekday_of
from tidepull.types import FloatArray, IntArray

_MOST_ARMS = 20
"""Arms that a command names."""
_FEWEST, _SURE = 20, 1.96
"""Rewards of an arm in a cell, and standard errors of a difference, for which a best arm is named."""


def card(found: Diagnosis) -> dict[str, Any]:
    """The sentences and commands of the card.

    Parameters
    ----------
    found : Diagnosis
        What `tidepull.logs.diagnose` says of a log.

    Returns
    -------
    dict
        `action`, `worth` and `commands`.
    """
    return {"action": action(found), "worth": worth(found), "commands": commands(found)}


def commands(found: Diagnosis) -> list[str]:
    """What starts a service and an agent with the arms of the log."""
    rewards = found.log.reward[~np.isnan(found.log.reward)]
    policy = "tide"
    if not found.test.matters and not found.log.context:
        policy = "bernoulli-ts" if np.isin(rewards, (0.0, 1.0)).all() else "ucb"
    arms = [f"--arm {shlex.quote(str(arm))}" for arm in found.log.arms[:_MOST_ARMS]]
    more = [] if found.log.n_arms <= _MOST_ARMS else ["..."]
    create = " ".join(["tidepull client create shop", f"--policy {policy}", *arms, *more])
    return ["tidepull serve --db agents --insecure", create]


def best_by_hour(log: Log) -> IntArray | None:
    """The best arm of each hour on weekdays and on weekends; -1 where it is not clear, None without
    dates."""
    if log.time is None or not log.dated:
        return None
    paid = ~np.isnan(log.reward)
    local = local_seconds(log.time, log.zone)[paid]
    cell = (weekday_of(local) >= 5) * 24 + hour_of(local)
    by, cells = cell * log.n_arms + log.arm[paid], 48 * log.n_arms
    count, total, squares = (
        np.bincount(by, weights=log.reward[paid] ** power, minlength=cells)
        .astype(float)
        .reshape(48, -1)
        for power in (0, 1, 2)
    )
    return np.array([_clear(*row) for row in zip(count, total, squares, strict=True)]).reshape(
        2, 24
    )


def _clear(count: FloatArray, total: FloatArray, squares: FloatArray) -> int:
    known = np.flatnonzero(count >= _FEWEST)
    if len(known) < 2:
        return -1
    mean = total[known] / count[known]
    error = np.maximum(squares[known] / count[known] - mean**2, 1e-12) / count[known]
    first, second = np.argsort(-mean)[:2]
    sure = mean[first] - mean[second] > _SURE * np.sqrt(error[first] + error[second])
    return int(known[first]) if sure else -1
