"""The scale of rewards and the trail of unfinished rounds, whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.pending import CAPACITY, UnfinishedRound, UnfinishedRounds
from tidepull.tide.scale import RewardScale, Seen, Units, two_means_threshold
from tidepull.tide.window import RecentRounds, one_by_one
from tidepull.types import FloatArray

rewards = st.lists(st.tuples(st.integers(0, 2), st.floats(-1e3, 1e3)), min_size=2, max_size=40)


def paid(values: FloatArray) -> Seen:
    return Seen(values, np.zeros(len(values), np.int64), np.ones((len(values), 1)))


@QUICK
@given(rewards, st.sampled_from([0.25, 1.0, 8.0]), st.sampled_from([-64.0, 0.0, 16.0]))
def test_units_follow_rewards_into_other_units(
    given_rewards: list[tuple[int, float]], factor: float, shift: float
) -> None:
    one, two = RewardScale(3), RewardScale(3)
    values = np.array([0.5, *(reward for _, reward in given_rewards)])
    for arm, reward in [(0, 0.5), *given_rewards]:
        one.add(arm, reward)
        two.add(arm, factor * reward + shift)
    first, second = one.fitted(paid(values)), two.fitted(paid(factor * values + shift))
    assert not first.binary
    size = 1e-6 * (1 + float(np.abs(values).max())) * factor + 1e-6 * abs(shift)
    if np.std(values) > 1e-3 * (1 + np.abs(values).max()):
        assert second.centre == pytest.approx(factor * first.centre + shift, abs=size)
        assert second.spread == pytest.approx(factor * first.spread, rel=1e-5, abs=size)
    assert first.spread > 0


@QUICK
@given(rewards)
def test_centre_and_spread_weigh_arms_alike(given_rewards: list[tuple[int, float]]) -> None:
    scale, of_arm = RewardScale(3), [[], [], []]  # type: tuple[RewardScale, list[list[float]]]
    for arm, reward in [(0, 0.25), *given_rewards]:
        scale.add(arm, reward)
        of_arm[arm].append(reward)
    played = [np.array(mine) for mine in of_arm if mine]
    centre = np.mean([mine.mean() for mine in played])
    variance = np.mean([np.mean((mine - centre) ** 2) for mine in played])
    units = scale.fitted(paid(np.array([0.25, 0.5])))
    assert units.centre == pytest.approx(centre, abs=1e-7)
    if variance > 1e-3:
        assert units.spread == pytest.approx(np.sqrt(variance), rel=1e-6)


@QUICK
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_threshold_is_the_best_of_all_cuts(values: list[float]) -> None:
    found = two_means_threshold(np.array(values))
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        assert found == ordered[0]
        return
    squares = [
        (
            float(
                ((ordered[:i] - ordered[:i].mean()) ** 2).sum()
                + ((ordered[i:] - ordered[i:].mean()) ** 2).sum()
            ),
            i,
        )
        for i in range(1, len(values))
    ]
    least = min(squares)[0]
    middles = [
        (ordered[:i].mean() + ordered[i:].mean()) / 2
        for s, i in squares
        if s <= least + 1e-6 * (1 + least)
    ]
    assert min(abs(found - middle) for middle in middles) <= 1e-6 * (1 + abs(found))


@QUICK
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=80), st.integers(0, 80))
def test_trail_is_a_dictionary_of_unfinished_rounds(
    steps: list[tuple[bool, int]], save_at: int
) -> None:
    trail, plain, t = UnfinishedRounds(), {}, 0  # type: tuple[UnfinishedRounds, dict[int, int], int]
    for i, (begins, which) in enumerate(steps):
        if i == save_at:
            restored = UnfinishedRounds()
            restored.restore(trail.snapshot())
            trail = restored
        if begins:
            t += 1 + (CAPACITY // 3) * (which % 7 == 0)
            trail.add(UnfinishedRound(empty_state(t, 2), i, which, np.array([float(t)])))
            plain[t] = i
            oldest = min(plain)
            if oldest <= t - CAPACITY:
                del plain[oldest]
        else:
            wanted = sorted(plain)[which % len(plain)] if plain and which % 3 else which
            taken = trail.take(wanted)
            assert (None if taken is None else taken.n_rewards_seen) == plain.pop(wanted, None)
        assert list(trail.seen()) == sorted(plain)
        assert len(trail) == len(plain)


@QUICK
@given(st.permutations(range(12)), st.integers(4, 20))
def test_rounds_one_by_one_are_those_of_the_window_in_the_order_of_decisions(
    order: list[int], capacity: int
) -> None:
    recent = RecentRounds(capacity, 1, 1, 0)
    for came, t in enumerate(order):
        recent.append(
            t=3 * t, covariates=np.zeros(len(all_covariates())), n_rewards_seen=came, arm=t % 2, raw=np.empty(0),
            x=np.ones(1), reward=float(t), evidence=0.0, network=0.0,
        )  # fmt: skip
    kept = order[-capacity:]
    rounds = one_by_one(recent.window(Units(0.0, 1.0, 0.5, False)))
    first = max(3 * min(kept), 3 * max(kept) + 1 - 4 * len(kept))
    assert rounds.t0 == first
    for i, (arm, y) in enumerate(zip(rounds.arm, rounds.y, strict=True)):
        t, whole = divmod(first + i, 3)
        if whole == 0 and t in kept:
            assert (arm, y) == (t % 2, float(t))
        else:
            assert (arm, y) == (-1, 0.0)
