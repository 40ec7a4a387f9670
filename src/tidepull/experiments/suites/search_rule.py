"""The rule of a search by successive halving: how long, on how many seeds, and how few go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tidepull.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Rung:
    """Trials of `share` of the horizon on the first `seeds` of the suite's seeds (None: on all of them)."""

    share: float
    seeds: int | None = None


@dataclass(frozen=True, slots=True)
class SearchRule:
    """Of every policy's settings, all play the first rung and the best 1 / eta of each problem the next one.

    `generalists` are the settings that stay on all problems of a kind for their mean normalised score: so many
    reach the last rung, eta times as many the one before. They are what a default can be chosen from.
    """

    eta: int = 4
    generalists: int = 2
    rungs: tuple[Rung, ...] = (Rung(0.25, 1), Rung(0.5, 1), Rung(1.0))


def check_rule(rule: SearchRule, n_seeds: int) -> SearchRule:
    """The rule, if it fits a suite with so many seeds."""
    if rule.eta < 2:
        raise ParameterError(f"eta must be at least 2, got {rule.eta}")
    if rule.generalists < 0:
        raise ParameterError(f"generalists must not be negative, got {rule.generalists}")
    if not rule.rungs or rule.rungs[-1].share != 1:
        raise ParameterError("the last rung must have the whole horizon: share = 1")
    efforts = []
    for number, rung in enumerate(rule.rungs, 1):
        seeds = n_seeds if rung.seeds is None else rung.seeds
        if not 0 < rung.share <= 1:
            raise ParameterError(f"rung {number}: share must be above 0 and at most 1, got {rung.share:g}")
        if not 1 <= seeds <= n_seeds:
            raise ParameterError(
                f"rung {number}: the suite has {n_seeds} seeds, so seeds must be 1 to {n_seeds}, got {seeds}"
            )
        efforts.append((rung.share, seeds))
    for number, (before, after) in enumerate(pairwise(efforts), 2):
        if after[0] < before[0] or after[1] < before[1] or after == before:
            raise ParameterError(
                f"rung {number} must be longer or on more seeds than rung {number - 1}, and neither less"
            )
    return rule


def parse_rungs(text: str) -> tuple[Rung, ...]:
    """Rungs as they are written on the command line: `1/4:1,1/2:1,1:5`; without seeds, all of the suite's."""
    return tuple(_rung(part.strip()) for part in text.split(","))


def _rung(text: str) -> Rung:
    share, colon, seeds = text.partition(":")
    try:
        return Rung(float(Fraction(share)), int(seeds) if colon else None)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            f"--rungs: '{text}' is no rung; write share or share:seeds, such as 1/4:1,1/2:1,1"
        ) from None


def rungs_text(rungs: Sequence[Rung]) -> str:
    """As `parse_rungs` reads them."""
    return ",".join(
        f"{Fraction(rung.share).limit_denominator(1000)}" + ("" if rung.seeds is None else f":{rung.seeds}")
        for rung in rungs
    )
