"""One step of `tide` at a time: what it asks its parts for, and when work is due."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.jobs import search_is_due
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.family import Layout
from tidepull.tide.models.lagged import LastSuccessTracker
from tidepull.tide.models.network import NetworkModel
from tidepull.tide.models.turns import TurnsTracker
from tidepull.tide.patterns import Patterns
from tidepull.tide.search import pools
from tidepull.types import Context, Event, ProblemShape


def tide(n_arms: int = 3, shape: ProblemShape | None = None, **parameters: Any) -> Patterns:
    return Patterns(TideParameters(**parameters), shape or ProblemShape(n_arms), Streams(0))


def play(policy: Patterns, rewards: list[float], *, upkeep: bool = True) -> list[int]:
    """Rewards that come at once, whatever was chosen."""
    arms = []
    for t, reward in enumerate(rewards):
        arms.append(policy.choose(Context()))
        policy.learn(Event(Context(), arms[-1], reward, t))
        while upkeep and policy.upkeep():
            pass
    return arms


def agenda(policy: Patterns) -> list[str]:
    return [name for name, _ in policy.snapshot()["agenda"]]


@pytest.mark.parametrize(
    ("c", "expected"), [(0.5, [0.05] * 10 + [0.5 / 11, 0.5 / 12]), (0.0, [0.0] * 12)]
)
def test_families_are_drawn_uniformly_as_rarely_as_the_parameter_says(
    c: float, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, picks = [], Mixture.picks

    def spied(self: Mixture, rng: np.random.Generator, explore: float, *given: Any) -> Any:
        asked.append(explore)
        return picks(self, rng, explore, *given)

    monkeypatch.setattr(Mixture, "picks", spied)
    play(tide(exploration=c, without=("network",)), [0.0] * 12)
    assert asked == pytest.approx(expected)


def test_success_is_a_reward_above_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    for memory in (TurnsTracker, LastSuccessTracker):
        observed: list[tuple[int, int, float, bool]] = []
        add = memory.observe

        def spied(
            self: Any,
            t: int,
            arm: int,
            reward: float,
            success: bool,
            add: Any = add,
            observed: Any = observed,
        ) -> None:
            observed.append((t, arm, reward, bool(success)))
            add(self, t, arm, reward, success)

        monkeypatch.setattr(memory, "observe", spied)
        arms = play(tide(without=("network",)), [1.0, 0.0, 1.0], upkeep=False)
        monkeypatch.undo()
        assert observed == [(t, arms[t], r, r == 1.0) for t, r in enumerate((1.0, 0.0, 1.0))]


def test_work_is_due_after_certain_numbers_of_rewards() -> None:
    policy, due = tide(births=True), {}
    rng = np.random.default_rng(0)
    for t in range(96):
        policy.choose(Context())
        policy.learn(Event(Context(), t % 3, float(rng.random() < 0.5), t))
        if names := agenda(policy):
            due[t + 1] = names
        while policy.upkeep():
            pass
    assert due == {
        1: ["rebuild", "record"],
        2: ["rebuild", "record"],
        4: ["rebuild", "record"],
        8: ["rebuild", "record"],
        16: ["rebuild", "record"],
        24: ["search", "record"],
        32: ["train", "search", "record"],
        64: ["train", "search", "record"],
        96: ["train", "search", "record"],
    }
    assert not policy.pending


def test_births_are_due_ever_more_rarely() -> None:
    due = [count for count in range(1, 6000) if search_is_due(count)]
    assert due[:4] == [24, 32, 64, 96]
    assert [count for count in due if 448 < count <= 1300] == [480, 512, 640, 768, 896, 1024, 1280]
    assert due[-5:] == [3840, 4096, 4608, 5120, 5632]


def test_rebuilds_stop_when_scale_and_contexts_are_settled() -> None:
    def rebuilt(policy: Patterns, context: Context, reward: Any, n: int = 300) -> list[int]:
        found = []
        for t in range(n):
            arm = policy.choose(context)
            policy.learn(Event(context, arm, float(reward(t)), t))
            if "rebuild" in agenda(policy):
                found.append(t + 1)
            while policy.upkeep():
                pass
        return found

    quick: dict[str, Any] = {
        "without": ("network", "square", "fourier", "seasons"),
        "births": False,
    }
    assert rebuilt(tide(2, **quick), Context(), lambda t: t % 2) == [1, 2, 4, 8, 16]
    settled = rebuilt(tide(2, **quick), Context(), lambda t: 0.5 + t % 2)
    assert settled in ([1, 2, 4, 8, 16], [1, 2, 4, 8, 16, 32]), "by which arms were played so far"
    jumped = rebuilt(tide(2, **quick), Context(), lambda t: 0.5 + t % 2 + 100 * (t > 100))
    assert [n for n in jumped if n != 32] == [1, 2, 4, 8, 16, 130, 258], "two were set aside"
    turned = rebuilt(tide(2, **quick), Context(), lambda t: 0.5 if t == 20 else t % 2)
    assert turned[:6] == [1, 2, 4, 8, 16, 21], "rewards of 0 and 1 turn out to be others"
    seen = Context(observation=np.array([1.0, 2.0]))
    shape = ProblemShape(2, observation_dim=2)
    assert rebuilt(tide(shape=shape, **quick), seen, lambda t: t % 2) == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        256,
    ]


def test_work_under_way_is_not_put_off_by_more_of_its_kind() -> None:
    """While work of a name waits, it is due once; while it is under way, once more."""
    policy = tide()
    rng = np.random.default_rng(0)
    for t in range(96):
        policy.choose(Context())
        policy.learn(Event(Context(), t % 3, float(rng.random() < 0.5), t))
    assert agenda(policy) == ["rebuild", "record", "search", "train"]
    assert policy.pending


@pytest.mark.parametrize("field", ["without", "also"])
def test_unknown_families_are_refused_wherever_they_are_named(field: str) -> None:
    with pytest.raises(ParameterError, match=f"{field}: there is no family 'tides'"):
        TideParameters(**{field: ("tides",)})  # type: ignore[arg-type]
    assert "turns" not in TideParameters(without=("turns",)).families()


def test_pools_suit_the_problem() -> None:
    names = ["stationary", "turns"]
    assert [(p.family, p.contextual) for p in pools(Layout(3, 1, False), names)] == [
        ("stationary", False),
        ("turns", False),
    ]
    assert [(p.family, p.contextual) for p in pools(Layout(3, 2, False), names)] == [
        ("stationary", False),
        ("turns", False),
        ("stationary", True),
        ("turns", True),
    ]
    assert [(p.family, p.contextual) for p in pools(Layout(3, 2, True), names)] == [
        ("stationary", True)
    ]


def test_priors_are_those_of_the_families_and_add_up() -> None:
    policy = tide(4)
    weights = dict(zip(policy.explain().families, policy.family_weights(), strict=True))
    assert sum(weights.values()) == pytest.approx(1.0)
    unit = 0.80 + 0.015 + 0.015 + 0.02 + 0.04 + 0.04 + 0.02 + 0.002 + 0.16 + 0.01
    assert weights["stationary"] == pytest.approx(0.80 / unit)
    assert weights["network"] == pytest.approx(0.02 / unit)
    assert weights["seasons"] == 0.0
    both = tide(shape=ProblemShape(4, observation_dim=2))
    again = dict(zip(both.explain().families, both.family_weights(), strict=True))
    # Classes instead of changes; regimes stand beside all others, on trial.
    others = unit - 0.002 - 0.16 - 0.01 + 0.04
    assert again["stationary"] / (1 - again["regimes"]) == pytest.approx(0.80 / others)


def test_network_sees_rewards_and_contexts_in_their_new_units() -> None:
    """What it remembers of every round after a change of units is what the window says of that
    round."""
    policy = tide(3, shape=ProblemShape(3, observation_dim=2))
    rng = np.random.default_rng(0)
    seen: dict[str, Any] = {}
    rescale = NetworkModel.rescale

    def spied(self: NetworkModel, lessons: Any, unfinished: Any) -> None:
        rescale(self, lessons, unfinished)
        window, _ = lessons(0)
        history = self.snapshot()["encoder"]["history"]
        seen["t"], seen["y"], seen["x"] = window.t, window.y, window.x
        seen["rewards"] = history["rewards"][: len(window.t)].copy()

    NetworkModel.rescale = spied  # type: ignore[method-assign]
    try:
        for t in range(20):
            context = Context(observation=rng.normal(size=2))
            arm = policy.choose(context)
            policy.learn(Event(context, arm, float(rng.normal()), t))
            while policy.upkeep():
                pass
    finally:
        NetworkModel.rescale = rescale  # type: ignore[method-assign]
    assert len(seen["t"]) == 16
    np.testing.assert_allclose(seen["rewards"], seen["y"], rtol=1e-6)


def test_births_wait_for_enough_rounds_and_are_counted() -> None:
    policy = tide(2)
    for i in range(200):
        arm = policy.choose(Context())
        reward = float((i // 9) % 2 == arm)
        policy.learn(Event(Context(), arm, reward, i))
        while policy.upkeep():
            pass
    diagnostics = policy.diagnostics()
    assert diagnostics["births"] == policy.snapshot()["births"]["count"] > 0
    assert diagnostics["too_late"] == 0
    assert "18.0 rounds" in str(diagnostics["explanation"])
    assert diagnostics["explanation_weight"] == pytest.approx(policy.explain().beliefs[0].weight)
