"""The filter of turns against sums over every path, and on chains whose moves are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tidepull.tide.jobs import finish
from tidepull.tide.models import turns
from tidepull.tide.models.covariates import Past, all_covariates, empty_state
from tidepull.tide.models.turns import BELIEF, SCALE, TurnFilter, TurnsTracker
from tidepull.types import FloatArray


def test_beliefs_equal_the_sum_over_all_paths_when_nothing_is_learnt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With counts so large that a round does not move them, the filter is Bayes' rule over hidden
    paths."""
    monkeypatch.setattr(turns, "_STAYS", 8e9)
    monkeypatch.setattr(turns, "_LEAVES", 2e9)
    monkeypatch.setattr(turns, "_RIGHT", (0.8,))
    n_arms, played = 3, [(0, True), (1, False), (2, False), (0, False), (1, True)]
    T = np.where(np.eye(n_arms, dtype=bool), 0.8, 0.1)
    filtered = TurnFilter(n_arms)
    for n, (arm, success) in enumerate(played, start=1):
        filtered.add(arm, success)
        totals = np.zeros(n_arms)
        for path in itertools.product(range(n_arms), repeat=n + 1):
            chance = 1 / n_arms
            for i in range(n):
                right = path[i] == played[i][0]
                pays = 0.8 if right else 0.2
                chance *= pays if played[i][1] else 1 - pays
                chance *= T[path[i], path[i + 1]]
            totals[path[-1]] += chance
        np.testing.assert_allclose(filtered.beliefs, totals / totals.sum(), rtol=1e-6)


class Plain(TurnFilter):
    """The filter in numpy, as its equations stand."""

    def add(self, arm: int, success: bool, moves: int = 1) -> None:
        for _ in range(moves - 1):
            self._now = np.einsum("ci,cij->cj", self._now, self._chances())
        told = self._right if success else 1 - self._right
        likelihood = np.repeat(1 - told[:, None], self._now.shape[1], axis=1)
        likelihood[:, arm] = told
        joint = self._now[:, :, None] * self._chances() * likelihood[:, None, :]
        total = joint.sum(axis=(1, 2))
        self._evidence = turns._MEMORY * self._evidence + np.log(total)
        self._now = (joint / total[:, None, None]).sum(axis=1)
        self._moves += (1 - turns._MEMORY) * (self._moves0 - self._moves)
        for c, chain in enumerate(self._now):
            turn = int(np.argmax(chain))
            if chain[turn] > turns._CLEAR:
                if self._clear[c] >= 0:
                    self._moves[c, self._clear[c], turn] += 1
                self._clear[c] = turn
        self.beliefs = self._mixed(np.einsum("ci,cij->cj", self._now, self._chances()))


