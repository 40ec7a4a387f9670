"""Linear problems whose arms are advertising banners of the Criteo dataset.

Every round offers K/2 vectors of clicked banners and K/2 of not-clicked ones, in random order, so that an
arm's place says nothing of its pool. w starts as the least-squares parameter of the click target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.criteo.finding import find_prepared, prepared_file
from tidepull.problems.criteo.prepared import Prepared
from tidepull.problems.drift import Drift, Flip, PartialFlip
from tidepull.problems.linear import LinearProblem, PoolSampler
from tidepull.problems.regimes import ChangesOnce, FlipsRegularly
from tidepull.random import Streams

SYNTHETIC_REMARK = "synthetic Criteo"


@dataclass(frozen=True, kw_only=True)
class CriteoParameters(Parameters):
    """What both problems have in common."""

    n_arms: int = parameter(10, "banners on offer in each round, half of them clicked ones", ge=2)
    dim: int = parameter(50, "length of the vectors", ge=1)
    noise_std: float = parameter(math.sqrt(0.15), "standard deviation of the reward's noise", ge=0)
    path: str | None = parameter(
        None, "prepared file (auto: criteo-<dim>.npz in TIDEPULL_DATA or the cache, else a synthetic one)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_arms % 2:
            raise ParameterError(f"n_arms must be even, got {self.n_arms}")


@dataclass(frozen=True, kw_only=True)
class CriteoPartialFlipParameters(ChangesOnce, CriteoParameters):
    """Parameters of `criteo-partial-flip`."""

    change_at: int = parameter(4000, "round of the change, counted from 0", ge=1)
    share: float = parameter(0.6, "share of w's components whose sign is switched", ge=0, le=1)


@dataclass(frozen=True, kw_only=True)
class CriteoFlippingParameters(FlipsRegularly, CriteoParameters):
    """Parameters of `criteo-flipping`."""

    half_period: int = parameter(256, "rounds between two changes of sign of w", ge=1)


def criteo_partial_flip(parameters: CriteoPartialFlipParameters, streams: Streams) -> LinearProblem:
    """Once, the signs of a share of w's components are switched; the seed says which."""
    prepared = find_prepared(parameters.path, parameters.dim)
    mask = np.zeros(prepared.dim, np.bool_)
    switched = round(parameters.share * prepared.dim)
    mask[streams.generator("mask").choice(prepared.dim, switched, replace=False)] = True
    return _on_banners(parameters, prepared, PartialFlip(prepared.theta, mask, parameters.change_at), streams)


def criteo_flipping(parameters: CriteoFlippingParameters, streams: Streams) -> LinearProblem:
    """w becomes -w every half period."""
    prepared = find_prepared(parameters.path, parameters.dim)
    drift = Flip(prepared.theta, -prepared.theta, parameters.half_period)
    return _on_banners(parameters, prepared, drift, streams)


def files(parameters: CriteoParameters) -> list[Path]:
    """The prepared file that both problems read."""
    return [prepared_file(parameters.path, parameters.dim)]


def _on_banners(
    parameters: CriteoParameters, prepared: Prepared, drift: Drift, streams: Streams
) -> LinearProblem:
    half = parameters.n_arms // 2
    return LinearProblem(
        sampler=PoolSampler([(prepared.clicked, half), (prepared.not_clicked, half)]),
        drift=drift,
        noise_std=parameters.noise_std,
        streams=streams,
        remark=SYNTHETIC_REMARK if prepared.synthetic else "",
    )
