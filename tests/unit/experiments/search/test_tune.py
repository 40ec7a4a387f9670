from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from typer.testing import CliRunner

from tidepull.cli.app import app
from tidepull.cli.options import parse_budget
from tidepull.errors import InputError, ParameterError, SuiteError
from tidepull.experiments.rows import load_rows
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
from tidepull.experiments.tune import (
    BRACKET,
    Outcome,
    Range,
    SearchTask,
    Space,
    declared_space,
    ranges_from_text,
    search,
)

OWN = str(Path(__file__).parents[1] / "own_trivial.py")
SPACE = SearchTask(
    problem="coins",
    policy="lever",
    ranges=(Range("sleep", (0.001, 0.1)), Range("arm", (0, 10))),
    horizon=900,
    seeds=(2000, 2001),
    modules=(OWN,),
)


class Bowl:
    """A made-up objective: best at arm 7, and each trial takes a second."""

    def __init__(self, broken_arm: int = -1) -> None:
        self.calls: list[tuple[int, int]] = []
        self._broken_arm = broken_arm

    def __call__(self, specs: Sequence[TrialSpec]) -> Mapping[str, tuple[float, float]]:
        self.calls.append((specs[0].horizon, len(specs)))
        return {
            spec.hash: (-spec.horizon * float((spec.policy_parameters["arm"] - 7) ** 2), 1.0)
            for spec in specs
            if spec.policy_parameters["arm"] != self._broken_arm
        }


def found(space: SearchTask, run: Bowl, seconds: float) -> Outcome:
    return search(space, run, seconds=seconds, on_bracket=lambda _: None)


def test_brackets_triple_the_horizon_and_keep_a_third() -> None:
    run = Bowl()
    found(SPACE, run, seconds=1)
    assert run.calls == [(100, 2 * BRACKET)]
    run = Bowl()
    found(SPACE, run, seconds=26)
    assert run.calls == [(100, 18), (300, 6), (900, 2)]


def test_a_search_finds_the_top_and_is_the_same_every_time() -> None:
    first, again = (found(SPACE, Bowl(), seconds=400) for _ in range(2))
    assert first.best is not None
    assert first.best.parameters["arm"] == 7
    assert first.best.horizon == 900
    assert first.judged == again.judged


def test_failed_settings_are_counted_and_never_win() -> None:
    outcome = found(SPACE, Bowl(broken_arm=7), seconds=400)
    assert outcome.failed > 0
    assert outcome.best is not None
    assert outcome.best.parameters["arm"] in (6, 8)


def test_short_horizons_have_fewer_rungs() -> None:
    from dataclasses import replace

    assert replace(SPACE, horizon=300).rungs == (100, 300)
    assert replace(SPACE, horizon=50).rungs == (50,)


def test_a_policy_without_ranges_is_one_sentence() -> None:
    from dataclasses import replace

    with pytest.raises(
        InputError, match="no suite declares a grid for lever: give ranges with --range"
    ):
        found(replace(SPACE, ranges=()), Bowl(), seconds=1)


@pytest.mark.parametrize(
    ("candidates", "scale"),
    [
        ((0.001, 0.01, 0.1), "log"),
        ((0.8, 0.9, 0.999), "one-minus-log"),
        ((16, 64), "linear"),
        ((5, 300), "log"),
        (([16, 16], [32, 32]), "choice"),
        (("a", "b"), "choice"),
        ((True, False), "choice"),
        ((3,), "choice"),
    ],
)
def test_ranges_are_drawn_on_a_fitting_scale_and_stay_inside(
    candidates: tuple[Any, ...], scale: str
) -> None:
    made = Range("x", candidates)
    assert made.scale == scale
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    values = [made.suggest(study.ask()) for _ in range(60)]
    if scale == "choice":
        assert all(value in candidates for value in values)
    else:
        assert min(candidates) <= min(values) < max(values) <= max(candidates)
        assert {type(value) for value in values} == {type(candidates[0])}


def test_ranges_come_from_the_grid_for_the_kind_of_problem() -> None:
    units = {
        problem: next(
            r for r in declared_space("rnlps", problem).ranges if r.name == "units"
        ).candidates
        for problem in ("flipping-gaussian", "rotating-vector-32")
    }
    assert units["flipping-gaussian"] == ([16, 16, 16], [32, 32, 32])
    assert units["rotating-vector-32"] == ([32, 32, 32], [64, 64, 64])
    assert declared_space("random", "flipping-gaussian") == Space()


