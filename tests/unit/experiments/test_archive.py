"""Archives of trials: what a new store replaces, and what stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.reporting.filling import fill
from tidepull.experiments.archive import gathered, read_archive, write_archive
from tidepull.experiments.rows import load_rows, read_plans
from tidepull.experiments.store import Store
from tidepull.registry import policies

SUITE = """
name = "two"
seeds = "0-1"
horizon = 20
[[problems]]
id = "flipping-gaussian"
[[policies]]
name = "random"
[[policies]]
name = "ucb"
"""


def keep(store: Store, folder: Path) -> dict[tuple[str, int], int]:
    """From policy and seed to the version that played."""
    write_archive(gathered(read_plans(store), load_rows(store), read_archive(folder), "PC"), folder)
    rows = read_archive(folder).rows["two"]
    return {(row.name, row.seed): 2 if "policy_version" in row.code else 1 for row in rows}


def test_trials_of_an_earlier_version_of_a_policy_give_way_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {(name, seed): 1 for name in ("random", "ucb") for seed in (0, 1)}
    assert keep(fill(tmp_path / "store", SUITE), tmp_path / "kept") == first
    monkeypatch.setitem(policies._entries, "ucb", replace(policies.entry("ucb"), version=2))
    again = fill(tmp_path / "other", SUITE, only=("*/ucb/seed-0",))
    assert keep(again, tmp_path / "kept") == {("random", 0): 1, ("random", 1): 1, ("ucb", 0): 2}
    assert len(read_archive(tmp_path / "kept").lost["two"]) == 1
