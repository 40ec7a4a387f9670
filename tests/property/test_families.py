"""Hypotheses and their numbers: there and back, and the kernel locates any composition as plain
Python does."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.state import difference
from tidepull.tide.models import kernels
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import RoundState, all_covariates, empty_state
from tidepull.tide.models.families import describe
from tidepull.tide.models.family import Layout
from tidepull.tide.models.lagged import LAST_ARM, LAST_SUCCESS, last_event, last_success
from tidepull.tide.models.linear import discounted, fourier, seasons, square, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.phases import equal_phases
from tidepull.tide.models.spec import ADDED_SINE, NO_CLOCK, NO_COVARIATE, SINE, SQUARE, Spec
from tidepull.tide.models.turns import turns
from tidepull.types import FloatArray

N_ARMS = 3

flags = st.booleans()
periods = st.floats(1.0, 500.0)
offsets = st.floats(0.0, 100.0)
discounts = st.floats(0.1, 1.0)
sines = st.builds(fourier, periods, discounts, flags)
squares = st.builds(square, periods, offsets, discounts, flags)
plain_sines, plain_squares = st.builds(fourier, periods), st.builds(square, periods, offsets)
hypotheses: st.SearchStrategy[Spec] = st.one_of(
    st.builds(stationary, flags),
    st.builds(discounted, discounts, flags),
    sines,
    squares,
    st.builds(seasons, plain_sines | plain_squares, plain_sines | plain_squares),
    st.builds(seasons, plain_sines, plain_sines, st.just(True)),
    st.builds(last_event, flags),
    st.builds(last_success, flags),
    st.builds(turns, flags),
    st.builds(equal_phases, st.integers(3, 24), periods, offsets),
)
any_column = st.sampled_from([NO_COVARIATE, *range(len(all_covariates()))])
specs = st.builds(
    Spec,
    family=st.just("any"),
    shapes=st.tuples(*[st.sampled_from([NO_CLOCK, SINE, SQUARE, ADDED_SINE])] * 2),
    periods=st.tuples(periods, periods),
    offsets=st.tuples(offsets, offsets),
    regime_by=st.sampled_from([NO_COVARIATE, LAST_ARM.index, LAST_SUCCESS.index]),
    interaction=any_column,
    appended=any_column,
    discount=discounts,
    contextual=flags,
    phases=st.integers(2, 24),
)
rounds = st.integers(0, 10_000)


def moment(t: int, seed: int) -> RoundState:
    made = empty_state(t, N_ARMS)
    rng = np.random.default_rng(seed)
    made.covariates[:] = rng.normal(size=len(all_covariates()))
    for column in (LAST_ARM, LAST_SUCCESS):
        made.covariates[column.index] = rng.integers(N_ARMS + 1)
    return made


def bank_of(spec: Spec) -> ModelBank:
    bank = ModelBank(Layout(N_ARMS, 2, False), [[spec]], NoisePrior())
    bank.assign(0, spec)
    return bank


def located(bank: ModelBank, now: RoundState) -> tuple[int, FloatArray]:
    tau = np.full(kernels.MAX_WIDTH, np.nan)
    cell, width = kernels.fill_basis(bank.arrays, 0, now.t, now.covariates, tau)
    return cell, tau[:width]


@QUICK
@given(hypotheses)
def test_hypothesis_comes_back_from_its_numbers(hypothesis: Spec) -> None:
    assert describe(hypothesis)
    assert bank_of(hypothesis).spec(0) == hypothesis


@QUICK
@given(hypotheses, rounds, st.integers(0, 99))
def test_kernel_locates_a_moment_as_the_hypothesis_does(
    hypothesis: Spec, t: int, seed: int
) -> None:
    now = moment(t, seed)
    cell, tau = located(bank_of(hypothesis), now)
    expected_cell, expected_tau = hypothesis.basis(now, N_ARMS)
    assert cell == expected_cell < hypothesis.n_regimes(N_ARMS)
    np.testing.assert_allclose(tau, expected_tau, atol=1e-9)


@QUICK
@given(specs, rounds, st.integers(0, 99))
def test_kernel_locates_any_composition_as_its_definition_says(
    spec: Spec, t: int, seed: int
) -> None:
    now = moment(t, seed)
    tau: FloatArray = np.ones(1)
    cell, squares = 0, 0
    for shape, period, offset in zip(spec.shapes, spec.periods, spec.offsets, strict=True):
        angle = 2 * math.pi * (t / period % 1.0)
        if shape == SINE:
            tau = np.kron(tau, [1.0, math.cos(angle), math.sin(angle)])
        elif shape == ADDED_SINE:
            tau = np.append(tau, [math.cos(angle), math.sin(angle)])
        elif shape == SQUARE:
            cell = spec.phases * cell + math.floor((t + offset) / period) % spec.phases
            squares += 1
    if spec.regime_by != NO_COVARIATE:
        cell = cell * (N_ARMS + 1) + int(now.covariates[spec.regime_by])
    if spec.interaction != NO_COVARIATE:
        tau = np.kron(tau, [1.0, now.covariates[spec.interaction]])
    found_cell, found_tau = located(bank_of(spec), now)
    assert found_cell == cell
    np.testing.assert_allclose(found_tau, tau, atol=1e-9)
    assert len(tau) == spec.width
    assert spec.n_regimes(N_ARMS) == spec.phases**squares * (
        1 if spec.regime_by == NO_COVARIATE else N_ARMS + 1
    )


@QUICK
@given(specs, st.integers(0, 99))
def test_any_note_that_is_forgotten_silences_a_hypothesis_that_needs_it(
    spec: Spec, seed: int
) -> None:
    now = moment(7, seed)
    bank = bank_of(spec)
    for column in range(len(all_covariates())):
        covariates = now.covariates.copy()
        covariates[column] = np.nan
        needed = column in (spec.regime_by, spec.interaction, spec.appended)
        assert kernels.forgotten(bank.arrays, 0, covariates) == needed


@QUICK
@given(specs, st.lists(st.tuples(st.integers(0, 2), st.floats(-3, 3)), min_size=1, max_size=8))
def test_bank_goes_on_from_a_snapshot_to_the_last_bit(
    spec: Spec, plays: list[tuple[int, float]]
) -> None:
    one, two = bank_of(spec), bank_of(spec)
    x = np.array([1.0, 0.5])
    for t, (arm, y) in enumerate(plays):
        one.observe(moment(t, t), arm, x, y, binary=False)
    two.restore(one.snapshot())
    for t, (arm, y) in enumerate(plays):
        now = moment(t + 20, t)
        np.testing.assert_array_equal(
            one.observe(now, arm, x, y, binary=False), two.observe(now, arm, x, y, binary=False)
        )
    assert difference(one.snapshot(), two.snapshot()) is None
