from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed
from tidepull.errors import ArmError, ContextError, NumericalError, ProblemError, RewardError
from tidepull.experiments.loop import run_trial
from tidepull.integrations.mabwiser import TidepullMAB
from tidepull.parameters import NoParameters
from tidepull.policies import build_policy, policies
from tidepull.problems import build_problem
from tidepull.registry import Entry
from tidepull.types import Context, Event, ProblemShape

pytest.importorskip("river")

from river import bandit, preprocessing, proba, stats

from tidepull.integrations.river import TidepullContextualPolicy, TidepullPolicy

SEED = 4


def theirs(id: str, seed: int) -> Any:
    return {
        "river-ucb": lambda: bandit.UCB(
            delta=1, reward_scaler=preprocessing.TargetStandardScaler(None), seed=seed
        ),
        "river-thompson": lambda: bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed),
        "river-bayes-ucb": lambda: bandit.BayesUCB(seed=seed),
        "river-exp3": lambda: bandit.Exp3(gamma=0.5, seed=seed),
        "river-epsilon": lambda: bandit.EpsilonGreedy(epsilon=0.1, seed=seed),
    }[id]()


@pytest.mark.parametrize(
    "id", ["river-ucb", "river-thompson", "river-bayes-ucb", "river-exp3", "river-epsilon"]
)
def test_a_trial_has_the_arms_of_river_driven_directly(id: str) -> None:
    policy = theirs(id, library_seed(SEED))
    arms = direct(
        "flipping-bernoulli",
        80,
        seed=SEED,
        choose=lambda _: policy.pull(list(range(8))),
        learn=lambda _, arm, reward: policy.update(arm, reward),
    )
    assert run_trial("flipping-bernoulli", id, horizon=80, seed=SEED).arms.tolist() == arms
    assert len(set(arms)) > 3


def test_linucb_has_the_arms_of_river_driven_directly() -> None:
    policy = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=library_seed(SEED))

    def named(context: Context) -> dict[str, float]:
        assert context.observation is not None
        return {f"x{i}": float(x) for i, x in enumerate(context.observation)}

    arms = direct(
        "steady-contexts",
        60,
        seed=SEED,
        choose=lambda context: policy.pull(list(range(10)), context=named(context)),
        learn=lambda context, arm, reward: policy.update(arm, named(context), reward),
    )
    assert (
        run_trial("steady-contexts", "river-linucb-disjoint", horizon=60, seed=SEED).arms.tolist()
        == arms
    )


def test_external_policies_from_river_refuse_what_they_cannot_read() -> None:
    with pytest.raises(ProblemError, match="shows one for each arm"):
        run_trial("flipping-vector", "river-linucb-disjoint", horizon=2)
    for id in ("river-thompson", "river-bayes-ucb"):
        with pytest.raises(RewardError, match=f"0 or 1 for {id}"):
            run_trial("flipping-gaussian", id, horizon=2)
    assert (
        len(
            run_trial(
                "flipping-gaussian", ("river-thompson", {"rewards": "gaussian"}), horizon=9
            ).arms
        )
        == 9
    )


def test_exp3_credits_a_late_reward_with_the_chances_of_its_own_round() -> None:
    policy = build_policy("river-exp3", ProblemShape(3), seed=0)
    context = Context()
    first = policy.choose(context)
    for _ in range(5):
        policy.learn(Event(context, policy.choose(context), 1.0))
    inner: Any = policy.inner
    weights = dict(inner._adapter._policy._weights)
    policy.learn(Event(context, first, 1.0, decided=0))
    after = inner._adapter._policy._weights
    assert after[first] / weights[first] == pytest.approx(np.exp(0.5 / (1 / 3) / 3))


def test_exp3_that_outgrows_floats_is_one_sentence() -> None:
    with pytest.raises(NumericalError, match="river-exp3 has outgrown all floats"):
        run_trial(
            ("stationary-bernoulli", {"n_arms": 1}), ("river-exp3", {"gamma": 1.0}), horizon=3000
        )


def test_our_policy_in_rivers_loop_chooses_as_in_a_trial() -> None:
    ours = TidepullPolicy("d-ucb", {"discount": 0.9}, seed=5)
    arms = direct(
        "flipping-bernoulli",
        80,
        seed=5,
        choose=lambda _: ours.pull(range(8)),
        learn=lambda _, arm, reward: ours.update(arm, reward),
    )
    trial = run_trial("flipping-bernoulli", ("d-ucb", {"discount": 0.9}), horizon=80, seed=5)
    assert trial.arms.tolist() == arms


class Busy:
    """Has three slices of work after every reward."""

    def __init__(self, *_: Any) -> None:
        self.due = self.done = 0

    def choose(self, context: Context) -> int:
        return 0

    def learn(self, event: Event) -> None:
        self.due = 3

    def upkeep(self) -> bool:
        self.due, self.done = max(0, self.due - 1), self.done + (self.due > 0)
        return self.due > 0


