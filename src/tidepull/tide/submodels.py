"""Explanations of structural models: every structure compared with itself without some seasons.

A structure has the declared fields, the hour and the weekend, also where these explain nothing. That
does no harm to decisions, but explanations would be wrong. So for explanations every structure is
compared with itself without some blocks B. With weights w ~ N(m, C) and the prior N(0, V), for each
arm by itself,

    p(data | w_B = 0) / p(data) = prod over arms of N(0; m_B, C_BB) / N(0; 0, V_BB)

(the Savage-Dickey density ratio; Dickey, 1971), and without B the posterior is that of w given
w_B = 0. The probability that an arm is best in an hour is its share of draws from all submodels, by
weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tidepull.tide.models.structural import Blocks, ModelStructure, StructuralModels
from tidepull.types import BoolArray, FloatArray

_DRAWS, _FEWEST_DRAWS, _MOST_VALUES = 1000, 200, 4_000_000
"""Draws that a chance is the share of; fewer where they would be too many numbers with all arms."""


@dataclass(frozen=True, slots=True, eq=False)
class Submodel:
    """A structure with some of its seasons: what it says, its weight, and its posterior by arm."""

    words: str
    weight: float
    mean: FloatArray
    cov: FloatArray


def submodels(
    structures: Sequence[ModelStructure], blocks: Blocks, models: StructuralModels,
    weights: FloatArray, now: float, *, least: float,
) -> list[Submodel]:  # fmt: skip
    """Those of all structures of at least a weight, equally likely beforehand; deviations at a
    time. Weights add up to 1."""
    found = []
    for m in map(int, np.flatnonzero(weights >= min(least, weights.max()))):
        mean, cov = models.posterior(m, now)
        kept = _seasons(structures[m])
        for one in kept:
            absent = _absent(structures[m], one, blocks)
            ratio, *posterior = without(absent, mean, cov, models.variances[m])
            found.append((np.log(weights[m] / len(kept)) + ratio, one.words, *posterior))
    logs = np.array([log for log, *_ in found])
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    return [
        Submodel(words, float(share), *posterior)
        for share, (_, words, *posterior) in zip(shares, found, strict=True)
    ]


def _seasons(structure: ModelStructure) -> list[ModelStructure]:
    """The structure with each choice among its seasons."""
    seasons = structure.day, structure.weekend_day, structure.week, structure.period
    choices = [(0, value) if value else (0,) for value in seasons]
    return [
        replace(structure, day=int(day), weekend_day=int(weekend), week=int(week), period=period)
        for day, weekend, week, period in product(*choices)
    ]


def _absent(whole: ModelStructure, part: ModelStructure, blocks: Blocks) -> BoolArray:
    """Coefficients that the whole has, and the part has not."""
    kept = part.variances(blocks).copy()
    if not part.day:
        kept[blocks.place("weekend x day")] = 0.0
    return np.asarray((whole.variances(blocks) > 0) & (kept == 0))


def without(
    absent: BoolArray, mean: FloatArray, cov: FloatArray, prior: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The logarithm of the Savage-Dickey ratio, and means and covariances of all weights where
    some are 0.

    Parameters
    ----------
    absent : array of shape (dim,)
        Whether a weight is 0.
    mean, cov : array of shape (n_blocks, dim), array of shape (n_blocks, dim, dim)
        The posterior of the weights of each arm.
    prior : array of shape (dim,)
        Prior variances.
    """
    if not absent.any():
        return 0.0, mean, cov
    inner, across, m = cov[:, absent][:, :, absent], cov[:, :, absent], mean[:, absent]
    gain = np.linalg.solve(inner, np.swapaxes(across, 1, 2))
    fit = np.einsum("kb,kb->k", m, np.linalg.solve(inner, m[..., None])[..., 0])
    ratio = 0.5 * (np.log(prior[absent]).sum() - np.linalg.slogdet(inner)[1] - fit)
    means, covs = mean - np.einsum("kbd,kb->kd", gain, m), cov - across @ gain
    return float(ratio.sum()), means, covs


def draw_weights(
    models: Sequence[Submodel], draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Weights of every arm from submodels by weight, in no order, of shape (draws, n_blocks, dim);
    and the mean deviation of each arm in these."""
    counts = rng.multinomial(draws, [model.weight for model in models])
    weights, deviations = [], []
    for model, count in zip(models, counts, strict=True):
        if count:
            values, vectors = np.linalg.eigh(model.cov)
            roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            noise = rng.standard_normal((count, *model.mean.shape))
            weights.append(model.mean + np.einsum("kde,ske->skd", roots, noise))
            deviations.append(np.broadcast_to(model.mean[:, -1], (count, len(model.mean))))
    order = rng.permutation(draws)
    return np.concatenate(weights)[order], np.concatenate(deviations)[order]


def draws_for(n_arms: int) -> int:
    """Number of draws in the hours of a day, for `n_arms` arms."""
    return max(_FEWEST_DRAWS, min(_DRAWS, _MOST_VALUES // (24 * n_arms)))
