"""All random numbers of a simulation: each seed has its own named streams, read in blocks of rounds.

A seed's numbers do not depend on which other seeds run beside it, nor on the length of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.paper.theory.bound import Floats
from tidepull.paper.theory.noise import Noise, draw_noise, unit
from tidepull.random import Streams

_BLOCK_FLOATS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The random numbers of one round, seeds along the first axis (`error` is empty when not wanted).

    `noise` blurs the reward of the arm that is played, `best_noise` that of the best arm where it is another.
    """

    context: Floats
    error: Floats
    posterior: Floats
    noise: Floats
    tie: Floats
    best_noise: Floats


class Draws:
    """Random numbers for `len(seeds)` trials of contexts K x d."""

    def __init__(self, seeds: Sequence[int], k: int, d: int, noise: Noise, *, with_error: bool) -> None:
        self._streams = [Streams(int(seed)).child("theory") for seed in seeds]
        self._k, self._d, self._noise, self._with_error = k, d, noise, with_error

    def parameters(self) -> Floats:
        """w for each seed, uniform on the unit sphere (the longest allowed)."""
        return unit(np.stack([s.generator("parameter").standard_normal(self._d) for s in self._streams]))

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
