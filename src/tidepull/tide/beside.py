"""Who sits beside the bank: hypotheses with a hidden state, among all others or on trial."""

from __future__ import annotations

from tidepull.random import Streams
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Filter, Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.parameters import TideParameters
from tidepull.tide.trial import GatedModel


def filters_of(
    layout: Layout, families: list[str], prior: NoisePrior, streams: Streams
) -> list[Filter]:
    """The hypotheses with a hidden state that sit beside the bank."""
    made: list[Filter] = []
    for name in families:
        maker = FAMILIES[name].filters
        if maker is not None:
            made += maker(layout, prior, int(streams.generator(name).integers(2**62)))
    return made


def trial_of(
    layout: Layout, parameters: TideParameters, prior: NoisePrior, streams: Streams
) -> GatedModel | None:
    """The hypothesis that sits beside the mixture until its own decisions earn as much."""
    for name in parameters.families():
        maker, share = FAMILIES[name].on_trial, FAMILIES[name].prior
        for filter in (
            maker(layout, prior, int(streams.generator(name).integers(2**62))) if maker else ()
        ):
            return GatedModel(filter, share / (1 + share), parameters.share)
    return None
