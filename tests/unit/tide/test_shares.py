"""Many draws at once have the distribution of draws one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.property.conformance.playing import learn
from tidepull.policies import build_policy
from tidepull.tide.models import kernels
from tidepull.tide.models.weights import best_arms
from tidepull.types import Context, Event, ProblemShape


def grown(observed: int, binary: bool) -> Any:
    """The bank after 70 rounds, the moment after them, rows of the context, and a generator."""
    guard = build_policy("tide", ProblemShape(3, observed), seed=1)
    rng = np.random.default_rng(0)
    for n in range(70):
        context = Context(rng.normal(size=observed) if observed else None)
        arm = guard.choose(context)
        reward = float(rng.random() < 0.2 + 0.3 * arm) if binary else float(rng.normal(arm))
        learn(guard, Event(context, arm, reward, n))
    inner: Any = guard.inner
    tide = inner._patterns
    _, X, noted = tide._open(context)
    return tide._bank, tide._standard(noted), X, rng


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("observed", [0, 2])
def test_kernel_makes_draws_of_what_the_prior_says_of_every_slot(
    observed: int, binary: bool
) -> None:
    bank, now, X, _ = grown(observed, binary)
    arrays, prior = bank.arrays, bank.prior
    slots = np.flatnonzero(arrays.active)
    first, second = np.empty((len(slots), 3)), np.empty((len(slots), 3))
    kernels.predict_many(
        arrays,
        slots,
        now.t,
        now.covariates,
        now.per_arm,
        X,
        binary,
        prior.draw_scales,
        first,
        second,
    )
    for m, one, other in zip(slots, first, second, strict=True):
        forgets = bool(arrays.discount[m] < 1)
        if binary and arrays.dim[m] == 1:
            won, lost = np.empty(3), np.empty(3)
            kernels._counts(
                arrays, int(m), now.t, now.covariates, won, lost, np.empty(kernels.MAX_WIDTH)
            )
            expected = prior.beta(np.maximum(won, 0), np.maximum(lost, 0), forgets=forgets)
        else:
            means, leverages = bank.predict(m, now, X)
            width = (
                prior.context_scale(leverages)
                if arrays.contextual[m]
                else prior.plain_scale(leverages, forgets=forgets)
            )
            expected = means, width * np.sqrt(leverages)
        np.testing.assert_allclose(one, expected[0], rtol=1e-12, err_msg=str(bank.spec(m)))
        np.testing.assert_allclose(other, expected[1], rtol=1e-12, err_msg=str(bank.spec(m)))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("observed", [0, 2])
def test_draws_at_once_are_distributed_like_draws_one_by_one(observed: int, binary: bool) -> None:
    bank, now, X, rng = grown(observed, binary)
    slots = np.flatnonzero(bank.arrays.active)
    for m in rng.choice(slots, 6, replace=False):
        one_by_one = np.array([bank.draw(int(m), now, X, binary, rng) for _ in range(1500)])
        at_once = bank.draws({int(m): 1500}, now, X, binary, rng)
        assert at_once.shape == (1500, 3)
        spread = one_by_one.std(axis=0)
        assert np.abs(at_once.mean(axis=0) - one_by_one.mean(axis=0)).max() < 0.15 * spread.max()
        inner = [
            np.subtract(*np.quantile(draws, [0.75, 0.25], axis=0))
            for draws in (one_by_one, at_once)
        ]
        assert np.allclose(inner[0], inner[1], rtol=0.2)


def test_draws_of_several_slots_are_those_of_one_after_the_other() -> None:
    bank, now, X, _ = grown(2, True)
    slots = [int(m) for m in np.flatnonzero(bank.arrays.active)[::40]]
    found = {m: 1 + i for i, m in enumerate(slots)}
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    parts = [bank.draws({m: count}, now, X, True, other) for m, count in found.items()]
    np.testing.assert_array_equal(bank.draws(found, now, X, True, one), np.concatenate(parts))


def test_best_arms_are_the_same_until_they_are_compiled() -> None:
    kernel: Any = best_arms
    scores = np.random.default_rng(2).normal(size=(40, 5)).round(1)  # with ties
    scores[3], scores[5, 1] = -np.inf, np.inf
    for available in (np.ones(5, bool), np.array([False, True, True, False, True])):
        one, other = (np.empty(40, np.int64), np.empty(5)), (np.empty(40, np.int64), np.empty(5))
        kernel.py_func(scores, available, *one)
        kernel.until_compiled(scores, available, *other)
        assert one[0].tolist() == other[0].tolist()
        assert one[1].tobytes() == other[1].tobytes()
        assert sum(one[1]) == pytest.approx(1.0)
