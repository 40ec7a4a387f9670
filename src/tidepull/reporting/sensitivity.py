"""How much the choice of hyperparameters matters: every setting's mean cumulative reward, in falling order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.reporting.frame import Study
from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """One policy on one problem: means in falling order, and the settings they belong to.

    `scores` are normalised as in the paper, (m - m_random) / (m_best - m_random) with the policy's own
    best setting; None when `random` was not run on the problem.
    """

    name: str
    means: FloatArray
    settings: tuple[str, ...]
    trials: tuple[int, ...]
    scores: FloatArray | None

    @property
    def median_score(self) -> float:
        """The normalised score that half of the settings reach; near 1 where the choice hardly matters."""
        return float("nan") if self.scores is None else float(np.median(self.scores))

    @property
    def share_below_random(self) -> float:
        """Share of settings that earn less than random arms."""
        return float("nan") if self.scores is None else float(np.mean(self.scores < 0))


def sensitivities(study: Study) -> list[Sensitivity]:
    """One for each policy with a grid, in the order of the suite."""
    random = next((g for g in study.groups if g.rows[0].policy == "random"), None)
    floor = None if random is None else float(random.rewards.mean())
    found = []
    for name, groups in study.grids.items():
        ordered = sorted(groups, key=lambda group: -float(group.rewards.mean()))
        means = np.array([float(group.rewards.mean()) for group in ordered])
        known = floor is not None and means[0] > floor
        found.append(
            Sensitivity(
                name,
                means,
                tuple(group.setting for group in ordered),
                tuple(len(group.rows) for group in ordered),
                (means - floor) / (means[0] - floor) if known and floor is not None else None,
            )
        )
    return found
