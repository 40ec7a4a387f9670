"""Trials on record for every policy and kind of problem: exact where the arithmetic is equal, close
elsewhere.

Sums in another order (another processor, another BLAS) change last bits, and a decision that hangs
on one then goes the other way. On such machines regret must stay near the recorded one instead:
within a quarter of what random arms lose. `python -m tests.golden.test_trials` records anew.

Of every trial there are hashes of arms and rewards. Of `tide` there are also the explanation in
words, and hashes of the log weights of hypotheses and of the weights of families over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest

import tidepull
from tests.golden import records
from tidepull import state as snapshots
from tidepull.registry import policies
from tidepull.types import Context, Event, FloatArray

NAME = "trials"
SEED = 12
ROUNDS, FEW = 300, 130
"""Rounds of a trial; few where they take long."""
DRAWS = 64


@dataclass(frozen=True)
class Cell:
    """One trial on record. `way`: how the policy is asked."""

    policy: str
    problem: str
    delay: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    rounds: int = ROUNDS
    way: Literal["choose", "choose_by"] = "choose"

    @property
    def name(self) -> str:
        given = "".join(f" {key}={value}" for key, value in self.parameters.items())
        late = f", {self.delay} late" if self.delay else ""
        way = "" if self.way == "choose" else f", by {self.way}"
        return f"{self.policy} on {self.problem}{given}, {self.rounds} rounds{late}{way}"


WORLDS = {
    "stationary-bernoulli": ROUNDS,
    "flipping-gaussian": ROUNDS,
    "sinusoidal-bernoulli": ROUNDS,
    "circular-markov-chain": ROUNDS,
    "rotating-vector-32": ROUNDS,
    "flipping-digits": FEW,
    "change-points-bernoulli": ROUNDS,
    "returning-regimes": ROUNDS,
}
OBSERVED = Cell("tide", "steady-contexts")
VECTORS = Cell("tide", "stationary-vector", 3)
TIDE = (
    *(
        Cell("tide", problem, delay, rounds=rounds)
        for problem, rounds in WORLDS.items()
        for delay in (0, 5)
    ),
    OBSERVED,
    VECTORS,
    Cell("tide", "flipping-vector", parameters={"dim": 100}),  # wide: more than 64 numbers
    Cell("tide", "class-blocks", parameters={"n_arms": 8, "together": 3}),
    Cell("tide", "wall-clock-bernoulli", parameters={"per_day": 60.0}),
    Cell("tide", "wild-rewards", parameters={"share": 0.05}),
    Cell("tide", "sinusoidal-bernoulli", 3, way="choose_by"),
    Cell("tide", "steady-contexts", way="choose_by"),
)
RESTORED = (Cell("tide", "flipping-gaussian", 5), OBSERVED, VECTORS)
"""Trials that are stopped in the middle, and continued by another object: nothing may differ."""

ON_ARMS = ("stationary-bernoulli", "flipping-gaussian")
ON_VECTORS = ("rotating-vector-32", "flipping-digits")
PLAYED_ON = {
    "random": ON_ARMS,
    "fixed": ON_ARMS,
    "oracle": ON_ARMS + ON_VECTORS,
    "specialist": (*ON_ARMS, "rotating-vector-32"),
    "ucb": ON_ARMS,
    "d-ucb": (*ON_ARMS, "sinusoidal-bernoulli"),
    "sw-ucb": (*ON_ARMS, "sinusoidal-bernoulli"),
    "bernoulli-ts": ("stationary-bernoulli", "sinusoidal-bernoulli"),
    "lin-ts": ("rotating-vector-32", "steady-contexts", "flipping-gaussian"),
    "lin-ucb": ("rotating-vector-32", "stationary-vector", "flipping-gaussian"),
    "d-lin-ucb": ("rotating-vector-32", "stationary-vector", "flipping-gaussian"),
    "sw-lin-ucb": ("rotating-vector-32", "stationary-vector", "flipping-gaussian"),
    "structural-ts": (
        "wall-clock-bernoulli",
        "rotating-vector-32",
        "steady-contexts",
        "flipping-gaussian",
    ),
    "hour-table": ("wall-clock-bernoulli",),
    "hour-weekend-table": ("wall-clock-bernoulli",),
    "hour-weekday-table": ("wall-clock-bernoulli",),
    "last-best": ("wall-clock-bernoulli",),
    "hand-ts": ("wall-clock-bernoulli", "steady-contexts"),
    "hurdle-ts": ("wall-clock-bernoulli",),
}
OTHERS = (
    *(
        Cell(policy, problem, delay)
        for policy, played_on in PLAYED_ON.items()
        for problem in played_on
        for delay in (0, 5)
    ),
    Cell("lin-ts", "flipping-digits", 3, rounds=FEW),
    *(
        Cell(policy, problem, delay, rounds=FEW)
        for policy in ("rnlps", "nlps")
        for problem, delay in (
            ("flipping-gaussian", 0),
            ("flipping-gaussian", 5),
            ("sinusoidal-bernoulli", 4),
            ("circular-markov-chain", 0),
            ("rotating-vector-32", 3),
            ("flipping-digits", 0),
        )
    ),
)
CELLS = (*TIDE, *OTHERS)


class Player:
    """`tide` as the loop meets it: asked in one of two ways, and if wanted replaced by its own copy
    in a round."""

    def __init__(self, build: Callable[[], Any], way: str, replaced_in: int | None) -> None:
        self.policy = build()
        self.shares: list[FloatArray] = []
        self._build, self._way, self._replaced_in = build, way, replaced_in
        self._rng = np.random.default_rng(SEED)

    def choose(self, context: Context) -> int:
        if self.policy.rounds == self._replaced_in:
            kept, self.policy = snapshots.dump(self.policy.snapshot()), self._build()
            self.policy.restore(snapshots.load(kept))
        if self._way == "choose_by":
            return int(self.policy.choose_by(context, DRAWS, self._pick))
        return int(self.policy.choose(context))

    def _pick(self, shares: FloatArray) -> int:
        self.shares.append(shares.copy())
        return int(self._rng.choice(len(shares), p=shares))

    def learn(self, event: Event) -> None:
        self.policy.learn(event)

    def upkeep(self) -> bool:
        return bool(self.policy.upkeep())

    def outcome(self) -> dict[str, Any]:
        told = self.policy.explain()
        return {
            **({"shares": records.digest(*self.shares)} if self.shares else {}),
            "log_weights": records.digest(records.log_weights(self.policy)),
            "families": records.digest(told.rounds, told.weights),
            "explanation": str(told).split("\n"),
        }


def outcome(cell: Cell, *, replaced_in: int | None = None) -> dict[str, Any]:
    """What is recorded of a trial."""
    problem = (cell.problem, cell.parameters)
    player = None
    if cell.policy == "tide":
        shape = tidepull.shape_of(tidepull.build_problem(problem, seed=SEED))
        player = Player(
            lambda: tidepull.build_policy(cell.policy, shape, seed=SEED), cell.way, replaced_in
        )
    trial = tidepull.run_trial(
        problem, player or cell.policy, horizon=cell.rounds, seed=SEED, delay=cell.delay
    )
    return {
        "arms": records.digest(trial.arms.astype(np.int64)),
        "rewards": records.digest(trial.rewards),
        "regret": round(float(trial.regret[-1]), 6),
        **(player.outcome() if player is not None else {}),
    }


def require_recorded(cell: Cell, found: dict[str, Any]) -> None:
    """An outcome is as recorded: to the bit, or where the arithmetic differs nearly."""
    expected = dict(records.read(NAME)["trials"][cell.name])
    lost = expected.pop("random")
    if records.is_exact(NAME):
        differ = list(records.differences(found, expected, 0))
        assert not differ, "\n".join([cell.name, *differ, records.advice(NAME)])
    assert abs(found["regret"] - expected["regret"]) <= 0.25 * lost, records.advice(NAME)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_trial_comes_out_as_recorded(cell: Cell) -> None:
    require_recorded(cell, outcome(cell))


@pytest.mark.parametrize("cell", RESTORED, ids=lambda cell: cell.name)
def test_trial_comes_out_as_recorded_when_restored_in_the_middle(cell: Cell) -> None:
    require_recorded(cell, outcome(cell, replaced_in=cell.rounds // 2))


def test_every_policy_is_on_record_with_and_without_delay() -> None:
    played = {(cell.policy, cell.delay > 0) for cell in CELLS}
    assert played == {(entry.id, late) for entry in policies for late in (False, True)}
    assert set(records.read(NAME)["trials"]) == {cell.name for cell in CELLS}, records.advice(NAME)


def record() -> None:
    trials = {}
    for cell in CELLS:
        random = Cell("random", cell.problem, cell.delay, cell.parameters, cell.rounds)
        trials[cell.name] = {**outcome(cell), "random": outcome(random)["regret"]}
    records.write(NAME, {"trials": trials})


if __name__ == "__main__":
    record()
