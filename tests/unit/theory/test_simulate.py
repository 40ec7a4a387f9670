from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidepull.paper.theory.bound import Floats, LinearSetting, premise_from
from tidepull.paper.theory.environment import View
from tidepull.paper.theory.measurement_error import Scenario, play
from tidepull.paper.theory.simulate import (
    checkpoints,
    configurations,
    fit,
    horizon_growth,
    promises,
    simulate,
    vary,
)

SETTING = LinearSetting(d=3, k=5, epsilon=0.1)
SCENARIO = Scenario(horizon=128, seeds=8)


def test_measurements_are_the_sums_over_rounds() -> None:
    result = simulate(SETTING, SCENARIO)
    regret = np.zeros(8)
    potential = np.zeros(8)
    for played in play(SETTING, SCENARIO):
        regret += played.means.max(axis=1) - played.means[np.arange(8), played.arms]
        potential += played.look.s[np.arange(8), played.arms]
        if played.t in result.checkpoints:
            column = result.checkpoints.tolist().index(played.t)
            assert result.regret[:, column].tolist() == regret.tolist()
            assert result.potential[:, column].tolist() == potential.tolist()
    assert result.checkpoints[-1] == 128


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    first, again = simulate(SETTING, SCENARIO), simulate(SETTING, SCENARIO)
    other = simulate(SETTING, replace(SCENARIO, seed=100))
    assert first.regret.tobytes() == again.regret.tobytes()
    assert first.failures_theta.tobytes() == again.failures_theta.tobytes()
    assert first.regret.tobytes() != other.regret.tobytes()


@pytest.mark.parametrize("horizon", [1, 2, 3, 100, 4096])
def test_checkpoints_rise_from_one_to_the_horizon(horizon: int) -> None:
    points = checkpoints(horizon)
    assert points[0] == 1
    assert points[-1] == horizon
    assert (np.diff(points) > 0).all()


def test_every_configuration_keeps_every_promise() -> None:
    seen = 0
    for setting, scenario in configurations(horizon=200, seeds=10, seed=1):
        broken = [step for step in promises(simulate(setting, scenario)) if not step.kept]
        assert not broken, (setting, scenario, broken)
        seen += 1
    assert seen >= 20


def test_premise_is_met_in_some_configurations_only() -> None:
    met = [premise_from(setting) == 1 for setting, _ in configurations(horizon=10, seeds=1, seed=0)]
    assert 0 < sum(met) < len(met)


def test_event_w_fails_when_the_assumptions_are_broken() -> None:
    def outside_the_unit_ball(view: View) -> Floats:
        return 40.0 * view.normals

    setting = LinearSetting(d=3, k=5, sigma=5.0, delta=0.9)
    assert all(step.kept for step in promises(simulate(setting, SCENARIO)))
    # The potential lemma asks for contexts of length at most 1.
    broken = simulate(SETTING, replace(SCENARIO, horizon=4), adversary=outside_the_unit_ball)
    assert broken.failures_w.sum() > 0
    kept = {step.what: step.kept for step in promises(broken)}
    assert not kept["failures of E^w a trial"]


def test_event_theta_fails_in_the_first_round_and_rarely_after() -> None:
    result = simulate(LinearSetting(d=2, k=25), Scenario(horizon=64, seeds=200))
    assert result.failures_theta[0] == 200
    for t in (2, 3, 4):
        promised = 1 / t**2
        assert result.failures_theta[t - 1] / 200 <= promised
    assert 0 < result.failures_theta[1:].sum() < 200 * 0.645


def test_event_w_fails_exactly_where_the_deviation_passes_its_limit() -> None:
    def far_out(view: View) -> Floats:
        return 3.0 * view.normals if view.t % 2 else 0.1 * view.normals

    result = simulate(SETTING, replace(SCENARIO, horizon=6), adversary=far_out)
    assert ((result.nearest_w > 1) == (result.failures_w > 0)).all()
    assert (result.nearest_w > 1).any()
    assert (simulate(SETTING, SCENARIO).nearest_w < 1).all()


def test_regret_grows_linearly_where_the_best_arm_is_hidden() -> None:
    setting, scenario = (
        LinearSetting(d=3, k=5),
        Scenario(horizon=256, seeds=20, adversary="hidden-best"),
    )
    growth = vary(setting, scenario, axis="epsilon", values=(0.05, 0.1, 0.2))
    assert growth is not None
    assert 0.9 < growth.low <= growth.slope <= growth.high < 1.5
    over_time = horizon_growth(simulate(replace(setting, epsilon=0.2), scenario))
    assert over_time is not None
    assert 0.9 < over_time.slope < 1.05


def test_no_exponent_is_fitted_to_zero_regret() -> None:
    result = simulate(LinearSetting(d=3, k=1), SCENARIO)
    assert result.regret.max() == 0
    assert horizon_growth(result) is None
    assert vary(LinearSetting(d=3, k=1), SCENARIO, axis="epsilon", values=(0.1, 0.2)) is None


def test_fit_recovers_a_known_power_and_covers_it() -> None:
    rng = np.random.default_rng(0)
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    covered = 0
    for _ in range(100):
        regret = values**0.7 * rng.gamma(9.0, 1 / 9.0, (60, 5))
        found = fit("T", values, regret, values**1.5, rng)
        covered += found.low <= 0.7 <= found.high
        assert found.slope == pytest.approx(0.7, abs=0.1)
        assert found.bound_slope == pytest.approx(1.5)
    assert covered >= 85


def test_one_round_and_one_arm_are_possible() -> None:
    result = simulate(LinearSetting(d=1, k=1), Scenario(horizon=1, seeds=1))
    assert result.regret.tolist() == [[0.0]]
    assert all(step.kept for step in promises(result))
