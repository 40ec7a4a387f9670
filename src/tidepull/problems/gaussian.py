"""Arms with Gaussian rewards."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.parameters import parameter
from tidepull.problems.arms import DriftingArms, InitialMeans
from tidepull.problems.drift import Flip
from tidepull.problems.regimes import FlipsRegularly
from tidepull.problems.rewards import GaussianReward
from tidepull.random import Streams


@dataclass(frozen=True, kw_only=True)
class FlippingGaussianParameters(FlipsRegularly, InitialMeans):
    """Parameters of `flipping-gaussian`."""

    half_period: int = parameter(10, "rounds between two changes of sign", ge=1)
    noise_std: float = parameter(0.1, "standard deviation of the reward's noise", ge=0)


def flipping_gaussian(parameters: FlippingGaussianParameters, streams: Streams) -> DriftingArms:
    """Every arm's mean changes from mu_k to -mu_k every half period."""
    mu = parameters.first_means(streams)
    reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
    return DriftingArms(Flip(mu, -mu, parameters.half_period), reward)
