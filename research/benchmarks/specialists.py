"""The specialist who knows the structure of a world that changes in stretches: which rounds pay
alike. Only the values are left to be learnt, so no policy that must find the structure out can be
expected to lose less.

Without contexts every arm has a posterior of its own for each value that its mean ever takes (an
arm that did not change, or whose regime returned, is recognised); where arms are vectors, there is
one for each weight vector. Thompson sampling: Beta(1, 1) for rewards of 0 and 1, else N(1/2, 1/3)
for levels in [0, 1] and N(0, 1/dim) for weights, with the noise known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.types import Context, Event, FloatArray, IntArray


class KnowsStretches:
    """Arms without contexts; `means` has a row for every round. `noise` is None for rewards of 0
    and 1."""

    def __init__(self, means: FloatArray, noise: float | None, seed: int) -> None:
        self._alike: IntArray = np.array(
            [np.unique(column, return_inverse=True)[1] for column in means.T]
        ).T
        shape = (means.shape[1], int(self._alike.max()) + 1)
        self._n, self._s = np.zeros(shape), np.zeros(shape)
        self._noise, self._rng, self._t = noise, np.random.default_rng(seed), 0

    def choose(self, context: Context) -> int:
        """The best arm of one draw of the values that hold now."""
        place = np.arange(len(self._n)), self._alike[self._t]
        n, s = self._n[place], self._s[place]
        if self._noise is None:
            return int(np.argmax(self._rng.beta(1 + s, 1 + n - s)))
        precision = 3 + n / self._noise**2
        mean = (1.5 + s / self._noise**2) / precision
        return int(np.argmax(mean + self._rng.standard_normal(len(n)) / np.sqrt(precision)))

    def learn(self, event: Event) -> None:
        """The value that held learns its reward."""
        value = self._alike[self._t, event.arm]
        self._n[event.arm, value] += 1
        self._s[event.arm, value] += event.reward
        self._t += 1


class KnowsVectors:
    """Arms that are vectors; `weights` has a row for every round."""

    def __init__(self, weights: FloatArray, noise: float, seed: int) -> None:
        _, alike = np.unique(weights, axis=0, return_inverse=True)
        self._alike = np.ravel(alike)
        dim = weights.shape[1]
        self._precision = np.repeat(dim * np.eye(dim)[None], int(self._alike.max()) + 1, axis=0)
        self._eta = np.zeros((len(self._precision), dim))
        self._noise, self._rng, self._t = noise, np.random.default_rng(seed), 0

    def choose(self, context: Context) -> int:
        """The best arm under one draw of the weights that hold now."""
        i = self._alike[self._t]
        lower = np.linalg.cholesky(self._precision[i])
        mean = np.linalg.solve(self._precision[i], self._eta[i])
        drawn = mean + np.linalg.solve(lower.T, self._rng.standard_normal(len(mean)))
        return int(np.argmax(np.asarray(context.arm_features) @ drawn))

    def learn(self, event: Event) -> None:
        """The weights that held learn the reward."""
        i, x = self._alike[self._t], np.asarray(event.context.arm_features)[event.arm]
        self._precision[i] += np.outer(x, x) / self._noise**2
        self._eta[i] += x * event.reward / self._noise**2
        self._t += 1


def specialist(problem: Any, horizon: int, seed: int) -> KnowsStretches | KnowsVectors | None:
    """Who knows this problem's structure; None when nobody here does."""
    drift = getattr(problem, "drift", None)
    if drift is None:
        return None
    rows = np.array([drift(t) for t in range(horizon)])
    if len(np.unique(rows[:, 0])) > horizon / 20:  # it moves all the time
        return None
    noise: float | None = getattr(problem.reward, "noise_std", None)
    if noise is not None and problem.context().arm_features is not None:
        return KnowsVectors(rows, noise, seed)
    return KnowsStretches(rows, noise, seed)
