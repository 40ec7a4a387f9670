"""What families look for: seasons planted in a past are born, by the family whose they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from tidepull.tide.jobs import Job, finish
from tidepull.tide.models import period_search
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Candidate, Layout, Rounds, Window
from tidepull.tide.models.linear import fourier, seasons, square
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE, Spec
from tidepull.types import FloatArray

T0 = 40


@dataclass
class Given:
    """A past, and what is heaviest so far."""

    layout: Layout
    contextual: bool
    window: Window
    rounds: Rounds
    heavy: list[Spec] = field(default_factory=list)

    def sines(self) -> Job[list[float]]:
        return period_search.best_sines(self.rounds, self.layout.n_arms, 3)

    def spectral_peaks(self, count: int) -> Job[list[tuple[float, float]]]:
        return period_search.spectral_peaks(self.window, self.rounds, self.layout, count)

    def heaviest(self) -> list[Spec]:
        return self.heavy

    def heaviest_of(self, families: Sequence[str]) -> Spec | None:
        return next((h for h in self.heavy if h.family in families), None)

    def ridge(self, hypothesis: Spec) -> float:
        bank = ModelBank(self.layout, [[hypothesis]], NoisePrior())
        bank.assign(0, hypothesis)
        return float(bank.arrays.ridge[0])


def past(swing: FloatArray, *, contextual: bool = False, heavy: Sequence[Spec] = ()) -> Given:
    """Two arms whose rewards, or weights on a number, swing against each other."""
    rng, n = np.random.default_rng(1), len(swing)
    t, arm = T0 + np.arange(n), rng.integers(2, size=n)
    x = np.column_stack([np.ones(n), rng.normal(size=n)]) if contextual else np.ones((n, 1))
    y = np.where(arm == 0, 1, -1) * swing * x[:, -1] + 0.2 * rng.normal(size=n)
    window = Window(t, np.zeros((n, len(all_covariates()))), arm, x, y)
    return Given(Layout(2, x.shape[1], False), contextual, window, Rounds(T0, arm, y), list(heavy))


def born(family: str, search: Given) -> list[Candidate]:
    candidates = FAMILIES[family].candidates
    assert candidates is not None
    return [each for each in candidates(search) if isinstance(each, Candidate)]


def sine(period: float, n: int) -> FloatArray:
    return np.asarray(np.sin(2 * np.pi * (T0 + np.arange(n)) / period))


def wave(half: float, offset: float, n: int) -> FloatArray:
    return np.where(np.floor((T0 + np.arange(n) + offset) / half) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize("period", [9.37, 23.7])
def test_sine_is_born(period: float) -> None:
    candidates = born("fourier", past(sine(period, 150)))
    assert [each.n_candidates for each in candidates] == [50.0]
    first = candidates[0].spec
    assert first.family == "fourier"
    assert first.periods[0] == pytest.approx(period, rel=0.01)


def test_pair_of_sines_is_born_with_both_periods_where_one_pulls_the_other_aside() -> None:
    """Looked for one after the other both come out wrong: the window has hardly a turn between 31
    and 44 rounds."""
    periods = (31.0, 44.0)
    search = past(sine(periods[0], 150) + sine(periods[1], 150))
    pairs = [each.spec for each in born("seasons", search)]
    best = next(h for h in pairs if h.shapes[1] == ADDED_SINE)
    found = sorted(best.periods)
    assert found == pytest.approx(periods, rel=0.01)


def test_sine_is_born_with_the_context() -> None:
    search = past(sine(23.7, 150), contextual=True, heavy=[fourier(24.5, contextual=True)])
    candidates = born("fourier", search)
    periods = [h.periods[0] for h in (each.spec for each in candidates) if h.family == "fourier"]
    assert periods == pytest.approx([23.7] * 2, rel=0.005), (
        "a rhythm and the heaviest, climbed to the top"
    )
    assert [each.n_candidates for each in candidates] == [150.0] * 2
    hypotheses = [each.spec for each in candidates]
    assert all(spec.contextual for spec in hypotheses)


@pytest.mark.parametrize(("half", "offset"), [(7.0, 3.0), (10.0, 0.0)])
def test_two_phases_are_born(half: float, offset: float) -> None:
    candidates = born("square", past(wave(half, offset, 120)))
    first = candidates[0].spec
    assert first.family == "square"
    assert first.periods[0] == half
    t = T0 + np.arange(120)
    phase = np.floor((t + first.offsets[0]) / first.periods[0]) % 2
    expected = np.floor((t + offset) / half) % 2
    assert np.mean(phase == expected) in (0.0, 1.0)
    assert {each.n_candidates for each in candidates} == {float(len(period_search.squares(120)[0]))}
    assert len(candidates) == 1, "no other wave is worth a try"


def test_two_phases_are_born_with_the_context() -> None:
    search = past(wave(9.0, 4.0, 140), contextual=True, heavy=[square(30.0, contextual=True)])
    candidates = born("square", search)
    assert [each.n_candidates for each in candidates] == [8.0 * 140] * 2
    halves = [h.periods[0] for h in (each.spec for each in candidates) if h.family == "square"]
    assert halves[0] == pytest.approx(9.0, rel=0.02)
    assert halves[1] == 9.0, "whole half periods are tried beside"
    second = candidates[1].spec
    assert second.family == "square"
    t = T0 + np.arange(140)
    phase, expected = np.floor((t + second.offsets[0]) / 9.0) % 2, np.floor((t + 4.0) / 9.0) % 2
    agreement = float(np.mean(phase == expected))
    assert max(agreement, 1 - agreement) > 0.93


def test_second_season_is_found_in_what_the_first_leaves() -> None:
    swing = 3 * sine(40.0, 240) + wave(7.0, 0.0, 240)
    candidates = born("seasons", past(swing, heavy=[fourier(40.0, 0.99)]))
    *pairs, climbed = [each.spec for each in candidates if each.spec.family == "seasons"]
    assert all((pair.shapes[0], pair.periods[0]) == (SINE, 40.0) for pair in pairs)
    assert seasons(fourier(40.0), square(7.0, 0.0)) in pairs
    assert {each.n_candidates for each in candidates} == {0.25 * 240**2}
    assert [pair.shapes[1] for pair in pairs] == [ADDED_SINE, SINE, SQUARE]
    assert climbed.shapes[1] == ADDED_SINE


def test_second_season_of_a_wave_is_no_sum() -> None:
    swing = sine(31.0, 200) + wave(8.0, 0.0, 200)
    candidates = born("seasons", past(swing, heavy=[square(8.0, 0.0, 0.9)]))
    pairs = [each.spec for each in candidates if each.spec.family == "seasons"]
    *pairs, climbed = pairs
    assert len(pairs) == 3
    assert all((pair.shapes[0], pair.periods[0]) == (SQUARE, 8.0) for pair in pairs)
    assert climbed.shapes[1] == ADDED_SINE, "two sines that were climbed together"
    assert pairs[0].shapes[1] == SINE
    assert pairs[0].periods[1] == pytest.approx(31.0, rel=0.02)
    assert [each.spec for each in born("seasons", past(swing))] == [climbed]


@pytest.mark.parametrize("contextual", [False, True])
def test_search_tries_hardly_anything_when_nothing_swings(contextual: bool) -> None:
    assert len(born("fourier", past(np.zeros(800), contextual=contextual))) <= 2


def test_search_bears_a_period_that_is_longer_than_the_window() -> None:
    search = past(sine(23.7, 30), contextual=True, heavy=[fourier(2048.0, contextual=True)])
    assert all(each.spec.family == "fourier" for each in born("fourier", search))


def test_grids_of_a_scan_cover_what_rounds_can_tell_apart() -> None:
    grid = period_search.frequencies(100)
    assert grid[0] == pytest.approx(0.01)
    np.testing.assert_allclose(np.diff(grid), 1 / 300)
    assert grid[-1] < 1 / 3 <= grid[-1] + 1 / 300
    halves, offsets = period_search.squares(60)
    assert set(halves) == set(range(2, 31))
    assert [o for h, o in zip(halves, offsets, strict=True) if h == 5] == [0, 1, 2, 3, 4]
    assert [o for h, o in zip(halves, offsets, strict=True) if h == 24] == [
        2 * i for i in range(12)
    ]
    longer = sorted(set(period_search.squares(1000)[0]))
    assert longer[:95] == list(range(2, 97))
    assert (longer[95], longer[-1]) == (97, 500)
    ratios = np.diff(np.log(longer[95:]))
    assert ratios.max() < 0.045
    assert ratios.min() > 0.015
    assert max(period_search.squares(194)[0]) == 96
    assert max(period_search.squares(196)[0]) == 98


def test_too_few_rounds_have_no_sines() -> None:
    rounds = Rounds(0, np.zeros(2, np.int64), np.zeros(2))
    assert finish(period_search.best_sines(rounds, 1, 3)) == []


def test_moves_of_a_wave_keep_the_boundary_at_the_centre() -> None:
    moves = period_search.neighbours(7.4, 3.0, 100.0, 1.0)
    assert (7.4, 4.0) in moves
    assert (7.4, 2.0) in moves
    for half, offset in moves[2:4]:
        before, after = (100 + 3.0) / 7.4, (100 + offset) / half
        assert (after - before) % 2 == pytest.approx(0.0, abs=1e-9) or (
            after - before
        ) % 2 == pytest.approx(2.0)
    assert [half for half, _ in moves[2:]] == [7.65, 7.15, 7.0, 8.0]
    assert all(offset == int(offset) for half, offset in moves[4:])
    assert [half for half, _ in period_search.neighbours(1.0, 0.0, 10.0, 0.5)] == [1.0, 1.0, 1.125]
    assert all(0 <= offset < 2 * half for half, offset in moves)


def test_climb_stops_at_the_top() -> None:
    def score(halves: FloatArray, offsets: FloatArray) -> Job[FloatArray]:
        yield 1
        return -((halves - 6.3) ** 2) - ((offsets - 2.2) ** 2) / 10

    half, offset = finish(period_search.climb(8.0, 4.0, 0.0, score))
    assert half == pytest.approx(6.3, abs=0.2)
    assert offset == pytest.approx(2.2, abs=0.3)


def test_rhythms_are_those_of_each_arms_products_in_the_order_of_decisions() -> None:
    """The same past, its rewards in another order and some before the scan begins."""
    search = past(sine(12.5, 120), contextual=True)
    straight = finish(period_search.spectral_peaks(search.window, search.rounds, search.layout, 2))
    assert straight[0][0] == pytest.approx(12.5, rel=0.02)
    order = np.random.default_rng(0).permutation(120)
    shuffled = Window._make(part[order] for part in search.window)
    again = finish(period_search.spectral_peaks(shuffled, search.rounds, search.layout, 2))
    np.testing.assert_allclose(again, straight)
    arm = search.rounds.arm
    cut = next(i for i in range(30, 60) if arm[i - 1] != arm[-1])
    later = search.rounds._replace(t0=T0 + cut, arm=arm[cut:], y=search.rounds.y[cut:])
    part = finish(period_search.spectral_peaks(search.window, later, search.layout, 1))
    assert part[0][0] == pytest.approx(12.5, rel=0.03)
    alone = Window._make(each[cut:] for each in search.window)
    assert part == finish(period_search.spectral_peaks(alone, later, search.layout, 1)), (
        "what came before is left out"
    )
    shared = finish(
        period_search.spectral_peaks(search.window, search.rounds, Layout(2, 2, True), 1)
    )
    assert shared[0] != straight[0]


def test_spectral_rhythms_are_apart_and_in_range() -> None:
    n = 128
    t = np.arange(n)
    moments = np.column_stack([np.sin(2 * np.pi * t / 16), 0.5 * np.sin(2 * np.pi * (t + 3) / 5)])
    found = finish(period_search.spectral(moments, 0, 2))
    assert [period for period, _ in found] == pytest.approx([16, 5], rel=0.01)
    assert found[0][1] % 8 == pytest.approx(0.0, abs=0.3) or found[0][1] % 8 == pytest.approx(
        8.0, abs=0.3
    )
    assert found[1][1] % 2.5 == pytest.approx(0.5, abs=0.2)
    for other in (1e-4 * moments, moments + 5.0):
        np.testing.assert_allclose(finish(period_search.spectral(other, 0, 2)), found, rtol=1e-3)
    assert finish(period_search.spectral(np.zeros((n, 2)), 0, 3)) == []
    slow = np.sin(2 * np.pi * t / 600)[:, None]
    quick = np.where(t % 2, 1.0, -1.0)[:, None]
    for moments in (slow, quick):
        assert all(3 <= period <= n for period, _ in finish(period_search.spectral(moments, 0, 3)))
    moved = finish(period_search.spectral(np.sin(2 * np.pi * t / 16)[:, None], 4, 1))
    assert (moved[0][1] + 4) % 8 == pytest.approx(0.0, abs=0.3) or math.isclose(
        (moved[0][1] + 4) % 8, 8, abs_tol=0.3
    )
