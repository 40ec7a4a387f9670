"""A `tide` that does not find out what a world does cannot pass: its regret over a few seeds
against what many seeds gave (`python -m research.benchmarks.thresholds`)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from research.benchmarks.thresholds import WORLDS, regret

THRESHOLDS = json.loads((Path(__file__).parent / "thresholds.json").read_text())
SEEDS = (0, 1, 2)


@pytest.mark.parametrize("world", WORLDS)
def test_tide_loses_no_more_than_over_many_seeds(world: str) -> None:
    measured = THRESHOLDS["worlds"][world]
    threshold = measured["mean"] + 4 * measured["std"] / math.sqrt(len(SEEDS))
    assert threshold < 0.8 * measured["random"], (
        "a threshold that random arms nearly pass says nothing"
    )
    assert np.mean([regret(world, "tide", seed) for seed in SEEDS]) <= threshold
