"""Hypotheses with a hidden state inside `tide`: asked, scored, rebuilt, told of, kept in
snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.tide.context import ContextMap
from tidepull.tide.jobs import finish
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.changes import RunLengthFilter
from tidepull.tide.models.covariates import all_covariates
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Layout
from tidepull.tide.models.filters import Blocks
from tidepull.tide.models.linear import stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.rebuild import rebuilding
from tidepull.tide.scale import RewardScale
from tidepull.tide.window import RecentRounds
from tidepull.types import Context, Event, ProblemShape

FEW: dict[str, Any] = {
    "without": [name for name in FAMILIES if name not in ("stationary", "changes", "regimes")],
}


def play(
    policy: Any, means: np.ndarray[Any, Any], seed: int = 0, late: int = 0, noise: float = 0.0
) -> float:
    """Rewards of 0 and 1, or with Gaussian noise; each comes so many rounds late."""
    rng, regret, waiting = np.random.default_rng(seed), 0.0, []
    for t, row in enumerate(means):
        arm = policy.choose(Context())
        reward = float(row[arm] + noise * rng.normal()) if noise else float(rng.random() < row[arm])
        regret += float(row.max() - row[arm])
        waiting.append(Event(Context(), arm, reward, decided=t))
        if len(waiting) > late:
            policy.learn(waiting.pop(0))
        while policy.upkeep():
            pass
    return regret


def changing(n: int = 800) -> np.ndarray[Any, Any]:
    return np.where(np.arange(n)[:, None] < n // 2, [0.9, 0.5, 0.1], [0.1, 0.5, 0.9])


def test_change_is_believed_in_and_dated_while_stationary_alone_keeps_losing() -> None:
    policy = build_policy(("tide", FEW), ProblemShape(3), seed=1)
    regret = play(policy, changing())
    told = policy.explain()
    weights = dict(zip(told.families, policy.family_weights(), strict=True))
    assert weights["changes"] + weights["regimes"] > 0.99
    assert regret < 60
    dated = told.findings["changes"][-1]
    assert abs(dated.facts["round"] - 400) <= 25
    assert dated.words in str(told)
    assert told.plain()["told"]["changes"][-1]["round"] == dated.facts["round"]
    alone = [name for name in FAMILIES if name != "stationary"]
    plain = build_policy(("tide", {"without": alone}), ProblemShape(3), seed=1)
    assert play(plain, changing()) > 2 * regret
    assert "told" not in plain.explain().plain()


def test_levels_are_told_in_rewards_as_they_were_paid() -> None:
    policy = build_policy(("tide", FEW), ProblemShape(3), seed=1)
    play(policy, 100 + 30 * changing(600), noise=3.0)
    moved = policy.explain().findings["changes"][-1].facts["arms"]
    fell = next(one for one in moved if one["arm"] == 0)
    assert fell["before"] == pytest.approx(127, abs=2)
    assert fell["after"] == pytest.approx(103, abs=4)


@pytest.mark.parametrize("late", [0, 7])
def test_change_is_found_when_rewards_come_late(late: int) -> None:
    policy = build_policy(("tide", FEW), ProblemShape(3), seed=2)
    assert play(policy, changing(), late=late) < 75 + 2 * late
    assert abs(policy.explain().findings["changes"][-1].facts["round"] - 400) <= 30


@pytest.mark.parametrize("shape", [ProblemShape(3), ProblemShape(3, 2), ProblemShape(3, 0, 2)])
def test_restored_policy_decides_as_if_nothing_had_happened(shape: ProblemShape) -> None:
    rng = np.random.default_rng(0)

    def seen() -> Context:
        return Context(
            observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            arm_features=rng.normal(size=(3, shape.arm_dim)) if shape.arm_dim else None,
        )

    policy = build_policy(("tide", FEW), shape, seed=3)
    events = [(seen(), float(rng.normal())) for _ in range(90)]
    played = []
    other = None
    for t, (context, reward) in enumerate(events):
        if t == 50:
            other = build_policy(("tide", FEW), shape, seed=4)
            other.restore(policy.snapshot())
        for one in (policy, other):
            if one is not None:
                played.append(one.choose(context))
                one.learn(Event(context, played[-1], reward))
                while one.upkeep():
                    pass
    after = played[50:]
    assert after[0::2] == after[1::2]
    assert other is not None
    assert np.array_equal(other.family_weights(), policy.family_weights())


def test_unit_of_rewards_changes_no_choice() -> None:
    means, chosen = changing(260), []
    for scale in (1.0, 50.0):
        policy, rng, arms = (
            build_policy(("tide", FEW), ProblemShape(3), seed=5),
            np.random.default_rng(1),
            [],
        )
        for row in means:
            arms.append(policy.choose(Context()))
            policy.learn(
                Event(Context(), arms[-1], float(scale * (row[arms[-1]] + 0.2 * rng.normal())))
            )
            while policy.upkeep():
                pass
        chosen.append(arms)
    assert chosen[0] == chosen[1]


def test_families_share_their_prior_among_their_hypotheses() -> None:
    policy = build_policy(("tide", FEW), ProblemShape(3), seed=0)
    kept = [FAMILIES[name] for name in ("stationary", "changes", "regimes")]
    total = sum(family.prior for family in kept)
    assert policy.family_weights()[:-1] == pytest.approx([family.prior / total for family in kept])
    makers = [family.filters for family in kept if family.filters is not None]
    for layout, filters in (
        (Layout(3, 1, False), [2, 1]),
        (Layout(3, 3, False), [0, 0]),
        (Layout(3, 3, True), [1, 1]),
    ):
        assert [len(maker(layout, NoisePrior(), 0)) for maker in makers] == filters


def test_rebuild_weighs_filters_by_what_they_make_of_the_window_in_new_units() -> None:
    layout, spec = Layout(1, 1, False), stationary()
    bank = ModelBank(layout, [[spec]], NoisePrior())
    bank.assign(0, spec)
    filter = RunLengthFilter(Blocks(layout, False), together=True)
    mixture = Mixture(np.array([0.6, 0.4]), np.array([0, 1]), ("a", "b"), 1e-12)
    scale, recent = RewardScale(1), RecentRounds(64, 64, 1, 0)
    rng = np.random.default_rng(0)
    for t, reward in enumerate(np.concatenate([rng.normal(5, 1, 15), rng.normal(8, 1, 15)])):
        scale.add(0, float(reward))
        recent.append(
            t=t,
            covariates=np.zeros(len(all_covariates())),
            n_rewards_seen=t,
            arm=0,
            raw=np.empty(0),
            x=np.ones(1),
            reward=float(reward),
            evidence=0.0,
            network=np.nan,
        )
    new = finish(
        rebuilding(
            recent,
            scale,
            ContextMap(ProblemShape(1)),
            {},
            bank,
            mixture,
            filters=[filter],
            latest=np.empty((1, 0)),
            network=False,
        )
    )
    assert new is not None
    window, (anew,) = recent.window(new.units), new.filters
    again = filter.reset_copy(0.5 / new.units.spread)
    told = finish(again.replay(window, False))
    assert told.sum() != 0
    fresh = new.bank.reset_copy(None)
    fresh.reset(0)
    odds = np.log(0.4 / 0.6) + told.sum() - finish(fresh.replay(0, window, False)).sum()
    assert new.mixture.log_weights[1] - new.mixture.log_weights[0] == pytest.approx(odds, abs=1e-4)
    assert 1 < odds < 20
    assert all(
        np.array_equal(again.snapshot()[name], part) for name, part in anew.snapshot().items()
    )
