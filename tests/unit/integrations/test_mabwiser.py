from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed, stream
from tidepull.errors import ArmError, ContextError, ParameterError, ProblemError, RewardError
from tidepull.experiments.loop import run_trial
from tidepull.integrations.mabwiser import TidepullMAB
from tidepull.types import Context

SEED = 2


def theirs(id: str) -> Any:
    mab = pytest.importorskip("mabwiser.mab")
    policy = mab.LearningPolicy
    return {
        "mabwiser-ucb1": policy.UCB1(alpha=1),
        "mabwiser-thompson": policy.ThompsonSampling(),
        "mabwiser-linucb": policy.LinUCB(alpha=1.0, l2_lambda=1.0),
        "mabwiser-lints": policy.LinTS(alpha=1.0, l2_lambda=1.0),
    }[id]


@pytest.mark.parametrize(
    ("id", "problem", "n_arms"),
    [
        ("mabwiser-ucb1", "flipping-bernoulli", 8),
        ("mabwiser-thompson", "flipping-bernoulli", 8),
        ("mabwiser-linucb", "steady-contexts", 10),
        ("mabwiser-lints", "steady-contexts", 10),
    ],
)
def test_a_trial_has_the_arms_of_mabwiser_driven_directly(
    id: str, problem: str, n_arms: int
) -> None:
    mab = pytest.importorskip("mabwiser.mab")
    native = mab.MAB(list(range(n_arms)), theirs(id), seed=library_seed(SEED))
    first = stream(SEED).generator("first").permutation(n_arms).tolist()

    def contexts(context: Context) -> Any:
        return None if context.observation is None else context.observation.reshape(1, -1)

    def choose(context: Context) -> int:
        return int(first.pop(0) if first else native.predict(contexts(context)))

    def learn(context: Context, arm: int, reward: float) -> None:
        native.partial_fit([arm], [reward], contexts(context))

    arms = direct(problem, 80, seed=SEED, choose=choose, learn=learn)
    assert run_trial(problem, id, horizon=80, seed=SEED).arms.tolist() == arms
    assert sorted(arms[:n_arms]) == list(range(n_arms))


def test_external_policies_from_mabwiser_refuse_what_they_cannot_read() -> None:
    pytest.importorskip("mabwiser")
    for id in ("mabwiser-linucb", "mabwiser-lints"):
        with pytest.raises(ProblemError, match=f"{id} sees one vector that all arms share"):
            run_trial("flipping-vector", id, horizon=2)
    with pytest.raises(RewardError, match="set threshold"):
        run_trial("flipping-gaussian", "mabwiser-thompson", horizon=2)
    trial = run_trial("flipping-gaussian", ("mabwiser-thompson", {"threshold": 0.0}), horizon=20)
    assert len(trial.arms) == 20


@pytest.mark.parametrize(
    ("problem", "policy"), [("flipping-bernoulli", "bernoulli-ts"), ("flipping-gaussian", "d-ucb")]
)
def test_our_policy_behind_mabwisers_methods_chooses_as_in_a_trial(
    problem: str, policy: str
) -> None:
    ours = TidepullMAB(range(8), policy, seed=5)
    arms = direct(
        problem,
        80,
        seed=5,
        choose=lambda _: ours.predict(),
        learn=lambda _, arm, reward: ours.partial_fit([arm], [reward]),
    )
    assert run_trial(problem, policy, horizon=80, seed=5).arms.tolist() == arms


def test_our_policy_reads_contexts_as_in_a_trial() -> None:
    ours = TidepullMAB(range(10), "lin-ts", seed=5)

    def row(context: Context) -> Any:
        assert context.observation is not None
        return [context.observation.tolist()]

    arms = direct(
        "steady-contexts",
        60,
        seed=5,
        choose=lambda context: ours.predict(row(context)),
        learn=lambda context, arm, reward: ours.partial_fit([arm], [reward], row(context)),
    )
    assert run_trial("steady-contexts", "lin-ts", horizon=60, seed=5).arms.tolist() == arms


def test_predictions_have_the_kinds_that_mabwisers_have() -> None:
    mab = pytest.importorskip("mabwiser.mab")
    decisions, rewards = ["a", "b", "a", "c"], [1, 0, 1, 0]
    contexts = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    native = mab.MAB(["a", "b", "c"], theirs("mabwiser-lints"))
    ours = TidepullMAB(["a", "b", "c"], "lin-ts")
    for one in (native, ours):
        one.fit(decisions, rewards, contexts)
        one.partial_fit(decisions, rewards, np.array(contexts))
        assert one.predict(contexts[:1]) in one.arms
        assert [arm in one.arms for arm in one.predict(contexts)] == [True] * 4
        assert list(one.predict_expectations(contexts[:1])) == ["a", "b", "c"]
        assert [list(said) for said in one.predict_expectations(contexts)] == [["a", "b", "c"]] * 4


def test_expectations_are_shares_and_begin_no_round() -> None:
    ours, twin = (TidepullMAB(["a", "b"], "bernoulli-ts", seed=1) for _ in range(2))
    for one in (ours, twin):
        one.fit(["a"] * 30 + ["b"] * 30, [1] * 25 + [0] * 5 + [1] * 3 + [0] * 27)
    said = ours.predict_expectations()
    assert sum(said.values()) == pytest.approx(1.0)
    assert said["a"] > 0.95
    assert [ours.predict() for _ in range(10)] == [twin.predict() for _ in range(10)]


def test_fit_begins_afresh() -> None:
    ours = TidepullMAB(["a", "b"], "ucb", {"xi": 0.0})
    ours.fit(["a", "b"] * 5, [1, 0] * 5)
    assert ours.predict() == "a"
    ours.fit(["a", "b"] * 5, [0, 1] * 5)
    assert ours.predict() == "b"


def test_rows_finish_the_rounds_that_were_predicted_so_and_others_are_rounds_of_their_own() -> None:
    ours = TidepullMAB(["a", "b"], "lin-ts", seed=0)
    table = [[0.1], [0.2], [0.3]]
    arms = ours.predict(table)
    assert ours._learner is not None
    assert ours._learner.rounds == 3
    ours.partial_fit(arms[::-1], [1.0, 1.0, 1.0], table[::-1])
    assert ours._learner.rounds == 3
    ours.partial_fit(["a"], [0.0], [[9.0]])
    assert ours._learner.rounds == 4
    arm = ours.predict([[0.5]])
    ours.partial_fit(["a"], [0.0], [[7.0]])
    ours.partial_fit([arm], [0.0], [[0.5]])
    assert ours._learner.rounds == 6


def test_wrong_rows_are_one_sentence() -> None:
    ours = TidepullMAB(["a", "b"], "ucb")
    with pytest.raises(ParameterError, match="equally long, got 2, 1 and 2"):
        ours.fit(["a", "b"], [1])
    with pytest.raises(ArmError, match="no arm 'z'"):
        ours.fit(["z"], [1])
    with pytest.raises(ParameterError, match="rewards must be finite"):
        ours.fit(["a"], [float("nan")])
    with pytest.raises(ContextError, match="a table"):
        ours.predict([1.0, 2.0])
    with pytest.raises(ParameterError, match="different names"):
        TidepullMAB(["a", "a"])
    with pytest.raises(ParameterError, match="vw-bag is an external policy"):
        TidepullMAB(["a", "b"], "vw-bag")
