"""Estimators against direct sums, intervals against a slow resampling, weights against their
definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.logs.making import drawn, make_log
from tidepull import logs
from tidepull.errors import DataError, ParameterError
from tidepull.logs import models
from tidepull.logs.estimators import (
    ESTIMATORS,
    PolicyTerms,
    Scores,
    _block_sums,
    _freedom,
    interval,
    weights_of,
)
from tidepull.logs.models import PULL, RewardModel
from tidepull.logs.policies import terms_of
from tidepull.types import FloatArray

MEANS, SHARES = np.array([0.2, 0.5, 0.4]), np.array([0.6, 0.3, 0.1])
PI = np.array([0.1, 0.5, 0.4])


def always_pi(_: logs.Log, rows: slice) -> FloatArray:
    return np.tile(PI, (rows.stop - rows.start, 1))


def test_every_estimator_equals_its_sum_written_out() -> None:
    rng = np.random.default_rng(1)
    n = 300
    p, pi = rng.uniform(0.02, 1, n), rng.uniform(0, 1, n)
    r, q, qpi = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
    rows = PolicyTerms(pi / p, r, q, qpi, np.zeros(n), np.zeros(n), 5.0)
    expected = dict.fromkeys(ESTIMATORS, 0.0)
    total = 0.0
    for i in range(n):
        w = pi[i] / p[i]
        total += w
        expected["ips"] += w * r[i] / n
        expected["snips"] += w * r[i]
        expected["clipped"] += min(w, 5.0) * r[i] / n
        expected["dm"] += qpi[i] / n
        expected["dr"] += (qpi[i] + w * (r[i] - q[i])) / n
        expected["switch-dr"] += (qpi[i] + (w * (r[i] - q[i]) if w <= 5.0 else 0.0)) / n
    expected["snips"] /= total
    for name, estimator in ESTIMATORS.items():
        assert estimator(rows).value == pytest.approx(expected[name], abs=1e-9)


def test_weights_and_models_of_a_backtest_equal_a_direct_computation() -> None:
    log = drawn(3, 400, MEANS, SHARES, context=True)
    target = logs.Target("pi", always_pi)
    rows, uncovered = terms_of(log, target, RewardModel(log), 10.0)
    x = log.context["x"].values
    angle = 2 * np.pi * np.asarray(log.time) / 86_400
    weekend = (np.floor(np.asarray(log.time) / 86_400) + 3) % 7 >= 5
    full = np.column_stack(
        [np.ones(400), (x - x.mean()) / x.std(), np.sin(angle), np.cos(angle), weekend]
    )
    for fold in range(5):
        here = np.zeros(400, bool)
        here[80 * fold : 80 * (fold + 1)] = True
        X, r, arm = full[~here], log.reward[~here], log.arm[~here]
        weight = 1 / SHARES[log.arm]
        C = np.diag(weight[~here] * weight.sum() / (weight**2).sum())
        b = np.linalg.solve(X.T @ C @ X + np.diag([1e-9, 1, 1, 1, 1]), X.T @ C @ r)
        expected = np.zeros((80, 3))
        for a in range(3):
            mine = arm == a
            left = r[mine] - X[mine] @ b
            h = np.linalg.solve(X[mine].T @ X[mine] + PULL * np.eye(5), X[mine].T @ left)
            expected[:, a] = full[here] @ (b + h)
        assert np.allclose(rows.policy[here], expected @ PI, atol=1e-9)
        assert np.allclose(rows.chosen[here], expected[np.arange(80), log.arm[here]], atol=1e-9)
    assert np.allclose(rows.weight, PI[log.arm] / SHARES[log.arm], atol=1e-12)
    assert uncovered == 0.0


def test_the_pull_of_a_row_is_how_much_its_reward_moves_an_estimate_by_way_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "FOLDS", 1)
    log = drawn(4, 60, MEANS, SHARES, context=True)
    chances = np.random.default_rng(5).uniform(0.05, 0.9, 60)
    log = replace(log, propensity=chances)
    target = logs.Target("pi", always_pi)
    rows, _ = terms_of(log, target, RewardModel(log), 2.0)
    light = np.where(rows.weight <= 2.0, rows.weight, 0.0)
    assert 0 < (light > 0).sum() < 60
    for i in (0, 17, 59):
        log.reward[i] += 1.0
        moved, _ = terms_of(log, target, RewardModel(log), 2.0)
        log.reward[i] -= 1.0
        shift, chosen = moved.policy - rows.policy, moved.chosen - rows.chosen
        assert 60 * shift.mean() == pytest.approx(rows.pull[i], abs=1e-8)
        assert 60 * (shift - light * chosen).mean() == pytest.approx(rows.switch_pull[i], abs=1e-8)


def test_the_direct_method_stands_for_the_average_arm_after_greedy_logging() -> None:
    means, shares = np.array([0.8, 0.2, 0.2]), np.array([0.98, 0.01, 0.01])
    found = []
    for seed in range(40):
        log = drawn(seed, 600, means, shares)
        found.append(logs.backtest(log, ["arm:1"], estimators=["dm"]).of("arm:1", "dm").value)
    assert np.mean(found) < 0.42


def test_block_sums_go_round_and_intervals_follow_the_dependence_of_neighbours() -> None:
    part = np.array([1.0, 2.0, 4.0, 8.0])
    assert _block_sums(part, 3).tolist() == [7.0, 14.0, 13.0, 11.0]
    assert _block_sums(part, 1).tolist() == part.tolist()
    rng = np.random.default_rng(0)
    alone = rng.normal(size=4000)
    runs = np.repeat(rng.normal(size=400), 10)
    width = {}
    for name, terms, block in (("alone", alone, 1), ("runs", runs, 40), ("naive", runs, 1)):
        low, high = interval(Scores(terms, np.ones(4000)), block=block)
        assert low < terms.mean() < high
        width[name] = high - low
    assert width["alone"] == pytest.approx(2 * 1.96 / 4000**0.5, rel=0.1)
    assert width["runs"] == pytest.approx(2 * 1.96 / 400**0.5, rel=0.15)
    assert width["naive"] < 0.45 * width["runs"]


def test_noise_beside_widens_an_interval_and_does_not_move_it() -> None:
    rng = np.random.default_rng(3)
    terms, noise = rng.normal(size=2000), 5 + 2 * rng.normal(size=2000)
    low, high = interval(Scores(terms, np.ones(2000), noise), block=1)
    assert (low + high) / 2 == pytest.approx(terms.mean(), abs=0.02)
    assert high - low == pytest.approx(2 * 1.96 * 5**0.5 / 2000**0.5, rel=0.1)


def test_an_interval_is_not_known_when_all_rows_are_alike() -> None:
    assert np.isnan(interval(Scores(np.zeros(50), np.ones(50)))).all()
    assert np.isnan(interval(Scores(np.array([1.0]), np.ones(1)))).all()


def test_intervals_contain_the_truth_about_as_often_as_they_say() -> None:
    truth = float(PI @ MEANS)
    hits = dict.fromkeys(("ips", "snips", "dm", "dr"), 0)
    for seed in range(60):
        log = drawn(seed, 400, MEANS, SHARES)
        found = logs.backtest(log, [logs.Target("pi", always_pi)], estimators=tuple(hits))
        for name in hits:
            one = found.of("pi", name)
            hits[name] += one.low <= truth <= one.high
    assert all(count >= 51 for count in hits.values()), hits


def test_weights_say_when_not_to_believe() -> None:
    few = weights_of(np.array([200.0] + [0.0] * 199), 0.0)
    assert few.effective == 1.0
    assert few.tail == 1.0
    assert any("1.0 effective rows" in sentence for sentence in few.warnings())
    assert any("1% of the rows carry 100%" in sentence for sentence in few.warnings())
    assert any(
        "propensities look wrong" in one for one in weights_of(np.full(500, 1.5), 0.0).warnings()
    )
    assert any("never shows" in one for one in weights_of(np.full(500, 0.9), 0.1).warnings())
    assert weights_of(np.full(500, 1.0), 0.0).warnings() == []


def test_choices_of_arms_that_the_log_never_shows_are_told() -> None:
    log = drawn(0, 300, np.array([0.5, 0.2]), np.array([0.5, 0.5]))
    wide = make_log(log.arm, log.reward, log.propensity, n_arms=4)
    found = logs.backtest(wide, ["random"])
    assert found.weights["random"].uncovered == pytest.approx(0.5)
    assert any("50.0% of its choices" in sentence for sentence in found.warnings["random"])


def test_slices_by_hour_add_up_to_the_whole() -> None:
    log = drawn(2, 1000, MEANS, SHARES)
    found = logs.backtest(log, ["random"], estimators=["ips"], by=["hour", "weekday", "day"])
    whole = found.of("random", "ips")
    for by in ("hour", "weekday", "day"):
        parts = [one for one in found.estimates if (one.policy, one.by) == ("random", by)]
        assert sum(one.value * one.rows for one in parts) == pytest.approx(
            whole.value * 1000, abs=1e-9
        )
        assert sum(one.rows for one in parts) == 1000


def test_what_cannot_be_backtested_is_refused_in_one_sentence() -> None:
    log = drawn(0, 50, MEANS, SHARES)
    bare = make_log(log.arm, log.reward, None)
    with pytest.raises(DataError, match="has no propensities; name their column"):
        logs.backtest(bare, ["random"])
    even = drawn(0, 50, MEANS, np.full(3, 1 / 3)).with_uniform_propensities()
    assert logs.backtest(even, ["random"]).weights["random"].effective == 50
    with pytest.raises(DataError, match="one arm only"):
        logs.backtest(make_log(log.arm * 0, log.reward, log.propensity, n_arms=1), ["random"])
    with pytest.raises(DataError, match="no row with a reward"):
        logs.backtest(make_log(log.arm, np.full(50, np.nan), log.propensity), ["random"])
    with pytest.raises(DataError, match="no dates"):
        logs.backtest(make_log(log.arm, log.reward, log.propensity), ["random"], by=["hour"])
    with pytest.raises(DataError, match="no arm 'red'"):
        logs.backtest(log, ["arm:red"])
    with pytest.raises(ParameterError, match="no estimator 'best'"):
        logs.backtest(log, ["random"], estimators=["best"])
    with pytest.raises(ParameterError, match="shares must be 50 x 3"):
        logs.backtest(log, [logs.Target("half", lambda *_: np.full((50, 3), 0.5))])


def test_rows_without_reward_or_constant_rewards_are_told() -> None:
    log = drawn(0, 50, MEANS, SHARES)
    log.reward[:7] = np.nan
    assert logs.backtest(log, ["random"]).left_out == ("7 decisions without a reward are left out",)
    log.reward[:] = 1.0
    found = logs.backtest(log, ["random"], estimators=["ips"])
    assert "every reward is 1" in found.left_out[0]
    assert np.isnan(found.of("logged", "mean").low)


def test_estimates_carry_a_warning_or_claim_their_interval() -> None:
    log = drawn(4, 1500, MEANS, np.array([0.03, 0.47, 0.5]))
    assert log.propensity is not None
    found = logs.backtest(log, ["random", "arm:0"], by=["hour"])
    assert found.of("random", "dr").warning == ""
    assert found.of("random", "dm").warning == "rests on the model"
    rare, total = (log.arm == 0).sum() / 0.09, (1 / 3 / log.propensity).sum()
    assert (
        found.of("random", "clipped").warning == f"{0.1 * rare / total:.0%} of the weight clipped"
    )
    assert found.of("random", "switch-dr").warning == f"{rare / total:.0%} rests on the model"
    assert found.of("arm:0", "snips").warning == f"{(log.arm == 0).sum()} effective rows"
    assert all(
        one.warning for one in found.estimates if one.by == "hour" and one.policy == "random"
    )
    assert f"<td>{rare / total:.0%} rests on the model</td>" in found._repr_html_()
    steady = logs.backtest(replace(log, reward=np.ones(len(log))), ["random"])
    assert all(np.isnan(one.low) for one in steady.estimates)
    assert steady.of("random", "dm").value == pytest.approx(1.0, abs=1e-9)


def test_a_model_that_is_wrong_where_a_policy_goes_is_told() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    arm = rng.integers(2, size=4000)
    reward = np.where(arm == 0, 0.5, 4 * x**2) + rng.normal(0, 0.1, 4000)
    log = make_log(arm, reward, np.full(4000, 0.5), n_arms=2, context={"x": x})
    far = logs.Target("far", lambda _, rows: np.eye(2)[(np.abs(x[rows]) > 0.5).astype(int)])
    (said,) = logs.backtest(log, [far]).warnings["far"]
    assert said.startswith("the model of rewards is too low where this policy goes")
    assert logs.backtest(log, ["random"]).warnings["random"] == ()


def test_heavy_blocks_leave_few_degrees_of_freedom() -> None:
    rng = np.random.default_rng(1)
    even, heavy = np.tile([-1.0, 1.0], 500), np.zeros(1000)
    heavy[:10] = 100.0
    assert _freedom(Scores(even, np.ones(1000)), 1, 1000) == 999
    assert _freedom(Scores(heavy, np.ones(1000)), 1, 1000) == pytest.approx(20, rel=0.1)
    assert _freedom(Scores(rng.normal(size=1000), np.ones(1000)), 1, 1000) == pytest.approx(
        999, rel=0.1
    )
