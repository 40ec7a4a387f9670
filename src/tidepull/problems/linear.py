"""Linear problems: each arm shows a vector x, and pays w_t . x plus Gaussian noise.

    p(r_t | a_t, w_t) = N(r_t | w_t . x_{t,a_t}, s^2)

`LinearProblem` composes a sampler of arm vectors with a drift of w. `SteadyContexts` has weights
that never change, on contexts of any length:

    observations    r = w_k . c + noise, c ~ N(0, I) in `rank` directions, every arm's w_k ~ N(0, I / rank)
    arm vectors     r = w . x_k + noise, the same with one w for all arms and a vector x_k for each

so that expected rewards have standard deviation 1 whatever the length.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tidepull._internal.system import require_memory
from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import (
    Constant,
    Drift,
    Flip,
    FlipsRegularly,
    Oscillates,
    Rotation,
    read_only,
)
from tidepull.problems.rewards import GaussianReward, Names, SimulatedProblem, weights
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


def expected_maximum(draws: Sequence[tuple[FloatArray, int]]) -> float:
    """E[max] over `count` of the `values`, without replacement, for each (values, count)
    independently.

    P(max <= v) is the product of C(n(v), count) / C(N, count), where n(v) of the N values are at
    most v.
    """
    support = np.sort(np.concatenate([values for values, _ in draws]))
    below = np.ones(len(support))
    for values, count in draws:
        at_most = np.searchsorted(np.sort(values), support, side="right")
        for drawn in range(count):
            below *= np.maximum(at_most - drawn, 0) / (len(values) - drawn)
    return float(support @ np.diff(below, prepend=0.0))


Pools: TypeAlias = Sequence[tuple[FloatArray, int]]


class PoolSampler:
    """The arms of a round: from each pool (one vector per row) so many rows, without replacement.

    >>> sampler = PoolSampler([(np.eye(3), 2)])
    >>> sampler(np.random.default_rng(0)).shape
    (2, 3)
    """

    def __init__(self, draws: Pools) -> None:
        for pool, count in draws:
            if count > len(pool):
                raise ParameterError(
                    f"n_arms asks for {count} vectors of a pool that has {len(pool)}"
                )
        self.draws = tuple((read_only(pool), count) for pool, count in draws)

    def __call__(self, rng: np.random.Generator) -> FloatArray:
        """A fresh read-only matrix with a row for each arm; rows of several pools come in random
        order."""
        parts = [pool[rng.choice(len(pool), count, replace=False)] for pool, count in self.draws]
        features = parts[0] if len(parts) == 1 else rng.permutation(np.concatenate(parts))
        features.flags.writeable = False
        return features

    @property
    def longest(self) -> float:
        """The length of the longest vector that can be on offer."""
        return max(float(np.linalg.norm(pool, axis=1).max()) for pool, count in self.draws if count)

    def mean_gap(self, w: FloatArray) -> float:
        """E[max_k w . x_k] - E[w . x_a] for a uniformly random arm a, exactly."""
        scores = [(pool @ w, count) for pool, count in self.draws]
        n_arms = sum(count for _, count in self.draws)
        average = sum(float(values.mean()) * count for values, count in scores) / n_arms
        return expected_maximum(scores) - average


class LinearProblem(SimulatedProblem):
    """Rewards w_t . x plus noise, for any sampler of arm vectors and any drift of w.

    Contexts and noise come from streams of their own; `remark` is shown beside every result.
    """

    def __init__(
        self,
        *,
        sampler: PoolSampler,
        drift: Drift,
        noise_std: float,
        streams: Streams,
        remark: str = "",
    ) -> None:
        self.sampler = sampler
        self.drift = drift
        self.remark = remark
        self.reward: GaussianReward = GaussianReward(noise_std, streams.generator("noise"))
        self._contexts = streams.generator("contexts")
        self._names = Names()
        self._begin(0)
        self.n_arms = len(self._features)

    def context(self) -> Context:
        """The vectors of the arms on offer."""
        return Context(arm_features=self._features)

    def structure(self) -> Structure:
        """Weights that turn as is known, that walk, or that hold again whenever they come back."""
        noise, one = self.reward.noise_std, np.zeros(self.n_arms, np.int64)
        turned = getattr(self.drift, "turned", None)
        if turned is not None:
            return weights(one, turned(self._features, self._t), noise)
        step = getattr(self.drift, "step", 0.0)
        ruling = one if step else one + self._names.of([self.drift(self._t).tobytes()])[0]
        return weights(ruling, self._features, noise, step)

    def variation_budget(self, horizon: int) -> float:
        """B_T = sum of ||w_{t+1} - w_t|| over the T rounds of the horizon."""
        return self.drift.variation(horizon)

    def linear_bounds(self, horizon: int) -> tuple[float, float]:
        """S, the length of the longest w over the horizon, and L, that of the longest vector of the
        pools."""
        longest = max(float(np.linalg.norm(self.drift(t))) for t in range(horizon))
        return longest, self.sampler.longest

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms, given this world's pool and w, exactly."""
        gaps: dict[bytes, float] = {}
        total = 0.0
        for t in range(horizon):
            w = self.drift(t)
            key = w.tobytes()
            if key not in gaps:
                gaps[key] = self.sampler.mean_gap(w)
            total += gaps[key]
        return total

    def _begin(self, t: int) -> None:
        self._t = t
        self._features = self.sampler(self._contexts)
        self._means = self._features @ self.drift(t)
        self._means.flags.writeable = False


