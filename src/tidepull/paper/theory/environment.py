"""The environment of the simulation: noise, measurement error, adversaries and random streams.

Reward noise is sigma-sub-Gaussian with exactly the stated sigma. Measurement error is bounded by
epsilon. An adversary chooses the true contexts of a round, knowing the past and w itself. Each seed
has its own named streams, read in blocks of rounds: its numbers do not depend on the other seeds,
nor on the length of a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from tidepull.paper.theory.bound import Floats
from tidepull.random import Streams

Noise: TypeAlias = Literal["gaussian", "rademacher", "uniform"]
ErrorKind: TypeAlias = Literal["sphere", "aligned"]
Schedule: TypeAlias = Literal["constant", "shrinking", "bursts"]
NOISES: tuple[Noise, ...] = get_args(Noise)
ERRORS: tuple[ErrorKind, ...] = get_args(ErrorKind)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)

_BURST, _PAUSE = 16, 48


def _gaussian(rng: np.random.Generator, n: int) -> Floats:
    """E exp(a Z) = exp(a^2 / 2)."""
    return rng.standard_normal(n)


def _rademacher(rng: np.random.Generator, n: int) -> Floats:
    """A fair sign: E exp(a Z) = cosh(a) <= exp(a^2 / 2)."""
    return np.asarray(2.0 * rng.integers(0, 2, n) - 1.0, np.float64)


def _uniform(rng: np.random.Generator, n: int) -> Floats:
    """Uniform on [-sqrt(3), sqrt(3)]: E exp(a Z) = sinh(sqrt(3) a) / (sqrt(3) a) <= exp(a^2 /
    2)."""
    return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), n)


_DRAWS: dict[Noise, Callable[[np.random.Generator, int], Floats]] = {
    "gaussian": _gaussian,
    "rademacher": _rademacher,
    "uniform": _uniform,
}


def draw_noise(kind: Noise, rng: np.random.Generator, n: int) -> Floats:
    """`n` draws of mean 0, variance 1 and sub-Gaussian scale 1."""
    return _DRAWS[kind](rng, n)


def size(schedule: Schedule, t: int) -> float:
    """epsilon_t / epsilon: 1 always; 1 / sqrt(t); or 1 for 16 rounds and 0 for 48, in turn."""
    if schedule == "shrinking":
        return 1.0 / math.sqrt(t)
    return 1.0 if schedule == "constant" or (t - 1) % (_BURST + _PAUSE) < _BURST else 0.0


def observe(truth: Floats, w: Floats, normals: Floats, epsilon: float, kind: ErrorKind) -> Floats:
    """Observed contexts: the truth plus an error of length epsilon, brought back into the unit
    ball.

    'sphere': in a uniformly random direction. 'aligned': along w with a random sign, the direction
    in which an error of that length moves the reward most. The error is drawn afresh whatever
    happened before; bringing back is a projection onto a convex set that holds the truth, so it
    never lengthens the error.
    """
    if epsilon == 0:
        return truth
    along_w = kind == "aligned"
    direction = np.sign(normals[..., :1]) * unit(w)[..., None, :] if along_w else unit(normals)
    shifted = truth + epsilon * direction
    norm = np.sqrt(np.sum(shifted * shifted, axis=-1, keepdims=True))
    return np.asarray(shifted / np.maximum(norm, 1.0))


def unit(vectors: Floats) -> Floats:
    """Vectors of length 1 in the same directions."""
    return np.asarray(vectors / np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True)))


AdversaryName: TypeAlias = Literal["random", "least-explored", "hidden-best", "unexplored-best"]
ADVERSARIES: tuple[AdversaryName, ...] = get_args(AdversaryName)

_TILT = 0.5
_KNOWN_MEAN = 0.43


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What an adversary sees before round `t`, for many seeds (first axis) at once.

    `precision` is B_t (seeds x d x d), `w` the parameter (seeds x d), `normals` fresh standard
    normal numbers (seeds x K x d), `epsilon` the error that the agent's contexts will carry.
    """

    t: int
    precision: Floats
    w: Floats
    normals: Floats
    epsilon: float


Adversary: TypeAlias = Callable[[View], Floats]
"""From a view to true contexts in the unit ball (seeds x K x d)."""


def random_contexts(view: View) -> Floats:
    """Uniform on the unit sphere, whatever happened before."""
    return unit(view.normals)


def least_explored(view: View) -> Floats:
    """Around plus and minus the direction the agent knows least: B_t's eigenvector of the smallest
    eigenvalue."""
    direction = np.linalg.eigh(view.precision)[1][..., 0]
    signs = np.where(np.arange(view.normals.shape[-2]) % 2 == 0, 1.0, -1.0)
    return unit(signs[:, None] * direction[..., None, :] + _TILT * unit(view.normals))


