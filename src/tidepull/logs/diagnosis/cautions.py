"""What to mind about a log, in sentences."""

from __future__ import annotations

import numpy as np

from tidepull.logs.diagnosis.hours import Hours, blind_spots, hiding
from tidepull.logs.diagnosis.mixups import Mixup, Shift
from tidepull.logs.diagnosis.overview import Overview
from tidepull.logs.diagnosis.propensities import Calibration
from tidepull.logs.log import Log


def warnings_of(
    log: Log,
    overview: Overview,
    hours: Hours | None,
    shifts: tuple[Shift, ...],
    mixups: tuple[Mixup, ...],
    calibration: Calibration | None,
) -> list[str]:
    """What to mind, in sentences."""
    said = list(log.reading.notes)
    if log.reading.bad.count:
        said.append(f"{log.reading.bad.count:,} rows could not be read and are left out")
    if overview.copies:
        said.append(
            f"{overview.copies:,} rows have the id of an earlier one: the same decision seems to be logged twice"
        )
    if overview.alike > 0.01 * len(log):
        said.append(f"{overview.alike:,} rows equal an earlier one in every column")
    said += [
        f"after {gap.when} there is nothing for {_length(gap.length, log.dated)}" for gap in overview.gaps[:3]
    ]
    said += _rare(log)
    if hours is not None:
        said += hiding(log, hours)
    said += [_shifted(shift) for shift in shifts if shift.moves > 0.1 and shift.p < 0.001]
    said += [_mixed(one) for one in mixups]
    if calibration is None:
        said.append("there are no propensities: what other policies would have earned cannot be judged")
    elif calibration.wrong:
        worst = calibration.wrong[0]
        said.append(
            f"the propensities look wrong, or not every arm was on offer: for {worst.what} {worst.slice} 1/p adds up "
            f"to {worst.value:.2f} of what it "
            f"should, {worst.off:.1f} standard errors off; {len(calibration.wrong)} of {len(calibration.checks)} "
            "checks fail"
        )
    if hours is not None:
        said += blind_spots(hours)
    return said


def _rare(log: Log) -> list[str]:
    paid = log.reward[~np.isnan(log.reward)]
    if ((paid == 0) | (paid == 1)).all() and paid.min() < paid.max():
        fewer = int(min(paid.sum(), len(paid) - paid.sum()))
        if fewer < 10 * log.n_arms:
            what = "rewards of 1" if paid.mean() < 0.5 else "rewards of 0"
            return [f"only {fewer:,} {what} for {log.n_arms} arms: hardly anything can be told apart"]
    return []


def _shifted(shift: Shift) -> str:
    return (
        f"shares of arms move with the {shift.by} (Cramer's V {shift.moves:.2f}): means over the whole log compare "
        "different times"
    )


def _mixed(one: Mixup) -> str:
    within = f"{'an' if one.by == 'hour' else 'a'} {one.by}"
    return (
        f"Simpson's paradox: over the whole log '{one.better}' earns {one.apart:.3g} (± {1.96 * one.apart_error:.2g}) "
        f"more than '{one.other}', but within {within} '{one.other}' earns {one.within:.3g} "
        f"(± {1.96 * one.within_error:.2g}) more"
    )


def _length(length: float, dated: bool) -> str:
    if not dated:
        return f"{length:g} units of time"
    return f"{length / 86_400:,.1f} days" if length >= 2 * 86_400 else f"{length / 3600:,.1f} hours"
