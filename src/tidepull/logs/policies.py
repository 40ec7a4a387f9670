"""Policies on a log: fixed ones, and those that learn while the log is replayed.

A `Target` is a fixed policy: each arm's share of the choices in every row. `terms_of` says what
estimators need of it.

`play` lets a policy learn from the decisions that are its own. Without contexts a round waits for
the next decision of the arm that the policy chose (a queue for every arm, in the order of time);
where an arm's chances vary, a decision is taken with a chance that evens them out. With contexts,
or where not all arms are always on offer, a decision is taken where its arm is what the policy
would have played (rejection: with the chance c pi / p, c the 5% quantile of p); what is not taken
is a round whose reward never comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.errors import DataError, ParameterError
from tidepull.logs.estimators import PolicyTerms, Scores
from tidepull.logs.log import Log, local_seconds
from tidepull.logs.models import CHUNK, Features, RewardModel
from tidepull.policies import build_policy
from tidepull.protocols import HasUpkeep, Learner
from tidepull.random import Streams
from tidepull.registry import Named
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape


@dataclass(frozen=True, slots=True)
class Target:
    """A fixed policy.

    Parameters
    ----------
    name : str
        The policy's name in results.
    shares : callable
        Function `shares(log, rows)` that returns each arm's share of the choices in these rows
        (rows x arms).
    """

    name: str
    shares: Callable[[Log, slice], FloatArray]


def uniform() -> Target:
    """Return the policy that plays every available arm with equal probability."""

    def shares(log: Log, rows: slice) -> FloatArray:
        if log.available is None:
            return np.full((rows.stop - rows.start, log.n_arms), 1 / log.n_arms)
        mask = log.available[rows]
        table: FloatArray = mask / mask.sum(axis=1, keepdims=True)
        return table

    return Target("random", shares)


def always(label: str) -> Target:
    """Return the policy that always plays one arm.

    Parameters
    ----------
    label : str
        The arm's label in the log.

    Returns
    -------
    Target
        The policy, with the name `arm:LABEL`.

    Examples
    --------
    >>> always("blue").name
    'arm:blue'
    """

    def shares(log: Log, rows: slice) -> FloatArray:
        place = log.place(label)
        if log.available is not None and not log.available[rows, place].all():
            raise DataError(
                f"arm '{label}' is not on offer in every row of {log.reading.source}; leave the "
                "others out"
            )
        table: FloatArray = np.zeros((rows.stop - rows.start, log.n_arms))
        table[:, place] = 1.0
        return table

    return Target(f"arm:{label}", shares)


def as_logged(other: Log, name: str, *, by: Sequence[str] = ()) -> Target:
    """Return the policy that wrote another log, estimated from its propensities.

    Each arm has its mean logged probability, scaled so that shares add up to 1. This suits logging
    policies that depend on nothing but the columns `by`.

    Parameters
    ----------
    other : Log
        A log with propensities.
    name : str
        The policy's name in results.
    by : sequence of str, default: ()
        Context columns; probabilities are averaged over rows with equal values in them.

    Returns
    -------
    Target
        The policy.

    Raises
    ------
    DataError
        If `other` has no propensities or no such column.
    """
    if other.propensity is None:
        raise DataError(
            f"{other.reading.source} has no propensities: what its policy would do is not known"
        )
    tables: dict[tuple[object, ...], FloatArray] = {}
    keys = _keys(other, by)
    for key in dict.fromkeys(keys):
        rows = np.array([one == key for one in keys])
        tables[key] = _mean_chances(other, rows)

    def shares(log: Log, rows: slice) -> FloatArray:
        here = _keys(log.where(rows), by)
        unknown = next((key for key in here if key not in tables), None)
        if unknown is not None:
            raise DataError(f"{other.reading.source} has no rows with {', '.join(by)} = {unknown}")
        rename = _arm_places(other, log)
        return np.array([tables[key] for key in here])[:, rename]

    return Target(name, shares)


def _keys(log: Log, by: Sequence[str]) -> list[tuple[object, ...]]:
    missing = [name for name in by if name not in log.context]
    if missing:
        raise DataError(f"{log.reading.source} has no context column '{missing[0]}'")
    columns = []
    for name in by:
        column = log.context[name]
        values = column.values.tolist()
        labels = column.labels
        columns.append(values if labels is None else [labels[code] for code in values])
    return list(zip(*columns, strict=True)) if columns else [()] * len(log)


def _mean_chances(log: Log, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
    assert log.propensity is not None
    count = np.bincount(log.arm[rows], minlength=log.n_arms)
    total = np.bincount(log.arm[rows], weights=log.propensity[rows], minlength=log.n_arms)
    table: FloatArray = np.divide(total, count, out=np.zeros(log.n_arms), where=count > 0)
    chances: FloatArray = table / table.sum()
    return chances


def _arm_places(other: Log, log: Log) -> list[int]:
    """For every arm of a log its place in another."""
    places: Mapping[str, int] = {label: n for n, label in enumerate(other.arms)}
    missing = [label for label in log.arms if label not in places]
    if missing:
        raise DataError(f"{other.reading.source} has no arm '{missing[0]}'")
    return [places[label] for label in log.arms]


def terms_of(
    log: Log, target: Target, model: RewardModel, clip: float
) -> tuple[PolicyTerms, float]:
    """What the estimators need, and the share of the policy's choices that the log never shows."""
    assert log.propensity is not None
    weight, chosen, policy = (np.empty(len(log)) for _ in range(3))
    shown = np.bincount(log.arm, minlength=log.n_arms) > 0
    uncovered = 0.0
    asked, rest = _Demand(log.n_arms, model), _Demand(log.n_arms, model)
    for rows, x in model.features.chunks():
        shares = _check_shares(target.shares(log, rows), rows, log, target.name)
        expected = model.rewards(rows, x)
        arm = log.arm[rows]
        each = np.arange(len(arm))
        weight[rows] = shares[each, arm] / log.propensity[rows]
        chosen[rows] = expected[each, arm]
        policy[rows] = (shares * expected).sum(axis=1)
        uncovered += float(shares[:, ~shown].sum())
        full = np.column_stack([np.ones(len(x)), x])
        asked.add(shares, full)
        light = np.where(weight[rows] <= clip, weight[rows], 0.0)
        left = shares.copy()
        left[each, arm] -= light
        rest.add(left, full)
    n = len(log)
    pull, switch = (model.pull(log, one.own / n, one.all / n) for one in (asked, rest))
    return PolicyTerms(weight, log.reward, chosen, policy, pull, switch, clip), uncovered / n


