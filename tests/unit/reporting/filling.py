"""Running a suite of quick policies into a store, for tests that read stores."""

from __future__ import annotations

from pathlib import Path

from tidepull.experiments.executors import InProcess
from tidepull.experiments.runner import prepare, start, sweep
from tidepull.experiments.store import Store
from tidepull.experiments.suite import parse_suite

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
