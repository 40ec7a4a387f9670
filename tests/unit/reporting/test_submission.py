"""Exported worlds and the score of arms that another program chose."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tidepull.errors import InputError
from tidepull.experiments.loop import run_trial
from tidepull.reporting.submission import export_worlds, score_arms

SUITE = """
name = "small"
seeds = "3-4"
[[problems]]
id = "shop"
name = "shop-banners"
horizon = 900
parameters = { kind = "banners" }
[[problems]]
id = "shop"
name = "shop-contexts"
horizon = 40
parameters = { kind = "contexts" }
[[problems]]
id = "shop"
name = "shop-wear-out"
horizon = 40
parameters = { kind = "wear-out" }
[[policies]]
name = "random"
"""
PLAYER = Path(__file__).parents[3] / "examples" / "tideline_submission.awk"


@pytest.fixture
def suite(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return str(path)


def write_arms(path: Path, rows: list[tuple[str, int, int, int]]) -> Path:
    lines = ["world,seed,round,arm", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_exported_worlds_have_the_rewards_of_a_trial_and_fitting_checksums(
    suite: str, tmp_path: Path
) -> None:
    manifest = json.loads(export_worlds(suite, tmp_path / "worlds").read_text())
    names = [(one["world"], one["seed"]) for one in manifest["worlds"]]
    assert sorted(names) == [(w, s) for w in ("shop-banners", "shop-contexts") for s in (3, 4)]
    for one in manifest["worlds"]:
        content = (tmp_path / "worlds" / one["file"]).read_bytes()
        assert sha256(content).hexdigest() == one["sha256"]
        rows = list(csv.DictReader(content.decode().splitlines()))
        kind = one["world"].removeprefix("shop-")
        trial = run_trial(
            ("shop", {"kind": kind}), ("fixed", {"arm": 1}), horizon=one["rounds"], seed=one["seed"]
        )
        assert [float(row["reward_1"]) for row in rows] == trial.rewards.tolist()


def test_score_of_chosen_arms_is_that_of_the_loop(suite: str, tmp_path: Path) -> None:
    world = ("shop", {"kind": "contexts"})
    played = run_trial(world, "hand-ts", horizon=40, seed=3)
    rows = [("shop-contexts", 3, t, int(arm)) for t, arm in enumerate(played.arms)]
    (found,) = score_arms(suite, write_arms(tmp_path / "arms.csv", rows))
    assert found.regret == pytest.approx(played.regret[-1])
    assert found.reward == pytest.approx(played.rewards.sum())
    oracle = run_trial(world, "oracle", horizon=40, seed=3)
    rows = [("shop-contexts", 3, t, int(arm)) for t, arm in enumerate(oracle.arms)]
    assert score_arms(suite, write_arms(tmp_path / "best.csv", rows))[0].score == 0


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("shop-contexts", 3, 0, 1)], "round 1 is missing"),
        ([("shop-contexts", 3, t, 4) for t in range(40)], "from 0 to 3"),
        ([("shop-contexts", 3, 0, 1)] * 2, "comes twice"),
        ([("shop-wear-out", 3, 0, 1)], "has no world shop-wear-out"),
        ([("shop-contexts", 3, 0, "x")], "line 2: world, seed, round and arm"),
        ([], "has no rows"),
    ],
)
def test_wrong_submission_is_refused_in_one_sentence(
    rows: list[tuple[str, int, int, int]], sentence: str, suite: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        score_arms(suite, write_arms(tmp_path / "arms.csv", rows))


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
def test_player_in_another_language_reads_exported_files_alone_and_is_scored(
    suite: str, tmp_path: Path
) -> None:
    export_worlds(suite, tmp_path / "worlds")
    files = sorted(str(path) for path in (tmp_path / "worlds").glob("*.csv"))
    played = subprocess.run(["awk", "-f", str(PLAYER), *files], capture_output=True, check=True)
    arms = tmp_path / "arms.csv"
    arms.write_bytes(played.stdout)
    scored = score_arms(suite, arms)
    assert len(scored) == 4
    assert sum(one.score for one in scored if one.world == "shop-banners") / 2 < 0.97
