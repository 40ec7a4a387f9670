"""The compiled loops against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.encoders import kernels
from tidepull.encoders.layers import aligned_zeros
from tidepull.encoders.simd import recurrence
from tidepull.types import FloatArray


def every_kind_of_float32() -> FloatArray:
    """Every 1021st of all float32 numbers: tiny, subnormal, huge, infinite, of both signs."""
    bits = np.arange(0, 2**32, 1021, dtype=np.uint64).astype(np.uint32)
    with np.errstate(all="ignore"):
        numbers: FloatArray = np.concatenate(
            [bits.view(np.float32), np.linspace(-12, 12, 500_001, dtype=np.float32)]
        )
    finite: FloatArray = numbers[~np.isnan(numbers)]
    return finite


def ulps(value: FloatArray, exact: FloatArray) -> float:
    """Largest error in units of the last place of the exact result."""
    return float((np.abs(value - exact) / np.spacing(np.abs(exact).astype(np.float32))).max())


def gates(x: FloatArray, hidden: int) -> FloatArray:
    """What the LSTM makes of sums x before its gates: sigmoids, then the tanh of the candidate."""
    forward, _ = recurrence(hidden)
    n = len(x)
    G = np.ascontiguousarray(np.tile(x.reshape(n, 1), (1, 4 * hidden)))
    H, C, TC = (np.zeros((n + 1, hidden), x.dtype) for _ in range(3))
    forward(G, np.zeros((hidden, 4 * hidden), x.dtype), H, C, TC)
    return G


def test_tanh_is_within_four_ulps_over_all_of_float32() -> None:
    x = every_kind_of_float32()
    Z = x.reshape(-1, 1).copy()
    kernels.tanh_rows(Z, np.zeros(1, np.float32))
    assert ulps(Z[:, 0], np.tanh(x.astype(np.float64))) < 4.0
    assert np.abs(Z).max() == 1.0


def test_tanh_inside_the_recurrence_is_within_four_ulps() -> None:
    x = every_kind_of_float32()[::8]
    assert ulps(gates(x, 8)[:, -1], np.tanh(x.astype(np.float64))) < 4.0


def test_sigmoid_is_within_four_units_of_half_an_epsilon() -> None:
    x = every_kind_of_float32()[::8]
    with np.errstate(over="ignore"):
        exact = 1.0 / (1.0 + np.exp(-x.astype(np.float64)))
    assert np.abs(gates(x, 8)[:, 0] - exact).max() < 4 * np.finfo(np.float32).epsneg


@pytest.mark.parametrize("hidden", [8, 3])
def test_gates_are_exact_in_float64(hidden: int) -> None:
    x = np.linspace(-40, 40, 1001)
    values = gates(x, hidden)
    np.testing.assert_allclose(values[:, -1], np.tanh(x), rtol=1e-15)
    np.testing.assert_allclose(values[:, 0], 1 / (1 + np.exp(-x)), rtol=0, atol=4.5e-16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_a_number_stays_so(dtype: Any) -> None:
    Z = np.array([[np.nan, 1.0]], dtype)
    kernels.tanh_rows(Z, np.zeros(2, dtype))
    assert np.isnan(Z[0, 0])
    assert np.isfinite(Z[0, 1])
    assert np.isnan(gates(np.array([np.nan], dtype), 8)).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-7), (np.float64, 1e-10)])
def test_sinusoids_are_accurate_late_in_a_long_trial(dtype: Any, tolerance: float) -> None:
    a, b = np.array([0.0, 1.9371, -0.00317], dtype), np.array([0.5, -2.0, 40.0], dtype)
    S, C = np.empty((2, 3, 1000), dtype)
    kernels.sinusoids(a, b, 99_000, S, C)
    angle = a.astype(float)[:, None] * np.arange(99_000, 100_000) + b.astype(float)[:, None]
    np.testing.assert_allclose(S, np.sin(angle), rtol=0, atol=tolerance)
    np.testing.assert_allclose(C, np.cos(angle), rtol=0, atol=tolerance)


@pytest.mark.parametrize("shape", [(1,), (7, 3), (33, 128)])
def test_aligned_arrays_begin_at_a_cache_line(shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.float64):
        array = aligned_zeros(shape, dtype)
        assert array.ctypes.data % 64 == 0
        assert array.shape == shape
        assert not array.any()
