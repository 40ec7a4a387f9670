"""What the weights of a policy on a log say about how far its estimates can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.types import FloatArray

FEW = 100
"""Effective rows below which estimates are not to be believed."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Diagnostics of one policy on one log.

    `effective` is the effective number of rows (sum w)^2 / sum w^2, `tail` the share of all weight that the heaviest 1%
    of rows have, `mean` should be 1 where propensities are right and all arms are covered, `mean_error` is its
    standard error, `uncovered` the share of the policy's choices that go to arms the log never shows.
    """

    rows: int
    effective: float
    largest: float
    tail: float
    mean: float
    mean_error: float
    uncovered: float

    @property
    def off(self) -> bool:
        """Whether weights are so far from 1 on average that propensities cannot be right."""
        return abs(self.mean - 1) > 4 * self.mean_error + 1e-6 and not self.uncovered

    def warnings(self) -> list[str]:
        """When not to believe the estimates, in sentences."""
        said = []
        if self.effective < FEW:
            said.append(
                f"the weights leave {self.effective:.1f} effective rows of {self.rows:,}: do not believe it"
            )
        if self.tail > 0.5:
            said.append(f"1% of the rows carry {self.tail:.0%} of the weight: few decisions decide")
        if self.off:
            said.append(
                f"weights are {self.mean:.3f} on average where they should be 1: the propensities look wrong"
            )
        if self.uncovered > 1e-6:
            said.append(
                f"{self.uncovered:.1%} of its choices go to arms that the log never shows: nothing is known of these"
            )
        return said


def weights_of(weight: FloatArray, uncovered: float) -> Weights:
    """The diagnostics of weights."""
    total, rows = float(weight.sum()), len(weight)
    heaviest = np.sort(weight)[-max(1, rows // 100) :]
    squares = float((weight**2).sum())
    return Weights(
        rows=rows,
        effective=total**2 / squares if squares else 0.0,
        largest=float(weight.max(initial=0.0)),
        tail=float(heaviest.sum()) / total if total else 0.0,
        mean=total / rows,
        mean_error=float(weight.std(ddof=1)) / rows**0.5 if rows > 1 else float("inf"),
        uncovered=uncovered,
    )
