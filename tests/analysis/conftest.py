"""A small store with everything a report can meet: grids, changes, phases, a remark, a failed and a missing trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidepull.bench.executors import InProcess
from tidepull.bench.runner import prepare, start, sweep
from tidepull.bench.store import Store
from tidepull.bench.suite import parse_suite

SUITE = """
name = "tiny"
description = "Quick policies on short trials."
seeds = "0-5"
horizon = 200

[[problems]]
id = "flipping-gaussian"

[[problems]]
id = "sinusoidal-bernoulli"

[[problems]]
id = "stationary-bernoulli"

[[policies]]
name = "random"

[[policies]]
name = "oracle"
problems = ["flipping-gaussian"]

[[policies]]
name = "ucb"

[[policies]]
name = "d-ucb"
grid = { discount = [0.8, 0.95, 0.99] }

[[policies]]
name = "rnlps-default"
id = "sw-ucb"
parameters = { window = 20 }
"""


def fill(directory: Path, text: str, *, only: tuple[str, ...] = ()) -> Store:
    """Run a suite here, all of it or a part, into a store."""
    suite = parse_suite(text, where="tiny.toml", folder=directory)
    store = Store.create(directory)
    work = prepare(suite, store, only=only)
    for _ in sweep(work, store, InProcess(), start(suite, store, work)):
        pass
    return store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """All trials of the suite above."""
    return fill(tmp_path_factory.mktemp("tiny"), SUITE)


@pytest.fixture(scope="session")
def broken_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Seed 5 was never run, and Bernoulli Thompson sampling fails on Gaussian rewards."""
    text = SUITE + '\n[[policies]]\nname = "bernoulli-ts"\nproblems = ["flipping-gaussian"]\n'
    seeds = tuple(f"*/seed-{seed}" for seed in range(5))
    return fill(tmp_path_factory.mktemp("broken"), text, only=seeds)
