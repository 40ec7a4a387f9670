from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tidepull.problems.linear import expected_maximum


@pytest.mark.parametrize("counts", [(1, 1), (2, 3), (6, 4)])
def test_expected_maximum_equals_the_average_over_all_draws(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    pools = [rng.normal(size=6), np.array([0.3, -1.0, 0.3, 2.0])]
    draws = product(*(combinations(pool, count) for pool, count in zip(pools, counts, strict=True)))
    expected = np.mean([max(max(part) for part in parts) for parts in draws])
    assert expected_maximum(list(zip(pools, counts, strict=True))) == pytest.approx(expected)


def test_expected_maximum_of_one_value_is_the_mean() -> None:
    values = np.random.default_rng(1).normal(size=2000)
    assert expected_maximum([(values, 1)]) == pytest.approx(values.mean(), abs=1e-12)
