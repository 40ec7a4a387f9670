"""A world fitted to a log: its weights against dense linear algebra, and whether it is like the
log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.integration.cli.typing_it import tidepull
from tests.unit.logs import writing
from tests.unit.logs.making import drawn, make_log
from tidepull import logs
from tidepull.cli.app import app
from tidepull.errors import DataError
from tidepull.logs.world import _Fit

MEANS, SHARES = np.array([0.2, 0.5, 0.4]), np.array([0.5, 0.3, 0.2])


def daily(seed: int = 0, rows: int = 6000) -> logs.Log:
    """Two arms that take turns over the day: 0.5 plus and minus 0.3 cos(angle)."""
    rng = np.random.default_rng(seed)
    time = 1_767_571_200.0 + 600.0 * np.arange(rows)
    arm = rng.integers(2, size=rows)
    mean = 0.5 + 0.3 * np.cos(2 * np.pi * time / 86_400) * np.where(arm == 0, 1, -1)
    return make_log(
        arm, (rng.random(rows) < mean).astype(float), np.full(rows, 0.5), n_arms=2, time=time
    )


def test_the_posterior_and_its_evidence_equal_dense_linear_algebra() -> None:
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(90), rng.normal(size=(90, 3))])
    arm, reward = rng.integers(2, size=90), rng.normal(2, 3, 90)
    fit = _Fit(x, arm, reward, 3, np.array([0, 1, 2, 3]))
    widths = np.array([0.5, 0.1, 0.2, 0.3])
    mean, factor = fit.posterior(widths)
    centre, spread = reward.mean(), reward.std()
    left = sum(((reward[arm == a] - reward[arm == a].mean()) ** 2).sum() for a in range(2))
    noise = np.sqrt(left / 88)
    assert fit.noise == pytest.approx(noise)
    evidence = {}
    for a in range(2):
        X, y = x[arm == a], reward[arm == a] - centre
        prior = np.diag((widths * spread) ** 2)
        inside = np.linalg.inv(X @ prior @ X.T + noise**2 * np.eye(len(X)))
        told = prior @ X.T @ inside @ y
        assert mean[a] == pytest.approx(told + np.array([centre, 0, 0, 0]))
        assert factor[a] @ factor[a].T == pytest.approx(prior - prior @ X.T @ inside @ X @ prior)
        evidence[a] = -0.5 * (y @ inside @ y - np.linalg.slogdet(inside)[1])
    assert mean[2] == pytest.approx([centre, 0, 0, 0])
    other = np.array([0.2, 0.3, 0.1, 0.05])
    moved = 0.0
    for a in range(2):
        X, y = x[arm == a], reward[arm == a] - centre
        inside = np.linalg.inv(X @ np.diag((other * spread) ** 2) @ X.T + noise**2 * np.eye(len(X)))
        moved += -0.5 * (y @ inside @ y - np.linalg.slogdet(inside)[1]) - evidence[a]
    assert fit._evidence(other) - fit._evidence(widths) == pytest.approx(moved)


def test_a_world_swings_like_its_log_and_not_where_nothing_changes() -> None:
    world = logs.simulator(daily())
    problem = world.problem(seed=1)
    log = daily()
    assert log.time is not None
    truth, told = [], []
    for row in range(600):
        swing = 0.3 * np.cos(2 * np.pi * log.time[row] / 86_400)
        truth.append([0.5 + swing, 0.5 - swing])
        told.append(problem.means())
        problem.step(0)
    assert np.sqrt(np.mean(np.square(np.array(told) - truth))) < 0.06
    steady = logs.simulator(drawn(1, 4000, MEANS, SHARES)).problem(seed=1)
    means = np.array([steady.means() for _ in range(500) if steady.step(0) is not None])
    assert means.std(axis=0).max() < 0.02
    assert means.mean(axis=0) == pytest.approx(MEANS, abs=0.06)


def test_fewer_rewards_leave_more_open() -> None:
    few, many = (logs.simulator(drawn(4, rows, MEANS, SHARES)) for rows in (150, 6000))
    levels = {name: world.factor[2, 0, 0] for name, world in (("few", few), ("many", many))}
    assert levels["few"] > 3 * levels["many"]


def test_only_the_latest_rows_are_taken_and_contexts_are_seen() -> None:
    log = drawn(5, 900, MEANS, SHARES, context=True)
    world = logs.simulator(log, most=400)
    assert len(world.features) == 400
    assert world.observation.shape == (400, 1)
    assert world.about["rows"] == 400
    assert log.time is not None
    assert world.time is not None
    assert world.time[0] == log.time[500]


def test_what_cannot_be_fitted_is_refused_in_one_sentence() -> None:
    log = drawn(0, 60, MEANS, SHARES)
    with pytest.raises(DataError, match="at least 20 are needed to fit"):
        logs.simulator(log.where(slice(0, 10)))
    with pytest.raises(DataError, match="has one arm only, '0'; say which others there were"):
        logs.simulator(drawn(0, 60, np.array([0.5]), np.array([1.0])))
    log.reward[:] = 1.0
    with pytest.raises(DataError, match="every reward is 1"):
        logs.simulator(log)


def test_a_log_becomes_a_world_that_policies_play_from_the_shell(tmp_path: Path) -> None:
    writing.csv(tmp_path / "log.csv", writing.rows(200))
    runner = CliRunner()
    done = runner.invoke(
        app, ["model", str(tmp_path / "log.csv"), "--out", str(tmp_path / "world")]
    )
    assert done.exit_code == 0, done.output
    assert "a model of the log, not the log" in done.output
    words = [
        "run",
        "from-log",
        "ucb",
        "--set",
        f"path={tmp_path / 'world'}",
        "--horizon",
        "50",
        "--workers",
        "1",
    ]
    played = runner.invoke(app, words)
    assert played.exit_code == 0, played.output
    assert "a model of a log" in played.output
    again = runner.invoke(
        app, ["model", str(tmp_path / "log.csv"), "--out", str(tmp_path / "w2"), "--json"]
    )
    assert json.loads(again.stdout)["rows"] == 200
    assert (tmp_path / "w2").read_bytes() == (tmp_path / "world").read_bytes()


def test_a_world_that_goes_nowhere_is_refused(tmp_path: Path) -> None:
    writing.csv(tmp_path / "log.csv", writing.rows(60))
    done = tidepull("model", str(tmp_path / "log.csv"))
    assert done.returncode == 2
    assert "Missing option '--out'" in done.stderr
