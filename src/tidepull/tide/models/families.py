"""All families; a new one is its own file and a line here. The order is that of the slots in the
bank."""

from __future__ import annotations

from tidepull.errors import SnapshotError
from tidepull.tide.models import (
    calendar,
    changes,
    classes,
    clock,
    discounted,
    fourier,
    last_event,
    last_success,
    network,
    regimes,
    seasons,
    square,
    stationary,
    turns,
)
from tidepull.tide.models.family import Family
from tidepull.tide.models.spec import Hypothesis, Spec

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        stationary.FAMILY,
        discounted.FAMILY,
        last_event.FAMILY,
        last_success.FAMILY,
        turns.FAMILY,
        fourier.FAMILY,
        square.FAMILY,
        seasons.FAMILY,
        changes.FAMILY,
        regimes.FAMILY,
        classes.FAMILY,
        calendar.FAMILY,
        clock.FAMILY,
        network.FAMILY,
    )
}
"""By name. A wrong prior of 1 in 25 costs three nats of evidence, which a season pays back in a few
rounds; an exploring hypothesis that nothing speaks for costs regret."""


def hypothesis_of(spec: Spec) -> Hypothesis:
    """The inverse of `Hypothesis.spec`.

    >>> hypothesis_of(square.Square(10.0).spec()).words
    'repeats every 20.0 rounds, in two phases'
    """
    family = FAMILIES.get(spec.family)
    if family is None or family.named is None:
        raise SnapshotError(f"there is no family of hypotheses '{spec.family}'")
    return family.named(spec)