@pytest.mark.parametrize("n_arms", [1, 2, 7])
def test_compiled_filter_equals_the_plain_one(n_arms: int) -> None:
    rng, plain, compiled = np.random.default_rng(0), Plain(n_arms), TurnFilter(n_arms)
    for t in range(200):
        arm = int(rng.integers(n_arms))
        success, moves = bool(arm == t // 5 % n_arms), 1 + (t % 11 == 0)
        plain.add(arm, success, moves)
        compiled.add(arm, success, moves)
        np.testing.assert_allclose(compiled.beliefs, plain.beliefs, rtol=1e-9)
    for name, kept in plain.snapshot().items():
        np.testing.assert_allclose(compiled.snapshot()[name], kept, rtol=1e-9)


def test_filter_learns_whose_turn_comes_next() -> None:
    """Three arms take turns of four rounds in the order 0, 2, 1; asking for the likeliest arm soon
    pays."""
    order, filtered = (0, 2, 1), TurnFilter(3)
    wins = 0
    for t in range(3000):
        arm = int(np.argmax(filtered.beliefs))
        success = arm == order[t // 4 % 3]
        filtered.add(arm, success)
        wins += success and t >= 1000
    assert wins / 2000 == pytest.approx(
        0.75, abs=0.01
    )  # each turn's first round cannot be foreseen by a chain


def test_beliefs_are_probabilities_however_surprising_the_rounds() -> None:
    """Half the time everything fails, half the time everything succeeds."""
    filtered = TurnFilter(4)
    rng = np.random.default_rng(0)
    for t in range(20_000):
        filtered.add(int(rng.integers(4)), t % 5000 < 2500)
        assert filtered.beliefs.min() > 0
        assert filtered.beliefs.sum() == pytest.approx(1.0)


def past(
    t: list[int], arms: list[int], successes: list[bool], known: list[int], whole: bool = True
) -> tuple[Past, FloatArray]:
    made = Past(np.array(t), np.array(arms), np.array(successes), np.array(known), whole)
    return made, np.zeros((len(t), len(all_covariates())))


def test_memory_notes_the_beliefs_held_when_each_round_was_decided() -> None:
    rng = np.random.default_rng(1)
    arms, successes = rng.integers(3, size=50).tolist(), (rng.random(50) < 0.5).tolist()
    live, held = TurnFilter(3), []
    for arm, success in zip(arms, successes, strict=True):
        held.append(SCALE * live.beliefs[arm])
        live.add(arm, success)
    memory = TurnsTracker(3)
    memory.observe(0, 2, 1.0, True)
    finished_rounds, covariates = past(list(range(50)), arms, successes, list(range(50)))
    finish(memory.recompute(finished_rounds, covariates))
    np.testing.assert_array_equal(covariates[:, BELIEF.index], held)
    now = empty_state(50, 3)
    memory.write(now)
    np.testing.assert_array_equal(now.per_arm[BELIEF.index], SCALE * live.beliefs)


def test_beliefs_look_ahead_over_rounds_whose_rewards_have_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With fixed moves, n rounds without news are n multiplications by the matrix of moves."""
    monkeypatch.setattr(turns, "_STAYS", 8e9)
    monkeypatch.setattr(turns, "_LEAVES", 2e9)
    monkeypatch.setattr(turns, "_RIGHT", (0.8,))
    T = np.where(np.eye(3, dtype=bool), 0.8, 0.1)
    memory = TurnsTracker(3)
    memory.observe(0, 1, 1.0, True)
    memory.observe(4, 2, 1.0, True)  # rounds 1 to 3 brought no news
    memory.observe(2, 0, 1.0, True)  # too late to tell anything of now
    belief = np.array([0.2, 0.8, 0.2])
    belief = belief / belief.sum() @ np.linalg.matrix_power(T, 4) * np.array([0.2, 0.2, 0.8])
    expected = belief / belief.sum() @ np.linalg.matrix_power(T, 5)
    now = empty_state(9, 3)
    memory.write(now)
    np.testing.assert_allclose(now.per_arm[BELIEF.index], SCALE * expected, rtol=1e-6)


def test_beliefs_far_ahead_are_the_same_however_one_asks_for_them() -> None:
    """One who asks round after round goes on from where it looked last; after news it begins
    anew."""
    asked = TurnFilter(4)
    for arm, success in ((0, True), (1, False), (2, True), (2, True)):
        asked.add(arm, success)
        at_once = {moves: TurnFilter(4) for moves in (2, 3, 7, 70)}
        for moves, fresh in at_once.items():
            fresh.restore(asked.snapshot())
            first = fresh.ahead(moves)
            np.testing.assert_array_equal(asked.ahead(moves), first)
        np.testing.assert_array_equal(asked.ahead(3), at_once[3].ahead(3))


def test_memory_lives_again_through_rounds_whose_rewards_came_late() -> None:
    """Two rounds late: what a round knew when it was decided is what had come by then."""
    rng = np.random.default_rng(2)
    n, late = 30, 2
    arms, successes = rng.integers(3, size=n).tolist(), (rng.random(n) < 0.5).tolist()
    live, held = TurnsTracker(3), []
    for t in range(n):
        if t > late:
            live.observe(t - late - 1, arms[t - late - 1], 0.0, successes[t - late - 1])
        now = empty_state(t, 3)
        live.write(now)
        held.append(now.per_arm[BELIEF.index, arms[t]])
    known = [max(0, t - late) for t in range(n)]
    finished_rounds, covariates = past(list(range(n)), arms, successes, known)
    finish(TurnsTracker(3).recompute(finished_rounds, covariates))
    np.testing.assert_allclose(covariates[:, BELIEF.index], held, rtol=1e-12)


def test_filter_goes_on_from_a_snapshot() -> None:
    first, second = TurnFilter(3), TurnFilter(3)
    for arm in (0, 1, 2, 1):
        first.add(arm, arm == 1)
    second.restore(first.snapshot())
    first.add(2, True)
    second.add(2, True)
    np.testing.assert_array_equal(first.beliefs, second.beliefs)
