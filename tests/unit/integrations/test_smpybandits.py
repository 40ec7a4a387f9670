from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed
from tidepull.errors import ParameterError, RewardError
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.problems import build_problem
from tidepull.types import Context, Event, ProblemShape

pytest.importorskip("SMPyBandits")

from tidepull.integrations.external.smpybandits import smpy_module

SEED, ROUNDS = 3, 60


def theirs(id: str, n_arms: int, horizon: int) -> Any:
    told = {"horizon": horizon, "max_nb_random_events": 1}
    return {
        "smpy-glr-klucb": lambda: smpy_module(
            "GLR_UCB"
        ).BernoulliGLR_IndexPolicy_WithDeterministicExploration(
            n_arms, policy=smpy_module("klUCB_forGLR").klUCB_forGLR, **told
        ),
        "smpy-cusum-ucb": lambda: smpy_module("CUSUM_UCB").CUSUM_IndexPolicy(n_arms, **told),
        "smpy-m-ucb": lambda: smpy_module("Monitored_UCB").Monitored_IndexPolicy(n_arms, **told),
        "smpy-discounted-ts": lambda: smpy_module("DiscountedThompson").DiscountedThompson(n_arms),
        "smpy-sw-ucb-plus": lambda: smpy_module("SlidingWindowUCB").SWUCBPlus(
            n_arms, horizon=horizon
        ),
        "smpy-sw-ucb-hash": lambda: smpy_module("SWHash_UCB").SWHash_IndexPolicy(n_arms),
    }[id]()


@pytest.mark.parametrize(
    "id",
    [
        "smpy-glr-klucb",
        "smpy-cusum-ucb",
        "smpy-m-ucb",
        "smpy-discounted-ts",
        "smpy-sw-ucb-plus",
        "smpy-sw-ucb-hash",
    ],
)
def test_a_trial_has_the_arms_of_smpybandits_driven_directly(
    id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = run_trial("change-points-bernoulli", id, horizon=ROUNDS, seed=SEED)
    n_arms = build_problem("change-points-bernoulli", seed=SEED).n_arms
    assert capsys.readouterr().out == ""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(library_seed(SEED))
    np.random.seed(library_seed(SEED))  # noqa: NPY002
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            policy = theirs(id, n_arms, ROUNDS)
            policy.startGame()
            arms = direct(
                "change-points-bernoulli",
                ROUNDS,
                seed=SEED,
                choose=lambda _: int(policy.choice()),
                learn=lambda _, arm, reward: policy.getReward(arm, reward),
            )
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
    assert trial.arms.tolist() == arms
    assert len(set(arms)) == n_arms


def test_glr_restarts_an_arm_that_changed_and_plays_it_again() -> None:
    policy = build_policy(("smpy-glr-klucb", {"horizon": 300}), ProblemShape(2), seed=0)
    arms = []
    for t in range(300):
        arms.append(policy.choose(Context()))
        best = 0 if t < 150 else 1
        policy.learn(Event(Context(), arms[-1], float(arms[-1] == best)))
    assert np.mean(np.array(arms[50:150]) == 0) > 0.8
    assert np.mean(np.array(arms[200:]) == 1) > 0.8


def test_rewards_are_brought_to_the_range_that_is_set() -> None:
    plain = run_trial("flipping-bernoulli", "smpy-discounted-ts", horizon=50, seed=1)
    with pytest.raises(
        RewardError, match="from 0 to 1 for smpy-discounted-ts, .*; set lower and amplitude"
    ):
        run_trial("flipping-gaussian", "smpy-discounted-ts", horizon=50, seed=1)
    wide = ("smpy-discounted-ts", {"lower": -10.0, "amplitude": 20.0})
    assert len(run_trial("flipping-gaussian", wide, horizon=50, seed=1).arms) == len(plain.arms)


def test_the_horizon_is_the_trials_own_and_must_be_given_elsewhere() -> None:
    told = run_trial("flipping-bernoulli", ("smpy-m-ucb", {"horizon": 70}), horizon=70, seed=2)
    assert (
        told.arms.tolist()
        == run_trial("flipping-bernoulli", "smpy-m-ucb", horizon=70, seed=2).arms.tolist()
    )
    with pytest.raises(
        ParameterError, match="smpy-m-ucb: horizon is filled in where a trial is known"
    ):
        build_policy("smpy-m-ucb", ProblemShape(3), seed=0)
    with pytest.raises(ParameterError, match="smpy-glr-klucb: SMPyBandits refuses these settings"):
        build_policy(("smpy-glr-klucb", {"horizon": 10, "changes": 50}), ProblemShape(3), seed=0)
