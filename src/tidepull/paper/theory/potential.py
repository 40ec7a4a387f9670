"""The elliptical potential lemma for any lambda.

    sum_t ||u_t||_{V_{t+1}^-1} <= sqrt(T d log((T + d lambda) / (d lambda))),    V_t = lambda I + sum_{i<t} u_i u_i'

for any vectors u_t of length at most 1.
"""

from __future__ import annotations

import numpy as np

from tidepull.paper.theory.bound import Floats

RIDGES = (0.01, 0.1, 1.0, 10.0)
"""Values of lambda that are measured."""


class Potential:
    """Running sums for many trials and several lambdas at once (lambdas x trials)."""

    def __init__(self, trials: int, d: int, ridges: tuple[float, ...] = RIDGES) -> None:
        self._ridges = np.array(ridges)
        self._inverse: Floats = np.tile(np.eye(d), (len(ridges), trials, 1, 1))
        self._inverse /= self._ridges[:, None, None, None]
        self.sums: Floats = np.zeros((len(ridges), trials))
        self._d = d

    def add(self, u: Floats) -> None:
        """One vector of every trial (trials x d).

        With q = u'V_t^-1 u, the inverse after it is V_t^-1 - (V_t^-1 u)(V_t^-1 u)' / (1 + q), and u'V_{t+1}^-1 u =
        q / (1 + q).
        """
        turned = np.einsum("lsde,se->lsd", self._inverse, u)
        q = np.einsum("lsd,sd->ls", turned, u)
        self.sums += np.sqrt(q / (1.0 + q))
        self._inverse -= turned[..., :, None] * turned[..., None, :] / (1.0 + q)[..., None, None]

    def shares(self, T: int) -> Floats:
        """The largest sum of any trial after T vectors, as a share of the limit, for each lambda."""
        limit = np.sqrt(T * self._d * np.log1p(T / (self._d * self._ridges)))
        return np.asarray(self.sums.max(axis=1) / limit)