def hidden_best(view: View) -> Floats:
    """All arms within epsilon of each other, so that the best lies in the error ball of every
    other.

    The best arm (another each round) is shifted by epsilon / 2 along w from a common random centre,
    the others by as much against it: the gap is epsilon ||w||, and no observed context can tell
    which is which for sure.
    """
    seeds, n_arms, _ = view.normals.shape
    half = min(view.epsilon, 2.0) / 2.0
    centre = (1.0 - half) * unit(view.normals[:, 0, :])
    side = np.where(np.arange(n_arms) == view.t % n_arms, 1.0, -1.0)
    return np.asarray(
        centre[:, None, :]
        + half
        * side[:, None]
        * np.broadcast_to(unit(view.w), (seeds, view.w.shape[-1]))[:, None, :]
    )


def unexplored_best(view: View) -> Floats:
    """The best arm lies at right angles to the only direction that the agent gets to know.

    All arms are v, ||v|| = 1 and v . w = 0.43, but in rounds 8, 16, 32, ..., where the first is u at
    right angles to v, u . w = 0.90. The agent soon knows v and nothing of u, so that only a wide
    posterior plays u; from about 2,048 rounds on v is saturated (d = 2, K = 2, sigma = 0.21).
    """
    axis = np.zeros_like(view.w)
    axis[:, 0] = 1.0
    across = unit(axis - np.sum(axis * view.w, axis=1, keepdims=True) * view.w)
    rest = math.sqrt(1.0 - _KNOWN_MEAN**2)
    known = _KNOWN_MEAN * view.w + rest * across
    truth = np.repeat(known[:, None, :], view.normals.shape[1], axis=1)
    if view.t >= 8 and view.t & (view.t - 1) == 0:
        truth[:, 0] = rest * view.w - _KNOWN_MEAN * across
    return truth


_BY_NAME: dict[AdversaryName, Adversary] = {
    "random": random_contexts,
    "least-explored": least_explored,
    "hidden-best": hidden_best,
    "unexplored-best": unexplored_best,
}


def adversary(name: AdversaryName) -> Adversary:
    """The adversary of that name."""
    return _BY_NAME[name]


_BLOCK_FLOATS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The random numbers of one round, seeds along the first axis (`error` is empty when not
    wanted).

    `noise` blurs the reward of the arm that is played, `best_noise` that of the best arm where it
    is another.
    """

    context: Floats
    error: Floats
    posterior: Floats
    noise: Floats
    tie: Floats
    best_noise: Floats


class Draws:
    """Random numbers for `len(seeds)` trials of contexts K x d."""

    def __init__(
        self, seeds: Sequence[int], k: int, d: int, noise: Noise, *, with_error: bool
    ) -> None:
        self._streams = [Streams(int(seed)).child("theory") for seed in seeds]
        self._k, self._d, self._noise, self._with_error = k, d, noise, with_error

    def parameters(self) -> Floats:
        """w for each seed, uniform on the unit sphere (the longest allowed)."""
        return unit(
            np.stack([s.generator("parameter").standard_normal(self._d) for s in self._streams])
        )

    def rounds(self, horizon: int) -> Iterator[Numbers]:
        """One `Numbers` for each round, from the start of the streams."""
        seeds, k, d = len(self._streams), self._k, self._d
        names = ("contexts", "errors", "posterior", "noise", "ties", "best-noise")
        generators = [[stream.generator(name) for name in names] for stream in self._streams]
        length = max(1, min(horizon, _BLOCK_FLOATS // (seeds * k * d)))
        for start in range(0, horizon, length):
            n = min(length, horizon - start)
            context = np.empty((n, seeds, k, d))
            error = np.empty((n, seeds, k, d) if self._with_error else (n, 0))
            posterior, noise, tie, best = np.empty((n, seeds, d)), *np.empty((3, n, seeds))
            for j, (contexts, errors, posteriors, noises, ties, bests) in enumerate(generators):
                context[:, j] = contexts.standard_normal((n, k, d))
                if self._with_error:
                    error[:, j] = errors.standard_normal((n, k, d))
                posterior[:, j] = posteriors.standard_normal((n, d))
                noise[:, j] = draw_noise(self._noise, noises, n)
                tie[:, j] = ties.random(n)
                best[:, j] = draw_noise(self._noise, bests, n)
            for i in range(n):
                yield Numbers(context[i], error[i], posterior[i], noise[i], tie[i], best[i])