@pytest.mark.parametrize("kind", ["river", "mabwiser"])
def test_upkeep_is_done_after_every_reward(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policies._entries, "busy", Entry("busy", "", NoParameters, Busy))
    ours = (
        TidepullPolicy("busy", arms=[0, 1])._ours
        if kind == "river"
        else TidepullMAB([0, 1], "busy")
    )
    learner: Any = ours._policy(None)
    for count in (3, 6):
        if isinstance(ours, TidepullMAB):
            ours.partial_fit([0], [1.0])
        else:
            ours.learn(0, None, 1.0)
        assert learner.inner.done == count


def test_our_contextual_policy_in_rivers_loop_chooses_as_in_a_trial() -> None:
    ours = TidepullContextualPolicy("lin-ucb", {"exploration": 0.5}, seed=5)

    def named(context: Context) -> dict[int, float]:
        assert context.observation is not None
        return dict(enumerate(context.observation.tolist()))

    arms = direct(
        "steady-contexts",
        80,
        seed=5,
        choose=lambda context: ours.pull(range(10), context=named(context)),
        learn=lambda context, arm, reward: ours.update(arm, named(context), reward),
    )
    trial = run_trial("steady-contexts", ("lin-ucb", {"exploration": 0.5}), horizon=80, seed=5)
    assert trial.arms.tolist() == arms


def test_our_policy_in_rivers_evaluation_beats_chance_on_our_environment() -> None:
    pytest.importorskip("gymnasium")
    import gymnasium

    import tidepull.integrations.gymnasium  # noqa: F401

    env = gymnasium.make("tidepull/stationary-bernoulli-v0", horizon=150)
    players = [TidepullPolicy("bernoulli-ts", seed=1), bandit.RandomPolicy(seed=1)]
    last = {}
    for step in bandit.evaluate(players, env, n_episodes=2, seed=1):
        last[step["episode"], step["policy_idx"]] = step["reward_stat"]
    assert sum(last[e, 0] for e in range(2)) > sum(last[e, 1] for e in range(2)) + 20


def test_a_clone_begins_afresh_and_the_table_of_river_counts_pulls() -> None:
    policy = TidepullPolicy("ucb", {"xi": 0.3}, arms=["a", "b"], seed=3, reward_obj=stats.Mean())
    for _ in range(10):
        arm = policy.pull(["a", "b"])
        policy.update(arm, float(arm == "b"))
    again = policy.clone()
    assert (again.policy, again.parameters, again.arms, again.seed) == (
        "ucb",
        {"xi": 0.3},
        ["a", "b"],
        3,
    )
    assert again._n == 0
    assert policy.ranking[0] == "b"
    assert "Pulls" in repr(policy)


def test_arms_may_be_offered_in_part_and_unknown_ones_are_named() -> None:
    policy = TidepullPolicy("random", arms=["a", "b", "c"])
    assert {policy.pull(["c", "a"]) for _ in range(30)} == {"a", "c"}
    with pytest.raises(ArmError, match="no arm 'd'"):
        policy.pull(["a", "d"])
    with pytest.raises(ArmError, match="before the first pull"):
        TidepullPolicy("random").update("a", 1.0)


def test_rewards_are_scaled_as_river_scales_them() -> None:
    scaled = TidepullPolicy(
        "ucb", reward_scaler=preprocessing.TargetMinMaxScaler(None), arms=[0, 1]
    )
    plain = build_policy("ucb", ProblemShape(2), seed=0)
    scaler = preprocessing.TargetMinMaxScaler(None)
    for reward in (5.0, 9.0, 7.0, 1.0):
        arm = plain.choose(Context())
        assert scaled.pull([0, 1]) == arm
        scaled.update(arm, reward)
        scaler._update(reward)
        plain.learn(Event(Context(), arm, scaler.func(reward)))


def test_burn_in_is_rivers() -> None:
    policy = TidepullPolicy("fixed", {"arm": 0}, burn_in=2)
    arms = []
    for _ in range(7):
        arms.append(policy.pull(["a", "b", "c"]))
        policy.update(arms[-1], 1.0)
    assert arms == ["a", "a", "b", "b", "c", "c", "a"]


def test_features_are_numbers_with_the_names_of_the_first_context() -> None:
    policy = TidepullContextualPolicy("lin-ucb", arms=["a", "b"])
    policy.pull(["a", "b"], {"x": 1.0, "y": True})
    policy.update("a", {"x": 1.0}, 1.0)
    with pytest.raises(ContextError, match="no feature 'z'"):
        policy.pull(["a", "b"], {"z": 1.0})
    with pytest.raises(ContextError, match="feature 'x' must be a number"):
        policy.pull(["a", "b"], {"x": "red"})


def test_the_world_of_a_direct_loop_is_that_of_the_trial() -> None:
    world = build_problem("flipping-bernoulli", seed=SEED)
    trial = run_trial("flipping-bernoulli", ("fixed", {"arm": 2}), horizon=30, seed=SEED)
    assert [world.step(2) for _ in range(30)] == trial.rewards.tolist()
