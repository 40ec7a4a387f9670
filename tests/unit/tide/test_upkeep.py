"""Heavy work in slices: cheap in between, nothing lost, nothing lived through twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.policies import build_policy
from tidepull.problems import build_problem, shape_of
from tidepull.registry import Named
from tidepull.tide.jobs import STEPS, finish
from tidepull.tide.models import kernels
from tidepull.types import Context, Event, ProblemShape


def play(policy: Any, problem: Any, n: int, slices: int) -> float:
    """n rounds with at most so many slices of work after each; the regret."""
    regret = 0.0
    for _ in range(n):
        context, means = problem.context(), problem.means()
        arm = policy.choose(context)
        regret += float(means.max() - means[arm])
        policy.learn(Event(context, arm, problem.step(arm)))
        for _ in range(slices):
            if not policy.upkeep():
                break
    return regret


def made(problem: Named, seed: int = 0, **parameters: Any) -> tuple[Any, Any]:
    world = build_problem(problem, seed=seed)
    return build_policy(("tide", parameters), shape_of(world), seed=seed), world


def test_learn_only_notes_that_work_is_due() -> None:
    policy: Any = build_policy("tide", ProblemShape(3), seed=0)
    for t in range(32):
        policy.learn(Event(Context(), t % 3, float(t % 2)))
        if t < 31:
            while policy.upkeep():
                pass
    before = policy.diagnostics()["births"]
    assert policy.pending
    policy.learn(Event(Context(), 0, 1.0))
    assert policy.diagnostics()["births"] == before
    while policy.upkeep():
        pass
    assert not policy.pending
    assert policy.diagnostics()["births"] > before


@pytest.mark.parametrize("problem", ["flipping-gaussian", "sinusoidal-bernoulli"])
@pytest.mark.parametrize("slices", [1, 7, 10_000])
def test_everybody_has_lived_through_every_round_once_however_work_is_sliced(
    problem: str, slices: int
) -> None:
    """Each model equals a candidate that lives through the whole window, although rewards came in
    mid-birth."""
    policy, world = made(problem, without=["network"])
    play(policy, world, 230, slices)
    inner = policy.inner._patterns
    bank, units = inner._bank, inner._scale.units
    window = inner._recent.window(units)
    twin = bank.copy()
    for m in np.flatnonzero(bank.arrays.active):
        twin.reset(int(m))
        finish(twin.replay(int(m), window, units.binary))
    d, active = bank.arrays.dim, bank.arrays.active
    for name, at, size in (("vec", bank.arrays.vec_at, d), ("mat", bank.arrays.mat_at, d * d)):
        for m in np.flatnonzero(active):
            mine = slice(int(at[m]), int(at[m]) + int(size[m]))
            np.testing.assert_allclose(
                getattr(bank.arrays, name)[mine], getattr(twin.arrays, name)[mine], atol=1e-8
            )
    assert np.exp(inner._mixture.log_weights).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("slices", [1, 2, 5])
def test_policy_learns_nearly_as_well_when_work_is_spread_over_rounds(slices: int) -> None:
    regrets = []
    for each in (slices, 100_000):
        policy, world = made("flipping-gaussian", seed=4)
        regrets.append(play(policy, world, 250, each))
    assert regrets[0] < regrets[1] + 30  # random play loses 100


def test_weights_after_a_search_that_rewards_interrupt_are_those_of_bayes_rule() -> None:
    """Priors, window likelihoods and evidence recomputed from scratch give the weight of each
    candidate of at least 1%. Logarithms of smaller weights are off by up to 1.4."""
    policy, world = made("sinusoidal-bernoulli", seed=7, without=["network"], share=1e-300)
    play(policy, world, 150, 3)
    while policy.upkeep():
        pass
    inner = policy.inner._patterns
    bank, mixture = inner._bank.copy(), inner._mixture
    window, binary = inner._recent.window(inner._scale.units), inner._scale.units.binary
    active = np.flatnonzero(bank.arrays.active)
    score = np.full(bank.size, -np.inf)
    for m in active:
        bank.reset(int(m))
        score[m] = finish(bank.replay(int(m), window, binary)).sum()
    log_weights = np.log(mixture.prior[active]) + score[active]
    log_weights -= np.logaddexp.reduce(log_weights)
    heavy = log_weights > -4.6
    np.testing.assert_allclose(mixture.log_weights[active][heavy], log_weights[heavy], atol=0.1)


@pytest.mark.parametrize(
    "problem",
    [
        "flipping-gaussian",
        "rotating-vector-32",
        ("random-world", {"kind": "labels-flip", "world": 3}),
    ],
)
def test_policy_continues_bit_for_bit_when_restored_in_the_middle_of_its_work(
    problem: Named,
) -> None:
    policy, world = made(problem)
    contexts = []
    rng = np.random.default_rng(0)

    def go(policy: Any, given: list[Context], rewards: list[float]) -> list[int]:
        arms = []
        for context, reward in zip(given, rewards, strict=True):
            arms.append(policy.choose(context))
            policy.learn(Event(context, arms[-1], reward))
            for _ in range(5):
                policy.upkeep()
        return arms

    for _ in range(90):
        contexts.append(world.context())
        world.step(0)
    rewards = rng.integers(2, size=90).astype(float).tolist()
    go(policy, contexts[:66], rewards[:66])
    assert policy.pending
    saved = snapshots.dump(policy.snapshot())
    expected = go(policy, contexts[66:], rewards[66:])
    resumed: Any = build_policy("tide", shape_of(world), seed=9)
    resumed.restore(snapshots.load(saved))
    assert go(resumed, contexts[66:], rewards[66:]) == expected
    assert snapshots.dump(resumed.snapshot()) == snapshots.dump(policy.snapshot())


def test_slices_are_short_whatever_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slice replays more than a slice's worth of products."""
    longest = []
    replay = kernels.replay

    def counted(
        bank: Any, m: int, window: Any, start: int, stop: int, binary: bool, scores: Any
    ) -> None:
        each = int(bank.dim[m]) ** 2
        longest.append((stop - start) * (each // 4 if bank.inverse[m] else each))
        replay(bank, m, window, start, stop, binary, scores)

    policy, world = made("flipping-vector", without=["network"])
    monkeypatch.setattr(kernels, "replay", counted)
    play(policy, world, 70, 100_000)
    assert len(longest) > 300
    assert max(longest) <= STEPS
