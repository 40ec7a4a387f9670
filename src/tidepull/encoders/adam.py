"""Adam, as in Algorithm 1 of Kingma and Ba (2014): epsilon is added after the bias correction."""

from __future__ import annotations

import numpy as np

from tidepull.encoders import kernels
from tidepull.types import FloatArray, Snapshot

BETA1, BETA2 = 0.9, 0.999


class Adam:
    """The optimiser of one parameter vector; its moments live as long as the network.

    m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,
    p <- p - rate * m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
    """

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self._p = parameters
        self._rate = learning_rate
        self._m = np.zeros_like(parameters)
        self._v = np.zeros_like(parameters)
        self._t = 0
        self._mark = np.zeros_like(self._m), np.zeros_like(self._v), 0

    def mark(self) -> None:
        """Remember where the moments are, for `back`."""
        m, v, _ = self._mark
        m[:], v[:] = self._m, self._v
        self._mark = m, v, self._t

    def back(self) -> None:
        """Put the moments where they were at the last `mark`; the parameters are left alone."""
        self._m[:], self._v[:], self._t = self._mark

    def step(self, gradient: FloatArray) -> None:
        """Move the parameters, in place."""
        self._t += 1
        corrections = 1.0 / (1.0 - BETA1**self._t), 1.0 / (1.0 - BETA2**self._t)
        kernels.adam_step(self._p, gradient, self._m, self._v, self._rate, *corrections)

    @property
    def finite(self) -> bool:
        """Whether no moment has overflowed: a squared gradient does so long before the loss."""
        return bool(np.isfinite(self._v).all() and np.isfinite(self._m).all())

    def snapshot(self) -> Snapshot:
        """Moments and number of steps."""
        return _snapshot(self._m, self._v, self._t)

    def marked(self) -> Snapshot:
        """Moments and number of steps at the last `mark`."""
        return _snapshot(*self._mark)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._m[:], self._v[:], self._t = snapshot["m"], snapshot["v"], int(snapshot["steps"])


def _snapshot(m: FloatArray, v: FloatArray, steps: int) -> Snapshot:
    return {"m": m.copy(), "v": v.copy(), "steps": steps}
