"""Which kind of time structure: the hypotheses of `tide` learn the events of a log, and their
weights are the evidence.

The network is left out: it says that there is something, not what. Contexts are left out, too: a
change of contexts that moves rewards is a change in time for whoever does not look at them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.logs.diagnosis.events import Events
from tidepull.logs.log import Log
from tidepull.logs.log import format_time as said
from tidepull.policies import build_policy
from tidepull.tide.explain import Belief, Explanation
from tidepull.types import Context, Event, FloatArray, ProblemShape

KINDS = {
    "nothing": "nothing changes",
    "drift": "drift",
    "changes": "change points",
    "rounds": "a season in rounds",
    "clock": "a season on the clock",
    "regimes": "regimes that come back",
    "last": "the last decisions decide",
}
"""Every kind of time structure, in words."""

_KIND_OF = {
    "stationary": "nothing", "discounted": "drift", "changes": "changes", "fourier": "rounds",
    "square": "rounds", "seasons": "rounds", "calendar": "clock", "clock": "clock", "regimes": "regimes",
    "turns": "last", "last event": "last", "last success": "last",
}  # fmt: skip
_ALL = 200
FEW_PLAYS = 50
"""Decisions of an arm below which nothing is said of how it depends on time."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change point: the row it begins with, when that was (a date, or a row), how sure it is, and
    what moved."""

    row: int
    when: str
    chance: float
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class TimeStructure:
    """`weights` has each kind's share of the evidence at the end, `leading` the leading hypotheses
    in words with their shares, `rows` and `over_time` the weights of kinds (columns as in KINDS)
    after some rows of the log."""

    weights: Mapping[str, float]
    leading: tuple[tuple[str, float], ...]
    changes: tuple[ChangePoint, ...]
    regime: str
    hours: tuple[str, ...]
    rows: tuple[int, ...]
    over_time: FloatArray

    @property
    def kind(self) -> str:
        """The kind with most weight."""
        return max(self.weights, key=lambda kind: self.weights[kind])

    @property
    def kind_of_change(self) -> str:
        """The kind with most weight, if something changes."""
        return max(
            (kind for kind in self.weights if kind != "nothing"),
            key=lambda kind: self.weights[kind],
        )


def structure_of(
    log: Log, events: Events, *, seed: int = 0, tick: Callable[[int], None] = lambda _: None
) -> TimeStructure:
    """Let the hypotheses learn the events; `tick` is told after each how many are done."""
    without = ["network", "structural"] + ([] if events.dated else ["calendar"])
    events, labels = _without_small_arms(log, events)
    policy: Any = build_policy(("tide", {"without": without}), ProblemShape(len(labels)), seed=seed)
    times = [None] * len(events) if events.time is None else events.time.tolist()
    with one_blas_thread():
        for n, (time, arm, reward) in enumerate(
            zip(times, events.arm.tolist(), events.reward.tolist(), strict=True)
        ):
            policy.learn(Event(Context(time=time), arm, reward, None))
            while policy.upkeep():
                pass
            tick(n + 1)
    return _read(log, events, labels, policy.explain(most=_ALL))


def _without_small_arms(log: Log, events: Events) -> tuple[Events, tuple[str, ...]]:
    """Events of arms with enough decisions to speak of, and these arms' labels: all of them where
    none has enough."""
    large = np.flatnonzero(np.bincount(log.arm, minlength=log.n_arms) >= FEW_PLAYS)
    if len(large) in (0, log.n_arms):
        return events, log.arms
    keep = np.isin(events.arm, large)
    kept = replace(
        events,
        n_arms=len(large),
        arm=np.searchsorted(large, events.arm[keep]),
        reward=events.reward[keep],
        row=events.row[keep],
        time=None if events.time is None else events.time[keep],
        rows=round(events.rows * float(keep.mean())),
        features=events.features[keep],
    )
    return kept, tuple(log.arms[arm] for arm in large)


def _read(log: Log, events: Events, labels: tuple[str, ...], told: Explanation) -> TimeStructure:
    length = len(events)
    span = 0.0 if events.time is None else float(events.time[-1] - events.time[0])
    returning = _has_returned(told)
    weights = dict.fromkeys(KINDS, 0.0)
    for belief in told.beliefs:
        weights[_kind(belief, length, span, returning)] += belief.weight
    total = sum(weights.values()) or 1.0
    shares = {kind: weight / total for kind, weight in weights.items()}
    words = _Words(log, events, labels)
    leading = tuple((words.of(b.words), b.weight) for b in told.beliefs[:6] if b.weight >= 0.005)
    changes = [] if shares["changes"] < 0.02 else told.told.get("changes", ())
    regimes = told.told.get("regimes", ()) if shares["regimes"] >= 0.02 else ()
    return TimeStructure(
        weights=shares,
        leading=leading,
        changes=tuple(words.change(one.facts) for one in changes),
        regime=words.of(regimes[0].words) if regimes else "",
        hours=tuple(one.words(f"'{labels[one.arm]}'") for one in told.hours),
        rows=tuple(int(events.row[min(max(int(r) - 1, 0), length - 1)]) for r in told.rounds),
        over_time=_over_time(told, shares),
    )


def _kind(belief: Belief, length: int, span: float, returning: bool) -> str:
    """The kind of a hypothesis. A season that has not come round twice is a change or a drift so
    far, and regimes of which none has come back are changes."""
    kind = _KIND_OF[belief.family]
    whole = length if kind == "rounds" else span
    if kind in ("rounds", "clock") and belief.period and 2 * belief.period > whole:
        return "changes" if "phases" in belief.words else "drift"
    if kind == "regimes" and not returning:
        return "changes"
    return kind


def _has_returned(told: Explanation) -> bool:
    regimes = told.told.get("regimes", ())
    return any(np.sum(one.facts["followed_by"]) >= int(one.facts["of"]) for one in regimes)


def _over_time(told: Explanation, shares: Mapping[str, float]) -> FloatArray:
    """Weights of kinds in past rounds; families by their kind, except in the last row, where more
    is known."""
    made = np.zeros((len(told.rounds), len(KINDS)))
    names = list(KINDS)
    for column, family in enumerate(told.families):
        made[:, names.index(_KIND_OF[family])] += told.weights[:, column]
    if len(made):
        made[-1] = list(shares.values())
    return made


class _Words:
    """Hypotheses speak of rounds and of numbered arms; people have decisions, dates and labels."""

    def __init__(self, log: Log, events: Events, labels: Sequence[str]) -> None:
        self._log, self._events, self._labels = log, events, labels

    def of(self, words: str) -> str:
        words = re.sub(r"\barm (\d+)", lambda found: f"'{self._labels[int(found[1])]}'", words)
        return re.sub(r"([\d,.]*\d) rounds", self._decisions, words)

    def _decisions(self, found: re.Match[str]) -> str:
        count = float(found[1].replace(",", "")) * self._events.scale
        text = f"{count:,.0f} decisions" if count >= 100 else f"{count:,.1f} decisions"
        if self._log.time is None or not self._log.dated:
            return text
        return f"{text} ({self._lasting(count)})"

    def _lasting(self, decisions: float) -> str:
        """How long so many decisions take on average."""
        assert self._log.time is not None
        each = float(self._log.time[-1] - self._log.time[0]) / max(1, len(self._log) - 1)
        return f"about {span(decisions * each)}"

    def change(self, facts: Mapping[str, Any]) -> ChangePoint:
        place = min(int(facts["round"]), len(self._events) - 1)
        row = int(self._events.row[place])
        moved = self._moved(facts["arms"])
        return ChangePoint(row, when(self._log, row), float(facts["chance"]), moved)

    def _moved(self, arms: Sequence[Mapping[str, Any]]) -> str:
        return ", ".join(
            f"'{self._labels[one['arm']]}' {'rose' if one['after'] > one['before'] else 'fell'} "
            f"from {one['before']:.3g} to {one['after']:.3g}"
            for one in arms[:3]
        )


def span(seconds: float) -> str:
    """A length of time in words.

    >>> span(5400.0)
    '1.5 hours'
    """
    for name, unit in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{seconds:,.0f} seconds"


def when(log: Log, row: int) -> str:
    """When a row was: a date, a time, or its number."""
    if log.time is None:
        return f"decision {row + 1:,}"
    return said(float(log.time[row]), log.zone) if log.dated else f"time {log.time[row]:g}"
