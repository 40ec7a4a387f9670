from __future__ import annotations

import numpy as np
from scipy import stats

from tidepull.policies.exploration import any_arm, best_arm


def test_best_arm_breaks_ties_uniformly_among_the_best_available() -> None:
    rng = np.random.default_rng(0)
    scores = np.array([1.0, 2.0, 2.0, 0.0, 2.0, 9.0])
    available = np.array([True, True, True, True, True, False])
    counts = np.bincount([best_arm(scores, available, rng) for _ in range(6000)], minlength=6)
    assert counts[[0, 3, 5]].sum() == 0
    assert stats.chisquare(counts[[1, 2, 4]]).pvalue > 1e-4


def test_best_arm_breaks_ties_between_infinite_scores() -> None:
    rng = np.random.default_rng(0)
    chosen = {best_arm(np.array([np.inf, 3.0, np.inf]), None, rng) for _ in range(50)}
    assert chosen == {0, 2}


def test_best_arm_draws_nothing_without_a_tie() -> None:
    rng = np.random.default_rng(0)
    assert best_arm(np.array([0.0, 3.0, 1.0]), None, rng) == 1
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_any_arm_is_uniform_over_the_available_arms() -> None:
    rng = np.random.default_rng(0)
    counts = np.bincount(
        [any_arm(4, np.array([True, False, True, True]), rng) for _ in range(6000)], minlength=4
    )
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]]).pvalue > 1e-4
