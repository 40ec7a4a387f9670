"""Tideline's scale: 0 is the specialist, 1 is random arms, in the same world under the same
seed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.cli.typing_it import tidepull
from tidepull.cli.benchmark import with_policies
from tidepull.experiments.loop import run_trial
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
from tidepull.policies import policies
from tidepull.reporting.frames import archived_frame, load_frame
from tidepull.reporting.leaderboard import write_leaderboard
from tidepull.reporting.tideline import KINDS, ahead_table, kind_of, scaled, tideline

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
    done = tidepull(
        "sweep", str(folder / "suite.toml"), "--out", str(folder / "store"), "--on", "here"
    )
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


def test_policies_are_compared_only_in_worlds_that_all_of_them_played(store: Path) -> None:
    frame = load_frame([Store.open(store)])
    whole, smaller = tideline(frame).boards
    assert whole.problems == ("arms-flip", "vectors-walk")
    assert [one.policy for one in whole.standings] == ["fixed"]
    assert smaller.problems == ("arms-flip",)
    assert {one.policy for one in smaller.standings} == {"fixed", "partly"}
    arms = next(scaled(study) for study in frame.studies if study.problem == "arms-flip")
    there = {one.policy: one for one in smaller.standings}
    assert there["fixed"].overall.mean == pytest.approx(arms["fixed"].mean())
    assert there["fixed"].by_kind == {"periodic": pytest.approx(arms["fixed"].mean())}


def test_benchmark_shows_the_leaderboard_of_what_was_played(store: Path, tmp_path: Path) -> None:
    done = tidepull(
        "benchmark", "--quick", "--no-play", "--out", str(store), "--docs", str(tmp_path), "--json"
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["policy"], row["worlds"]) for row in rows] == [("fixed", 2), ("partly", 1)]
    page = (tmp_path / "leaderboard.md").read_text()
    assert "| fixed |" in page
    assert "tidepull benchmark --quick" in page
    assert (tmp_path / "standings.svg").stat().st_size > 1000


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two small worlds with a guest, at one setting and at the best of two; one trial is
    not there."""
    pytest.importorskip("gittins")
    folder = tmp_path_factory.mktemp("guests")
    guest = """
[[policies]]
name = "gittins"
[[policies]]
name = "gittins-hindsight"
id = "gittins"
grid = { epsilon = [0.0, 0.5] }
"""
    (folder / "suite.toml").write_text(SUITE + guest)
    command = ["sweep", str(folder / "suite.toml"), "--out", str(folder / "store"), "--on", "here"]
    assert tidepull(*command).returncode == 0
    store = Store.open(folder / "store")
    frame = load_frame([store])
    study = next(s for s in frame.studies if s.problem == "vectors-walk")
    lost = next(group for group in study.groups if group.name == "fixed").rows[0].hash
    for path in (folder / "store").rglob(f"{lost}.*"):
        path.unlink()
    done = tidepull(
        "benchmark", "--no-play", "--out", str(folder / "store"), "--docs", str(folder / "docs")
    )
    assert done.returncode == 0, done.stderr
    return folder / "docs"


@pytest.mark.parametrize(
    "says",
    [
        "**Not everything has been played:** 1 trial not played yet.",
        "| specialist (the lower line) | 0.000 |",
        "| random arms (the upper line) | 1.000 |",
        "| gittins-hindsight | gittins 2.",
        "best of 2: epsilon 0.0 or 0.5",
        "- Hardware: ",
        "- Seeds of tideline-quick: 5-6",
        "- CPU time: ",
        "- Versions: tidepull ",
        "(standings.svg)",
        "(profiles.svg)",
    ],
)
def test_the_page_says_what_a_reader_must_know(guests: Path, says: str) -> None:
    assert says in (guests / "leaderboard.md").read_text()


def test_one_setting_and_the_best_in_hindsight_stand_side_by_side(guests: Path) -> None:
    page = (guests / "leaderboard.md").read_text()
    section = page.partition("## One setting, and the best of a grid in hindsight")[2]
    row = next(line for line in section.splitlines() if line.startswith("| gittins |"))
    plain, best = (float(cell.split()[0]) for cell in row.split("|")[2:4])
    assert f"| gittins | {plain:.3f}" in page or f"| gittins | **{plain:.3f}**" in page
    assert (
        f"| gittins-hindsight* | {best:.3f}" in page
        or f"| gittins-hindsight* | **{best:.3f}**" in page
    )


