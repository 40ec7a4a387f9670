"""What families of `tide` are worth: paired differences, the rule, and who takes part where."""

from __future__ import annotations

import pytest

from research.benchmarks.tide_families import (
    Gain,
    gain_of,
    gains,
    jobs,
    judged,
    parameters_of,
    table,
    taking_part,
)
from research.benchmarks.world_trials import Row


def _tide(without: str, regret: float, world: int, seed: int) -> Row:
    return {
        "kind": "arms-walk",
        "world": str(world),
        "seed": str(seed),
        "policy": "tide",
        "without": without,
        "regret": str(regret),
    }


def test_gains_are_paired_and_worlds_count_once_when_they_have_two_trials() -> None:
    rows: list[Row] = []
    for world, more in ((1, 1.0), (2, 3.0)):
        for seed, wobble in ((world, -0.5), (10_000 + world, 0.5)):
            rows.append({**_tide("", 100.0, world, seed), "policy": "random"})
            rows.append(_tide("", 10.0, world, seed))
            rows.append(_tide("turns", 10.0 + more + wobble, world, seed))
    rows.append(_tide("turns", 50.0, 3, 3))  # nothing to pair it with yet
    cell = gains(rows)["arms-walk"]["turns"]
    assert list(cell) == pytest.approx([0.02, 0.01])
    assert cell == gain_of([0.01, 0.03])
    assert not gain_of([0.5]).sure


def test_judged_says_pays_when_a_family_is_right_and_costs_little_elsewhere() -> None:
    verdict = judged([Gain(0.2, 0.05), Gain(-0.002, 0.003), Gain(0.0, 0.003)])
    assert (verdict.word, verdict.right, verdict.gain) == ("pays", 1, 0.2)
    assert verdict.cost == pytest.approx(0.001)
    assert list(verdict.mean) == pytest.approx([0.066, (0.05**2 + 2 * 0.003**2) ** 0.5 / 3])


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        ([Gain(0.2, 0.05), Gain(-0.006, 0.001), Gain(-0.006, 0.01)], "dear"),
        ([Gain(0.02, 0.005), Gain(-0.03, 0.02)], "leaves"),
        ([Gain(0.2, 0.15), Gain(0.0, 0.01)], "leaves"),
        ([Gain(0.009, 0.001), Gain(0.0, 0.01)], "leaves"),
    ],
    ids=["costs elsewhere", "costs more than it gains", "may be chance", "too little"],
)
def test_judged_does_not_say_pays_when_the_rule_is_not_met(cells: list[Gain], word: str) -> None:
    assert judged(cells).word == word


def test_taking_part_leaves_families_out_when_a_layout_has_no_room_for_them() -> None:
    arms, clock, vectors, labels = (
        set(taking_part(kind, 5, {}))
        for kind in ("arms-flip", "arms-clock", "vectors-flip", "labels-flip")
    )
    assert clock - arms == {"structural"}
    assert {"changes", "regimes", "network"} <= arms & vectors
    assert "changes" not in labels
    assert "classes" in labels - arms
    assert not {"turns", "last event", "last success"} & vectors


def test_jobs_name_every_family_once_a_seed_when_a_world_is_played() -> None:
    todo = list(jobs("labels-flip", 5, {"without": ["network"]}))
    assert [job.seed for job in todo] == [5] * (len(todo) // 2) + [10_005] * (len(todo) // 2)
    assert [(job.policy, job.without) for job in todo[:2]] == [("random", ""), ("tide", "")]
    settings = [parameters_of(job, {"without": ["network"]}) for job in todo]
    assert settings[:2] == [{}, {"without": ["network"]}]
    assert all(len(option["without"]) == 2 for option in settings[2 : len(todo) // 2])


def test_table_leaves_a_cell_empty_when_a_family_took_no_part() -> None:
    rows: list[Row] = []
    for kind, families in (("arms-walk", ("turns", "regimes")), ("labels-flip", ("turns",))):
        for world in (1, 2):
            rows.append({**_tide("", 100.0, world, world), "kind": kind, "policy": "random"})
            rows.append({**_tide("", 10.0, world, world), "kind": kind})
            rows += [
                {**_tide(name, 9.0 + 2 * world, world, world), "kind": kind} for name in families
            ]
    lines = table(rows).splitlines()
    assert lines[0] == "| kind | turns | regimes |"
    assert lines[2:4] == ["| arms-walk | +0.020 | +0.020 |", "| labels-flip | +0.020 |  |"]
    assert lines[-1] == "| **verdict** | leaves | leaves |"
