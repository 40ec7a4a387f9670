from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.unit.reporting.filling import SUITE, fill
from tidepull.experiments.store import Store
from tidepull.reporting import published
from tidepull.reporting.frames import load_frame
from tidepull.reporting.published import versus_paper, versus_store

SHORT = """
name = "long"
seeds = "0-2"
[[problems]]
id = "flipping-gaussian"
[[policies]]
name = "d-ucb"
parameters = { discount = 0.95 }
[[policies]]
name = "random"
"""


@pytest.fixture(scope="module")
def full_length(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three trials at the paper's horizon."""
    return fill(tmp_path_factory.mktemp("long"), SHORT)


def test_store_equals_itself_on_every_common_seed(store: Store) -> None:
    lines = list(versus_store(load_frame([store]), load_frame([store])))
    assert len(lines) == 13
    assert all((line.difference.mean, line.difference.pairs) == (0.0, 6) for line in lines)
    assert not any(line.difference.clear for line in lines)


def test_stores_with_other_seeds_are_compared_as_independent_samples(
    store: Store, tmp_path: Path
) -> None:
    other = fill(tmp_path, SUITE.replace("0-5", "6-9"), only=("stationary-bernoulli/*",))
    lines = list(versus_store(load_frame([store]), load_frame([other])))
    assert {line.problem for line in lines} == {"stationary-bernoulli"}
    assert all(line.difference.pairs == 0 for line in lines)
    assert all(math.isfinite(line.difference.low) for line in lines)


def test_conventional_cell_of_the_paper_comes_out_again(full_length: Store) -> None:
    (line,) = versus_paper(load_frame([full_length]))
    assert line.policy == "d-ucb"
    assert line.b.mean == published.REGRET["flipping-gaussian"]["discounted"].mean
    assert abs(line.difference.mean) < 0.02 * line.b.mean


def test_paper_has_nothing_to_say_about_other_horizons(store: Store) -> None:
    assert list(versus_paper(load_frame([store]))) == []


def test_best_settings_of_a_grid_are_starred(store: Store) -> None:
    lines = versus_store(load_frame([store]), load_frame([store]))
    assert {line.policy for line in lines if line.problem == "flipping-gaussian"} >= {
        "d-ucb*",
        "ucb",
    }
