"""The algorithm as analysed; without error and inflation it is ordinary linear Thompson
sampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import Floats, LinearSetting
from tidepull.paper.theory.environment import ADVERSARIES, ERRORS, NOISES, Noise
from tidepull.paper.theory.measurement_error import PosteriorSampler, Scenario, choose, play
from tidepull.random import Streams

HORIZON = 300


def plain_linear_thompson_sampling(
    seed: int, d: int, k: int, sigma: float, noise: Noise
) -> tuple[list[int], list[float], list[float]]:
    """Textbook LinTS, w ~ N(V^-1 b, sigma^2 V^-1) with V = I + sum x x', one seed, one round at a
    time."""
    streams = Streams(seed).child("theory")
    w = streams.generator("parameter").standard_normal(d)
    w = w / np.sqrt(np.sum(w * w))
    contexts, posterior, rewards = (
        streams.generator(name) for name in ("contexts", "posterior", "noise")
    )
    V, b = np.eye(d), np.zeros(d)
    arms, paid, regret, total = [], [], [], 0.0
    for _ in range(HORIZON):
        X = contexts.standard_normal((k, d))
        X = X / np.sqrt(np.sum(X * X, axis=1, keepdims=True))
        L = np.linalg.cholesky(V)
        sample = np.linalg.solve(V, b) + sigma * np.linalg.solve(L.T, posterior.standard_normal(d))
        arm = int(np.argmax(X @ sample))
        means = np.einsum("kd,d->k", X, w)
        if noise == "gaussian":
            eta = rewards.standard_normal()
        elif noise == "rademacher":
            eta = 2.0 * rewards.integers(0, 2) - 1.0
        else:
            eta = rewards.uniform(-np.sqrt(3.0), np.sqrt(3.0))
        reward = float(means[arm] + sigma * eta)
        V = V + np.outer(X[arm], X[arm])
        b = b + reward * X[arm]
        total += float(means.max() - means[arm])
        arms.append(arm)
        paid.append(reward)
        regret.append(total)
    return arms, paid, regret


@pytest.mark.parametrize("noise", NOISES)
def test_zero_error_without_inflation_is_ordinary_linear_thompson_sampling_bit_for_bit(
    noise: Noise,
) -> None:
    setting = LinearSetting(d=4, k=7, epsilon=0.0, sigma=0.3)
    scenario = Scenario(horizon=HORIZON, seeds=5, seed=3, noise=noise, inflate=False)
    rounds = list(play(setting, scenario))
    arms = np.stack([r.arms for r in rounds])
    rewards = np.stack([r.rewards for r in rounds])
    gaps = np.stack([r.means.max(axis=1) - r.means[np.arange(5), r.arms] for r in rounds])
    regret = np.cumsum(gaps, axis=0)
    for j in range(5):
        plain_arms, plain_rewards, plain_regret = plain_linear_thompson_sampling(
            3 + j, 4, 7, 0.3, noise
        )
        assert arms[:, j].tolist() == plain_arms
        assert rewards[:, j].tobytes() == np.array(plain_rewards).tobytes()
        assert regret[:, j].tobytes() == np.array(plain_regret).tobytes()
    assert len(set(arms.ravel().tolist())) == 7


def test_inflation_changes_the_choices() -> None:
    setting = LinearSetting(d=4, k=7, sigma=0.3)
    plain, inflated = (
        np.stack([r.arms for r in play(setting, Scenario(horizon=100, seeds=2, inflate=inflate))])
        for inflate in (False, True)
    )
    assert (plain != inflated).any()


def test_agent_follows_the_equations_of_the_posterior() -> None:
    rng = np.random.default_rng(0)
    agent = PosteriorSampler(3, 4)
    B, b = np.tile(np.eye(4), (3, 1, 1)), np.zeros((3, 4))
    for _ in range(20):
        x, r = rng.normal(size=(3, 4)) / 2, rng.normal(size=3)
        agent.learn(x, r)
        for j in range(3):
            B[j] += np.outer(x[j], x[j])
            b[j] += r[j] * x[j]
    X, z = rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 4))
    look = agent.look(X, z, 0.7)
    for j in range(3):
        mean = np.linalg.inv(B[j]) @ b[j]
        sample = mean + 0.7 * np.linalg.inv(np.linalg.cholesky(B[j])).T @ z[j]
        np.testing.assert_allclose(agent.mean()[j], mean, rtol=1e-10)
        np.testing.assert_allclose(look.estimates[j], X[j] @ mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(look.theta[j], X[j] @ sample, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(look.s, theory.widths(X, B), rtol=1e-10)


def test_samples_have_the_promised_covariance() -> None:
    agent = PosteriorSampler(1, 3)
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(10, 1, 3)):
        agent.learn(x, np.array([0.5]))
    X = np.eye(3)[None]
    draws = np.concatenate([agent.look(X, z, 2.0).theta for z in rng.normal(size=(6_000, 1, 3))])
    expected = 4.0 * np.linalg.inv(agent.precision[0])
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.1 * expected.max())


def test_ties_are_broken_uniformly() -> None:
    theta = np.tile(np.array([1.0, 2.0, 2.0, 0.0, 2.0]), (30_000, 1))
    arms = choose(theta, np.random.default_rng(0).random(30_000))
    counts = np.bincount(arms, minlength=5)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert (np.abs(counts[[1, 2, 4]] - 10_000) < 400).all()
    assert choose(theta[:2], np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [1, 4]


def test_a_seed_plays_the_same_alone_as_beside_others() -> None:
    setting = LinearSetting(d=3, k=5, epsilon=0.1)
    for adversary in ADVERSARIES:
        many = Scenario(horizon=60, seeds=6, seed=0, adversary=adversary)
        alone = Scenario(horizon=60, seeds=1, seed=4, adversary=adversary)
        for crowd, single in zip(play(setting, many), play(setting, alone), strict=True):
            assert crowd.arms[4] == single.arms[0]
            assert crowd.rewards[4] == single.rewards[0]
            assert crowd.observed[4].tobytes() == single.observed[0].tobytes()


def test_longer_runs_extend_shorter_ones() -> None:
    setting = LinearSetting(d=3, k=5, epsilon=0.1)
    short = list(play(setting, Scenario(horizon=50, seeds=3)))
    long = list(itertools.islice(play(setting, Scenario(horizon=70, seeds=3)), 50))
    assert [r.rewards.tolist() for r in short] == [r.rewards.tolist() for r in long]


def test_unit_balls_and_error_are_respected_in_play() -> None:
    setting = LinearSetting(d=3, k=5, epsilon=0.3)
    for adversary, error in itertools.product(ADVERSARIES, ERRORS):
        scenario = Scenario(horizon=30, seeds=10, adversary=adversary, error=error)
        for played in play(setting, scenario):
            for contexts in (played.truth, played.observed):
                assert (np.linalg.norm(contexts, axis=-1) <= 1 + 1e-12).all()
            assert (np.linalg.norm(played.observed - played.truth, axis=-1) <= 0.3 + 1e-12).all()


def test_the_reward_comes_from_the_true_context() -> None:
    setting = LinearSetting(d=3, k=5, epsilon=0.5, sigma=0.0)
    for played in play(setting, Scenario(horizon=20, seeds=4)):
        assert played.rewards.tolist() == played.means[np.arange(4), played.arms].tolist()


def test_your_own_adversary_may_play() -> None:
    def always_first_axis(view: object) -> Floats:
        del view
        return np.tile(np.array([[1.0, 0.0], [-1.0, 0.0]]), (2, 1, 1))

    played = list(
        play(LinearSetting(d=2, k=2), Scenario(horizon=5, seeds=2), adversary=always_first_axis)
    )
    assert all((np.abs(r.truth[..., 0]) == 1).all() for r in played)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"horizon": 0}, "horizon"),
        ({"seeds": 0}, "seeds"),
        ({"adversary": "kind"}, "adversary"),
        ({"noise": "cauchy"}, "noise"),
        ({"error": "none"}, "error"),
        ({"seed": -1}, "seed"),
    ],
)
def test_impossible_scenarios_are_refused_by_name(change: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        Scenario.from_mapping(change)
