"""Many draws at once have the distribution of draws one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.playing import learn
from tidepull.building import build_policy
from tidepull.types import Context, Event, ProblemShape


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("observed", [0, 2])
def test_draws_at_once_are_distributed_like_draws_one_by_one(observed: int, binary: bool) -> None:
    guard = build_policy("tide", ProblemShape(3, observed), seed=1)
    rng = np.random.default_rng(0)
    for n in range(70):
        context = Context(rng.normal(size=observed) if observed else None)
        arm = guard.choose(context)
        reward = float(rng.random() < 0.2 + 0.3 * arm) if binary else float(rng.normal(arm))
        learn(guard, Event(context, arm, reward, n))
    tide = guard.inner
    _, X, noted = tide._opened(context)  # type: ignore[attr-defined]
    bank, now = tide._bank, tide._standard(noted)  # type: ignore[attr-defined]
    slots = np.flatnonzero(bank.arrays.active)
    for m in rng.choice(slots, 6, replace=False):
        one_by_one = np.array([bank.draw(int(m), now, X, binary, rng) for _ in range(1500)])
        at_once = bank.draws(int(m), now, X, binary, rng, 1500)
        assert at_once.shape == (1500, 3)
        spread = one_by_one.std(axis=0)
        assert np.abs(at_once.mean(axis=0) - one_by_one.mean(axis=0)).max() < 0.15 * spread.max()
        inner = [np.subtract(*np.quantile(draws, [0.75, 0.25], axis=0)) for draws in (one_by_one, at_once)]
        assert np.allclose(inner[0], inner[1], rtol=0.2)
