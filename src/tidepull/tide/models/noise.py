"""The shared prior of all models, and the scale of draws: known arms are drawn narrowly, and no arm is
locked out.

Let n_k = 1 / (phi_k' Lam^-1 phi_k): the effective number of rewards of arm k in the present context,
and n the mean of these. Draws with a part of the posterior's standard deviation save rounds, but an
arm that was unlucky early may never be played again. So the factor on the standard deviation is

    k_k = sqrt(c log(1 + n / 4) / n_k), at least 1/4 and at most 2        with contexts
    k_k = sqrt(log(1 + n / 4) / n_k),   at least 1/2 and at most 1        for models that forget
    k_k = 1/2 sqrt(n_max / n_k),        at most 1                         for all others

With contexts c = 1/2, since contexts that vary explore weights by themselves (c = 1 where arms have
weights of their own on an observation, each of which has to be explored), and the prior's width may
be wrong, too. Discounted models use c = 1 because their errors are bounded by their memory. All
others keep the width of the posterior for every arm with less than a quarter of the rewards n_max of
the best known arm: rounds are saved among arms that are known equally. `docs/tide.md` says why
(Fan and Glynn, 2024, show the tails of narrower draws).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.types import BoolArray, FloatArray

_LEAST = 1e-3
"""Least parameter of a Beta distribution."""


def draw_scale(
    leverages: FloatArray, *, min_scale: float, max_scale: float, scale_c: float = 1.0
) -> FloatArray:
    """Draw scale of every arm; `leverages` are 1 / n_k, of several models one a row.

    >>> draw_scale(np.array([0.01, 0.01, 1e3]), min_scale=0.5, max_scale=2.0).round(2).tolist()
    [0.5, 0.5, 2.0]
    """
    known = np.mean(1.0 / leverages, axis=-1, keepdims=True)
    logs = np.reshape([scale_c * math.log1p(n / 4) for n in known.ravel().tolist()], known.shape)
    return np.asarray(np.clip(np.sqrt(logs * leverages), min_scale, max_scale))


def lasting_scale(leverages: FloatArray, min_scale: float) -> FloatArray:
    """Draw scale of every arm under a model without discount and context.

    >>> lasting_scale(1 / np.array([400.0, 225.0, 100.0, 7.0]), 0.5).round(2).tolist()
    [0.5, 0.67, 1.0, 1.0]
    """
    best = np.min(leverages, axis=-1, keepdims=True)
    return np.asarray(np.minimum(min_scale * np.sqrt(leverages / best), 1.0))


@dataclass(frozen=True, slots=True)
class NoisePrior:
    """Inverse gamma prior (a0, b0) of the noise, the factor of its sufficient statistics in each
    round (`memory`), and the prior standard deviation of an arm's expected reward, in units of
    standardised rewards.

    The standard deviation is smaller where every arm has weights of its own on the context: each of
    arms x coordinates weights has to be explored, and with a wide prior most rounds would be spent
    on that. For the same reason draws of weights on the context have `min_scale` times the
    posterior's standard deviation. Where contexts do not vary, an arm's scale grows the less is
    known of it relative to the others, up to `max_scale`; `scale_c` is c above. Without context,
    the scale of known arms is at least `min_scale_plain`, and at most 1. `by_density`:
    probabilities of rewards of 0 and 1, with more than one feature, follow from the densities of
    both.
    """

    a0: float = 1.0
    b0: float = 0.1
    memory: float = 0.995
    reward_std: float = 1.0
    own_context_std: float = 0.7
    min_scale: float = 0.5
    max_scale: float = 0.5
    scale_c: float = 1.0
    min_scale_plain: float = 1.0
    least_noise: float = 0.003
    most_noise: float = 1.0
    by_density: bool = False

    @property
    def draw_scales(self) -> FloatArray:
        """Parameters of draws, as kernels read them."""
        return np.array([self.min_scale, self.max_scale, self.scale_c, self.min_scale_plain])

    def ridge(self, noise: FloatArray, own_context: BoolArray) -> FloatArray:
        """lam0 = s2 / tau^2, so that an arm never seen has the prior variance tau^2 whatever the
        noise."""
        return np.asarray(
            np.clip(noise, self.least_noise, self.most_noise) / self.variance(own_context)
        )

    def context_scale(self, leverages: FloatArray) -> FloatArray | float:
        """Draw scale of every arm with a context."""
        if self.max_scale <= self.min_scale:
            return self.min_scale
        return draw_scale(
            leverages, min_scale=self.min_scale, max_scale=self.max_scale, scale_c=self.scale_c
        )

    def plain_scale(self, leverages: FloatArray, *, forgets: bool) -> FloatArray | float:
        """Draw scale without a context. Discounted models use c = 1 because their errors are
        bounded by their memory."""
        if self.min_scale_plain == 1.0:
            return 1.0
        if not forgets:
            return lasting_scale(leverages, self.min_scale_plain)
        return draw_scale(leverages, min_scale=self.min_scale_plain, max_scale=1.0)

    def beta(
        self, won: FloatArray, lost: FloatArray, *, forgets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Parameters of the Beta distributions of arms, from numbers of successes and failures
        divided by the squared draw scale."""
        if self.min_scale_plain < 1.0:
            won, lost = np.maximum(won, 0), np.maximum(lost, 0)
            narrower = self.plain_scale(1 / (1 + won + lost), forgets=forgets) ** 2
            won, lost = won / narrower, lost / narrower
        # Until a change of units is worked in, sums of rewards may exceed their numbers.
        return np.maximum(1 + won, _LEAST), np.maximum(1 + lost, _LEAST)

    def beta_draw(
        self, won: FloatArray, lost: FloatArray, rng: np.random.Generator, *, forgets: bool
    ) -> FloatArray:
        """Draw expected rewards of arms, -1 to 1, from these Beta distributions."""
        return np.asarray(2 * rng.beta(*self.beta(won, lost, forgets=forgets)) - 1)

    def variance(self, own_context: BoolArray) -> FloatArray:
        """tau^2."""
        return np.where(own_context, self.own_context_std, self.reward_std) ** 2
