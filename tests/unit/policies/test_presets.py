from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder
from tidepull.errors import ParameterError
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy, policies
from tidepull.policies.exploration import Boltzmann, EpsilonGreedy, PosteriorSampling
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.posteriors.normal_inverse_gamma import NormalInverseGamma
from tidepull.problems import build_problem, shape_of
from tidepull.reporting.published import DEFAULTS
from tidepull.state import dump, load
from tidepull.types import Context, Event, ProblemShape

PLAIN = ProblemShape(n_arms=5)
OBSERVED = ProblemShape(n_arms=5, observation_dim=3)
VECTORS = ProblemShape(n_arms=5, arm_dim=2)
SMALL: dict[str, Any] = {"units": (8, 8, 8), "epochs": 2}


def _build(id: str, shape: ProblemShape, **parameters: Any) -> NeuralLinear:
    policy = build_policy((id, parameters), shape, seed=0)
    assert isinstance(policy.inner, NeuralLinear)
    return policy.inner


def keep_up(policy: NeuralLinear) -> None:
    while policy.upkeep():
        pass


def _used(policy: NeuralLinear) -> dict[str, Any]:
    """What the composed parts really work with."""
    encoder: Any = policy._encoder
    posterior: Any = policy._posterior
    used = {
        "learning_rate": encoder._trainer._adam._rate,
        "epochs": policy._epochs,
        "train_every": policy._train_every,
        "noise_std": posterior.noise_std,
        "prior_std": posterior.prior_std,
        "units": encoder._network.units,
    }
    if isinstance(encoder, FeedforwardEncoder):
        width = encoder._reader.width
        used["order"] = (encoder._n_inputs - width) // (width + 1)
        used["sinusoids"] = len(encoder._network.weights["frequency"])
    return used


@pytest.mark.parametrize("id", ["rnlps", "nlps"])
@pytest.mark.parametrize("shape", [PLAIN, OBSERVED, VECTORS])
def test_defaults_are_the_papers_for_the_kind_of_problem(id: str, shape: ProblemShape) -> None:
    kind = "non-contextual" if shape == PLAIN else "contextual"
    assert _used(_build(id, shape)) == DEFAULTS[id, kind]


def test_given_parameters_replace_the_defaults() -> None:
    given = {
        "learning_rate": 0.02,
        "epochs": 3,
        "train_every": 7,
        "noise_std": 0.7,
        "prior_std": 0.9,
        "units": (4, 5, 6),
    }
    assert _used(_build("rnlps", OBSERVED, **given)) == given


@pytest.mark.parametrize(
    ("id", "shape", "parameters", "expected"),
    [
        ("rnlps", PLAIN, {}, [0, 1, 2, 3, 4]),
        ("rnlps", OBSERVED, {}, [0, 1, 2, 3, 4]),
        ("rnlps", VECTORS, {}, [0]),
        ("nlps", PLAIN, {}, [0, 1, 2, 3, 4]),
        ("nlps", OBSERVED, {"order": 6}, [0, 1, 2, 3, 4, 0, 1]),
        ("nlps", VECTORS, {}, [0, 1]),
        ("nlps", VECTORS, {"order": 4}, [0, 1, 2, 3, 4]),
    ],
)
def test_forced_pulls_are_those_of_the_published_code(
    id: str, shape: ProblemShape, parameters: dict[str, Any], expected: list[int]
) -> None:
    policy = _build(id, shape, **SMALL, **parameters)
    context = Context(
        observation=np.ones(shape.observation_dim) if shape.observation_dim else None,
        arm_features=np.ones((shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
    )
    arms = []
    while policy._forced:
        arms.append(policy.choose(context))
        policy.learn(Event(context, arms[-1], 0.0))
    assert arms == expected


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({}, PosteriorSampling()),
        ({"exploration": "epsilon-greedy", "epsilon": 0.03}, EpsilonGreedy(0.03)),
        ({"exploration": "boltzmann", "temperature": 0.005}, Boltzmann(0.005)),
    ],
)
def test_exploration_rule_is_the_one_named(parameters: dict[str, Any], rule: Any) -> None:
    assert _build("rnlps", PLAIN, **parameters)._explore == rule


