from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest

from tidepull.experiments.grid import parse_seeds
from tidepull.experiments.suite import find_suite
from tidepull.problems import problems
from tidepull.reporting import published

KINDS = {"non-contextual": "noncontextual", "contextual": "contextual"}


def suite(name: str) -> dict[str, Any]:
    return tomllib.loads(find_suite(name).read_text())


def frozen(value: Any) -> Any:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


@pytest.mark.parametrize("kind", list(KINDS))
def test_grids_of_the_suites_are_the_papers(kind: str) -> None:
    entries = {entry["name"]: entry for entry in suite(f"paper-grid-{KINDS[kind]}")["policies"]}
    for policy, settings in (("rnlps", 96), ("nlps", 576)):
        grid = published.GRIDS[policy, kind]
        assert math.prod(len(candidates) for candidates in grid.values()) == settings
        assert {key: frozen(value) for key, value in entries[policy]["grid"].items()} == dict(grid)


def test_conventional_grids_and_search_protocol_of_the_suite_are_the_papers() -> None:
    search = suite("paper-grid-noncontextual")
    entries = {entry["name"]: entry for entry in search["policies"]}
    assert frozen(entries["d-ucb"]["grid"]["discount"]) == published.DISCOUNTS
    assert frozen(entries["sw-ucb"]["grid"]["window"]) == published.WINDOWS
    assert search["horizon"] == published.SEARCH_HORIZON
    assert len(parse_seeds(search["seeds"])) == published.SEARCH_TRIALS


def test_exploration_grids_of_the_suite_are_the_papers() -> None:
    entries = {entry["name"]: entry for entry in suite("paper-exploration")["policies"]}
    assert frozen(entries["rnlps-epsilon-greedy"]["grid"]["epsilon"]) == published.EPSILONS
    assert frozen(entries["rnlps-boltzmann"]["grid"]["temperature"]) == published.TEMPERATURES


@pytest.mark.parametrize("name", ["paper-table", "quick-table"])
def test_default_settings_of_the_suites_are_the_papers(name: str) -> None:
    seen = set()
    for entry in suite(name)["policies"]:
        if entry["name"].endswith("-default"):
            kind = "non-contextual" if "flipping-gaussian" in entry["problems"] else "contextual"
            parameters = {key: frozen(value) for key, value in entry["parameters"].items()}
            assert parameters == dict(published.DEFAULTS[entry["id"], kind])
            seen.add((entry["id"], kind))
    assert seen == set(published.DEFAULTS)


def test_every_default_is_a_candidate() -> None:
    for key, setting in published.DEFAULTS.items():
        assert all(value in published.GRIDS[key][name] for name, value in setting.items())


def test_horizons_of_the_table_are_those_of_the_problems_and_of_the_suite() -> None:
    assert {problem: problems.entry(problem).horizon for problem in published.HORIZONS} == dict(
        published.HORIZONS
    )
    table = suite("paper-table")
    horizons = {
        problem["id"]: problem.get("horizon", table["horizon"]) for problem in table["problems"]
    }
    assert horizons == dict(published.HORIZONS)


def test_table_has_nine_rows_and_fifty_cells() -> None:
    assert len(published.REGRET) == 9
    assert sum(len(row) for row in published.REGRET.values()) == 50
    assert published.figure("flipping-digits", "discounted") is None
    assert published.figure("stationary-bernoulli", "rnlps-best") is None