class _Demand:
    """Sums of what the model is asked for: shares of arms times features."""

    def __init__(self, n_arms: int, model: RewardModel) -> None:
        self.own = np.zeros((n_arms, model.own))
        self.all = np.zeros(1 + model.features.dim)

    def add(self, shares: FloatArray, full: FloatArray) -> None:
        self.own += shares.T @ full[:, : self.own.shape[1]]
        self.all += shares.sum(axis=1) @ full


def _check_shares(shares: Any, rows: slice, log: Log, name: str) -> FloatArray:
    table = np.asarray(shares, float)
    shape = (rows.stop - rows.start, log.n_arms)
    if (
        table.shape != shape
        or not (table >= 0).all()
        or not np.allclose(table.sum(axis=1), 1, atol=1e-6)
    ):
        raise ParameterError(
            f"{name}: shares must be {shape[0]} x {shape[1]} numbers that add up to 1 in every row"
        )
    return table


DRAWS = 16
"""Draws by which a policy's shares are known."""


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """How a policy went through a log. `rows` are the decisions that it took, `replay` scores their
    rewards; `dr` scores the rows `counted` with the model's help; `clipped` is the share of rows
    whose chance to be taken was cut to 1."""

    rows: IntArray
    replay: Scores
    counted: IntArray
    dr: Scores
    clipped: float


def play(log: Log, policy: Named | Learner, model: RewardModel, *, seed: int = 0) -> Replay:
    """Let a policy learn from a log that has rewards and propensities in every row."""
    features = Features(log)
    shape = ProblemShape(log.n_arms, features.dim)
    learner = build_policy(policy, shape, seed=seed)
    with one_blas_thread():
        return _Player(log, learner, model, features, Streams(seed)).play()


