"""How well short trials rank long ones: rank correlation between two rungs, over the settings that played both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.experiments.search.halving import Standing

FEWEST = 3
"""Settings from which on a rank correlation is given."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Spearman's correlation of mean rewards on two rungs (from 0), over `settings` settings.

    Only the best of the earlier rung are among them, so it says less than the whole grid would.
    """

    problem: str
    name: str
    first: int
    second: int
    settings: int
    correlation: float


def agreements(standings: Sequence[Standing]) -> list[Agreement]:
    """Every rung with every later one, problem by problem and policy by policy."""
    tree: dict[tuple[str, str], dict[int, Mapping[str, float]]] = {}
    for one in standings:
        tree.setdefault((one.problem, one.name), {})[one.rung] = one.means
    found = []
    for (problem, name), rungs in tree.items():
        for first in sorted(rungs):
            for second in sorted(rung for rung in rungs if rung > first):
                count, correlation = rank_correlation(rungs[first], rungs[second])
                if correlation is not None:
                    found.append(Agreement(problem, name, first, second, count, correlation))
    return found


def rank_correlation(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[int, float | None]:
    """How many settings both have, and Spearman's correlation; None for fewer than three, or where all tie."""
    from scipy.stats import rankdata

    common = [text for text in a if text in b]
    if len(common) < FEWEST:
        return len(common), None
    ranks = np.array([rankdata([means[text] for text in common]) for means in (a, b)])
    if np.ptp(ranks, axis=1).min() == 0:
        return len(common), None
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    return len(common), float(centred[0] @ centred[1] / np.sqrt(np.prod(np.sum(centred**2, axis=1))))
