from __future__ import annotations

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed, stream
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

vowpalwabbit = pytest.importorskip("vowpalwabbit")

EXPLORERS = {
    "vw-squarecb": "--squarecb --gamma_scale 10.0 --gamma_exponent 0.5",
    "vw-cover": "--cover 3",
    "vw-bag": "--bag 5",
    "vw-epsilon": "--epsilon 0.05",
}
REST = "--cb_explore_adf --quiet --learning_rate 0.5 --random_seed"


class ByHand:
    """The loop of Vowpal Wabbit's tutorial on contextual bandits."""

    def __init__(self, command: str, seed: int) -> None:
        self.workspace = vowpalwabbit.Workspace(f"{command} {REST} {library_seed(seed)}")
        self.rng = stream(seed).generator("choice")
        self.chance = 0.0

    def text(self, context: Context) -> list[str]:
        if context.arm_features is not None:
            rows = context.arm_features
            return ["|a " + " ".join(f"v{i}:{x:.9g}" for i, x in enumerate(row)) for row in rows]
        if context.observation is not None:
            shared = "shared |s " + " ".join(
                f"x{i}:{x:.9g}" for i, x in enumerate(context.observation)
            )
            return [shared, *(f"|a arm{k}" for k in range(10))]
        return [f"|a arm{k}" for k in range(8)]

    def choose(self, context: Context) -> int:
        chances = np.array(self.workspace.predict(self.text(context)))
        chances /= chances.sum()
        arm = int(self.rng.choice(len(chances), p=chances))
        self.chance = chances[arm]
        return arm

    def learn(self, context: Context, arm: int, reward: float) -> None:
        text = self.text(context)
        at = arm + (context.observation is not None)
        text[at] = f"0:{-reward:.9g}:{self.chance:.9g} {text[at]}"
        self.workspace.learn(text)


@pytest.mark.parametrize("id", EXPLORERS)
def test_a_trial_has_the_arms_of_vowpal_wabbit_driven_directly(id: str) -> None:
    hand = ByHand(EXPLORERS[id], seed=3)
    arms = direct("flipping-gaussian", 120, seed=3, choose=hand.choose, learn=hand.learn)
    assert run_trial("flipping-gaussian", id, horizon=120, seed=3).arms.tolist() == arms
    assert len(set(arms)) > 3


@pytest.mark.parametrize(
    ("problem", "options"), [("steady-contexts", " -q sa"), ("rotating-vector-32", "")]
)
def test_contexts_reach_vowpal_wabbit_as_shared_and_action_features(
    problem: str, options: str
) -> None:
    hand = ByHand(EXPLORERS["vw-squarecb"] + options, seed=1)
    arms = direct(problem, 60, seed=1, choose=hand.choose, learn=hand.learn)
    assert run_trial(problem, "vw-squarecb", horizon=60, seed=1).arms.tolist() == arms


def test_a_late_reward_carries_the_chance_of_its_own_round() -> None:
    hand = ByHand("--epsilon 0.2 --cb_type mtr", seed=5)
    policy = build_policy(("vw-epsilon", {"epsilon": 0.2}), ProblemShape(8), seed=5)
    context = Context()
    chances, arms = [], []
    for decided in range(6):
        arms.append(hand.choose(context))
        chances.append(hand.chance)
        assert policy.choose(context) == arms[-1]
        if decided == 0:  # what is learnt at once moves the chances of later rounds
            hand.learn(context, arms[0], 1.0)
            policy.learn(Event(context, arms[0], 1.0, decided=0))
    assert len(set(chances)) > 1
    for decided in (5, 2, 1):
        hand.chance = chances[decided]
        hand.learn(context, arms[decided], 0.0)
        policy.learn(Event(context, arms[decided], 0.0, decided=decided))
    assert [policy.choose(context) for _ in range(30)] == [hand.choose(context) for _ in range(30)]