def test_benchmark_says_what_is_missing_when_nothing_was_played(tmp_path: Path) -> None:
    done = tidepull("benchmark", "--no-play", "--out", str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert "leave out --no-play" in done.stderr


@pytest.mark.parametrize("name", ["tideline", "tideline-quick", "tideline-2", "tideline-2-quick"])
def test_every_problem_of_the_suites_has_a_kind_and_every_kind_is_played(name: str) -> None:
    kinds = {kind_of(spec.problem_name or spec.problem) for spec in load_suite(name).specs}
    assert None not in kinds
    second = {"shops", "real hours"}
    first = set(KINDS) - second - ({"real streams"} if name.endswith("quick") else set())
    assert kinds == (second if "2" in name else first)


SHOPS = """
name = "shops"
seeds = "1-3"
[[problems]]
id = "shop"
name = "shop-early-clicks"
horizon = 400
parameters = { kind = "early-clicks" }
[[policies]]
name = "random"
[[policies]]
name = "tide"
id = "random"
[[policies]]
name = "best-fixed"
id = "fixed"
parameters = { arm = "best" }
[[policies]]
name = "last-best"
id = "random"
"""


def test_a_policy_that_is_ahead_of_the_player_beyond_noise_is_named(tmp_path: Path) -> None:
    (tmp_path / "shops.toml").write_text(SHOPS)
    done = tidepull("sweep", str(tmp_path / "shops.toml"), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    frame = load_frame([Store.open(tmp_path / "out")])
    rows = ahead_table(frame).rows
    assert [(row[0].text, row[1].text) for row in rows] == [("shop-early-clicks", "best-fixed")]
    assert rows[0][2].text == "0.0"
    archive, docs = str(tmp_path / "archive"), tmp_path / "docs"
    assert tidepull("store", "archive", str(tmp_path / "out"), "--out", archive).returncode == 0
    command = "benchmark", "--edition", "2", "--no-play", "--out", archive, "--docs", str(docs)
    done = tidepull(*command)
    assert done.returncode == 0, done.stderr
    page = (docs / "leaderboard.md").read_text()
    assert page.startswith("# Tideline 2: leaderboard")
    assert "| shop-early-clicks | best-fixed | 0.0 |" in page
    (study,) = frame.studies
    assert scaled(study)["best-fixed"].tolist() == [0, 0, 0]  # from the oracle, as in every shop


def test_a_policy_of_ones_own_joins_every_world_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "_entries", dict(policies._entries))
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from tidepull.parameters import NoParameters\n"
        "from tidepull.policies.baselines import RandomPolicy\n"
        "from tidepull.registry import Entry, policies\n"
        "policies.add(Entry('mine', 'as good as random', NoParameters, RandomPolicy))\n"
    )
    suite = load_suite(
        with_policies("tideline-quick", ["mine", "tide"], [mine], tmp_path / "store")
    )
    by_policy = {
        name: {s.problem_name for s in suite.specs if s.name == name} for name in ("mine", "tide")
    }
    assert by_policy["mine"] == by_policy["tide"] == {s.problem_name for s in suite.specs}


def test_the_whole_file_of_the_manual_plays_every_kind_of_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "_entries", dict(policies._entries))
    page = Path(__file__).parents[3] / "docs" / "tideline.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    mine = tmp_path / "mine.py"
    mine.write_text(code)
    suite = load_suite(with_policies("tideline-quick", ["mine"], [mine], tmp_path / "store"))
    assert {s.problem_name for s in suite.specs if s.policy == "mine"} == {
        s.problem_name for s in suite.specs
    }
    for kind in ("arms-flip", "vectors-walk", "labels-flip"):
        trial = run_trial(("random-world", {"kind": kind}), "mine", horizon=40, seed=0)
        assert trial.regret[-1] >= 0


def test_page_of_the_second_edition_is_what_the_archived_trials_give(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    frame = archived_frame(root / "research" / "results" / "tideline-2-quick")
    command = "tidepull benchmark --edition 2 --quick"
    page = write_leaderboard(frame, tideline(frame), tmp_path, command=command).read_text()
    assert page == (root / "docs" / "tideline-2" / "leaderboard.md").read_text()
    assert "| tide | tidepull, version " in page
