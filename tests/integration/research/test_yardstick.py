"""The table of `tide` between its yardsticks: who is chosen in hindsight, what is counted, what is
played again."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from research.benchmarks.tide_yardstick import (
    Job,
    conventional,
    estimate,
    finalists,
    means,
    missing,
    play,
    shares,
    table,
)
from research.benchmarks.world_trials import (
    Book,
    Row,
    horizon_of,
    read_rows,
    same_rounds,
    same_settings,
)


def _row(
    column: str, regret: float, *, policy: str = "", kind: str = "arms-walk", seed: int = 5
) -> Row:
    return {
        "kind": kind,
        "world": "5",
        "seed": str(seed),
        "horizon": "2048",
        "column": column,
        "policy": policy or column,
        "parameters": "{}",
        "regret": str(regret),
    }


def _both(
    column: str, regrets: tuple[float, float], *, policy: str = "", kind: str = "arms-walk"
) -> list[Row]:
    return [
        _row(column, r, policy=policy, kind=kind, seed=s)
        for r, s in zip(regrets, (5, 10_005), strict=True)
    ]


def test_finalists_are_the_best_quarter_of_the_usual_and_of_all_when_many_are_tried() -> None:
    regrets = [9.0, 8.0, 7.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0]
    usual = [i < 4 for i in range(12)]
    assert finalists(regrets, usual) == [2, 3, 4, 5, 6]
    assert finalists([3.0], [True]) == [0]


def test_shares_take_the_policy_that_is_best_over_both_seeds_when_several_play_for_a_column() -> (
    None
):
    rows = [
        *_both("random", (100.0, 50.0)),
        *_both("tuned", (10.0, 40.0), policy="d-ucb"),
        *_both("tuned", (20.0, 20.0), policy="sw-ucb"),
        _row("tuned", 1.0, policy="ucb"),  # its second trial is not played yet
    ]
    assert shares(rows)["arms-walk"]["tuned"] == {(5, 5): 0.2, (5, 10_005): 0.4}


def test_means_leave_a_column_out_when_it_has_not_played_all_trials_of_tide() -> None:
    rows = [*_both("random", (100.0, 50.0)), *_both("tide", (10.0, 10.0)), _row("specialist", 5.0)]
    found = means(shares(rows), "tide")["arms-walk"]
    assert found == {"random": 1.0, "tide": pytest.approx(0.15)}


def test_table_has_ratios_of_means_and_counts_kinds_above_the_limits_when_all_have_played() -> None:
    rows: list[Row] = []
    for kind, tide in (("arms-walk", 12.0), ("arms-mixed", 28.0)):
        rows += _both("random", (100.0, 100.0), kind=kind)
        rows += _both("specialist", (5.0, 5.0), kind=kind)
        rows += _both("tide", (tide, tide), kind=kind)
        rows += _both("tuned", (20.0, 20.0), policy="d-ucb", kind=kind)
        rows += _both("tuned both", (10.0, 10.0), policy="d-ucb", kind=kind)
    lines = table(rows, "tide").splitlines()
    assert "| arms-walk | 2 | 0.120 | 0.050 | 0.200 | 0.100 | 0.60 | 1.20 | 2.40 |" in lines
    assert "| arms-mixed | 2 | 0.280 | 0.050 | 0.200 | 0.100 | 1.40 | 2.80 | 5.60 |" in lines
    drawn = next(line for line in lines if "take turns" in line)
    assert drawn.endswith(
        "|  | 0.120 | 0.050 | 0.200 | 0.100 | 0.60 | 1.20 | 2.40 |"
    )  # arms-mixed came later
    everything = next(line for line in lines if "mean of all 2 kinds" in line)
    assert everything.endswith("|  | 0.200 | 0.050 | 0.200 | 0.100 | 1.00 | 2.00 | 4.00 |")
    assert lines[-4] == "| kinds above 1.1 / above 1.3 |  |  |  |  |  | 1 / 1 | 2 / 1 | 2 / 2 |"
    assert lines[-2:] == [
        "- Above 1.1 of tuned: arms-mixed 1.40.",
        "- Above 1.3 of tuned both: arms-mixed 2.80.",
    ]


def test_conventional_policies_see_what_can_be_seen_when_a_kind_has_contexts() -> None:
    assert set(conventional("arms-walk", binary=False)) == {"d-ucb", "sw-ucb", "ucb"}
    assert "bernoulli-ts" in conventional("clicks-walk", binary=True)
    linear = {"d-lin-ucb", "sw-lin-ucb", "lin-ucb", "lin-ts"}
    assert set(conventional("vectors-walk", binary=False)) == linear
    assert set(conventional("paths-flip", binary=False)) == linear | {"d-ucb", "sw-ucb", "ucb"}


def test_play_keeps_the_best_setting_of_both_columns_when_exploration_is_tuned() -> None:
    options = [{"window": w, **width} for w in (5, 50) for width in ({}, {"xi": 0.005})]
    rows = list(play(Job("arms-stationary", 5, "sw-ucb", options, ("tuned", "tuned both")), 64))
    assert [(row["column"], row["seed"], row["tried"]) for row in rows] == [
        ("tuned", 5, 2),
        ("tuned", 10_005, 2),
        ("tuned both", 5, 4),
        ("tuned both", 10_005, 4),
    ]
    usual, both = (sum(row["regret"] for row in rows[i : i + 2]) for i in (0, 2))
    assert both <= usual
    assert "xi" not in rows[0]["parameters"]


def test_glr_is_told_the_changes_when_clicks_change() -> None:
    rows = list(play(Job("clicks-few-changes", 5, "glr-klucb", [{}], ("GLR-klUCB",)), 64))
    assert [row["policy"] for row in rows] == ["glr-klucb"] * 2


def test_missing_leaves_out_what_is_in_the_file_when_a_campaign_goes_on() -> None:
    given = argparse.Namespace(
        columns="random,specialist,tide",
        label="mine",
        kinds="arms-walk,arms-flip",
        first=5,
        worlds=1,
        tide={},
    )
    rows = [*_both("random", (1.0, 1.0)), _row("specialist", 1.0)]
    todo = [(job.kind, job.columns[0]) for job in missing(given, rows)]
    assert todo == [
        ("arms-walk", "specialist"),  # interrupted between its two seeds
        ("arms-walk", "mine"),
        ("arms-flip", "random"),
        ("arms-flip", "specialist"),
        ("arms-flip", "mine"),
    ]


def test_files_refuse_trials_of_other_settings_or_lengths_when_they_are_continued() -> None:
    same_settings([_row("tide", 1.0)], {})
    with pytest.raises(SystemExit, match="trials of {}"):
        same_settings([_row("tide", 1.0)], {"births": False})
    same_rounds([_row("tide", 1.0)], 2048)
    with pytest.raises(SystemExit, match="2048 rounds"):
        same_rounds([_row("tide", 1.0)], 1024)
    assert (horizon_of("labels-wide", 2048), horizon_of("arms-walk", 2048)) == (1024, 2048)


def test_book_goes_on_where_it_was_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "some" / "file.csv"
    for regret in (1.0, 2.0):
        Book(path, ("kind", "regret")).add({"kind": "arms-walk", "regret": regret, "unasked": 3})
    assert read_rows(path) == [
        {"kind": "arms-walk", "regret": "1.0"},
        {"kind": "arms-walk", "regret": "2.0"},
    ]


def test_estimate_counts_both_seeds_when_nothing_was_played() -> None:
    said = estimate([Job("arms-walk", 5, "random", [{}], ("random",))], 2048)
    assert "random: 2 trials" in said
