from __future__ import annotations

import numpy as np

from tidepull.problems.arms import WildRewardsParameters, wild_rewards
from tidepull.random import Streams


def rewards(rounds: int, **parameters: float) -> tuple[np.ndarray, np.ndarray]:
    """Rewards of arm 0 and its means."""
    problem = wild_rewards(WildRewardsParameters(**parameters), Streams(1))  # type: ignore[arg-type]
    found = [(float(problem.means()[0]), problem.step(0)) for _ in range(rounds)]
    means, paid = np.array(found).T
    return paid, means


def test_wild_rewards_are_ordinary_but_for_the_share_that_is_wild() -> None:
    paid, means = rewards(4000, share=0.05, scale=10.0)
    far = np.abs(paid - means) > 0.6  # six standard deviations of ordinary noise
    assert 0.03 < far.mean() < 0.05
    assert np.std((paid - means)[~far]) < 0.13


def test_wild_rewards_are_absurd_in_one_round_only_when_asked_for() -> None:
    paid, _ = rewards(20, share=0.0, absurd_in=7, absurd=-1e14)
    assert paid[6] == -1e14
    assert np.abs(np.delete(paid, 6)).max() < 3


def test_wild_rewards_flip_their_means_every_half_period_when_asked_for() -> None:
    _, means = rewards(40, half_period=10)
    np.testing.assert_allclose(means[:10] + means[10:20], 1.0)
    np.testing.assert_array_equal(means[:20], means[20:])
    assert len(set(means.tolist())) == 2
