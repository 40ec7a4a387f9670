"""Which kind of time structure: the models of `tide` learn the events of a log, and their weights
are the evidence.

Patterns in rounds compete with structural models of the hour and the weekday, and with the same
models without a season, so that what these make of slow deviations does not count for the clock:

    weight of a group ~ its prior x its evidence on all rewards but the first 32

The network is left out: it says that there is something, not what. Models that forget take part, and
speak for drift. Contexts are left out, too: a
change of contexts that moves rewards is a change in time for a model that does not see them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.logs.diagnosis.events import Events
from tidepull.logs.log import Log
from tidepull.logs.log import format_time as said
from tidepull.random import Streams
from tidepull.tide.explain import Belief, Explanation
from tidepull.tide.hours import HourSpan, spans
from tidepull.tide.models.structural import Blocks
from tidepull.tide.models.waves import DAY_SECONDS, HOUR_SECONDS
from tidepull.tide.parameters import TideParameters
from tidepull.tide.patterns import Patterns
from tidepull.tide.structural_mixture import (
    NO_SEASON,
    SEASONS,
    StructuralMixture,
    structures_of,
    sure_week,
)
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

KINDS = {
    "nothing": "nothing changes",
    "drift": "drift",
    "changes": "change points",
    "rounds": "a season in decisions",
    "clock": "a daily or weekly season",
    "regimes": "regimes that return",
    "last": "dependence on the last decisions",
}
"""Every kind of time structure, in words."""

_KIND_OF = {
    "stationary": "nothing", "discounted": "drift", "changes": "changes", "fourier": "rounds",
    "square": "rounds", "seasons": "rounds", "phases": "rounds", "own periods": "rounds",
    "regimes": "regimes",
    "turns": "last", "last event": "last", "last success": "last",
}  # fmt: skip
_ALL = 200
_PRIORS = (0.94, 0.04, 0.02)
"""Of patterns in rounds, of structural models with a season, and of those without one."""
_FIRST_SCORED = 32
"""Rewards after which all groups know their units."""
_SHORTEST_SECONDS = 2 * DAY_SECONDS
"""Of a log that can tell hours from other changes."""
_LEADS = 0.5
"""Weight of the clock from which on hours are named."""
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
    after some rows of the log; `best` has the surely best arm of every hour of the week (7 x 24, -1
    where none is), if there is a daily or weekly season."""

    weights: Mapping[str, float]
    leading: tuple[tuple[str, float], ...]
    changes: tuple[ChangePoint, ...]
    regime: str
    hours: tuple[str, ...]
    rows: tuple[int, ...]
    over_time: FloatArray
    best: IntArray | None = None

    @property
    def kind_of_change(self) -> str:
        """The kind with most weight, if something changes."""
        return max(
            (kind for kind in self.weights if kind != "nothing"),
            key=lambda kind: self.weights[kind],
        )


class _ClockModels:
    """Structural models with and without a season: the likelihood of rewards under each."""

    def __init__(self, events: Events, n_arms: int) -> None:
        self._blocks, self._binary = Blocks(), bool(np.isin(events.reward, (0.0, 1.0)).all())
        self.season, self.plain = (
            StructuralMixture(structures_of(self._blocks, seasons), self._blocks, n_arms)
            for seasons in (SEASONS, (NO_SEASON,))
        )
        for mixture in (self.season, self.plain):
            mixture.fit(events.reward, events.arm)

    def learn(self, arm: int, reward: float, time: float, count: int) -> FloatArray:
        """Log likelihoods of a reward with and without a season, in the units of rewards."""
        x = self._blocks.features(time, np.empty(0))
        scores = [
            mixture.learn(arm, x, reward, time / HOUR_SECONDS, binary=self._binary, count=count)
            - (0.0 if self._binary else math.log(mixture.spread))
            for mixture in (self.season, self.plain)
        ]
        return np.array(scores)

    def kinds(self, season: float, plain: float) -> list[float]:
        """The weights of both groups as those of clock, nothing and drift."""
        steady = np.array([model.persistence == 1.0 for model in self.plain.structures])
        still = float(np.exp(self.plain.log_weights[steady]).sum())
        return [season, plain * still, plain * (1 - still)]

    def beliefs(self, season: float, plain: float) -> list[Belief]:
        """What the structures with a season say, and what those without one amount to."""
        beliefs = [
            Belief(model.words, "clock", season * float(weight))
            for model, weight in zip(
                self.season.structures, np.exp(self.season.log_weights), strict=True
            )
        ]
        _, still, moving = self.kinds(season, plain)
        beliefs.append(Belief("nothing changes", "stationary", still))
        beliefs.append(Belief("arms deviate for hours", "discounted", moving))
        return beliefs


