"""Gaussian classes: one arm is right in a round, and the context depends on which.

`gaussian_classes.py` has the equations. Where an arm pays if it is right, a success gives the
context of its class, and a failure that of another class: with many arms this is much more than a
regression for each arm learns from the same rewards. Class frequencies may change: recent
frequencies are the prior of a class.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models import gaussian_classes
from tidepull.tide.models.boxed import BoxCache
from tidepull.tide.models.calibration import BINS, KEPT
from tidepull.tide.models.family import Family, Filter, Finding, Layout, Window
from tidepull.tide.models.filters import require_fit
from tidepull.tide.models.gaussian_classes import PAID, RIGHT, WRONG, GaussianClasses
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, Snapshot

_SHARES = (0.1, 0.3, 0.6)
_MEMORIES = (1.0, 0.98, 0.8)
_PAYS = ((19.0, 1.0), (0.5, 49.5))
"""Prior counts of right and wrong arms that were paid, and not."""
_WIDTH = 0.25
"""Draw scale of centres: the least draw scale of weights on a context (`NoisePrior.min_scale`)."""
_LARGEST, _MOST = 1_000_000, 200_000
"""Limits of products in a fit of the whitening, and in a round: a fraction of a millisecond."""
_UNSAID = -4.0
"""Log density, less log(1 + y^2), of rewards that are not two-point: too low to lead."""
_CLOSE, _STEEPEST = 1e-6, 1e9
"""Tolerance of a sum of weights, and largest number of a whitening."""
_HUGE = 1e100
"""Largest reward, so that its square is finite."""
_FIXED = ("between_shares", "decays", "z", "factor", "work", "chances")
_LEARNT = tuple(name for name in GaussianClasses._fields if name not in _FIXED)


class ClassFilter:
    """Posterior over the class of a round: a centre for each arm, and its recent frequency."""

    family = "classes"
    words = "one arm is right at a time, the context tells which"

    def __init__(self, n_arms: int, numbers: int) -> None:
        self._size = n_arms, numbers
        self.arrays = _empty(n_arms, numbers)
        self._box = BoxCache()

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt."""
        if not binary:
            return _UNSAID - math.log1p(min(abs(y), _HUGE) ** 2)
        return float(gaussian_classes.observe(self._box(self.arrays), t, arm, x[1:], y))

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Replay a window of past rounds; log likelihoods by round."""
        if not binary:
            return np.asarray(_UNSAID - np.log1p(np.minimum(np.abs(window.y), _HUGE) ** 2))
        scores = np.empty(len(window.t))
        x = np.ascontiguousarray(window.x[:, 1:])
        K, d = self._size
        # White coordinates are looked for in every second of the first rounds, later in one of
        # twenty and less.
        steps = (
            2 * K * d + 2 * d * d + 5 * K * len(_SHARES) * len(_MEMORIES) + (K + d) * d * d // 10
        )
        for start, stop, spent in ranges(len(scores), steps):
            part = slice(start, stop)
            gaussian_classes.replay(
                self.arrays,
                window.t[part],
                window.arm[part],
                x[part],
                window.y[part],
                scores[part],
            )
            yield spent
        return scores

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t, by a narrow draw of the centres; the
        variance of a context about a centre is as without the draw."""
        K, d = self._size
        along = rng.standard_normal(K)
        if not binary:
            return along  # it has nothing to say
        across, chances = rng.chisquare(d - 1, K) if d > 1 else np.zeros(K), np.empty(K)
        x = np.ascontiguousarray(X[0, 1:])
        gaussian_classes.predict(self._box(self.arrays), t, x, _WIDTH, along, across, chances)
        payoffs = self.arrays.payoffs
        p_right = payoffs[RIGHT, PAID] / payoffs[RIGHT].sum()
        p_wrong = payoffs[WRONG, PAID] / payoffs[WRONG].sum()
        return np.asarray(2 * (p_wrong + (p_right - p_wrong) * chances) - 1)

    def reset_copy(self, units: float | None) -> Filter:
        """An untrained copy."""
        return ClassFilter(*self._size)

    def refresh_ridge(self) -> None:
        """There is none."""

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """Number of arms that have been right, how often the right arm pays, and the memory of
        class frequencies."""
        classes = self.arrays
        found = int((classes.n_rows >= 0.5).sum())
        p_right = float(classes.payoffs[RIGHT, PAID] / classes.payoffs[RIGHT].sum())
        gamma = _MEMORIES[int(np.argmax(classes.weight.sum(axis=0)))]
        lately = (
            "" if gamma == 1 else f", how often in the last {1 / (1 - gamma):.0f} rounds counts"
        )
        words = f"{found} of {len(classes.n_rows)} arms have been right, a right arm pays in {p_right:.0%}{lately}"
        facts = {"found": found, "of": len(classes.n_rows), "sure": round(p_right, 4)}
        return [Finding(words, facts)]

    def snapshot(self) -> Snapshot:
        """All that it learnt."""
        return {name: getattr(self.arrays, name).copy() for name in _LEARNT}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        require_fit(_LEARNT, snapshot, self.arrays)
        for name in ("rows", "n_rows", "frequency", "bins"):
            if (snapshot[name] < 0).any():
                raise ValueError(f"classes whose '{name}' is negative")
        for name in ("weight", "payoffs"):
            if (snapshot[name] <= 0).any():
                raise ValueError(f"classes whose '{name}' is not positive")
        if (snapshot["bins"][:, 1] > snapshot["bins"][:, 0]).any():
            raise ValueError("classes that succeeded more often than they were tried in 'bins'")
        if (
            abs(snapshot["weight"].sum() - 1) > _CLOSE
            or np.abs(snapshot["white"]).max() > _STEEPEST
        ):
            raise ValueError("classes whose 'weight' or 'white' is impossible")
        for name in _LEARNT:
            getattr(self.arrays, name)[...] = snapshot[name]


def _empty(n_arms: int, numbers: int) -> GaussianClasses:
    shape, pairs = (n_arms, numbers), (len(_SHARES), len(_MEMORIES))
    return GaussianClasses(
        latest=np.full(1, -1),
        rows=np.zeros(2),
        mean=np.zeros(numbers),
        scatter=np.zeros((numbers, numbers)),
        white=np.eye(numbers),
        origin=np.zeros(numbers),
        n_rows=np.zeros(n_arms),
        sums=np.zeros(shape),
        white_sums=np.zeros(shape),
        frequency=np.zeros((len(_MEMORIES), n_arms)),
        weight=np.full(pairs, 1 / (len(_SHARES) * len(_MEMORIES))),
        bins=np.zeros((BINS, KEPT)),
        odds=np.zeros(1),
        payoffs=np.array(_PAYS),
        between_shares=np.array(_SHARES),
        decays=np.array(_MEMORIES),
        z=np.zeros(numbers),
        factor=np.zeros((numbers, numbers)),
        work=np.zeros((4, n_arms)),
        chances=np.zeros((*pairs, n_arms)),
    )


def _filters(layout: Layout, _: NoisePrior, _seed: int) -> list[Filter]:
    numbers = layout.context_dim - 1
    arms = layout.n_arms
    if (
        not layout.mixed
        or (arms + numbers) * numbers**2 > _LARGEST
        or arms * (numbers + 20) > _MOST
    ):
        return []
    return [ClassFilter(layout.n_arms, numbers)]


FAMILY = Family(
    name="classes",
    words="one arm is right at a time, the context tells which",
    prior=0.04,
    colour="#8c6d31",
    filters=_filters,
)
