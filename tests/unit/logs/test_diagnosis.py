"""A diagnosis part by part: each against a direct computation, or against a log made to show it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.logs.making import drawn, make_log
from tidepull import logs
from tidepull.errors import DataError, ParameterError
from tidepull.logs.diagnosis import testing
from tidepull.logs.diagnosis.confounding import calibration_of, mixups_of, shifts_of
from tidepull.logs.diagnosis.events import events_of
from tidepull.logs.diagnosis.memory import _best_so_far, _errors, forgetting, worth_of
from tidepull.logs.diagnosis.overview import blind_spots, hiding, hours_of, mean_of, overview_of
from tidepull.logs.diagnosis.structure import _Words
from tidepull.reporting.log_page import best_hours, render, shown_arms

MEANS, SHARES = np.array([0.2, 0.5, 0.4]), np.array([0.6, 0.3, 0.1])
HOUR, DAY = 3600.0, 86_400.0
MONDAY = 1_767_571_200.0


def changing(seed: int, rows: int = 900) -> logs.Log:
    """Two arms that change places after two thirds of the log."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=rows)
    late = np.arange(rows) >= 2 * rows // 3
    reward = (rng.random(rows) < np.where((arm == 0) ^ late, 0.7, 0.2)).astype(float)
    time = MONDAY + 600.0 * np.arange(rows)
    return make_log(arm, reward, np.full(rows, 0.5), n_arms=2, time=time)


def test_events_stand_for_equally_many_neighbours_of_one_arm_when_a_log_is_long() -> None:
    log = drawn(1, 5000, MEANS, SHARES)
    log = replace(log, time=np.asarray(log.time) / 100 + MONDAY)
    events = events_of(log, most=600)
    assert events.each == 9
    assert len(events) <= 600
    mine = np.flatnonzero(log.arm == 1)
    first = np.flatnonzero(events.arm == 1)[0]
    assert events.reward[first] == pytest.approx(log.reward[mine[:9]].mean())
    assert events.row[first] == mine[4]
    assert "9 neighbouring decisions of an arm are averaged" in events.description()


def test_events_leave_hours_apart_and_are_drawn_when_traffic_is_thin() -> None:
    log = drawn(
        1, 5000, MEANS, SHARES
    )  # a decision every ten minutes: at most four of an arm an hour
    events = events_of(log, most=600)
    assert events.each <= 4
    assert len(events) == 600
    assert "drawn at random" in events.description()


def test_every_event_is_a_decision_with_a_reward_when_a_log_is_short() -> None:
    log = drawn(1, 300, MEANS, SHARES)
    log.reward[5] = np.nan
    events = events_of(log)
    assert len(events) == 299
    assert 5 not in events.row
    assert np.array_equal(events.reward, log.reward[events.row])


