"""Are the logged propensities right? Where they are, 1/p adds up to the number of decisions for every arm, at any time.

A log has the chance of the arm that was played and not of the others, so a chance of 0.3 cannot be compared with
how often that arm came. But the sum of 1/p over an arm's decisions must be about the number of decisions in which
it was on offer: in all of the log, in each tenth of it, and in each hour of the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tidepull.logs.diagnosis.mixups import strata
from tidepull.logs.diagnosis.overview import balances
from tidepull.logs.log import Log

_FALSE = 0.01
"""The chance that right propensities are called wrong, over all checks together."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The sum of 1/p over decisions, as a share of what it should be (1), with its standard error: of one arm, or
    of all arms in one slice of time."""

    what: str
    slice: str
    value: float
    error: float

    @property
    def off(self) -> float:
        """How many standard errors it is off."""
        return (
            abs(self.value - 1) / self.error
            if self.error > 1e-12
            else (0.0 if abs(self.value - 1) < 1e-6 else np.inf)
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """All checks. `wrong` are those that right propensities would fail once in a hundred logs at most."""

    checks: tuple[Balance, ...]

    @property
    def wrong(self) -> tuple[Balance, ...]:
        """Checks that failed, the worst first."""
        if not self.checks:
            return ()
        limit = -float(special.ndtri(_FALSE / 2 / len(self.checks)))
        failed = [
            check for check in self.checks if check.off > max(limit, 3.0) and abs(check.value - 1) > 0.005
        ]
        return tuple(sorted(failed, key=lambda check: -check.off))


def calibration_of(log: Log) -> Calibration | None:
    """The checks; None where there are no propensities."""
    if log.propensity is None:
        return None
    value, error = balances(log)
    played = np.bincount(log.arm, minlength=log.n_arms)
    checks = [
        Balance("arm", log.arms[arm], float(value[arm]), float(error[arm]))
        for arm in range(log.n_arms)
        if played[arm] >= 10
    ]
    for by, (place, names) in strata(log).items():
        for n, name in enumerate(names):
            here = place == n
            if here.sum() >= 50:
                checks.append(Balance(by, name, *_of_all_arms(log.where(here))))
    return Calibration(tuple(checks))


def _of_all_arms(log: Log) -> tuple[float, float]:
    """The mean of 1/p as a share of the number of arms on offer."""
    assert log.propensity is not None
    known = ~np.isnan(log.propensity)
    weight = 1 / log.propensity[known]
    offered = np.full(len(weight), float(log.n_arms))
    if log.available is not None:
        offered = log.available[known].sum(axis=1).astype(float)
    ratio = weight / offered
    return float(ratio.mean()), float(ratio.std(ddof=1) / max(1, len(ratio)) ** 0.5) if len(
        ratio
    ) > 1 else np.inf
