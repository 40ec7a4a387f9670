"""Expected rewards where one arm pays better than all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull._internal.memory import require_memory
from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class OneBestArm(Parameters):
    """Rewards where one arm pays `best_mean` and all others `mean`."""

    mean: float = parameter(0.0, "expected reward of all arms but the best")
    best_mean: float = parameter(1.0, "expected reward of the best arm")
    noise_std: float = parameter(0.05, "standard deviation of the reward's noise", ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_mean <= self.mean:
            raise ParameterError(f"best_mean must be > mean ({self.mean:g}), got {self.best_mean:g}")

    def rows(self, n_arms: int) -> list[FloatArray]:
        """The arms' expected rewards, once for each arm that may be the best."""
        require_memory(8 * n_arms**2, f"{n_arms:,} arms")
        others = np.full(n_arms, self.mean)
        return [
            read_only(np.where(np.arange(n_arms) == best, self.best_mean, others)) for best in range(n_arms)
        ]
