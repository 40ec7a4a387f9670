"""Arms that pay 1 or 0."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms, InitialProbabilities
from tidepull.problems.drift import Constant, Flip, Sine
from tidepull.problems.regimes import FlipsRegularly, Oscillates
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams


@dataclass(frozen=True, kw_only=True)
class FlippingBernoulliParameters(FlipsRegularly, InitialProbabilities):
    """Parameters of `flipping-bernoulli`."""

    half_period: int = parameter(10, "rounds between two flips", ge=1)


@dataclass(frozen=True, kw_only=True)
class SinusoidalBernoulliParameters(Oscillates, Parameters):
    """Parameters of `sinusoidal-bernoulli`."""

    n_arms: int = parameter(5, "number of arms", ge=1, le=10**6)
    period: float = parameter(32.0, "rounds in one oscillation, 1/f", gt=0)


@dataclass(frozen=True, kw_only=True)
class StationaryBernoulliParameters(InitialProbabilities):
    """Parameters of `stationary-bernoulli`."""


def flipping_bernoulli(parameters: FlippingBernoulliParameters, streams: Streams) -> DriftingArms:
    """Every arm's mean changes from p_k to 1 - p_k every half period."""
    p = parameters.first_means(streams)
    return DriftingArms(Flip(p, 1 - p, parameters.half_period), BernoulliReward(streams.generator("noise")))


def sinusoidal_bernoulli(parameters: SinusoidalBernoulliParameters, streams: Streams) -> DriftingArms:
    """p_k = 1/2 + sin(2 pi f t + 2 pi (k - 1) / K) / 2 for the arms k = 1 ... K."""
    drift = Sine(parameters.n_arms, parameters.period)
    return DriftingArms(drift, BernoulliReward(streams.generator("noise")))


def stationary_bernoulli(parameters: StationaryBernoulliParameters, streams: Streams) -> DriftingArms:
    """Every arm's mean stays."""
    return DriftingArms(
        Constant(parameters.first_means(streams)), BernoulliReward(streams.generator("noise"))
    )