def unit_vectors(count: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Points drawn uniformly from the cube [-1, 1]^dim, then scaled to length 1."""
    require_memory(24 * count * dim, f"{count:,} vectors of length {dim:,}")
    points = rng.uniform(-1.0, 1.0, size=(count, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class VectorParameters(Parameters):
    """What all problems on a pool of random unit vectors have in common."""

    n_arms: int = parameter(25, "vectors on offer in each round", ge=1, le=10**6)
    noise_std: float = parameter(0.05, "standard deviation of the reward's noise", ge=0)
    pool_size: int = parameter(2000, "unit vectors from which each round's arms are drawn", ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pool_size < self.n_arms:
            raise ParameterError(
                f"pool_size must be at least n_arms ({self.n_arms}), got {self.pool_size}"
            )


@dataclass(frozen=True, kw_only=True)
class FlippingVectorParameters(FlipsRegularly, VectorParameters):
    """Parameters of `flipping-vector`."""

    dim: int = parameter(50, "length of the vectors", ge=1)
    half_period: int = parameter(64, "rounds between two changes of sign of w", ge=1)


@dataclass(frozen=True, kw_only=True)
class RotatingVectorParameters(Oscillates, VectorParameters):
    """Parameters of `rotating-vector-32` and `rotating-vector-2048`."""

    period: float = parameter(32.0, "rounds in which w turns once around, 1/f", gt=0)


@dataclass(frozen=True, kw_only=True)
class StationaryVectorParameters(VectorParameters):
    """Parameters of `stationary-vector`."""

    dim: int = parameter(8, "length of the vectors", ge=1)


def flipping_vector(parameters: FlippingVectorParameters, streams: Streams) -> LinearProblem:
    """A random unit vector w that becomes -w every half period."""
    w = unit_vectors(1, parameters.dim, streams.generator("w"))[0]
    drift = Flip(w, -w, parameters.half_period)
    return _on_unit_vectors(parameters, parameters.dim, drift, streams)


def rotating_vector(parameters: RotatingVectorParameters, streams: Streams) -> LinearProblem:
    """w = (cos 2 pi f t, sin 2 pi f t)."""
    return _on_unit_vectors(parameters, 2, Rotation(parameters.period), streams)


def stationary_vector(parameters: StationaryVectorParameters, streams: Streams) -> LinearProblem:
    """A random unit vector w that stays."""
    w = unit_vectors(1, parameters.dim, streams.generator("w"))[0]
    return _on_unit_vectors(parameters, parameters.dim, Constant(w), streams)


def _on_unit_vectors(
    parameters: VectorParameters, dim: int, drift: Drift, streams: Streams
) -> LinearProblem:
    pool = unit_vectors(parameters.pool_size, dim, streams.generator("pool"))
    sampler = PoolSampler([(pool, parameters.n_arms)])
    return LinearProblem(
        sampler=sampler, drift=drift, noise_std=parameters.noise_std, streams=streams
    )


@dataclass(frozen=True, kw_only=True)
class SteadyContextsParameters(Parameters):
    """Parameters of `steady-contexts`."""

    n_arms: int = parameter(10, "arms", ge=2, le=1000)
    numbers: int = parameter(10, "numbers in a context", ge=1, le=10_000)
    rank: int = parameter(0, "directions in which contexts vary (0: all)", ge=0)
    noise_std: float = parameter(0.1, "standard deviation of the reward's noise", ge=0)
    shared: bool = parameter(
        False, "one weight vector and a vector for each arm, instead of weights for each arm"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.numbers:
            raise ParameterError(f"rank must be at most numbers ({self.numbers}), got {self.rank}")

    @property
    def directions(self) -> int:
        """In how many directions contexts vary."""
        return self.rank or self.numbers


class SteadyContexts(SimulatedProblem):
    """A world of `steady-contexts`."""

    def __init__(self, parameters: SteadyContextsParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._shared, self._rank = parameters.shared, parameters.directions
        world = streams.generator("world")
        self._spread: FloatArray | None = None
        if parameters.rank:
            drawn = world.standard_normal((parameters.numbers, self._rank))
            self._spread = np.linalg.qr(drawn)[0].T
        models = 1 if self._shared else self.n_arms
        self._weights = world.standard_normal((models, self._rank)) / np.sqrt(self._rank)
        self._streams = streams
        self._contexts = self._drawn()
        self.reward: GaussianReward = GaussianReward(
            parameters.noise_std, streams.generator("noise")
        )
        self._begin(0)

    def context(self) -> Context:
        """The observation, or the arms' vectors."""
        if self._shared:
            return Context(arm_features=self._seen)
        return Context(observation=self._seen[0])

    def structure(self) -> Structure:
        """Weights that never change, of every arm or of all; also the directions in which contexts
        vary are known."""
        groups = np.zeros(self.n_arms, np.int64) if self._shared else np.arange(self.n_arms)
        inner = np.broadcast_to(self._inner, (self.n_arms, self._rank))
        return weights(groups, inner, self.reward.noise_std)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k over the
        contexts."""
        drawn = itertools.islice(self._drawn(), horizon)
        means = [(inner @ self._weights.T).ravel() for inner in drawn]
        return float(sum(mu.max() - mu.mean() for mu in means))

    def _drawn(self) -> Iterator[FloatArray]:
        """What is seen in every round, in the directions in which contexts vary."""
        rng = self._streams.generator("contexts")
        while True:
            yield rng.standard_normal((self.n_arms if self._shared else 1, self._rank))

    def _begin(self, t: int) -> None:
        self._t = t
        inner = self._inner = next(self._contexts)
        self._seen = inner if self._spread is None else inner @ self._spread
        self._means: FloatArray = (inner @ self._weights.T).ravel()
        self._seen.flags.writeable = self._means.flags.writeable = False