def structure_of(
    log: Log, events: Events, *, seed: int = 0, tick: Callable[[int], None] = lambda _: None
) -> TimeStructure:
    """Let the models learn the events; `tick` is told after each how many are done."""
    events, labels = _without_small_arms(log, events)
    parameters = TideParameters(without=("network",), also=("discounted",))
    shape = ProblemShape(len(labels))
    patterns = Patterns(parameters, shape, Streams(seed).child("policy"))
    times = events.time if events.dated else None
    clock = None
    if times is not None and float(np.ptp(times)) >= _SHORTEST_SECONDS:
        clock = _ClockModels(events, len(labels))
    evidence, first = np.zeros(3), np.zeros(3)
    priors = np.log(_PRIORS) if clock is not None else np.array([0.0, -np.inf, -np.inf])
    history = np.empty((len(events), 4))  # patterns, then the kinds of the others
    with one_blas_thread():
        for n, (arm, reward) in enumerate(
            zip(events.arm.tolist(), events.reward.tolist(), strict=True)
        ):
            count = patterns.count
            patterns.learn(Event(Context(), arm, reward, n))
            while patterns.upkeep():
                pass
            if clock is not None and times is not None:
                scores = clock.learn(arm, reward, float(times[n]), n + 1)
                evidence[1:] += scores * (patterns.count > count)  # else it was set aside
            evidence[0] = patterns.evidence
            first = evidence.copy() if n < _FIRST_SCORED else first
            groups = priors + (evidence - first)
            weights = np.exp(groups - np.logaddexp.reduce(groups))
            beside = [0.0] * 3 if clock is None else clock.kinds(weights[1], weights[2])
            history[n] = weights[0], *beside
            tick(n + 1)
    return _read(log, events, labels, patterns.explain(most=_ALL), clock, history)


def _without_small_arms(log: Log, events: Events) -> tuple[Events, tuple[str, ...]]:
    """Events of arms with enough decisions to speak of, and these arms' labels: all of them where
    none has enough."""
    large = np.flatnonzero(np.bincount(log.arm, minlength=log.n_arms) >= FEW_PLAYS)
    if len(large) in (0, log.n_arms):
        return events, log.arms
    keep = np.isin(events.arm, large)
    events_of_large = replace(
        events,
        n_arms=len(large),
        arm=np.searchsorted(large, events.arm[keep]),
        reward=events.reward[keep],
        row=events.row[keep],
        time=None if events.time is None else events.time[keep],
        rows=round(events.rows * float(keep.mean())),
        features=events.features[keep],
    )
    return events_of_large, tuple(log.arms[arm] for arm in large)


