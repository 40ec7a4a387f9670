"""A point wanders slowly through a hidden space; many sensors see it, and the region it is in has a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidepull.errors import ProblemError
from tidepull.problems.drift import read_only
from tidepull.problems.random_drifts import LONGEST, log_uniform, reflected
from tidepull.problems.rewards import Reward
from tidepull.problems.structures import levels, noise_of
from tidepull.types import Context, FloatArray, IntArray, Structure


class Landscape(NamedTuple):
    """What sensors and labels make of a point: sensor j shows tanh(gain_j . point + shift_j), noise added;
    the label is that of the nearest landmark, so that regions are no half spaces."""

    gain: FloatArray  # (dim, sensors)
    shift: FloatArray
    landmarks: FloatArray  # (landmarks, dim)
    labels: IntArray
    speed: float
    noise: float

    def walk(self, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Readings and labels of a walk of `LONGEST` rounds within the unit cube."""
        dim, sensors = self.gain.shape
        steps = self.speed * rng.standard_normal((LONGEST, dim))
        points = reflected(rng.random(dim) + np.cumsum(steps, axis=0))
        seen = np.tanh((points - 0.5) @ self.gain + self.shift)
        readings = seen + self.noise * rng.standard_normal((LONGEST, sensors))
        away = np.sum((points[:, None, :] - self.landmarks) ** 2, axis=2)
        return readings, self.labels[np.argmin(away, axis=1)]


def random_landscape(n_labels: int, rng: np.random.Generator) -> Landscape:
    """Two to four hidden dimensions, 10 to 40 sensors, three landmarks for each label."""
    dim, sensors = int(rng.integers(2, 5)), int(rng.integers(10, 41))
    return Landscape(
        gain=rng.standard_normal((dim, sensors)) * log_uniform(rng, 1.0, 6.0),
        shift=rng.standard_normal(sensors),
        landmarks=rng.random((3 * n_labels, dim)),
        labels=np.repeat(np.arange(n_labels), 3),
        speed=log_uniform(rng, 0.01, 0.1),
        noise=log_uniform(rng, 0.02, 0.3),
    )


class LabelledPath:
    """One arm pays for each label; which one, takes turns between two rules."""

    def __init__(
        self, readings: FloatArray, labels: IntArray, rules: IntArray, phases: IntArray, reward: Reward
    ) -> None:
        self.n_arms = rules.shape[1]
        self._readings, self._best = read_only(readings), rules[phases, labels]
        self._rows = [read_only(row) for row in np.eye(self.n_arms)]
        self._reward, self._labels, self._phases = reward, labels, phases
        self._t = 0

    def context(self) -> Context:
        """What the sensors read."""
        self._check_round()
        return Context(observation=self._readings[self._t])

    def means(self) -> FloatArray:
        """1 for the arm of the label, 0 for all others."""
        self._check_round()
        return self._rows[int(self._best[self._t])]

    def step(self, arm: int) -> float:
        """The reward of an arm, and on along the path."""
        reward = self._reward(self.means(), arm)
        self._t += 1
        return reward

    def structure(self) -> Structure:
        """Which label it is, and which of the two rules holds; what each arm pays then is to be learnt."""
        state = int(self._labels[self._t]) + self.n_arms * int(self._phases[self._t])
        return levels(np.arange(self.n_arms) + self.n_arms * state, noise_of(self._reward))

    def _check_round(self) -> None:
        if self._t >= len(self._best):
            raise ProblemError(f"a path ends after {len(self._best)} rounds; shorten the horizon")
