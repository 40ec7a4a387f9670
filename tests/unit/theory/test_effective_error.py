from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.experiments.loop import run_trial
from tidepull.paper.theory.effective_error import effective_error, held_out_error
from tidepull.registry import Named

SMALL: Named = ("rnlps", {"units": (4, 4, 4), "epochs": 2, "train_every": 16})


def test_linear_features_have_no_error_and_noise_is_not_fitted_away() -> None:
    rng = np.random.default_rng(0)
    features, v = rng.normal(size=(40, 5, 3)), rng.normal(size=3)
    means = features @ v
    hidden = rng.normal(size=(40, 5, 3))
    assert held_out_error(features[::2], means[::2], features[1::2], means[1::2]) < 1e-12
    useless = held_out_error(hidden[::2], means[::2], hidden[1::2], means[1::2])
    assert useless > 0.8 * np.sqrt(np.mean(means**2))


def test_held_out_error_recovers_a_known_measurement_error() -> None:
    rng = np.random.default_rng(1)
    truth, w, epsilon = rng.normal(size=(400, 10, 4)), np.array([0.6, 0.0, 0.8, 0.0]), 0.05
    observed = truth + epsilon * rng.choice([-1.0, 1.0], size=(400, 10, 1)) * w
    means = truth @ w
    error = held_out_error(observed[::2], means[::2], observed[1::2], means[1::2])
    assert error == pytest.approx(epsilon, rel=0.05)


def test_looking_at_a_trial_does_not_disturb_it() -> None:
    measured = effective_error("rotating-vector-32", SMALL, horizon=80, seed=3)
    plain = run_trial("rotating-vector-32", SMALL, horizon=80, seed=3)
    assert measured.regret.tobytes() == plain.regret.tobytes()


def test_stretches_are_the_rounds_between_trainings_and_share_out_the_regret() -> None:
    measured = effective_error("rotating-vector-32", SMALL, horizon=80, seed=3)
    assert measured.first.tolist() == [0, 16, 32, 48, 64]
    assert measured.length.tolist() == [16] * 5
    assert np.sum(measured.regret_per_round * measured.length) == pytest.approx(measured.regret[-1])


def test_vectors_of_a_stationary_problem_carry_no_error() -> None:
    measured = effective_error("stationary-vector", SMALL, horizon=64, seed=0)
    assert measured.vectors.max() < 1e-10
    assert (measured.nothing > 0.1).all()
    assert (measured.features > 1e-3).all()


def test_plain_values_name_every_stretch() -> None:
    plain = effective_error("rotating-vector-32", SMALL, horizon=48, seed=0).as_plain()
    assert [s["first"] for s in plain["stretches"]] == [0, 16, 32]
    assert -1 <= plain["correlation"] <= 1
    assert (
        effective_error("rotating-vector-32", SMALL, horizon=16, seed=0).as_plain()["correlation"]
        is None
    )


@pytest.mark.parametrize(
    ("problem", "policy", "horizon", "word"),
    [
        ("flipping-gaussian", SMALL, 32, "linear"),
        ("rotating-vector-32", "lin-ts", 32, "encoder"),
        (("rotating-vector-32", {"n_arms": 2}), SMALL, 4, "too short"),
    ],
)
def test_trials_without_vectors_features_or_rounds_are_refused(
    problem: Named, policy: Named, horizon: int, word: str
) -> None:
    with pytest.raises(ParameterError, match=word):
        effective_error(problem, policy, horizon=horizon, seed=0)