class _Player:
    def __init__(
        self, log: Log, policy: Learner, model: RewardModel, features: Features, streams: Streams
    ) -> None:
        assert log.propensity is not None
        self._log, self._policy, self._model, self._features = log, policy, model, features
        self._chance = log.propensity
        self._rng = streams.generator("replay")
        self._upkeep = policy if isinstance(policy, HasUpkeep) else None
        self._local = None if log.time is None else local_seconds(log.time, log.timezone)
        self._late: list[tuple[float, int, Event]] = []
        self._rounds = 0
        self._shares: FloatArray = np.zeros(log.n_arms)
        self._taken: list[int] = []
        self._clipped = 0

    def play(self) -> Replay:
        waits = self._features.dim == 0 and self._log.available is None
        log = self._log
        terms = np.full(len(log), np.nan)
        step = self._wait_for if waits else self._reject
        self._start_waiting()
        for start in range(0, len(log), CHUNK):
            rows = slice(start, min(start + CHUNK, len(log)))
            seen = self._features.rows(rows.start, rows.stop)
            expected = self._model.rewards(rows, self._model.features.rows(rows.start, rows.stop))
            for n in range(rows.start, rows.stop):
                self._pay(n)
                terms[n] = step(n, seen[n - start], expected[n - start])
        counted = np.flatnonzero(~np.isnan(terms))
        taken = np.array(self._taken, np.int64)
        replay = Scores(log.reward[taken], np.ones(len(taken)))
        doubly_robust = Scores(terms[counted], np.ones(len(counted)))
        return Replay(taken, replay, counted, doubly_robust, self._clipped / max(1, len(log)))

    def _start_waiting(self) -> None:
        """Each arm's usual chance: that which nine tenths of its decisions reach."""
        log = self._log
        self._wanted = -1
        self._usual = np.ones(log.n_arms)
        for arm in np.unique(log.arm):
            self._usual[arm] = np.quantile(self._chance[log.arm == arm], 0.1)
        self._least = float(np.quantile(self._chance, 0.05))

    def _wait_for(self, n: int, seen: FloatArray, expected: FloatArray) -> float:
        """Take the decision if its arm is waited for; its term, or NaN."""
        if self._wanted < 0:
            self._opened = Context(time=None if self._local is None else float(self._local[n]))
            self._wanted = self._choose(self._opened, None)
        arm = int(self._log.arm[n])
        odds = self._usual[arm] / self._chance[n]
        self._clipped += int(odds > 1 + 1e-9)
        if arm != self._wanted or self._rng.random() >= odds:
            return float("nan")
        self._wanted = -1
        self._take(n, self._opened, arm)
        return float(self._shares @ expected + self._log.reward[n] - expected[arm])

    def _reject(self, n: int, seen: FloatArray, expected: FloatArray) -> float:
        """Take the decision if it could be the policy's own; its term, taken or not."""
        log, arm = self._log, int(self._log.arm[n])
        context = Context(
            observation=seen if len(seen) else None,
            available=None if log.available is None else log.available[n],
            time=None if self._local is None else float(self._local[n]),
        )
        played = self._choose(context, n)
        if played == arm and self._accepted:
            self._take(n, context, arm)
        weight = self._shares[arm] / self._chance[n]
        return float(self._shares @ expected + weight * (log.reward[n] - expected[arm]))

    def _choose(self, context: Context, n: int | None) -> int:
        """A round begins: an arm drawn by the policy's shares, or that of row n where that is
        taken."""

        def pick(shares: FloatArray) -> int:
            self._shares = np.array(shares, float)
            self._accepted = False
            if n is not None:
                odds = self._least * shares[self._log.arm[n]] / self._chance[n]
                self._clipped += int(odds > 1 + 1e-9)
                self._accepted = bool(self._rng.random() < odds)
                if self._accepted:
                    return int(self._log.arm[n])
            return int(self._rng.choice(len(shares), p=shares / shares.sum()))

        choose_by = getattr(self._policy, "choose_by", None)
        self._rounds += 1
        if choose_by is not None:
            return int(choose_by(context, DRAWS, pick))
        chosen = int(self._policy.choose(context))
        pick(np.eye(self._log.n_arms)[chosen])
        return chosen

    def _take(self, n: int, context: Context, arm: int) -> None:
        self._taken.append(n)
        event = Event(context, arm, float(self._log.reward[n]), self._rounds - 1)
        log = self._log
        due = -np.inf if log.paid_at is None or np.isnan(log.paid_at[n]) else float(log.paid_at[n])
        if log.time is None or due <= log.time[n]:
            self._learn(event)
        else:
            heapq.heappush(self._late, (due, n, event))

    def _pay(self, n: int) -> None:
        """Rewards that have come by row n."""
        while self._late and self._log.time is not None and self._late[0][0] <= self._log.time[n]:
            self._learn(heapq.heappop(self._late)[2])

    def _learn(self, event: Event) -> None:
        self._policy.learn(event)
        while self._upkeep is not None and self._upkeep.upkeep():
            pass
