"""Worlds that change, played many times."""

from __future__ import annotations

import numpy as np

from research.benchmarks.tide_changes import PUBLISHED, ROUNDS, regret, stretches, table, worlds


def row(world: str, seed: int, policy: str, regret: float) -> dict[str, str]:
    kind, number = world.split()
    return {
        "kind": kind,
        "world": number,
        "seed": str(seed),
        "policy": policy,
        "regret": str(regret),
    }


def test_ratio_of_a_world_is_that_of_mean_regrets_over_trials_that_all_have_played() -> None:
    rows = [
        *(
            row("one-arm 7", s, p, r)
            for s, p, r in ((1, "glr", 10.0), (2, "glr", 30.0), (3, "glr", 99.0))
        ),
        *(row("one-arm 7", s, p, r) for s, p, r in ((1, "tide", 40.0), (2, "tide", 20.0))),
        *(
            row("one-arm 7", s, p, r)
            for s, p, r in ((1, "specialist", 10.0), (2, "specialist", 10.0))
        ),
        *(
            row("published-local 0", 1, p, r)
            for p, r in (("glr", 50.0), ("tide", 25.0), ("specialist", 5.0))
        ),
        row("all-arms 8", 1, "glr", 3.0),
    ]
    lines = table(rows, "tide").splitlines()
    assert "| one-arm 7 | 2 | 10.0 | 20.0 | 30.0 | 0.50 | 1.50 |" in lines
    assert "| published-local | 1 | 5.0 | 50.0 | 25.0 | 0.10 | 0.50 |" in lines
    assert lines[-2:] == ["| **mean** | | | | | 0.30 | 1.00 |", "| largest | | | | | 0.50 | 1.50 |"]


def test_worlds_have_the_arms_and_changes_that_were_asked_for_and_stay_the_same() -> None:
    for kind, world in worlds(67_000, 3):
        drift = stretches(kind, world)
        assert 3 <= drift.values.shape[1] <= 6
        assert 3 <= len(drift.starts) - 1 <= 9
        assert drift.starts.max() < ROUNDS
        np.testing.assert_array_equal(drift.values, stretches(kind, world).values)
        moved = (np.diff(drift.values, axis=0) != 0).sum(axis=1)
        if kind == "one-arm":
            assert (moved == 1).all()
        elif kind not in PUBLISHED:
            assert (moved == drift.values.shape[1]).all()


def test_trials_of_a_world_differ_in_noise_alone() -> None:
    drift = stretches("published-local", 0)
    found = [regret(drift, seed, "specialist", {}) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