def _read(
    log: Log,
    events: Events,
    labels: tuple[str, ...],
    explanation: Explanation,
    clock: _ClockModels | None,
    history: FloatArray,
) -> TimeStructure:
    returning = _has_returned(explanation)
    share, season = float(history[-1, 0]), float(history[-1, 1])
    beliefs = [replace(belief, weight=share * belief.weight) for belief in explanation.beliefs]
    beliefs += [] if clock is None else clock.beliefs(season, 1 - share - season)
    weights = dict.fromkeys(KINDS, 0.0)
    for belief in beliefs:
        weights[_kind(belief, len(events), returning)] += belief.weight
    total = sum(weights.values()) or 1.0
    shares = {kind: weight / total for kind, weight in weights.items()}
    words = _Words(log, events, labels)
    changes = [] if shares["changes"] < 0.02 else explanation.findings.get("changes", ())
    regimes = explanation.findings.get("regimes", ()) if shares["regimes"] >= 0.02 else ()
    hours: tuple[HourSpan, ...] = ()
    best = None
    if clock is not None and events.time is not None and shares["clock"] >= _LEADS:
        week = sure_week([clock.season], float(events.time[-1]), np.ones(len(labels), bool))
        hours = spans(week)
        best = np.array([*map(log.arms.index, labels), -1])[week]
    last = len(events) - 1
    return TimeStructure(
        weights=shares,
        leading=_leading(beliefs, words),
        changes=tuple(words.change(one.facts) for one in changes),
        regime=words.of(regimes[0].words) if regimes else "",
        hours=tuple(one.words(f"'{labels[one.arm]}'") for one in hours),
        rows=tuple(int(events.row[min(max(int(r) - 1, 0), last)]) for r in explanation.rounds),
        over_time=_over_time(explanation, history, shares),
        best=best,
    )


def _leading(beliefs: Sequence[Belief], words: _Words) -> tuple[tuple[str, float], ...]:
    """The heaviest beliefs in words, those that say the same together."""
    totals: dict[str, float] = {}
    for belief in beliefs:
        totals[belief.words] = totals.get(belief.words, 0.0) + belief.weight
    ranked = sorted(totals.items(), key=lambda item: -item[1])[:6]
    return tuple((words.of(text), weight) for text, weight in ranked if weight >= 0.005)


def _kind(belief: Belief, length: int, returning: bool) -> str:
    """The kind of a belief. A season in rounds that has not come round twice is a change or a drift
    so far, and regimes of which none has come back are changes."""
    kind = _KIND_OF.get(belief.family, "clock")
    if kind == "rounds" and 2 * belief.period > length:
        return "changes" if "phases" in belief.words else "drift"
    if kind == "regimes" and not returning:
        return "changes"
    return kind


def _has_returned(explanation: Explanation) -> bool:
    regimes = explanation.findings.get("regimes", ())
    return any(np.sum(one.facts["followed_by"]) >= int(one.facts["of"]) for one in regimes)


def _over_time(
    explanation: Explanation, history: FloatArray, shares: Mapping[str, float]
) -> FloatArray:
    """Weights of kinds in past rounds; families by their kind, except in the last row, where more
    is known."""
    names, beside = list(KINDS), ("clock", "nothing", "drift")
    past = history[np.clip(explanation.rounds - 1, 0, len(history) - 1)]
    table = np.zeros((len(explanation.rounds), len(names)))
    for column, family in enumerate(explanation.families):
        table[:, names.index(_KIND_OF[family])] += past[:, 0] * explanation.weights[:, column]
    for column, kind in enumerate(beside, 1):
        table[:, names.index(kind)] += past[:, column]
    if len(table):
        table[-1] = list(shares.values())
    return table


class _Words:
    """Hypotheses speak of rounds and of numbered arms; people have decisions, dates and labels."""

    def __init__(self, log: Log, events: Events, labels: Sequence[str]) -> None:
        self._log, self._events, self._labels = log, events, labels

    def of(self, words: str) -> str:
        words = re.sub(r"\barm (\d+)", lambda match: f"'{self._labels[int(match[1])]}'", words)
        return re.sub(r"([\d,.]*\d) rounds", self._decisions, words)

    def _decisions(self, match: re.Match[str]) -> str:
        count = float(match[1].replace(",", "")) * self._events.scale
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
    return said(float(log.time[row]), log.timezone) if log.dated else f"time {log.time[row]:g}"
