"""Shares that a policy says before it plays: they add up, respect masks, open one round, and are
those of `choose`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.property.conformance.playing import SHAPES, contexts, learn, make
from tidepull import state as snapshots
from tidepull.policies import build_policy, policies
from tidepull.types import Context, Event, FloatArray, ProblemShape

IDS = [id for id in policies.ids() if id != "oracle"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("id", IDS)
def test_shares_add_up_to_one_over_available_arms_and_open_one_round(
    id: str, shape: ProblemShape
) -> None:
    policy = make(id, shape)
    rng = np.random.default_rng(3)
    seen: list[FloatArray] = []

    def pick(shares: FloatArray) -> int:
        seen.append(shares)
        return int(rng.choice(len(shares), p=shares / shares.sum()))

    for n, context in enumerate(contexts(shape, 40, masked=id != "fixed")):
        assert policy.rounds == n
        arm = policy.choose_by(context, 8, pick)
        assert abs(seen[-1].sum() - 1) < 1e-9
        assert context.available is None or not seen[-1][~context.available].any()
        learn(policy, Event(context, arm, float(rng.integers(2)), n))
    assert len(seen) == 40


@pytest.mark.parametrize("id", IDS)
def test_shares_after_a_restart_are_those_of_an_undisturbed_run(id: str) -> None:
    shape = SHAPES["observation"]
    first, second = make(id, shape), make(id, shape)
    given = contexts(shape, 60)
    for n, context in enumerate(given[:40]):
        learn(first, Event(context, first.choose_by(context, 4, _largest), float(n % 3 == 0), n))
    second.restore(snapshots.load(snapshots.dump(first.snapshot())))
    for context in given[40:]:
        told: list[FloatArray] = []
        for policy in (first, second):
            policy.choose_by(context, 4, lambda shares, told=told: told.append(shares) or 0)  # type: ignore[misc]
        assert np.array_equal(told[0], told[1])


@pytest.mark.parametrize("id", ["bernoulli-ts", "lin-ts", "tide"])
def test_arms_drawn_from_shares_are_as_frequent_as_arms_that_are_chosen(id: str) -> None:
    shape = ProblemShape(n_arms=3)
    policy = build_policy((id, {"noise_std": 1.0} if id == "lin-ts" else {}), shape, seed=4)
    rng = np.random.default_rng(0)
    for n in range(30):
        arm = policy.choose(Context())
        learn(policy, Event(Context(), arm, float(rng.random() < 0.3 + 0.1 * arm), n))
    saved = policy.snapshot()
    chosen = np.bincount([policy.choose(Context()) for _ in range(1500)], minlength=3) / 1500
    policy.restore(saved)
    total: FloatArray = np.zeros(3)

    def pick(shares: FloatArray) -> int:
        total[:] += shares / 100
        return int(np.argmax(shares))

    for _ in range(100):
        policy.choose_by(Context(), 32, pick)
    assert np.abs(total - chosen).max() < 0.05


def _largest(shares: FloatArray) -> int:
    return int(np.argmax(shares))
