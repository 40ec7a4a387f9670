"""How boldly each arm's reward is drawn: known arms narrowly, and no arm is locked out.

Let n_k = 1 / (phi_k' Lam^-1 phi_k): how many rewards arm k is known by in the present context, and
n the mean of these. Draws with a part of the posterior's standard deviation save rounds, but only
for arms that share in what is learnt: one that looked bad early may never be played again, and then
a part of the width will not bring it back. So the factor on the standard deviation is

    k_k = sqrt(c log(1 + n / 4) / n_k), at least 1/2 (with contexts 1/4) and at most B

Draws are narrower than the posterior only for arms that are *known*: those whose n_k is at least c
log(1 + n / 4). `docs/tide.md` says why this is consistent. With contexts B = 2 (the prior's width
may be wrong, too), and c = 1/2, since contexts that vary try weights out by themselves (c = 1 where
arms have weights of their own on an observation: each has to be found by itself). Without contexts
B = 1, and c = 2, or 1 for hypotheses that forget, which cannot be misled for longer than they
remember.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.types import FloatArray


def boldness(leverages: FloatArray, *, least: float, most: float, plays: float = 1.0) -> FloatArray:
    """The factor of every arm; `leverages` are 1 / n_k, `plays` is c.

    >>> boldness(np.array([0.01, 0.01, 1e3]), least=0.5, most=2.0).round(2).tolist()
    [0.5, 0.5, 2.0]
    """
    known = float(np.mean(1.0 / leverages))
    return np.asarray(np.clip(np.sqrt(plays * math.log1p(known / 4) * leverages), least, most))
