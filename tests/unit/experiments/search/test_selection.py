from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tidepull.cli.app import app
from tidepull.errors import StoreError
from tidepull.experiments.executors import InProcess
from tidepull.experiments.rows import Row
from tidepull.experiments.runner import prepare, start, sweep
from tidepull.experiments.selection import select
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
from tidepull.paper.reproduce import papers_place

OWN = Path(__file__).parents[1] / "own_trivial.py"


def row(problem: str, name: str, setting: str, seed: int, reward: float) -> Row:
    return Row(
        suite="s",
        hash=f"{problem}{name}{setting}{seed}",
        problem=problem,
        name=name,
        setting=setting,
        problem_id=problem,
        problem_parameters={},
        policy=name,
        policy_parameters={"x": setting},
        horizon=10,
        seed=seed,
        problem_seed=seed,
        reward=reward,
        regret=0.0,
        optimal=0.0,
        seconds=0.0,
        cpu_seconds=0.0,
        machine="",
        remark="",
        diagnostics={},
        versions={},
    )


def search(
    rewards: Mapping[str, Mapping[str, Sequence[float]]], baseline: dict[str, float]
) -> list[Row]:
    """Rows from {problem: {setting: rewards by seed}} and the random policy's reward on each
    problem."""
    seeds = range(max(len(values) for settings in rewards.values() for values in settings.values()))
    return [
        *[
            row(problem, "random", "", seed, value)
            for problem, value in baseline.items()
            for seed in seeds
        ],
        *[
            row(problem, "net", setting, seed, value)
            for problem, settings in rewards.items()
            for setting, values in settings.items()
            for seed, value in enumerate(values)
        ],
    ]


def test_best_and_default_agree_with_the_formula_by_hand() -> None:
    rewards = {
        "p": {"a": [10, 20], "b": [12, 14], "c": [0, 2]},
        "q": {"a": [1, 1], "b": [9, 11], "c": [4, 6]},
    }
    chosen = select(search(rewards, {"p": 5.0, "q": 0.0}), {"p": "plain", "q": "plain"})
    assert [(b.problem, b.setting, b.reward) for b in chosen.best] == [
        ("p", "a", 15.0),
        ("q", "b", 10.0),
    ]
    (default,) = chosen.default
    # a: (10/10 + 1/10) / 2 = 0.55; b: (8/10 + 10/10) / 2 = 0.9; c: (-4/10 + 5/10) / 2 = 0.05
    assert default.setting == "b"
    assert default.score == pytest.approx(0.9)
    assert default.scores == pytest.approx({"p": 0.8, "q": 1.0})
    assert default.parameters == {"x": "b"}
    assert default.ranking == pytest.approx({"b": 0.9, "a": 0.55, "c": 0.05})
    assert list(default.ranking) == ["b", "a", "c"]


def test_there_is_no_default_while_a_search_is_unfinished() -> None:
    rows = search({"p": {"a": [10, 20], "b": [12, 14]}}, {"p": 5.0})
    chosen = select(rows, {"p": "plain"}, [("q", "net")])
    assert [best.setting for best in chosen.best] == ["a"]
    assert chosen.default == ()
    assert chosen.skipped == ("default of net: its search is not finished on q",)
    assert select(rows, {"p": "plain", "q": "rich"}, [("q", "net")]).default
    assert select(rows, {"p": "plain"}, [("q", "other")]).default


def test_defaults_are_chosen_apart_for_contextual_problems() -> None:
    rewards = {"p": {"a": [10], "b": [1]}, "q": {"a": [1], "b": [10]}}
    chosen = select(search(rewards, {"p": 0.0, "q": 0.0}), {"p": "plain", "q": "contextual"})
    assert {(d.kind, d.setting) for d in chosen.default} == {("plain", "a"), ("contextual", "b")}


def test_settings_are_compared_on_common_seeds_only() -> None:
    rewards = {"p": {"lucky": [50], "steady": [51, 1]}}
    (best,) = select(search(rewards, {"p": 0.0}), {"p": "plain"}).best
    assert (best.setting, best.seeds) == ("steady", (0,))


def test_what_cannot_be_chosen_is_named() -> None:
    rows = [
        *search({"p": {"a": [1]}}, {"p": 0.0}),
        row("p", "net", "b", 7, 3.0),
        row("p", "random", "", 7, 0.0),
    ]
    assert select(rows, {"p": "plain"}).skipped == (
        "net on p: no seed on which every setting has a trial",
    )
    hopeless = select(search({"p": {"a": [1], "b": [2]}}, {"p": 5.0}), {"p": "plain"})
    assert hopeless.skipped == ("net on p: no setting beats random, so it has no normalised score",)
    assert hopeless.default == ()
    with pytest.raises(StoreError, match="needs 'random' on p with seed 0"):
        select(search({"p": {"a": [1], "b": [2]}}, {}), {"p": "plain"})


