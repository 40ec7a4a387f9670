"""`tide`: posterior sampling over models of time, in two groups.

`structural.py`  what the user declares, hours, weekdays and context, as a sum of effects with slow
                 deviations: structural time-series models. They take part where times are given,
                 in seconds since 1970.
`patterns.py`    what has to be found: periods in rounds, change points, regimes, turns, classes,
                 the latest event, the paper's network.

Within a group models are weighed by how well they predict. Which group decides is judged by what
its choices are worth (`gate.py`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tidepull.parameters import NoParameters
from tidepull.policies.exploration import decided_round
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import generator_state, restore_generator
from tidepull.tide.explain import Explanation, WeightHistory
from tidepull.tide.gate import ValueGate
from tidepull.tide.hours import spans
from tidepull.tide.models.waves import HOUR_SECONDS
from tidepull.tide.parameters import STRUCTURAL, TideParameters
from tidepull.tide.patterns import Patterns
from tidepull.tide.structural import StructuralThompson
from tidepull.types import Context, Diagnostics, Event, FloatArray, ProblemShape, Snapshot

SECONDS = 1e8
"""A time beyond this is taken to be seconds since 1970."""
_LOOP_ROUNDS, _LOOP_SECONDS = 24, 0.05
"""First rounds that tell whether a program decides in a loop, and the seconds that each may take,
with its reward: rounds are its clock, until the true clock has moved by an hour."""
_BELIEVED = 0.5
"""Weight of structural models from which on they name the best arm of hours."""


class Tide:
    """Posterior sampling over structural models and patterns in rounds."""

    reads_time = True

    not_finite = frozenset(
        {f"patterns.{name}" for name in Patterns.not_finite}
        | {f"structural.{name}" for name in StructuralThompson.not_finite}
    )

    def __init__(self, parameters: TideParameters, shape: ProblemShape, streams: Streams) -> None:
        self.parameters = parameters
        self._new_patterns = partial(Patterns, parameters, shape, streams)
        self._patterns: Patterns | None = None
        self._structural: StructuralThompson | None = None
        self._began, self._first = 0.0, 0  # the first time, and the first round of the patterns
        self._new_structural = partial(StructuralThompson, NoParameters(), shape, streams)
        self._gate, self._shares = ValueGate(), WeightHistory(1)
        self._rng = streams.generator("gate")
        self._round = 0

    def choose(self, context: Context) -> int:
        """Draw rewards of all arms from each group, and play the best arm of one of them."""
        structural, patterns = self._groups(context)
        if structural is None:
            self._round += 1
            return patterns.choose(context)
        return self._decide(structural, patterns, context, 1, self._draw)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Choose by each arm's share of `draws` draws of each group."""
        structural, patterns = self._groups(context)
        if structural is None:
            self._round += 1
            return patterns.choose_by(context, draws, pick)
        return self._decide(structural, patterns, context, draws, pick)

    def _groups(self, context: Context) -> tuple[StructuralThompson | None, Patterns]:
        """Structural models, from the first time in seconds since 1970 on, and patterns: with
        seasons in rounds if there are no such times, or rounds come so fast that they are the
        clock."""
        time = context.time
        if time is None or time < SECONDS or not self.parameters.structural:
            if self._patterns is None:
                self._patterns = self._new_patterns()
            return None, self._patterns
        if self._structural is None:
            self._structural, self._began = self._new_structural(), time
        if self._patterns is None:
            self._patterns = self._new_patterns(timed=True)
        elapsed = time - self._began
        rounds = _LOOP_ROUNDS  # a busy service decides before earlier rewards have come
        is_loop = self._round == self._structural.count == rounds
        is_loop &= elapsed < rounds * _LOOP_SECONDS
        if self._patterns.timed and is_loop:
            self._patterns, self._first = self._new_patterns(), self._round
        elif not self._patterns.timed and self._first and elapsed >= HOUR_SECONDS:
            self._patterns, self._first = self._new_patterns(timed=True), self._round
        return self._structural, self._patterns

    def _decide(
        self, structural: StructuralThompson, patterns: Patterns, context: Context, draws: int,
        pick: Pick,
    ) -> int:  # fmt: skip
        first, second = structural.shares(context, draws), patterns.shares(context, draws)
        share = self._gate.share
        arm = pick(share * first + (1 - share) * second)
        expected = 0.5 * float((first + second) @ structural.expected)
        self._gate.decided(self._round, float(first[arm]), float(second[arm]), expected)
        patterns.commit(arm)
        self._round += 1
        return arm

    def _draw(self, chances: FloatArray) -> int:
        sums = np.cumsum(chances)
        arm = int(np.searchsorted(sums, self._rng.random() * sums[-1], side="right"))
        return min(arm, int(np.flatnonzero(chances)[-1]))

    def learn(self, event: Event) -> None:
        """Update both groups and the gate."""
        t = decided_round(event)
        self._round = max(self._round, t + 1)
        structural, patterns = self._groups(event.context)
        if t >= self._first:
            patterns.learn(replace(event, decided=t - self._first) if self._first else event)
        if structural is not None:
            structural.learn(event)
            self._gate.learn(t, event.reward)
            if self._shares.due(structural.count):
                self._shares.record(structural.count, np.array([self._gate.share]))

    def upkeep(self) -> bool:
        """One slice of pending work: new units of structural models, then jobs of the patterns."""
        if self._structural is not None and self._structural.pending:
            self._structural.upkeep()
        elif self._patterns is not None:
            self._patterns.upkeep()
        return self.pending

    @property
    def pending(self) -> bool:
        """Whether `upkeep` has something to do."""
        structural, patterns = self._structural, self._patterns
        return (patterns is not None and patterns.pending) or (
            structural is not None and structural.pending
        )

    @property
    def under_way(self) -> bool:
        """Whether `upkeep` has begun a job that a snapshot would start anew."""
        return self._patterns is not None and self._patterns.under_way

    def explain(self, most: int = 5) -> Explanation:
        """The leading models in words, the weights of families over the rounds, and the hours at
        which an arm is surely best."""
        patterns = self._patterns_or_new.explain(most)
        structural, share = self._structural, self._share
        if structural is None or not share:
            return replace(
                patterns, families=self.families, weights=self._with_structural(patterns)
            )
        week = structural.week() if share >= _BELIEVED else np.full((7, 24), -1)
        beliefs = [
            *(replace(belief, weight=belief.weight * share) for belief in structural.beliefs()),
            *(replace(belief, weight=belief.weight * (1 - share)) for belief in patterns.beliefs),
        ]
        return replace(
            patterns,
            beliefs=tuple(sorted(beliefs, key=lambda belief: -belief.weight)[:most]),
            families=self.families,
            weights=self._with_structural(patterns),
            hours=spans(week),
            week=week,
        )

    def _with_structural(self, patterns: Explanation) -> FloatArray:
        """Weights of families over the rounds, those of structural models in the last column."""
        if not self.parameters.structural:
            return patterns.weights
        at, shares = self._shares.table()
        share = (
            np.interp(patterns.rounds, at, shares[:, 0])
            if len(at)
            else np.zeros(len(patterns.rounds))
        )
        return np.column_stack([(1 - share[:, None]) * patterns.weights, share])

    @property
    def _share(self) -> float:
        """Weight of structural models; 0 where no time was given."""
        structural = self._structural
        return self._gate.share if structural is not None and structural.count else 0.0

    @property
    def _patterns_or_new(self) -> Patterns:
        """The patterns; before the first round untrained ones."""
        return self._patterns or self._new_patterns()

    @property
    def families(self) -> tuple[str, ...]:
        """Families that take part."""
        structural = (STRUCTURAL,) if self.parameters.structural else ()
        return (*self._patterns_or_new.families, *structural)

    def family_weights(self) -> FloatArray:
        """The weight of each family, in the order of `explain().families`."""
        patterns, share = self._patterns_or_new.family_weights(), self._share
        return np.append((1 - share) * patterns, share) if self.parameters.structural else patterns

    def diagnostics(self) -> Diagnostics:
        """The leading beliefs, the weights of families over the rounds, and counts."""
        explanation = self.explain()
        return {
            **self._patterns_or_new.diagnostics(),
            "explanation": explanation.beliefs[0].words,
            "explanation_weight": explanation.beliefs[0].weight,
            "beliefs": explanation.plain(),
        }

    def snapshot(self) -> Snapshot:
        """The state of both groups, of the gate and of the generator."""
        return {
            "patterns": None if self._patterns is None else self._patterns.snapshot(),
            "timed": self._patterns is not None and self._patterns.timed,
            "structural": None if self._structural is None else self._structural.snapshot(),
            "gate": self._gate.snapshot(),
            "shares": self._shares.snapshot(),
            "rng": generator_state(self._rng),
            "began": self._began,
            "first": self._first,
            "round": self._round,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same policy on a problem of the same shape."""
        self._patterns = self._structural = None
        if snapshot["patterns"] is not None:
            self._patterns = self._new_patterns(timed=bool(snapshot["timed"]))
            self._patterns.restore(snapshot["patterns"])
        if snapshot["structural"] is not None:
            self._structural = self._new_structural()
            self._structural.restore(snapshot["structural"])
        self._gate.restore(snapshot["gate"])
        self._shares.restore(snapshot["shares"])
        restore_generator(self._rng, snapshot["rng"])
        self._began, self._first = float(snapshot["began"]), int(snapshot["first"])
        self._round = int(snapshot["round"])
