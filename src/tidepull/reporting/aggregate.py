"""One figure over many problems, in the style of rliable (Agarwal et al., 2021).

Regret is normalised by that of random arms: 0 is the oracle, 1 is random. The interquartile mean of all
trials of all problems is robust to single lost trials; its interval comes from a bootstrap that resamples
trials within each problem (stratified). rliable's own ignores its seed; this one does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tidepull.types import FloatArray

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Score:
    """Interquartile mean of normalised regret with its 95% interval, and the plain mean."""

    policy: str
    iqm: float
    low: float
    high: float
    mean: float
    trials: int


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Share of trials with a normalised regret of at most each threshold, with its 95% band."""

    policy: str
    share: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """All policies that played one set of problems."""

    problems: tuple[str, ...]
    scores: tuple[Score, ...]
    thresholds: FloatArray
    profiles: tuple[Profile, ...]


def panels(normalised: Mapping[str, Mapping[str, FloatArray]]) -> list[Panel]:
    """Policy to problem to trials; one panel for each set of at least two problems that a policy played.

    Policies are only ever compared on the same problems; a policy that is alone on its set gets no panel.
    """
    sets = dict.fromkeys(frozenset(by_problem) for by_problem in normalised.values() if len(by_problem) > 1)
    found = [panel(problems, normalised) for problems in sorted(sets, key=lambda s: (-len(s), sorted(s)))]
    return [panel for panel in found if len(panel.scores) > 1]


def panel(problems: frozenset[str], normalised: Mapping[str, Mapping[str, FloatArray]]) -> Panel:
    """The policies that played all these problems, lowest interquartile mean first."""
    order = sorted(problems)
    able = {
        policy: [np.asarray(by_problem[problem], dtype=float) for problem in order]
        for policy, by_problem in normalised.items()
        if problems <= set(by_problem)
    }
    top = max(1.0, *(float(np.max(strata)) for trials in able.values() for strata in trials))
    thresholds = np.linspace(0, min(top, 2.0), 101)
    scores = sorted((score(policy, strata) for policy, strata in able.items()), key=lambda s: s.iqm)
    profiles = tuple(profile(s.policy, able[s.policy], thresholds) for s in scores)
    return Panel(tuple(order), tuple(scores), thresholds, profiles)


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Mean of the middle half along the last axis; a quarter is cut off each end (rounded down)."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=-1))


def score(policy: str, strata: Sequence[FloatArray], *, seed: int = 0) -> Score:
    """Interquartile mean over all trials of all problems, with its stratified bootstrap interval."""
    values = np.concatenate(strata)
    low, high = np.quantile(interquartile_mean(resampled(strata, seed)), [0.025, 0.975])
    return Score(
        policy,
        float(interquartile_mean(values)),
        float(low),
        float(high),
        float(np.mean([stratum.mean() for stratum in strata])),
        len(values),
    )


def profile(policy: str, strata: Sequence[FloatArray], thresholds: FloatArray, *, seed: int = 0) -> Profile:
    """The performance profile; lower regret lies further up and left."""
    draws = np.sort(resampled(strata, seed), axis=1)
    shares = np.stack([_share(draw, thresholds) for draw in draws])
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return Profile(policy, _share(np.sort(np.concatenate(strata)), thresholds), low, high)


def resampled(strata: Sequence[FloatArray], seed: int) -> FloatArray:
    """Bootstrap samples (resamples x all trials): trials are drawn anew within each problem."""
    rng = np.random.default_rng(seed)
    return np.concatenate([s[rng.integers(len(s), size=(RESAMPLES, len(s)))] for s in strata], axis=1)


def _share(values: FloatArray, thresholds: FloatArray) -> FloatArray:
    return np.asarray(np.searchsorted(values, thresholds, side="right") / len(values))
