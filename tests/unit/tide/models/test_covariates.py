"""What families remember of the past, and how it is noted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.tide.jobs import STEPS, Job, finish, ranges
from tidepull.tide.models import covariates
from tidepull.tide.models.covariates import (
    CovariateTracker,
    Past,
    all_covariates,
    empty_state,
    standardised,
)
from tidepull.tide.models.families import describe
from tidepull.tide.models.lagged import (
    LAST_ARM,
    LAST_REWARD,
    LAST_SUCCESS,
    LastEventTracker,
    LastSuccessTracker,
    last_event,
    last_success,
)
from tidepull.tide.models.spec import Spec
from tidepull.tide.models.turns import BELIEF, SCALE, TurnFilter, TurnsTracker, turns
from tidepull.types import FloatArray


def noted(memory: CovariateTracker, t: int = 5, n_arms: int = 3) -> tuple[FloatArray, FloatArray]:
    moment = empty_state(t, n_arms)
    memory.write(moment)
    return moment.covariates, moment.per_arm


def past(successes: list[bool], arms: list[int], known: list[int], whole: bool) -> Past:
    return Past(np.arange(len(arms)), np.array(arms), np.array(successes), np.array(known), whole)


def test_last_event_is_the_arm_and_the_reward_that_came_last() -> None:
    memory = LastEventTracker(3)
    covariates, _ = noted(memory)
    assert covariates[LAST_ARM.index] == 0
    assert math.isnan(covariates[LAST_REWARD.index])
    memory.observe(4, 2, 0.7, True)
    memory.observe(1, 0, -0.3, False)
    covariates, _ = noted(memory)
    assert (covariates[LAST_ARM.index], covariates[LAST_REWARD.index]) == (1, -0.3)
    other = LastEventTracker(3)
    other.restore(memory.snapshot())
    np.testing.assert_array_equal(noted(other)[0], covariates)
    before = covariates[None].copy()
    finish(memory.recompute(past([True], [2], [0], True), before))
    np.testing.assert_array_equal(before[0], covariates)


def test_last_success_is_remembered_until_the_next() -> None:
    memory = LastSuccessTracker(3)
    assert noted(memory)[0][LAST_SUCCESS.index] == 0
    memory.observe(0, 0, 1.0, True)
    memory.observe(1, 2, 0.0, False)
    assert noted(memory)[0][LAST_SUCCESS.index] == 1
    memory.observe(2, 2, 1.0, True)
    other = LastSuccessTracker(3)
    other.restore(memory.snapshot())
    assert noted(other)[0][LAST_SUCCESS.index] == 3


def test_last_success_is_found_again_under_another_threshold() -> None:
    memory = LastSuccessTracker(3)
    memory.observe(0, 1, 1.0, True)
    covariates = np.zeros((4, len(all_covariates())))
    finish(
        memory.recompute(
            past([False, True, True, False], [1, 2, 0, 1], [0, 0, 2, 3], True), covariates
        )
    )
    np.testing.assert_array_equal(covariates[:, LAST_SUCCESS.index], [0, 0, 3, 1])
    assert noted(memory)[0][LAST_SUCCESS.index] == 1
    others = np.delete(covariates, LAST_SUCCESS.index, axis=1)
    assert not others.any()


def test_last_success_begins_with_what_the_oldest_round_knew() -> None:
    """Where the past does not begin with the first reward, nothing better is known; what is
    forgotten stays so."""
    memory = LastSuccessTracker(3)
    covariates = np.zeros((3, len(all_covariates())))
    covariates[:, LAST_SUCCESS.index] = [2, math.nan, 1]
    finish(memory.recompute(past([False, True, False], [0, 2, 1], [-4, 1, 2], False), covariates))
    np.testing.assert_array_equal(covariates[:, LAST_SUCCESS.index], [2, math.nan, 3])
    covariates[0, LAST_SUCCESS.index] = math.nan
    finish(memory.recompute(past([False, False, False], [0, 2, 1], [-1, 1, 2], False), covariates))
    np.testing.assert_array_equal(covariates[:, LAST_SUCCESS.index], [math.nan, math.nan, 0])


def test_turns_are_noted_for_every_arm_in_their_own_scale() -> None:
    memory = TurnsTracker(3)
    assert (BELIEF.per_arm, SCALE) == (True, 3.0)
    np.testing.assert_allclose(noted(memory, 0)[1][BELIEF.index], 1.0)
    memory.observe(0, 1, 1.0, True)
    each = noted(memory, 1)[1][BELIEF.index]
    assert int(np.argmax(each)) == 1
    assert each.sum() == pytest.approx(3.0)
    memory.observe(1, 1, 0.0, False)
    assert noted(memory, 2)[1][BELIEF.index, 1] < each[1]
    other = TurnsTracker(3)
    other.restore(memory.snapshot())
    np.testing.assert_array_equal(noted(other, 7)[1], noted(memory, 7)[1])


def test_turns_know_one_round_from_another() -> None:
    """A reward of a round that another has overtaken says nothing; the same round again neither."""
    memory = TurnsTracker(3)
    memory.observe(3, 1, 1.0, True)
    before = noted(memory, 4)[1]
    memory.observe(3, 0, 1.0, True)
    memory.observe(2, 0, 1.0, True)
    np.testing.assert_array_equal(noted(memory, 4)[1], before)


def test_turns_far_ahead_are_worked_out_for_so_many_moves_only() -> None:
    filtered = TurnFilter(3)
    filtered.add(1, True)
    np.testing.assert_array_equal(filtered.ahead(64), filtered.ahead(5000))
    assert not np.array_equal(filtered.ahead(63), filtered.ahead(64))
    np.testing.assert_array_equal(filtered.ahead(0), filtered.beliefs)
    np.testing.assert_array_equal(filtered.ahead(1), filtered.beliefs)


def test_turn_filter_starts_from_its_prior() -> None:
    """Nine moves in ten stay, three chains of how telling a success is: by hand for the first
    round."""
    filtered = TurnFilter(3)
    filtered.add(0, True)
    right = np.array([0.98, 0.9, 0.75])
    stays, leaves = 0.9, 0.05
    evidence = (right + 2 * (1 - right)) / 3
    now = np.array([right, 1 - right, 1 - right]).T / (3 * evidence)[:, None]
    moves = np.repeat(np.where(np.eye(3, dtype=bool), 9.0, 0.5)[None], 3, axis=0)
    assert moves[0, 0].sum() == 10.0
    T = np.where(np.eye(3, dtype=bool), stays, leaves)
    beliefs = evidence @ (now @ T) / evidence.sum()
    np.testing.assert_allclose(filtered.beliefs, beliefs, rtol=1e-12)
    filtered.add(0, True)
    # Two chains were clear (over 0.8) of arm 0 twice: each counts the move that stayed, after a
    # thousandth faded.
    again = now @ T * np.array([right, 1 - right, 1 - right]).T
    evidence = evidence**0.999 * again.sum(axis=1)
    again /= again.sum(axis=1, keepdims=True)
    clear = now[:, 0] > 0.8
    assert clear.tolist() == [True, True, False]
    moves[clear & (again[:, 0] > 0.8), 0, 0] += 1
    chances = moves / moves.sum(axis=2, keepdims=True)
    beliefs = evidence @ np.einsum("ci,cij->cj", again, chances) / evidence.sum()
    np.testing.assert_allclose(filtered.beliefs, beliefs, rtol=1e-12)


def test_turn_filter_lets_counts_of_moves_fade() -> None:
    filtered = TurnFilter(2)
    for _ in range(3):
        filtered.add(0, True)
    moves = filtered.snapshot()["moves"]
    assert moves[0, 0, 0] == pytest.approx(9 + 1 * 0.999 + 1)
    assert moves[0, 1].tolist() == [1.0, 9.0]
    filtered.reset()
    assert filtered.snapshot()["moves"][0, 0, 0] == 9
    np.testing.assert_array_equal(filtered.beliefs, [0.5, 0.5])
    assert filtered.snapshot()["clear"].tolist() == [-1, -1, -1]


def test_turn_filter_of_one_arm_has_nothing_to_say() -> None:
    filtered = TurnFilter(1)
    filtered.add(0, True)
    np.testing.assert_allclose(filtered.beliefs, [1.0])


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        (last_event(), "the last arm and reward decide"),
        (last_event(True), "the last arm and reward decide, with the context"),
        (last_success(), "the arm that paid last decides"),
        (last_success(True), "the arm that paid last decides, with the context"),
        (turns(), "arms take turns, each for a while"),
        (turns(True), "arms take turns, each for a while, with the context"),
    ],
)
def test_hypotheses_say_what_they_remember(hypothesis: Spec, words: str) -> None:
    assert describe(hypothesis) == words


def test_notes_of_an_arm_are_its_own_where_they_differ() -> None:
    moment = empty_state(3, 2)
    moment.covariates[:] = 7.0
    moment.per_arm[BELIEF.index] = [0.25, 0.75]
    row = moment.row(1)
    assert row[BELIEF.index] == 0.75
    assert row[LAST_ARM.index] == 7.0
    row[LAST_ARM.index] = 9.0
    assert moment.covariates[LAST_ARM.index] == 7.0, "a row is a copy"


def test_noted_rewards_are_standardised_and_bounded() -> None:
    covariates = np.full((4, len(all_covariates())), 2.0)
    covariates[:, LAST_REWARD.index] = [5.0, 3.0, -90.0, math.nan]
    made = standardised(covariates, 1.0, 0.5)
    np.testing.assert_array_equal(made[:, LAST_REWARD.index], [3.0, 3.0, -3.0, 0.0])
    np.testing.assert_array_equal(
        standardised(covariates, 1.0, 4.0)[:, LAST_REWARD.index], [1.0, 0.5, -3.0, 0.0]
    )
    assert (np.delete(made, LAST_REWARD.index, axis=1) == 2.0).all()
    assert covariates[0, LAST_REWARD.index] == 5.0, "what was noted stays as it was"


@pytest.mark.parametrize("reward", [5.0, 3.0, 1.0, 0.5, -0.49, -0.6, -90.0, math.nan])
def test_moment_is_standardised_as_rows_of_notes_are(reward: float) -> None:
    moment = empty_state(3, 2)
    moment.covariates[:], moment.per_arm[:] = 2.0, 0.5
    moment.covariates[LAST_REWARD.index] = reward
    made = moment.standardised(1.0, 0.5)
    np.testing.assert_array_equal(
        made.covariates, standardised(moment.covariates[None], 1.0, 0.5)[0]
    )
    assert made.t == 3
    np.testing.assert_array_equal(made.per_arm, moment.per_arm)
    assert moment.covariates[LAST_REWARD.index] == pytest.approx(reward, nan_ok=True)


def test_columns_have_names_of_their_own() -> None:
    assert [column.index for column in all_covariates()] == list(range(len(all_covariates())))
    with pytest.raises(ValueError, match="already a covariate 'last arm'"):
        covariates.declare_covariate("last arm")
    assert LAST_ARM.n_regimes is not None
    assert LAST_ARM.n_regimes(4) == 5
    assert LAST_SUCCESS.n_regimes is not None
    assert LAST_SUCCESS.n_regimes(4) == 5


@pytest.mark.parametrize(
    ("count", "steps"), [(0, 5), (1, 5), (10, STEPS // 4), (3, 10 * STEPS), (7, 0)]
)
def test_ranges_cover_everything_in_pieces_of_bounded_cost(count: int, steps: int) -> None:
    covered: list[int] = []
    for start, stop, spent in ranges(count, steps):
        assert spent == (stop - start) * steps
        assert spent <= STEPS or stop - start == 1
        covered += range(start, stop)
    assert covered == list(range(count))
    assert len(list(ranges(10, STEPS // 4))) == 3


def test_finished_work_gives_its_result() -> None:
    def work() -> Job[str]:
        yield 3
        yield 4
        return "done"

    assert finish(work()) == "done"