def test_inferred_noise_uses_the_normal_inverse_gamma_posterior() -> None:
    policy = _build("rnlps", PLAIN, noise_std="infer", prior_std=0.8)
    assert isinstance(policy._posterior, NormalInverseGamma)


@pytest.mark.parametrize("id", ["rnlps", "nlps"])
@pytest.mark.parametrize(("shape", "width"), [(PLAIN, 5), (OBSERVED, 5), (VECTORS, 2)])
def test_raw_features_append_the_arm_to_the_networks_features(
    id: str, shape: ProblemShape, width: int
) -> None:
    plain, raw = _build(id, shape, **SMALL), _build(id, shape, **SMALL, raw_features=True)
    arm_features = np.arange(10.0).reshape(5, 2) if shape.arm_dim else None
    context = Context(np.ones(3) if shape.observation_dim else None, arm_features)
    features = raw._encoder.features(context)
    np.testing.assert_array_equal(features[:, :-width], plain._encoder.features(context))
    np.testing.assert_array_equal(
        features[:, -width:], np.eye(5) if arm_features is None else arm_features
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rate": 0}, "learning_rate must be > 0"),
        ({"units": [32, 32]}, "units must be"),
        ({"units": [32, 32, 0]}, "units must be ≥ 1"),
        ({"noise_std": "guess"}, "noise_std must be a number or 'infer'"),
        ({"exploration": "greedy"}, "exploration must be"),
        ({"epsilon": 1.5}, "epsilon must be ≤ 1"),
        ({"bptt_window": 0}, "bptt_window must be ≥ 1"),
        ({"order": 1}, "rnlps: there is no parameter 'order'"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        policies.resolve(("rnlps", parameters))


VARIANTS: list[dict[str, Any]] = [
    {},
    {"noise_std": "infer"},
    {"raw_features": True},
    {"init": "scaled"},
    {"exploration": "epsilon-greedy"},
    {"exploration": "boltzmann"},
]


@pytest.mark.parametrize("problem", ["flipping-gaussian", "flipping-digits", "rotating-vector-32"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("id", ["rnlps", "nlps"])
def test_every_variant_is_restored_in_mid_trial_bit_for_bit(
    id: str, variant: dict[str, Any], problem: str
) -> None:
    world = build_problem(problem, seed=1)
    shape = shape_of(world)
    original, copy = (_build(id, shape, **SMALL, **variant) for _ in range(2))
    copied = False
    for t in range(150):
        if t == 70:
            copy.restore(load(dump(original.snapshot())))
            copied = True
        context = world.context()
        arm = original.choose(context)
        assert not copied or copy.choose(context) == arm
        event = Event(context, arm, world.step(arm))
        for policy in (original, copy) if copied else (original,):
            policy.learn(event)
            keep_up(policy)
    assert dump(original.snapshot()) == dump(copy.snapshot())


def test_window_of_backpropagation_reaches_the_network() -> None:
    whole, cut = (_build("rnlps", PLAIN, **SMALL, bptt_window=window) for window in (None, 4))
    for policy in (whole, cut):
        for t in range(40):
            policy.learn(Event(Context(), t % 5, float(t % 3)))
            keep_up(policy)
    features = [policy._encoder.encode_history()[0] for policy in (whole, cut)]
    assert np.abs(features[0] - features[1]).max() > 1e-4


@pytest.mark.parametrize("id", ["rnlps", "nlps"])
def test_exploding_training_does_not_stop_a_trial(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidepull.parameters.LARGEST", 1e40)  # what is allowed does not explode
    explosive = {"learning_rate": 1e30, "units": (8, 8, 8)}
    trial = run_trial("sinusoidal-bernoulli", (id, explosive), horizon=200)
    assert trial.diagnostics["failed_trainings"] == 6
    assert len(set(trial.arms[10:].tolist())) > 1