def test_a_grid_with_fixed_parameters_is_searched_with_them(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    text = """
name = "s"
seeds = "0-0"
[[problems]]
id = "flipping-gaussian"
[[policies]]
name = "greedy"
id = "rnlps"
parameters = { exploration = "epsilon-greedy" }
grid = { epsilon = [0.01, 0.1] }
"""
    file.write_text(text)
    space = declared_space("rnlps", "flipping-gaussian", str(file))
    assert space == Space((Range("epsilon", (0.01, 0.1)),), {"exploration": "epsilon-greedy"})
    played: list[TrialSpec] = []

    def run(specs: Sequence[TrialSpec]) -> dict[str, tuple[float, float]]:
        played.extend(specs)
        return {spec.hash: (1.0, 1.0) for spec in specs}

    wanted = SearchTask("flipping-gaussian", "rnlps", space.ranges, 30, (0,), fixed=space.fixed)
    outcome = search(wanted, run, seconds=1, on_bracket=lambda _: None)
    assert {spec.policy_parameters["exploration"] for spec in played} == {"epsilon-greedy"}
    assert outcome.best is not None
    assert outcome.best.parameters["exploration"] == "epsilon-greedy"
    file.write_text(
        text + '[[policies]]\nname = "hot"\nid = "rnlps"\ngrid = { temperature = [0.1, 1] }\n'
    )
    with pytest.raises(
        SuiteError, match=r"several grids for rnlps \(greedy, hot\): give ranges with --range"
    ):
        declared_space("rnlps", "flipping-gaussian", str(file))
    assert {r.name for r in declared_space("rnlps", "flipping-gaussian", "paper-exploration").ranges} == {
        "learning_rate", "epochs", "train_every", "noise_std", "prior_std", "units"
    }  # fmt: skip
    file.write_text('name = "s"')
    with pytest.raises(SuiteError, match="the key 'seeds' is missing"):
        declared_space("rnlps", "flipping-gaussian", str(file))


def test_ranges_by_hand_are_checked() -> None:
    assert ranges_from_text(["window=5,300", 'rule="a","b"']) == (
        Range("window", (5, 300)),
        Range("rule", ("a", "b")),
    )
    for wrong in ("window", "window=5", "window=5,,6", "=x"):
        with pytest.raises(ParameterError, match="write name=lowest,highest"):
            ranges_from_text([wrong])


def test_budgets_are_read_as_people_write_them() -> None:
    assert [parse_budget(text) for text in ("90s", "30m", "2h", "1.5")] == [90, 1800, 7200, 90]
    with pytest.raises(ParameterError, match="--budget soon: write a time such as"):
        parse_budget("soon")


def command(*arguments: str) -> Any:
    outcome = CliRunner().invoke(app, ["tune", *arguments, "--json"])
    if outcome.exception is not None:
        raise outcome.exception
    return json.loads(outcome.stdout)


def test_the_command_tunes_resumes_and_reports_on_seeds_it_never_judged(tmp_path: Path) -> None:
    arguments = [
        "coins",
        "lever",
        "--module",
        OWN,
        "--range",
        "arm=0,2",
        "--range",
        "sleep=0.0001,0.0002",
    ]
    arguments += ["--horizon", "200", "--budget", "0.2s", "--on", "here", "--out", str(tmp_path)]
    first = command(*arguments)
    assert first["parameters"]["arm"] == 2
    assert sum(first["tuned"]) > sum(first["default"])
    store = Store.open(tmp_path)
    before = {hash: store.manifest(hash)["finished"] for hash in store.hashes()}
    assert command(*arguments) == first
    assert {hash: store.manifest(hash)["finished"] for hash in store.hashes()} == before
    searched, reported = (
        {row.seed for row in load_rows(store, name).rows} for name in ("tune-search", "tune-report")
    )
    assert (searched, reported) == ({2000, 2001, 2002}, set(range(10)))
    assert len(load_suite(tmp_path / "tuned.toml").specs) == 20


def test_seeds_of_the_search_are_refused_for_the_report(tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match="--report-seeds: the search judges on 2002; report on other seeds"
    ):
        command(
            "coins", "lever", "--module", OWN, "--report-seeds", "2002-2005", "--out", str(tmp_path)
        )
