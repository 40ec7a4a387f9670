from __future__ import annotations

import numpy as np
import pytest

from tidepull.paper.theory.environment import ADVERSARIES, AdversaryName, View, adversary, unit


def view(epsilon: float = 0.1, t: int = 7, k: int = 6, d: int = 4) -> View:
    rng = np.random.default_rng(0)
    past = rng.normal(size=(5, 30, d)) * np.array([1.0] * (d - 1) + [0.1])
    precision = np.eye(d) + np.einsum("sti,stj->sij", past, past)
    return View(t, precision, unit(rng.normal(size=(5, d))), rng.normal(size=(5, k, d)), epsilon)


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0, 5.0])
def test_contexts_lie_in_the_unit_ball(name: AdversaryName, epsilon: float) -> None:
    contexts = adversary(name)(view(epsilon))
    assert contexts.shape == (5, 6, 4)
    assert (np.linalg.norm(contexts, axis=-1) <= 1 + 1e-12).all()


def test_least_explored_points_where_the_agent_knows_least() -> None:
    seen = view()
    contexts = adversary("least-explored")(seen)
    values, vectors = np.linalg.eigh(seen.precision)
    along = np.einsum("skd,sd->sk", contexts, vectors[:, :, 0])
    assert (np.abs(along) > 0.5).all()
    assert (np.sign(along)[:, ::2] == -np.sign(along)[:, 1::2]).all()
    width = np.einsum("skd,sde,ske->sk", contexts, np.linalg.inv(seen.precision), contexts)
    isotropic = np.mean(1 / values, axis=1, keepdims=True)
    assert (width.mean(axis=1, keepdims=True) > isotropic).all()


def test_hidden_best_arm_lies_within_epsilon_of_every_other() -> None:
    for t in (1, 7):
        seen = view(epsilon=0.1, t=t)
        contexts = adversary("hidden-best")(seen)
        means = np.einsum("skd,sd->sk", contexts, seen.w)
        assert (means.argmax(axis=1) == t % 6).all()
        distance = np.linalg.norm(contexts[:, :, None] - contexts[:, None, :], axis=-1)
        assert distance.max() == pytest.approx(0.1)
        ordered = np.sort(means, axis=1)
        assert ordered[:, -1] - ordered[:, -2] == pytest.approx(0.1)