def test_measures_of_change_and_of_hours_equal_sums_written_out() -> None:
    log = drawn(3, 200, MEANS, SHARES)
    events = events_of(log)
    z = testing.standardise(events, events.reward)
    together, alone = testing._changes(events)
    best, best_alone = 0.0, 0.0
    for cut in range(1, 64):
        before = np.arange(200) * 64 // 200 < cut
        total = 0.0
        for arm in range(3):
            mine = events.arm == arm
            n, m = int((mine & before).sum()), int((mine & ~before).sum())
            if n >= 5 and m >= 5:
                apart = z[mine & before].sum() ** 2 / (n * (1 - n / (n + m)))
                total += apart
                best_alone = max(best_alone, apart)
        best = max(best, total)
    assert together(z) == pytest.approx(best)
    assert alone(z) == pytest.approx(best_alone)
    hour = (np.asarray(events.time) // HOUR % 24).astype(int)
    cells = [z[(events.arm == a) & (hour == h)] for a in range(3) for h in range(24)]
    expected = sum(cell.sum() ** 2 / len(cell) for cell in cells if len(cell))
    assert testing._cells(events.arm, hour)(z) == pytest.approx(expected)


def test_the_test_calls_what_changes_and_seldom_what_does_not() -> None:
    assert testing.time_test(events_of(changing(0)), shuffles=199).p == pytest.approx(1 / 200)
    p = [
        testing.time_test(events_of(drawn(s, 100, MEANS, SHARES)), shuffles=59).p for s in range(40)
    ]
    assert sum(value <= 0.1 for value in p) <= 10
    assert 0.3 < np.mean(p) < 0.7


def test_the_test_says_nothing_when_rewards_are_all_the_same() -> None:
    log = drawn(0, 200, MEANS, SHARES)
    log.reward[:] = 1.0
    found = logs.diagnose(log, shuffles=99)
    assert found.test.p == 1.0
    assert found.structure is None
    assert "cannot be said" in found.verdict


def test_contexts_are_taken_out_when_they_explain_a_change() -> None:
    rng = np.random.default_rng(4)
    x = np.where(np.arange(800) < 400, -1.0, 1.0) + 0.1 * rng.normal(size=800)
    reward = 0.5 * x + 0.3 * rng.normal(size=800)
    log = make_log(rng.integers(3, size=800), reward, np.full(800, 1 / 3), context={"x": x})
    events = events_of(log)
    assert testing.time_test(events, shuffles=99).p == pytest.approx(0.01)
    assert testing.time_test(events, shuffles=99, beside=testing.without_context(events)).p > 0.05


def test_memories_predict_as_written_out_and_short_ones_win_after_a_change() -> None:
    events = events_of(changing(2, 600))
    fast = _errors(events, 50.0)
    for n in (0, 1, 40, 599):
        past = [(k, 0.98 ** (n - k)) for k in range(n)]
        mine = [(k, w) for k, w in past if events.arm[k] == events.arm[n]]
        usual = events.reward[n]
        if past:
            usual = sum(w * events.reward[k] for k, w in past) / sum(w for _, w in past)
        told = (sum(w * events.reward[k] for k, w in mine) + usual) / (sum(w for _, w in mine) + 1)
        assert fast[n] == pytest.approx((events.reward[n] - told) ** 2)
    found = forgetting(events)
    assert found.helps
    assert found.best is not None
    assert found.best.decisions < 300
    assert found.best.seconds == pytest.approx(600.0 * found.best.decisions)
    assert not forgetting(events_of(drawn(5, 600, MEANS, SHARES))).helps


def test_rules_look_at_earlier_rows_only_and_forgetting_is_worth_something_after_a_change() -> None:
    log = changing(3)
    chosen = np.empty(900, np.int64)
    nowhere = np.zeros(900, np.int64)
    _best_so_far(log.arm, log.reward, nowhere, 2, 1.0, chosen)
    for n in (1, 50, 700):
        means = []
        for arm in range(2):
            mine = log.reward[:n][log.arm[:n] == arm]
            means.append((mine.sum() + log.reward[:n].mean()) / (len(mine) + 1))
        assert chosen[n] == np.argmax(means)
    later = log.reward.copy()
    later[500:] = 1 - later[500:]
    again = np.empty(900, np.int64)
    _best_so_far(log.arm, later, nowhere, 2, 1.0, again)
    assert np.array_equal(chosen[:501], again[:501])
    everything, recent, _ = worth_of(log, 60.0)
    assert recent.gain_low > 0
    assert recent.value == pytest.approx(everything.value + recent.gain)
    assert worth_of(make_log(log.arm, log.reward, None, n_arms=2), 60.0) == ()


def test_right_propensities_pass_and_wrong_ones_are_named() -> None:
    log = drawn(6, 4000, MEANS, SHARES)
    right = calibration_of(log)
    assert right is not None
    assert right.wrong == ()
    arm = next(check for check in right.checks if check.slice == "1")
    assert arm.value == pytest.approx((1 / SHARES[1]) * (log.arm == 1).sum() / 4000)
    assert arm.error == pytest.approx(
        ((1 / 0.3) * (1 / 0.3 - 1) * (log.arm == 1).mean() / 4000) ** 0.5
    )
    assert log.propensity is not None
    off = calibration_of(replace(log, propensity=np.where(log.arm == 1, 0.4, log.propensity)))
    assert off is not None
    assert any(check.slice == "1" for check in off.wrong)
    assert calibration_of(make_log(log.arm, log.reward, None)) is None


def test_right_propensities_of_seldom_arms_fail_seldom() -> None:
    failed = 0
    for seed in range(60):
        shares = np.array([0.96, 0.02, 0.02])
        made = calibration_of(drawn(seed, 1500, MEANS, shares))
        assert made is not None
        failed += bool([check for check in made.wrong if check.what == "arm"])
    assert failed <= 2


def simpson(seed: int = 0) -> logs.Log:
    """Arm 1 is better at every hour, but arm 0 was played when rewards are high."""
    rng = np.random.default_rng(seed)
    rows = 4000
    time = MONDAY + np.sort(rng.uniform(0, 14 * DAY, rows))
    evening = time % DAY >= 16 * HOUR
    arm = (rng.random(rows) < np.where(evening, 0.1, 0.8)).astype(np.int64)
    reward = (rng.random(rows) < np.where(evening, 0.6, 0.1) + 0.1 * arm).astype(float)
    return make_log(arm, reward, None, n_arms=2, time=time)


def test_simpsons_paradox_is_shown_where_it_bites() -> None:
    log = simpson()
    by_hour = next(one for one in mixups_of(log) if one.by == "hour")
    assert (by_hour.better, by_hour.other) == ("0", "1")
    assert by_hour.apart > 0.1
    assert by_hour.within == pytest.approx(0.1, abs=0.05)
    assert len(by_hour.slices) == 24
    assert next(shift for shift in shifts_of(log) if shift.by == "hour").moves > 0.5
    assert mixups_of(drawn(1, 3000, MEANS, SHARES)) == ()


def test_an_arm_that_hides_in_one_hour_is_named() -> None:
    log = simpson()
    hour = np.asarray(log.time) % DAY // HOUR
    arm = np.where(hour == 3, 2, log.arm)
    hidden = make_log(arm, log.reward, None, n_arms=3, time=log.time)
    hours = hours_of(hidden)
    assert hours is not None
    assert [one[:18] for one in hiding(hidden, hours)] == ["'2' hides: 100% of"]
    assert "(03:00)" in hiding(hidden, hours)[0]


def test_effective_rows_by_hour_and_weekday_follow_their_definition() -> None:
    log = drawn(7, 3000, MEANS, SHARES)
    hours = hours_of(log)
    assert hours is not None
    assert log.propensity is not None
    local = np.asarray(log.time)
    here = (local // HOUR % 24 == 5) & ((local // DAY + 3) % 7 == 2)
    weight = 1 / log.propensity[here]
    assert hours.effective[2, 5] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert hours.decisions.sum() == 3000
    assert hours_of(make_log(log.arm, log.reward, None)) is None


def test_intervals_of_clicks_are_wilsons_and_of_numbers_students_for_many() -> None:
    n, mean, low, high = mean_of(np.array([1.0, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 2]), 3)
    assert n.tolist() == [4, 0, 1]
    assert mean[0] == 0.25
    assert (low[0], high[0]) == pytest.approx((0.0456, 0.6994), abs=1e-4)
    assert np.isnan(mean[1])
    y = np.random.default_rng(0).normal(size=1000)
    _, mean, low, high = mean_of(y, np.zeros(1000, int), 1)
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * y.std(ddof=1) / 1000**0.5, rel=1e-4)


def test_copies_gaps_and_equal_rows_are_counted(tmp_path: Path) -> None:
    lines = ["decision_id,time,arm,reward"]
    for n in range(300):
        time = MONDAY + 60.0 * n + (3 * DAY if n >= 200 else 0.0)
        lines.append(f"d{n % 290},{time},{'ab'[n % 2]},{n % 3 % 2}")
    path = tmp_path / "shop.csv"
    path.write_text("\n".join([*lines, lines[-1], ""]))
    log = logs.read(path)
    assert "decision_id" not in log.context
    found = overview_of(log)
    assert found.copies == 11
    assert found.alike == 1
    assert [(gap.row, round(gap.length / DAY, 1)) for gap in found.gaps] == [(199, 3.0)]
    assert overview_of(drawn(0, 100, MEANS, SHARES)).copies is None


def test_a_diagnosis_names_the_change_and_dates_it() -> None:
    log = changing(0)
    found = logs.diagnose(log, shuffles=199)
    assert found.kind == "changes"
    assert found.structure is not None
    assert abs(found.structure.changes[-1].row - 600) < 40
    assert found.structure.changes[-1].when.startswith("2026-01-09")
    assert sum(found.structure.weights.values()) == pytest.approx(1.0)
    assert found.verdict.startswith("Rewards depend on time (p = 0.005)")
    assert any("'0' fell from 0.7" in one for one in found.recommendation)
    told = json.loads(json.dumps(found.plain()))
    assert told["kind"] == "changes"
    assert {row["arm"] for row in found.rows("arms")} == {"0", "1"}
    assert len(found.rows("weights")) > 100
    assert f"<li>{found.verdict}</li>" in found._repr_html_()
    assert "<td>change points</td>" in found._repr_html_()
    with pytest.raises(ParameterError, match="no table 'best'"):
        found.rows("best")


def test_a_diagnosis_of_a_steady_log_finds_nothing_and_says_what_it_could_miss() -> None:
    found = logs.diagnose(drawn(11, 700, MEANS, SHARES), shuffles=199)
    assert found.kind == "nothing"
    assert "No sign that rewards depend on time" in found.verdict
    assert any("gone unnoticed" in one for one in found.recommendation)
    assert found.calibration is not None
    assert found.calibration.wrong == ()


def test_a_log_without_times_and_with_one_arm_is_diagnosed() -> None:
    log = drawn(1, 400, np.array([0.4]), np.array([1.0]))
    found = logs.diagnose(make_log(log.arm, log.reward, None, n_arms=1), shuffles=99)
    assert found.kind == "nothing"
    assert found.hours is None
    assert any("no propensities" in one for one in found.warnings)


def test_hours_that_the_log_has_not_got_are_no_blind_spots() -> None:
    hours = hours_of(drawn(2, 60, MEANS, SHARES))
    assert hours is not None
    assert int((hours.decisions > 0).sum()) == 11
    (sentence,) = blind_spots(hours)
    assert sentence.startswith("11 of 11 hours of the week")
    assert "with 0" not in sentence


def test_nothing_is_said_of_when_an_arm_is_best_that_was_hardly_played() -> None:
    rng = np.random.default_rng(2)
    time = MONDAY + np.cumsum(rng.exponential(600.0, 3000))
    evening = (time % DAY >= 17 * HOUR) & (time % DAY < 23 * HOUR)
    arm = np.where(np.arange(3000) % 150 == 0, 2, rng.integers(2, size=3000))
    chance = np.choose(arm, [np.where(evening, 0.05, 0.3), np.where(evening, 0.4, 0.05), 0.95])
    log = make_log(arm, (rng.random(3000) < chance).astype(float), None, time=time)
    found = logs.diagnose(log, shuffles=99)
    assert found.kind == "clock"
    assert found.structure is not None
    words = " ".join(found.structure.hours)
    assert "'1' is best from 17:00 to 2" in words  # 22:00 or 23:00
    assert "'2'" not in words
    best = best_hours(found)  # the picture says what the sentence says
    assert best is not None
    assert set(best[0, 17:22]) == {1}
    assert "Best arm by hour" in render(found)


def test_an_hour_that_pays_counts_where_models_see_too_few_decisions() -> None:
    rng = np.random.default_rng(4)
    time = MONDAY + np.sort(rng.uniform(0.0, 30 * DAY, 30_000))
    hour = time % DAY / HOUR
    arm = rng.integers(3, size=len(time))
    best = np.select([hour < 8, hour < 16], [0, 1], 2)
    reward = (rng.random(len(time)) < np.where(arm == best, 0.08, 0.045)).astype(float)
    log = make_log(arm, reward, np.full(len(time), 1 / 3), time=time)
    found = logs.diagnose(log, shuffles=199, most=2000)
    assert found.structure is not None
    assert found.structure.weights["clock"] < 0.5
    assert found.kind == "clock"
    assert "follow the hour of the day" in found.verdict
    assert "nothing changes" not in " ".join(found.recommendation)
    assert "Use a policy that knows the time" in " ".join(found.recommendation)


def test_arms_too_small_to_speak_of_are_a_caveat_and_not_drawn() -> None:
    log = drawn(5, 1000, np.array([0.2, 0.5, 0.9]), np.array([0.6, 0.385, 0.015]))
    found = logs.diagnose(log, shuffles=99)
    small = int((log.arm == 2).sum())
    assert f"fewer than 50 decisions, too few to speak of: '2' ({small})" in found.warnings
    assert "Caveat: fewer than 50 decisions" in str(found)
    assert shown_arms(found) == [0, 1]


def test_a_count_of_rounds_is_said_in_time_when_there_are_dates() -> None:
    log = drawn(2, 300, MEANS, SHARES)
    assert (
        _Words(log, events_of(log), log.arms).of("repeats every 36.0 rounds")
        == "repeats every 36.0 decisions (about 6.0 hours)"
    )
    bare = make_log(log.arm, log.reward, None)
    assert (
        _Words(bare, events_of(bare), bare.arms).of("repeats every 36.0 rounds")
        == "repeats every 36.0 decisions"
    )


def test_what_cannot_be_diagnosed_is_refused_in_one_sentence() -> None:
    log = drawn(0, 200, MEANS, SHARES)
    with pytest.raises(DataError, match="has 10 rewards; at least 20"):
        logs.diagnose(log.where(slice(0, 10)))
    with pytest.raises(ParameterError, match="most must be"):
        logs.diagnose(log, most=10)
    with pytest.raises(ParameterError, match="shuffles must be"):
        logs.diagnose(log, shuffles=10)


def test_hours_of_a_long_log_are_not_taken_for_regimes() -> None:
    """Means of two clicks have steps, which a model with hidden states takes for regimes."""
    rng = np.random.default_rng(27)
    at = np.sort(rng.integers(0, 30 * 86_400, 15_000))
    arm = rng.integers(3, size=len(at))
    hour, weekend = at // 3600 % 24, at // 86_400 % 7 >= 5
    best = np.where(weekend & (hour < 14), 2, np.where((hour >= 18) & (hour < 22), 1, 0))
    click = (rng.random(len(at)) < np.where(arm == best, 0.2, 0.08)).astype(float)
    log = make_log(arm, click, np.full(len(at), 1 / 3), n_arms=3, time=MONDAY + at)
    found = logs.diagnose(log, shuffles=99)
    assert found.structure is not None
    assert found.structure.kind_of_change == "clock"
    assert "models of time learn 10,000 single decisions" in found.used


def test_arms_that_were_chosen_by_the_hour_are_not_told_from_it() -> None:
    """Both arms earn alike, more in the evening, when one of them was shown nine times of ten."""
    rng = np.random.default_rng(32)
    at = np.arange(6000) * 432.0
    evening = (at // 3600 % 24 >= 17) & (at // 3600 % 24 < 23)
    arm = (rng.random(len(at)) < np.where(evening, 0.9, 0.1)).astype(np.int64)
    click = (rng.random(len(at)) < np.where(evening, 0.2, 0.05)).astype(float)
    log = make_log(arm, click, np.full(len(at), 0.5), n_arms=2, time=MONDAY + at)
    found = logs.diagnose(replace(log, propensity=None), shuffles=99)
    assert "perhaps through" in found.recommendation[0]
    assert any("Arms were chosen by the hour" in one for one in found.recommendation)
