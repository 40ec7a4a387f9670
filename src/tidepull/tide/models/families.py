"""All families; a new one is a line here. The order is that of the slots in the bank."""

from __future__ import annotations

from tidepull.errors import SnapshotError
from tidepull.random import Streams
from tidepull.tide.models import (
    changes,
    classes,
    lagged,
    linear,
    network,
    own_periods,
    phases,
    regimes,
    turns,
)
from tidepull.tide.models.family import Family, Filter, Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        linear.STATIONARY,
        linear.DISCOUNTED,
        lagged.LAST_EVENT,
        lagged.LAST_SUCCESSES,
        turns.FAMILY,
        linear.FOURIER,
        linear.SQUARES,
        linear.SEASONS,
        phases.FAMILY,
        own_periods.FAMILY,
        changes.FAMILY,
        regimes.FAMILY,
        classes.FAMILY,
        network.FAMILY,
    )
}
"""By name. A wrong prior of 1 in 25 costs three nats of evidence, which a season pays back in a few
rounds; exploration by a model that nothing speaks for costs regret."""


def describe(spec: Spec) -> str:
    """One line that a person understands.

    >>> describe(linear.square(10.0))
    'repeats every 20.0 rounds, in two phases'
    """
    family = FAMILIES.get(spec.family)
    if family is None or family.describe is None:
        raise SnapshotError(f"there is no family of linear models '{spec.family}'")
    return family.describe(spec)


def build_filters(
    layout: Layout, families: list[str], prior: NoisePrior, streams: Streams
) -> list[Filter]:
    """Construct the state-space models, which are not stored in the bank."""
    filters: list[Filter] = []
    for name in families:
        build = FAMILIES[name].filters
        if build is not None:
            filters += build(layout, prior, int(streams.generator(name).integers(2**62)))
    return filters
