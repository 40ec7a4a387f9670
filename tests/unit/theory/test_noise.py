from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.paper.theory.environment import (
    ERRORS,
    NOISES,
    ErrorKind,
    Noise,
    draw_noise,
    observe,
    unit,
)


def log_mgf(kind: Noise, a: float) -> float:
    """Closed form of log E exp(a Z) for unit scale."""
    if kind == "gaussian":
        return a * a / 2
    if kind == "rademacher":
        return math.log(math.cosh(a))
    u = math.sqrt(3) * a
    return math.log(math.sinh(u) / u)


@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_sub_gaussian_with_scale_one_and_with_nothing_smaller(kind: Noise) -> None:
    for a in np.geomspace(1e-3, 100, 200):
        assert log_mgf(kind, a) <= a * a / 2 * (1 + 1e-9)
    # At small a the moment generating function reaches exp(a^2 / 2): any smaller scale would be
    # false.
    assert log_mgf(kind, 0.01) > 0.9999 * 0.01**2 / 2


@pytest.mark.parametrize("kind", NOISES)
def test_draws_follow_the_closed_form(kind: Noise) -> None:
    z = draw_noise(kind, np.random.default_rng(0), 400_000)
    assert abs(z.mean()) < 5 / math.sqrt(400_000)
    assert z.var() == pytest.approx(1, abs=0.01)
    for a in (-1.0, 0.5, 1.0):
        assert math.log(np.exp(a * z).mean()) == pytest.approx(log_mgf(kind, abs(a)), abs=0.01)
    limit = {"gaussian": math.inf, "rademacher": 1.0, "uniform": math.sqrt(3)}[kind]
    assert np.abs(z).max() <= limit


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_observed_contexts_stay_in_both_balls(kind: ErrorKind, epsilon: float) -> None:
    rng = np.random.default_rng(1)
    truth = unit(rng.normal(size=(50, 8, 4))) * rng.uniform(0, 1, (50, 8, 1))
    observed = observe(
        truth, unit(rng.normal(size=(50, 4))), rng.normal(size=(50, 8, 4)), epsilon, kind
    )
    distance = np.linalg.norm(observed - truth, axis=-1)
    assert (distance <= epsilon * (1 + 1e-12)).all()
    assert (np.linalg.norm(observed, axis=-1) <= 1 + 1e-12).all()
    inside = np.linalg.norm(truth, axis=-1) <= 1 - epsilon
    assert distance[inside] == pytest.approx(epsilon)


def test_aligned_error_moves_the_reward_by_epsilon() -> None:
    rng = np.random.default_rng(2)
    w = unit(rng.normal(size=(30, 3)))
    truth = 0.5 * unit(rng.normal(size=(30, 6, 3)))
    observed = observe(truth, w, rng.normal(size=(30, 6, 3)), 0.2, "aligned")
    shift = np.einsum("skd,sd->sk", observed - truth, w)
    assert np.abs(shift) == pytest.approx(0.2)
    assert {-1.0, 1.0} == set(np.sign(shift).ravel())


def test_no_error_leaves_every_bit_alone() -> None:
    truth = np.random.default_rng(3).normal(size=(2, 3, 4))
    assert observe(truth, truth[:, 0], np.empty(0), 0.0, "sphere") is truth
