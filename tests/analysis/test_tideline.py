"""Tideline's scale: 0 is the specialist, 1 is random arms, in the same world under the same seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.typing_it import tidepull
from tidepull.analysis.frame import load_frame
from tidepull.analysis.tideline import KINDS, kind_of, scaled, tideline
from tidepull.bench.store.store import Store
from tidepull.bench.suites.suite import load_suite
from tidepull.bench.trial import run_trial
from tidepull.cli.benchmark import with_policies
from tidepull.policies import policies

SUITE = """
name = "tideline-quick"
seeds = "5-6"
[[problems]]
id = "random-world"
name = "arms-flip"
horizon = 60
parameters = { kind = "arms-flip", by_seed = true }
[[problems]]
id = "random-world"
name = "vectors-walk"
horizon = 40
parameters = { kind = "vectors-walk", by_seed = true }
[[policies]]
name = "random"
[[policies]]
name = "specialist"
[[policies]]
name = "fixed"
[[policies]]
name = "partly"
id = "ucb"
problems = ["arms-flip"]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tideline")
    (folder / "suite.toml").write_text(SUITE)
    done = tidepull("sweep", str(folder / "suite.toml"), "--out", str(folder / "store"), "--on", "here")
    assert done.returncode == 0, done.stderr
    return folder / "store"


def test_scores_lie_between_the_two_lines_of_the_same_seed(store: Path) -> None:
    study = next(s for s in load_frame([Store.open(store)]).studies if s.problem == "arms-flip")
    world = ("random-world", {"kind": "arms-flip", "by_seed": True})
    expected = []
    for seed in (5, 6):
        low, high, fixed = (
            run_trial(world, policy, horizon=60, seed=seed).regret[-1]
            for policy in ("specialist", "random", "fixed")
        )
        expected.append((fixed - low) / (high - low))
    assert scaled(study)["fixed"] == pytest.approx(expected)


def test_policies_that_played_fewer_worlds_stand_last(store: Path) -> None:
    line = tideline(load_frame([Store.open(store)]))
    assert [one.policy for one in line.standings] == ["fixed", "partly"]
    assert [one.worlds for one in line.standings] == [2, 1]
    assert line.standings[1].by_kind["walks"] is None


def test_policies_stand_beside_the_leader_in_the_worlds_that_they_played(store: Path) -> None:
    frame = load_frame([Store.open(store)])
    fixed, partly = tideline(frame).standings
    arms = next(scaled(study) for study in frame.studies if study.problem == "arms-flip")
    assert fixed.leader == fixed.overall.iqm
    assert partly.leader == pytest.approx(arms["fixed"].mean())


def test_benchmark_shows_the_leaderboard_of_what_was_played(store: Path, tmp_path: Path) -> None:
    done = tidepull(
        "benchmark", "--quick", "--no-play", "--out", str(store), "--docs", str(tmp_path), "--json"
    )
    assert done.returncode == 0, done.stderr
    assert [row["policy"] for row in json.loads(done.stdout)] == ["fixed", "partly"]
    page = (tmp_path / "leaderboard.md").read_text()
    assert "| fixed |" in page
    assert "tidepull benchmark --quick" in page


def test_benchmark_says_what_is_missing_when_nothing_was_played(tmp_path: Path) -> None:
    done = tidepull("benchmark", "--no-play", "--out", str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert "leave out --no-play" in done.stderr


@pytest.mark.parametrize("name", ["tideline", "tideline-quick"])
def test_every_problem_of_the_suites_has_a_kind_and_every_kind_is_played(name: str) -> None:
    kinds = {kind_of(spec.problem_name or spec.problem) for spec in load_suite(name).specs}
    assert None not in kinds
    assert kinds == set(KINDS) - ({"real streams"} if name.endswith("quick") else set())


def test_a_policy_of_ones_own_joins_every_world_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "_entries", dict(policies._entries))
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from tidepull.parameters import NoParameters\n"
        "from tidepull.policies.simple import RandomPolicy\n"
        "from tidepull.registry import Entry, policies\n"
        "policies.add(Entry('mine', 'as good as random', NoParameters, RandomPolicy))\n"
    )
    suite = load_suite(with_policies("tideline-quick", ["mine", "tide"], [mine], tmp_path / "store"))
    by_policy = {name: {s.problem_name for s in suite.specs if s.name == name} for name in ("mine", "tide")}
    assert by_policy["mine"] == by_policy["tide"] == {s.problem_name for s in suite.specs}
