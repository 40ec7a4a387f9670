"""The one-pass sample: uniform, independent of how the stream is cut, bounded."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from tidepull.problems.criteo.dataset import FEATURES, Impressions, UniformSample


def numbered(start: int, stop: int) -> Impressions:
    """Rows that carry their own number in every category."""
    numbers = np.arange(start, stop)
    return Impressions(np.repeat(numbers[:, None], len(FEATURES), axis=1), numbers % 3 == 0)


def sampled(
    size: int, cuts: list[int], seed: int = 0
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    sample = UniformSample(size, np.random.default_rng(seed))
    for start, stop in pairwise(cuts):
        sample.add(numbered(start, stop))
    return sample.rows().categories[:, 0]


def test_sample_is_the_same_however_the_stream_is_cut() -> None:
    whole = sampled(100, [0, 5000])
    assert len(whole) == len(set(whole.tolist())) == 100
    for cuts in ([0, 1, 2, 4999, 5000], list(range(0, 5001, 10)), [0, 50, 150, 151, 5000]):
        np.testing.assert_array_equal(sampled(100, cuts), whole)


def test_sample_is_uniform_over_rows() -> None:
    counts = np.zeros(40)
    for seed in range(3000):
        counts[sampled(8, [0, 7, 20, 40], seed)] += 1
    assert stats.chisquare(counts).pvalue > 1e-4


def test_sample_keeps_labels_beside_their_categories() -> None:
    sample = UniformSample(50, np.random.default_rng(1))
    sample.add(numbered(0, 900))
    rows = sample.rows()
    np.testing.assert_array_equal(rows.clicked, rows.categories[:, 0] % 3 == 0)
    assert (np.diff(rows.categories[:, 0]) > 0).all()
    assert sample.seen == 900


def test_sample_keeps_everything_when_the_stream_is_short() -> None:
    np.testing.assert_array_equal(sampled(100, [0, 30, 70]), np.arange(70))


@pytest.mark.parametrize("block", [1, 64, 10_000])
def test_sample_holds_at_most_twice_its_size(block: int) -> None:
    sample = UniformSample(50, np.random.default_rng(0))
    for start in range(0, 10_000, block):
        sample.add(numbered(start, start + block))
        assert sample.held <= 100
        assert sample.capacity == 100
    assert len(sample.rows()) == 50
