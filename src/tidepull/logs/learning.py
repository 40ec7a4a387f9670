"""What a policy that learns would have earned: it plays through the log and learns from decisions that are its own.

Without contexts a round waits for the next decision of the arm that the policy chose (a queue for every arm, in the
order of time); where an arm's chances vary, a decision is taken with a chance that evens them out. With contexts, or
where not all arms are always on offer, a decision is taken where its arm is what the policy would have played
(rejection: with the chance c pi / p, c the 5% quantile of p); what is not taken is a round whose reward never comes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from tidepull._internal.threads import one_blas_thread
from tidepull.logs.estimators import Scores
from tidepull.logs.features import CHUNK, Features
from tidepull.logs.log import Log
from tidepull.logs.models import RewardModel
from tidepull.logs.moments import local_seconds
from tidepull.policies import build_policy
from tidepull.protocols import HasUpkeep, Learner
from tidepull.random import Streams
from tidepull.registry import Named
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

DRAWS = 16
"""Draws by which a policy's shares are known."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """How a policy went through a log. `rows` are the decisions that it took, `replay` scores their rewards; `dr`
    scores the rows `counted` with the model's help; `clipped` is the share of rows whose chance to be
    taken was cut to 1."""

    rows: IntArray
    replay: Scores
    counted: IntArray
    dr: Scores
    clipped: float


def play(log: Log, policy: Named | Learner, model: RewardModel, *, seed: int = 0) -> Played:
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
        self._local = None if log.time is None else local_seconds(log.time, log.zone)
        self._late: list[tuple[float, int, Event]] = []
        self._rounds = 0
        self._shares: FloatArray = np.zeros(log.n_arms)
        self._taken: list[int] = []
        self._clipped = 0

    def play(self) -> Played:
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
        return Played(
            taken,
            Scores(log.reward[taken], np.ones(len(taken))),
            counted,
            Scores(terms[counted], np.ones(len(counted))),
            self._clipped / max(1, len(log)),
        )

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
        """A round begins: an arm drawn by the policy's shares, or that of row n where that is taken."""

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
