from __future__ import annotations

import numpy as np
from scipy import stats

from tidepull.reporting.stats import interquartile_mean, panels, profile, score


def test_interquartile_mean_equals_scipys_trimmed_mean() -> None:
    for n in (3, 4, 10, 37):
        values = np.random.default_rng(n).random(n)
        assert np.isclose(interquartile_mean(values), stats.trim_mean(values, 0.25))


def test_score_interval_covers_as_often_as_promised_with_many_trials() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        # Symmetric around each problem's mean and equal spread: the interquartile mean estimates
        # 0.5.
        s = score("p", [rng.normal(0.5, 0.1, 30), rng.normal(0.5, 0.1, 30)])
        hits += s.low <= 0.5 <= s.high
    assert 0.90 <= hits / 200 <= 0.985


def test_score_resamples_within_problems_only() -> None:
    # Within each problem all trials are equal, so a stratified bootstrap has nothing to vary.
    s = score("p", [np.full(10, 0.1), np.full(10, 0.9)])
    assert s.low == s.high == s.iqm


def test_score_is_the_same_when_computed_again() -> None:
    strata = [np.random.default_rng(0).random(10)]
    assert score("p", strata) == score("p", strata)


def test_profile_is_the_share_of_trials_at_or_below_each_threshold() -> None:
    found = profile("p", [np.array([0.1, 0.2]), np.array([0.2, 0.9])], np.array([0.0, 0.2, 1.0]))
    assert found.share.tolist() == [0.0, 0.75, 1.0]
    assert (found.low <= found.share).all()
    assert (found.share <= found.high).all()


def test_policies_are_compared_on_the_same_problems_only() -> None:
    x = np.array([0.5, 0.6])
    found = panels(
        {"a": {"one": x, "two": x, "three": x}, "b": {"one": x, "two": x}, "c": {"one": x}}
    )
    assert [panel.problems for panel in found] == [("one", "two")]
    assert {s.policy for s in found[0].scores} == {"a", "b"}
