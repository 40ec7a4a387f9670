"""Vectors inside kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from tidepull.encoders import simd
from tidepull.encoders.layers import pack


@pytest.mark.parametrize("upward", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "lanes", "dtype"),
    [
        (64, 256, 8, np.float32),
        (256, 64, 8, np.float32),
        (24, 96, 8, np.float64),
        (13, 52, 1, np.float32),
    ],
)
def test_add_product_equals_matrix_product(
    rows: int, columns: int, lanes: int, dtype: Any, upward: bool
) -> None:
    rng = np.random.default_rng(0)
    W, x = (
        rng.standard_normal((rows, columns)).astype(dtype),
        rng.standard_normal(rows + 3).astype(dtype),
    )
    out, packed = rng.standard_normal(columns + 5).astype(dtype), np.empty_like(W)
    expected = out.astype(np.float64)
    expected[5:] += x[3:].astype(np.float64) @ W

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def run(out: Any, x: Any, W: Any) -> None:
        simd.add_product(out, 5, x, 3, W, rows, columns, lanes, upward)

    pack(W, lanes, packed)
    run(out, x, packed)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-4 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("lanes", [8, 2])
def test_arithmetic_works_lane_by_lane(lanes: int) -> None:
    x = np.linspace(-3, 4, 8)
    y = np.empty_like(x)

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def run(x: Any, y: Any) -> None:
        for i in range(0, x.size, lanes):
            v = simd.load(x, i, lanes)
            simd.store(y, i, (2.0 * simd.clamp(v, 2.0) - v) / (v * v + 1.0) + simd.exact_tanh(v))

    run(x, y)
    np.testing.assert_allclose(
        y, (2 * np.clip(x, -2, 2) - x) / (x * x + 1) + np.tanh(x), rtol=1e-14
    )
