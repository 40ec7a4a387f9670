from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest

from tidepull.analysis import paper
from tidepull.bench.suite import find_suite
from tidepull.problems import problems

KINDS = {"non-contextual": "noncontextual", "contextual": "contextual"}


def suite(name: str) -> dict[str, Any]:
    return tomllib.loads(find_suite(name).read_text())


def frozen(value: Any) -> Any:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


@pytest.mark.parametrize("kind", list(KINDS))
def test_grids_of_the_suites_are_the_papers(kind: str) -> None:
    entries = {entry["name"]: entry for entry in suite(f"paper-grid-{KINDS[kind]}")["policies"]}
    for policy, settings in (("rnlps", 96), ("nlps", 576)):
        grid = paper.GRIDS[policy, kind]
        assert math.prod(len(candidates) for candidates in grid.values()) == settings
        assert {key: frozen(value) for key, value in entries[policy]["grid"].items()} == dict(grid)


def test_conventional_grids_and_search_protocol_of_the_suite_are_the_papers() -> None:
    search = suite("paper-grid-noncontextual")
    entries = {entry["name"]: entry for entry in search["policies"]}
    assert frozen(entries["d-ucb"]["grid"]["discount"]) == paper.DISCOUNTS
    assert frozen(entries["sw-ucb"]["grid"]["window"]) == paper.WINDOWS
    assert search["horizon"] == paper.SEARCH_HORIZON


def test_exploration_grids_of_the_suite_are_the_papers() -> None:
    entries = {entry["name"]: entry for entry in suite("paper-exploration")["policies"]}
    assert frozen(entries["rnlps-epsilon-greedy"]["grid"]["epsilon"]) == paper.EPSILONS
    assert frozen(entries["rnlps-boltzmann"]["grid"]["temperature"]) == paper.TEMPERATURES


@pytest.mark.parametrize("name", ["paper-table", "quick-table"])
def test_default_settings_of_the_suites_are_the_papers(name: str) -> None:
    seen = set()
    for entry in suite(name)["policies"]:
        if entry["name"].endswith("-default"):
            kind = "non-contextual" if "flipping-gaussian" in entry["problems"] else "contextual"
            parameters = {key: frozen(value) for key, value in entry["parameters"].items()}
            assert parameters == dict(paper.DEFAULTS[entry["id"], kind])
            seen.add((entry["id"], kind))
    assert seen == set(paper.DEFAULTS)


def test_every_default_is_a_candidate() -> None:
    for key, setting in paper.DEFAULTS.items():
        assert all(value in paper.GRIDS[key][name] for name, value in setting.items())


def test_horizons_of_the_table_are_those_of_the_problems_and_of_the_suite() -> None:
    assert {problem: problems.entry(problem).horizon for problem in paper.HORIZONS} == dict(paper.HORIZONS)
    table = suite("paper-table")
    horizons = {problem["id"]: problem.get("horizon", table["horizon"]) for problem in table["problems"]}
    assert horizons == dict(paper.HORIZONS)


def test_table_has_nine_rows_and_fifty_cells() -> None:
    assert len(paper.REGRET) == 9
    assert sum(len(row) for row in paper.REGRET.values()) == 50
    assert paper.figure("flipping-digits", "discounted") is None
    assert paper.figure("stationary-bernoulli", "rnlps-best") is None
