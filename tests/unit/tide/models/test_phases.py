"""Equal phases: their regimes, and how the search finds them."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import SnapshotError
from tidepull.policies import build_policy
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.families import FAMILIES, describe
from tidepull.tide.models.family import Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.phases import MOST, equal_phases
from tidepull.types import Context, Event, ProblemShape


def test_phases_take_turns_in_spec_and_kernel() -> None:
    spec = equal_phases(3, 2.5, 1.0)
    expected = [0, 0, 1, 1, 2, 2, 2, 0, 0, 1]
    assert [spec.basis(empty_state(t, 2), 2)[0] for t in range(10)] == expected
    assert (spec.n_regimes(2), spec.longest_period) == (3, 7.5)
    bank = ModelBank(Layout(1, 1, False), [[equal_phases(MOST, 1.0)]], NoisePrior())
    bank.assign(0, spec)
    levels = [-1.0, 0.0, 1.0]
    for t in range(400):
        bank.observe(empty_state(t, 1), 0, np.ones(1), levels[int((t + 1) // 2.5) % 3], False)
    means = [bank.predict(0, empty_state(t, 1), np.ones((1, 1)))[0][0] for t in range(10)]
    assert means == pytest.approx([levels[i] for i in expected], abs=0.01)
    assert bank.spec(0) == spec


def test_snapshot_with_one_phase_is_refused() -> None:
    bank = ModelBank(Layout(1, 1, False), [[equal_phases(MOST, 1.0)]], NoisePrior())
    bank.assign(0, equal_phases(3, 2.0))
    saved = bank.snapshot()
    saved["seats"][0][-1] = 1
    with pytest.raises(SnapshotError, match="unknown clocks"):
        bank.restore(saved)


def test_phases_say_their_number_and_period() -> None:
    assert describe(equal_phases(5, 50.0)) == "repeats every 250.0 rounds, in 5 phases"


def test_family_takes_part_without_context_and_with_few_arms() -> None:
    pools = FAMILIES["phases"].pools
    assert len(pools(Layout(4, 1, False), False)) == 1
    assert not pools(Layout(4, 3, False), False)
    assert not pools(Layout(65, 1, False), False)


@pytest.mark.parametrize(("count", "length"), [(3, 70.0), (5, 24.0)])
def test_tide_finds_phases(count: int, length: float) -> None:
    rng, policy, best = (
        np.random.default_rng(0),
        build_policy("tide", ProblemShape(count), seed=0),
        0,
    )
    for t in range(2500):
        arm, right = policy.choose(Context()), int(t // length) % count
        chance = 0.8 if arm == right else 0.2
        policy.learn(Event(Context(), arm, float(rng.random() < chance), decided=t))
        while policy.upkeep():
            pass
        best += t >= 2000 and arm == right
    assert policy.explain().beliefs[0].words == (
        f"repeats every {count * length:.1f} rounds, in {count} phases"
    )
    assert best > 470
