"""A log as at most some thousand events, so that a diagnosis ends in a minute or two however long
the log is.

Where a log has more rows with a reward than that, m neighbouring decisions of one arm become one
event: their mean reward, in the middle of them. m is no more than what a usual arm has within an
hour, so that hours stay apart; if that leaves too many events, some are drawn at random. Every
event stands for as many rows, so none is noisier than others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.logs.log import Log, local_seconds
from tidepull.logs.models import CHUNK, Features
from tidepull.types import FloatArray, IntArray

MOST = 10_000
"""Events at most."""
FEW_IN_A_MEAN = 5
"""Rewards beside the usual one in a mean, below which the mean is not nearly normal."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events in the order of time: arm, mean reward, the row that stands for each, and its time
    (local seconds where `dated`; None where the log has none). `each` rows make an event, `rows`
    had a reward, `features` are the mean contexts."""

    n_arms: int
    arm: IntArray
    reward: FloatArray
    row: IntArray
    time: FloatArray | None
    dated: bool
    each: int
    rows: int
    features: FloatArray

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def scale(self) -> float:
        """How many rows of the log there are for an event."""
        return self.rows / max(1, len(self))

    def description(self) -> str:
        """How the events were made, in a sentence."""
        if self.each == 1 and len(self) == self.rows:
            return f"every one of {self.rows:,} decisions with a reward is used"
        averaged = f"{self.each:,} neighbouring decisions of an arm are averaged"
        averaged = averaged if self.each > 1 else ""
        used = len(self) * self.each / self.rows
        drawn = f"{used:.0%} of the {self.rows:,} decisions with a reward are used, drawn at random"
        if used > 0.9:
            events = f"{len(self):,} events of {self.rows:,} decisions with a reward"
            return f"{averaged} to make {events}"
        return f"{averaged}; {drawn}" if averaged else drawn


def events_of(log: Log, most: int = MOST, seed: int = 0, *, average: bool = True) -> Events:
    """The events of a log; without averages each is one decision."""
    paid = np.flatnonzero(~np.isnan(log.reward))
    each = _rows_of_an_event(log, paid, most) if average else 1
    groups = _groups(log.arm[paid], each)
    if len(groups) > most:
        drawn = np.random.default_rng(seed).choice(len(groups), most, replace=False)
        groups = groups[np.sort(drawn)]
    members = paid[groups]
    order = np.argsort(members[:, each // 2], kind="stable")
    members = members[order]
    row = members[:, each // 2]
    time = log.time
    if time is not None and log.dated:
        time = local_seconds(time, log.timezone)
    return Events(
        n_arms=log.n_arms,
        arm=log.arm[row].astype(np.int64),
        reward=log.reward[members].mean(axis=1),
        row=row,
        time=None if time is None else time[row],
        dated=log.dated,
        each=each,
        rows=len(paid),
        features=_mean_features(log, members),
    )


def events_for_models(log: Log, events: Events, most: int, seed: int) -> Events:
    """The events, or single decisions where means of few clicks are neither 0 and 1 nor nearly
    normal: a model with hidden states would take their steps for regimes."""
    reward = log.reward[~np.isnan(log.reward)]
    _, counts = np.unique(reward, return_counts=True)
    usual = counts.max() / len(reward)
    stepped = usual >= 0.5 and events.each * (1 - usual) < FEW_IN_A_MEAN
    return events_of(log, most, seed, average=False) if events.each > 1 and stepped else events


def _rows_of_an_event(log: Log, paid: IntArray, most: int) -> int:
    wanted = math.ceil(len(paid) / most)
    if wanted <= 1 or log.time is None or not log.dated:
        return max(1, wanted)
    hour = np.floor(log.time[paid] / 3600).astype(np.int64)
    _, counts = np.unique((hour - hour[0]) * log.n_arms + log.arm[paid], return_counts=True)
    usual = np.sort(counts)[::-1]
    half = int(np.searchsorted(np.cumsum(usual), len(paid) / 2))
    return max(1, min(wanted, int(usual[half])))


def _groups(arm: IntArray, each: int) -> IntArray:
    """Places of `each` decisions of one arm that follow each other; what is left over at the end of
    an arm is not used."""
    order = np.argsort(arm, kind="stable")
    counts = np.bincount(arm)
    parts = []
    start = 0
    for count in counts.tolist():
        whole = count // each * each
        parts.append(order[start : start + whole].reshape(-1, each))
        start += count
    groups: IntArray = np.concatenate(parts) if parts else np.empty((0, each), np.int64)
    return groups


def _mean_features(log: Log, members: IntArray) -> FloatArray:
    features = Features(log)
    if not features.dim:
        return np.empty((len(members), 0))
    place = np.full(len(log), -1)
    place[members.ravel()] = np.repeat(np.arange(len(members)), members.shape[1])
    total: FloatArray = np.zeros((len(members), features.dim))
    for start in range(0, len(log), CHUNK):
        here = place[start : start + CHUNK]
        if (here >= 0).any():
            np.add.at(total, here[here >= 0], features.rows(start, start + CHUNK)[here >= 0])
    total /= members.shape[1]
    return total