def test_policies_without_a_common_setting_are_named() -> None:
    rewards = {"p": {"a": [1], "b": [2]}, "q": {"c": [1], "d": [2]}}
    chosen = select(search(rewards, {"p": 0.0, "q": 0.0}), {"p": "plain", "q": "plain"})
    assert chosen.default == ()
    assert chosen.skipped == ("default of net: no setting was played on all of p, q",)


def test_the_papers_default_has_a_place_in_the_ranking() -> None:
    paper = "learning_rate=0.01,epochs=16,train_every=32,noise_std=0.1,prior_std=0.5,units=32x32x32"
    other = paper.replace("epochs=16", "epochs=64")
    rows = [
        *search({"p": {other: [10], paper: [8]}}, {"p": 0.0}),
    ]
    rows = [replace(r, policy="rnlps") if r.name == "net" else r for r in rows]
    (default,) = select(rows, {"p": "non-contextual"}).default
    assert papers_place(default) == f"the paper's default scores 0.800, place 2 of 2 ({paper})"
    assert papers_place(replace(default, policy="d-ucb")) == ""


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    text = f"""
name = "search"
seeds = "100-103"
horizon = 60
modules = ["{OWN}"]
[[problems]]
id = "coins"
[[problems]]
id = "few-coins"
[[policies]]
name = "random"
[[policies]]
name = "lever"
grid = {{ arm = [0, 1] }}
"""
    (tmp_path / "search.toml").write_text(text)
    suite, store = load_suite(tmp_path / "search.toml"), Store.create(tmp_path / "store")
    work = prepare(suite, store)
    assert len(list(sweep(work, store, InProcess(), start(suite, store, work)))) == 24
    return tmp_path / "store"


def command(*arguments: str) -> tuple[int, Any]:
    outcome = CliRunner().invoke(app, ["select", *arguments, "--json"])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome.exit_code, json.loads(outcome.stdout)


def test_the_command_writes_a_suite_that_sweep_runs(searched: Path) -> None:
    code, chosen = command(str(searched))
    assert code == 0
    assert [(b["problem"], b["setting"]) for b in chosen["best"]] == [
        ("coins", "arm=1"),
        ("few-coins", "arm=1"),
    ]
    assert [(d["kind"], d["setting"], d["score"]) for d in chosen["default"]] == [
        ("non-contextual", "arm=1", 1.0)
    ]
    written = tomllib.loads((searched / "selected.toml").read_text())
    assert [policy["name"] for policy in written["policies"]] == [
        "random",
        "lever-best",
        "lever-best",
        "lever-default",
    ]
    best, default = written["policies"][1], written["policies"][3]
    assert (
        best["chosen"]
        == "highest mean reward of 2 settings, 4 trials of each (seeds 100-103, 60 rounds)"
    )
    assert default["chosen"] == "highest mean score of 2 settings over few-coins"
    suite = load_suite(searched / "selected.toml")
    assert {spec.seed for spec in suite.specs} == set(range(10))
    assert {spec.horizon for spec in suite.specs} == {4096}
    assert np.unique(
        [spec.policy_parameters.get("arm") for spec in suite.specs if spec.policy == "lever"]
    ) == [1]


def test_missing_trials_are_named_and_refused_unless_asked(searched: Path) -> None:
    store = Store.open(searched)
    lost = next(
        hash for hash in sorted(store.hashes()) if store.manifest(hash)["labels"]["name"] == "lever"
    )
    name = store.manifest(lost)["labels"]["id"]
    store.manifest_path(lost).unlink()
    with pytest.raises(StoreError, match=rf"1 trials are not there \(such as {name}\)"):
        command(str(searched))
    code, chosen = command(str(searched), "--partial")
    assert code == 0
    assert chosen["missing"] == [name]
    assert sorted(len(best["seeds"]) for best in chosen["best"]) == [3, 4]


def test_seeds_of_the_search_are_refused_for_the_report(searched: Path) -> None:
    with pytest.raises(
        Exception, match="--seeds: the search has seen 102-103; report on other seeds"
    ):
        command(str(searched), "--seeds", "102-110")


def test_a_search_in_one_fixed_world_is_reported_in_that_world(tmp_path: Path) -> None:
    text = f"""
name = "search"
seeds = "100-101"
problem_seed = 7
horizon = 30
modules = ["{OWN}"]
[[problems]]
id = "coins"
[[policies]]
name = "random"
[[policies]]
name = "lever"
grid = {{ arm = [0, 1] }}
"""
    (tmp_path / "search.toml").write_text(text)
    suite, store = load_suite(tmp_path / "search.toml"), Store.create(tmp_path / "store")
    work = prepare(suite, store)
    assert len(list(sweep(work, store, InProcess(), start(suite, store, work)))) == 6
    _, chosen = command(str(tmp_path / "store"))
    assert {spec.problem_seed for spec in load_suite(chosen["suite"]).specs} == {7}
    assert chosen["damaged"] == {}


def test_a_store_without_suites_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    with pytest.raises(StoreError, match="holds no suite yet"):
        command(str(tmp_path))
