"""The parts of `tide` one by one: weights, scale, trail, window, context map, explanations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull.errors import SnapshotError
from tidepull.tide.context import ContextMap
from tidepull.tide.explain import Belief, Explanation, WeightHistory
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.models.family import Window
from tidepull.tide.models.lagged import LAST_REWARD
from tidepull.tide.pending import CAPACITY, UnfinishedRound, UnfinishedRounds
from tidepull.tide.scale import RewardScale, Seen, Units, two_means_threshold
from tidepull.tide.window import RecentRounds, one_by_one
from tidepull.types import Context, FloatArray, ProblemShape


def mixture(*, share: float = 0.01) -> Mixture:
    """Slots 0 and 1 are one family, 2 and 3 another; slot 3 is empty."""
    prior = np.array([0.5, 0.3, 0.2, 0.0])
    return Mixture(prior, np.array([0, 0, 1, 1]), ("one", "two"), share)


class Given:
    """A generator that gives what it is told to."""

    def __init__(self, *numbers: float, family: int = 0) -> None:
        self._numbers, self._family = list(numbers), family

    def random(self, size: int | None = None) -> Any:
        return (
            self._numbers.pop(0) if size is None else np.array([self.random() for _ in range(size)])
        )

    def binomial(self, n: int, chance: float) -> int:
        assert n == 1
        return int(self._numbers.pop(0) < chance)

    def integers(self, n: int) -> int:
        assert n == 2
        return self._family


def pick(
    of: Mixture, *numbers: float, explore: float = 0.05, family: int = 0, resting: int | None = None
) -> int:
    rng: Any = Given(*numbers, family=family)
    resting_now = np.array([] if resting is None else [resting], np.int64)
    ((found,), _) = of.picks(rng, explore, resting_now, 1)
    return found


def test_mixture_picks_by_weight() -> None:
    assert [pick(mixture(), 0.5, u) for u in (0.0, 0.49, 0.51, 0.79, 0.81, 0.999)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


def test_mixture_explores_by_weight_within_a_family_drawn_uniformly() -> None:
    assert [pick(mixture(), 0.04, u, family=0) for u in (0.62, 0.63, 0.99)] == [0, 1, 1]
    assert pick(mixture(), 0.04, 0.0, family=1) == 2
    assert pick(mixture(), 0.05, 0.0, family=1) == 0, "at the border nothing is explored"


def test_mixture_picks_by_weight_where_the_family_drawn_is_empty() -> None:
    of = mixture()
    of.log_weights[2] = -math.inf
    assert pick(of, 0.0, 0.99, family=1) == 1


def test_mixture_never_picks_who_rests() -> None:
    assert [pick(mixture(), 0.5, u, resting=0) for u in (0.0, 0.59, 0.61, 0.99)] == [1, 1, 2, 2]
    assert pick(mixture(), 0.0, 0.0, family=1, resting=2) == 0, "the family's only member rests"


def test_mixture_weighs_by_likelihood_and_gives_a_little_back() -> None:
    of = mixture(share=0.1)
    gain = of.reweigh(np.array([-1.0, -2.0, -3.0, -np.inf]))
    joint = of.prior * np.exp([-1.0, -2.0, -3.0, 0.0])
    assert gain == pytest.approx(math.log(joint.sum()))
    np.testing.assert_allclose(np.exp(of.log_weights), 0.9 * joint / joint.sum() + 0.1 * of.prior)
    np.testing.assert_allclose(of.family_weights().sum(), 1.0)
    assert of.family_weights()[1] == pytest.approx(math.exp(of.log_weights[2]))
    assert of.evidence == of.reward_gain == pytest.approx(gain)


def test_mixture_keeps_the_weight_of_who_says_nothing() -> None:
    of = mixture(share=1e-12)
    gain = of.reweigh(np.array([-1.0, -2.0, np.nan, -np.inf]))
    joint = np.array([0.5 * math.exp(-1), 0.3 * math.exp(-2)])
    assert gain == pytest.approx(math.log(joint.sum() / 0.8))
    np.testing.assert_allclose(np.exp(of.log_weights[:3]), [*(0.8 * joint / joint.sum()), 0.2])


def test_mixture_begins_again_from_the_prior_on_a_twin_of_its_own() -> None:
    of = mixture()
    of.reweigh(np.array([-1.0, -2.0, -3.0, -np.inf]))
    twin = of.copy()
    twin.reset()
    np.testing.assert_allclose(np.exp(twin.log_weights), of.prior)
    assert twin.evidence == 0.0
    assert of.evidence < 0
    twin.prior[0] = 0.6
    assert of.prior[0] == 0.5
    twin.evidence = -7.0
    of.replace_with(twin)
    assert of.evidence == -7.0
    np.testing.assert_allclose(np.exp(of.log_weights), [0.5, 0.3, 0.2, 0.0])


def test_mixture_goes_on_from_a_snapshot() -> None:
    one, two = mixture(), mixture()
    one.reweigh(np.array([-1.0, -2.0, -3.0, -np.inf]))
    two.restore(one.snapshot())
    for each in (one, two):
        each.reweigh(np.array([-1.5, -0.5, -2.0, -np.inf]))
    np.testing.assert_array_equal(one.log_weights, two.log_weights)
    np.testing.assert_array_equal(one.prior, two.prior)
    assert (one.evidence, one.reward_gain) == (two.evidence, two.reward_gain)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("prior", [0.5, 0.5]),
        ("log_weights", np.log([0.5, 0.5, 0.5, 0.5])),
        ("log_weights", np.log([0.5, 0.25, 0.1, 0.1])),
        ("prior", [0.5, 0.3, 0.2, 0.1]),
        ("prior", [0.6, 0.3, 0.2, -0.1]),
        ("prior", [0.5, 0.3, 0.1, 0.0]),
    ],
)
def test_mixture_refuses_weights_that_do_not_add_up(part: str, value: Any) -> None:
    with pytest.raises((ValueError, SnapshotError), match="weights|prior"):
        mixture().restore({**mixture().snapshot(), part: value})


def paid(*rewards: float) -> Seen:
    return Seen(np.array(rewards), np.zeros(len(rewards), np.int64), np.ones((len(rewards), 1)))


def test_scale_is_fixed_while_rewards_are_binary() -> None:
    scale = RewardScale(2)
    for reward in (0.0, 1.0, 1.0):
        scale.add(1, reward)
    assert scale.fits(1.0)
    assert scale.fits(0.0)
    assert not scale.fits(0.5)
    assert [scale.standardise(r) for r in (0.0, 0.5, 1.0)] == [-1.0, 0.0, 1.0]
    assert not scale.is_stale(paid())
    assert scale.fitted(paid(0.0, 1.0)) == Units(0.5, 0.5, 0.5, True)
    assert not scale.fitted(paid(0.0, 0.5)).binary


def test_scale_is_stale_when_centre_or_spread_is_a_tenth_of_a_spread_out() -> None:
    scale = RewardScale(1)
    for reward in (8.0, 12.0):
        scale.add(0, reward)
    for centre, spread, stale in (
        (10.0, 2.0, False),
        (10.19, 2.0, False),
        (9.81, 2.0, False),
        (10.21, 2.0, True),
        (9.79, 2.0, True),
        (10.0, 1.83, False),
        (10.0, 2.21, False),
        (10.0, 1.81, True),
        (10.0, 2.23, True),
    ):
        scale.units = Units(centre, spread, 10.0, False)
        assert scale.is_stale(paid()) is stale, (centre, spread)
        assert scale.fits(0.5)
        assert scale.standardise(centre + 3 * spread) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("rewards", "centre", "spread"),
    [
        ([5.0, 5.0], 5.0, 5.0),
        ([0.0, 0.0], 0.0, 1.0),
        ([-2.0], -2.0, 2.0),
        ([1e9, 1e9 + 1], 1e9 + 0.5, 1e9 + 0.7071),
    ],
)
def test_scale_has_a_spread_even_where_rewards_hardly_differ(
    rewards: list[float], centre: float, spread: float
) -> None:
    scale = RewardScale(3)
    scale.units = Units(binary=False)
    for reward in rewards:
        scale.add(2, reward)
    units = scale.fitted(paid(*rewards))
    assert units.centre == pytest.approx(centre, rel=1e-12)
    assert units.spread == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"units": [0.5, 0.0, 0.5, True, False]},
        {"units": [0.5, math.inf, 0.5, True, False]},
        {"totals": np.zeros((3, 3))},
    ],
)
def test_scale_refuses_a_snapshot_that_does_not_fit(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        RewardScale(2).restore({**RewardScale(2).snapshot(), **change})


def test_scale_goes_on_from_a_snapshot() -> None:
    one, two = RewardScale(2), RewardScale(2)
    for reward in (1.0, 3.0, 7.0):
        one.add(int(reward > 2), reward)
    one.units = Units(2.0, 1.5, 2.5, False)
    two.restore(one.snapshot())
    assert two.units == one.units
    assert two.fitted(paid(1.0, 9.0)) == one.fitted(paid(1.0, 9.0))


@pytest.mark.parametrize(
    ("rewards", "threshold"),
    [
        ([4.0], 4.0),
        ([4.0, 4.0, 4.0], 4.0),
        ([0.0, 1.0], 0.5),
        ([9.0, 0.0, 1.0, 10.0], 5.0),
        ([0, 0, 0, 6.0], 3.0),
    ],
)
def test_threshold_is_half_way_between_the_means_of_the_best_two_groups(
    rewards: list[float], threshold: float
) -> None:
    assert two_means_threshold(np.array(rewards)) == pytest.approx(threshold)


def known(t: int, arm: int = 1) -> UnfinishedRound:
    moment = empty_state(t, 3)
    moment.covariates[:] = t
    return UnfinishedRound(moment, 2 * t, arm, np.array([float(t), 0.5]))


def test_trail_keeps_what_was_known_until_the_reward_comes() -> None:
    trail = UnfinishedRounds()
    for t in (0, 1, 2):
        trail.add(known(t))
    assert len(trail) == 3
    taken = trail.take(1)
    assert taken is not None
    assert (taken.state.t, taken.n_rewards_seen, taken.arm) == (1, 2, 1)
    assert trail.take(1) is None
    assert list(trail.seen()) == [0, 2]
    np.testing.assert_array_equal(trail.seen()[2], [2.0, 0.5])


def test_trail_forgets_the_oldest_round_when_it_is_full() -> None:
    trail = UnfinishedRounds()
    for t in range(CAPACITY):
        trail.add(known(t))
    assert len(trail) == CAPACITY
    trail.add(known(CAPACITY))
    assert len(trail) == CAPACITY
    assert trail.take(0) is None
    assert trail.take(1) is not None


def test_trail_goes_on_from_a_snapshot() -> None:
    one, two = UnfinishedRounds(), UnfinishedRounds()
    two.restore(one.snapshot())
    assert len(two) == 0
    for t in (4, 9):
        one.add(known(t, arm=t % 3))
    two.restore(one.snapshot())
    for t in (4, 9):
        a, b = one.take(t), two.take(t)
        assert a is not None
        assert b is not None
        assert (a.state.t, a.n_rewards_seen, a.arm) == (b.state.t, b.n_rewards_seen, b.arm)
        np.testing.assert_array_equal(a.state.covariates, b.state.covariates)
        np.testing.assert_array_equal(a.state.per_arm, b.state.per_arm)
        np.testing.assert_array_equal(a.seen, b.seen)


def test_trail_refuses_a_snapshot_whose_parts_differ_in_length() -> None:
    trail = UnfinishedRounds()
    for t in (4, 9):
        trail.add(known(t))
    with pytest.raises(ValueError, match="shorter"):
        UnfinishedRounds().restore({**trail.snapshot(), "n_rewards_seen": [8]})


def recent(n: int, capacity: int = 4) -> RecentRounds:
    """Rounds whose every number follows from their place."""
    made = RecentRounds(capacity, 2, 2, 1)
    for i in range(n):
        covariates = np.full(len(all_covariates()), float(i))
        made.append(
            t=10 + i, covariates=covariates, n_rewards_seen=i - 1, arm=i % 3, raw=np.array([i + 0.5]),
            x=np.array([1.0, i]), reward=float(i * i), evidence=-float(i), network=-2.0 * i,
        )  # fmt: skip
    return made


def test_window_keeps_the_latest_rounds_in_order() -> None:
    made = recent(6)
    assert (len(made), made.start, made.count) == (4, 2, 6)
    np.testing.assert_array_equal(made.rewards, [4, 9, 16, 25])
    np.testing.assert_array_equal(made.network(), [-4, -6, -8, -10])
    np.testing.assert_array_equal(made.network(5), [-10])
    assert made.events(4) == [(14, 1, 16.0), (15, 2, 25.0)]
    assert made.events(0)[0] == (12, 2, 4.0)
    assert [made.evidence_before(i) for i in (2, 5)] == [-2.0, -5.0]
    np.testing.assert_array_equal(made.covariates(4)[:, 0], [4, 5])
    past = made.past(9.0)
    np.testing.assert_array_equal(past.t, [12, 13, 14, 15])
    np.testing.assert_array_equal(past.arm, [2, 0, 1, 2])
    np.testing.assert_array_equal(past.success, [False, False, True, True])
    np.testing.assert_array_equal(past.n_rewards_seen, [-1, 0, 1, 2])
    assert not past.whole
    assert recent(4).past(0.0).whole


def test_window_is_read_in_the_units_that_are_asked_for() -> None:
    window = recent(6).window(Units(1.0, 4.0, 0.5, False), 3)
    np.testing.assert_array_equal(window.t, [13, 14, 15])
    np.testing.assert_array_equal(window.y, [2.0, 3.75, 6.0])
    np.testing.assert_array_equal(window.x[:, 1], [3, 4, 5])
    np.testing.assert_array_equal(window.covariates[:, LAST_REWARD.index], [0.5, 0.75, 1.0])


def test_what_contexts_looked_like_is_kept_while_all_of_it_is() -> None:
    made = recent(4)
    assert made.raw is not None
    np.testing.assert_array_equal(made.raw[:, 0], [0.5, 1.5, 2.5, 3.5])
    assert recent(5).raw is None
    longer = RecentRounds(1000, 10, 1, 1)
    for i in range(267):
        if i == 266:
            assert longer.raw is not None
            assert len(longer.raw) == 266
        longer.append(
            t=i, covariates=np.zeros(len(all_covariates())), n_rewards_seen=0, arm=0, raw=np.ones(1), x=np.ones(1),
            reward=0.0, evidence=0.0, network=0.0,
        )  # fmt: skip
    assert longer.raw is None


def test_window_adopts_new_numbers_for_all_its_rounds() -> None:
    made = recent(6)
    covariates = np.arange(5.0)[:, None] + np.zeros(len(all_covariates()))
    made.adopt(covariates, np.full((4, 2), 3.0), np.arange(4.0), drop_network=False)
    np.testing.assert_array_equal(made.covariates()[:, 0], [1, 2, 3, 4])
    assert [made.evidence_before(i) for i in (2, 3, 4, 5)] == [0, 1, 2, 3]
    np.testing.assert_array_equal(made.window(Units()).x, np.full((4, 2), 3.0))
    assert np.isfinite(made.network()).all()
    made.adopt(covariates, np.full((4, 2), 3.0), np.arange(4.0), drop_network=True)
    assert np.isnan(made.network()).all()


def test_window_goes_on_from_a_snapshot_of_its_size_only() -> None:
    one, two = recent(6), recent(1)
    two.restore(one.snapshot())
    assert two.events(0) == one.events(0)
    with pytest.raises(SnapshotError, match="has the shape"):
        recent(0, capacity=5).restore(one.snapshot())


def window_of(t: list[int]) -> Window:
    n = len(t)
    return Window(
        np.array(t), np.zeros((n, 1)), np.arange(n) % 3, np.zeros((n, 1)), np.arange(n) + 1.0
    )


def test_rounds_without_gaps_are_taken_as_they_are() -> None:
    rounds = one_by_one(window_of([5, 6, 7]))
    assert rounds.t0 == 5
    np.testing.assert_array_equal(rounds.y, [1, 2, 3])
    np.testing.assert_array_equal(rounds.arm, [0, 1, 2])


@pytest.mark.parametrize(
    ("t", "t0", "arms", "y"),
    [
        ([5, 8, 6], 5, [0, 2, -1, 1], [1, 3, 0, 2]),
        ([6, 5, 7], 5, [1, 0, 2], [2, 1, 3]),
        ([0, 20, 21], 10, [-1] * 10 + [1, 2], [0] * 10 + [2, 3]),
        ([10, 20, 21], 10, [0] + [-1] * 9 + [1, 2], [1] + [0] * 9 + [2, 3]),
    ],
)
def test_rounds_whose_reward_has_not_come_have_no_arm(
    t: list[int], t0: int, arms: list[int], y: list[float]
) -> None:
    rounds = one_by_one(window_of(t))
    assert rounds.t0 == t0
    np.testing.assert_array_equal(rounds.arm, arms)
    np.testing.assert_array_equal(rounds.y, y)


def fitted(raw: FloatArray, *, arms: bool) -> ContextMap:
    d = raw.shape[1]
    shape = ProblemShape(3, arm_dim=d) if arms else ProblemShape(3, observation_dim=d)
    return ContextMap(shape).fitted(raw)


def test_context_map_divides_by_the_root_of_the_spread() -> None:
    raw = np.array([[1.0, 10.0], [3.0, 10.0], [1.0, 18.0], [3.0, 18.0]])
    z = fitted(raw, arms=False)(raw)
    np.testing.assert_array_equal(z[:, 0], 1.0)
    # Spreads are 1 and 4, so coordinates are +-1 and +-4 / 2, and then of mean square length 1.
    np.testing.assert_allclose(
        z[:, 1:], np.array([[-1, -2], [1, -2], [-1, 2], [1, 2]]) / math.sqrt(5)
    )


def test_context_map_leaves_the_mean_of_vectors_that_tell_arms_apart() -> None:
    raw = np.array([[2.0, 0.0], [2.0, 0.0]])
    z = fitted(raw, arms=True)(raw)
    np.testing.assert_allclose(z, [[1.0, 1.0, 0.0]] * 2)
    raw = np.array([[2.0, 1e-6], [2.0, -1e-6]])  # a coordinate that hardly moved is not blown up
    np.testing.assert_allclose(
        fitted(raw, arms=True)(raw)[0, 2], 1e-6 / math.sqrt(0.02) / math.sqrt(2.0), rtol=1e-6
    )


def test_context_map_ignores_contexts_that_never_moved() -> None:
    raw = np.full((5, 3), 7.0)
    np.testing.assert_array_equal(fitted(raw, arms=False)(raw), [[1.0, 0, 0, 0]] * 5)
    unfitted = ContextMap(ProblemShape(3, observation_dim=3))
    np.testing.assert_array_equal(unfitted(raw), [[1.0, 0, 0, 0]] * 5)


def test_context_map_sees_observations_and_vectors_of_arms() -> None:
    both = ContextMap(ProblemShape(2, observation_dim=1, arm_dim=2))
    context = Context(observation=np.array([9.0]), arm_features=np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(both.raw(context), [[1, 2, 9], [3, 4, 9]])
    assert (both.dim, both.raw_dim, both.shared) == (4, 3, True)
    plain = ContextMap(ProblemShape(2))
    assert plain.raw(Context()).shape == (1, 0)
    assert (plain.dim, plain.raw_dim, plain.shared) == (1, 0, False)
    assert ContextMap(ProblemShape(2, observation_dim=100)).dim == 33
    assert ContextMap(ProblemShape(2, arm_dim=100)).narrow == 65


def test_context_map_of_long_observations_keeps_leading_directions_even_of_few_rows() -> None:
    rng = np.random.default_rng(0)
    raw = np.outer(rng.normal(size=6), rng.normal(size=80))
    centred = raw - raw.mean(axis=0)
    z = fitted(raw, arms=False)(raw)[:, 1:]
    assert np.mean(np.sum(z**2, axis=1)) == pytest.approx(1.0)
    np.testing.assert_allclose(z[:, 1:], 0.0, atol=1e-6)
    side = np.sign(centred[0].sum()) * np.sign(z[0, 0])
    np.testing.assert_allclose(
        z[:, 0] / np.abs(z[0, 0]), side * centred.sum(axis=1) / np.abs(centred[0].sum())
    )
    assert side == 1.0, "directions point to where their coordinates add up to more than 0"


@pytest.mark.parametrize("part", ["mean", "map"])
def test_context_map_refuses_another_shape(part: str) -> None:
    one = ContextMap(ProblemShape(2, observation_dim=3))
    with pytest.raises(SnapshotError, match="has the shape"):
        one.restore({**one.snapshot(), part: np.zeros((1, 1))})


def test_history_of_weights_goes_on_from_a_snapshot() -> None:
    one, two = WeightHistory(2, capacity=4), WeightHistory(2, capacity=4)
    for t in range(11):
        one.record(t, np.array([t, 2.0 * t]))
    rounds, rows = one.table()
    np.testing.assert_array_equal(rounds, [0, 4, 8])
    np.testing.assert_array_equal(rows[:, 1], [0, 8, 16])
    assert [t for t in range(9, 17) if one.due(t)] == [12, 16]
    two.restore(one.snapshot())
    for history in (one, two):
        history.record(12, np.array([1.0, 1.0]))
        history.record(16, np.array([2.0, 2.0]))
    np.testing.assert_array_equal(one.table()[0], two.table()[0])
    np.testing.assert_array_equal(one.table()[0], [0, 8, 16])


def test_explanation_is_told_in_words_and_as_plain_values() -> None:
    beliefs = (
        Belief("nothing changes", "stationary", 0.876),
        Belief("drifts", "discounted", 0.12344),
    )
    told = Explanation(
        beliefs, np.arange(0, 300, 2), ("stationary", "discounted"), np.full((150, 2), 0.50004)
    )
    assert str(told) == "nothing changes: 88%\ndrifts: 12%"
    plain = told.plain(most_rounds=3)
    assert plain["rounds"] == [1, 149, 299]
    assert plain["leading"][1] == {"words": "drifts", "weight": 0.1234}
    assert plain["families"] == {"stationary": [0.5] * 3, "discounted": [0.5] * 3}
    assert len(told.plain()["rounds"]) == 64
