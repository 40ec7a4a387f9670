"""The agent's benchmarks in small: they run, and say what they should."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from research.benchmarks import (
    agent_million,
    agent_page,
    agent_shops,
    agent_speed,
    lift_coverage,
    safe_teams,
)


def test_speed_of_calls_and_commits_is_measured(tmp_path: Path) -> None:
    row = agent_speed.calls("random", 3, 60)
    assert 0 < row["p50_ms"] <= row["p99_ms"] <= row["p99.9_ms"]
    assert agent_speed.raw_commits(tmp_path, 10) > 0
    assert agent_speed.on_disk(tmp_path, 2, 20)["events_a_second"] > 0


def test_events_cost_alike_at_the_end_and_in_the_middle(tmp_path: Path) -> None:
    rows = list(agent_million.run(tmp_path / "shop.db", 800, "random"))
    assert rows[-1]["events"] == 800
    assert rows[-1]["bytes_an_event"] < 10_000
    found = agent_million.restarts(tmp_path / "shop.db", from_nothing=True)
    assert found["older_records"] > 800
    assert min(found.values()) > 0


def test_shops_have_arms_that_come_and_go_and_swing_by_the_hour() -> None:
    shop = agent_shops.Shop(0, 600)
    assert [shop.open(n) for n in (0, 200, 300, 400)] == [
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4],
    ]
    assert (np.diff(shop.at) > -900).all()
    rates = np.array([shop.rates(n) for n in range(len(shop))])
    assert (rates.std(axis=0) > 0.01).all()


def test_gain_stands_between_chance_and_clairvoyance() -> None:
    row = agent_shops.gain(0, 300, "lin-ts")
    assert row["A/B test"] < row["clairvoyant"]
    assert row["agent"] < row["clairvoyant"]


def test_rows_of_shops_are_in_their_order_and_replaced(tmp_path: Path) -> None:
    for shop in (2, 1, 0, 1):
        agent_shops.write(tmp_path / "gain.csv", {"shop": shop})
    assert (tmp_path / "gain.csv").read_text().split() == ["shop", "0", "1", "2"]


def test_looks_at_shops_cover_and_the_sequence_is_the_wider_one() -> None:
    rows = [lift_coverage.looks(lift_coverage.shop(seed, 8), 8) for seed in (1, 26, 63)]
    assert all(row["always_all"] and row["looks"] > 0 for row in rows)
    assert all(row["always_width"] > row["fixed_width"] > 0 for row in rows)


def test_a_team_lets_its_rule_decide_for_a_week_and_loses_little_after_it() -> None:
    row = safe_teams.outcome("few", "lin-ts", seed=1, weeks=3)
    assert row["by_week"].startswith("+0.000")
    assert row["worst_week"] > -0.02
    assert row["largest_share"] >= 0.05


def test_ten_teams_lose_no_more_than_they_may() -> None:
    """What the manual says of them is what the results say."""
    with safe_teams.OUT.open(newline="") as handle:
        rows = {row["team"]: row for row in csv.DictReader(handle)}
    assert set(rows) == set(safe_teams.TEAMS)
    for row in rows.values():
        assert float(row["worst_week"]) >= -0.02
        assert float(row["gain"]) >= -0.005
    assert float(rows["perfect"]["largest_share"]) <= 0.25
    text = safe_teams.PAGE.read_text()
    assert safe_teams.page(text) == text


def test_manual_has_the_tables_that_the_results_give() -> None:
    text = agent_page.PAGE.read_text()
    assert agent_page.page(text) == text
    assert "none lost, none doubled" in text
