"""Small stores with everything a report can meet: grids, changes, phases, a failed and a missing
trial."""

from __future__ import annotations

import pytest

from tests.unit.reporting.filling import SUITE, fill
from tidepull.experiments.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """All trials of the suite."""
    return fill(tmp_path_factory.mktemp("tiny"), SUITE)


@pytest.fixture(scope="session")
def broken_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Seed 5 was never run, and Bernoulli Thompson sampling fails on Gaussian rewards."""
    text = SUITE + '\n[[policies]]\nname = "bernoulli-ts"\nproblems = ["flipping-gaussian"]\n'
    seeds = tuple(f"*/seed-{seed}" for seed in range(5))
    return fill(tmp_path_factory.mktemp("broken"), text, only=seeds)
