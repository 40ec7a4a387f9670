"""The benchmarks of logs, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.benchmarks import log_estimators, log_learners, log_reading
from tidepull.logs.estimators import ESTIMATORS


@pytest.mark.parametrize("logging", ["uniform", "greedy"])
def test_simulated_logs_have_the_chances_that_they_say(logging: str) -> None:
    log, shares, truth = log_estimators.make_log("change", logging, 3, 3000, 1)
    assert log.propensity is not None
    assert shares.sum() == pytest.approx(1)
    assert 0.1 < truth < 0.7
    for arm in range(3):
        assert (log.arm == arm) @ (1 / log.propensity) / 3000 == pytest.approx(1, abs=0.25)


def test_cells_say_bias_error_and_coverage_of_every_estimator() -> None:
    found = log_estimators.cell("stationary", "uniform", 3, 200, 5)
    assert [row["estimator"] for row in found] == list(ESTIMATORS)
    assert all(float(row["rmse"]) >= abs(float(row["bias"])) for row in found)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_written_logs_are_read_whole(kind: str, tmp_path: Path) -> None:
    log_reading.write(tmp_path / f"log.{kind}", kind, 500)
    for work in ("read", "backtest"):
        found = log_reading.work_alone(tmp_path / f"log.{kind}", work)
        assert found["rows"] == 500
        assert np.isfinite(float(found["peak_megabytes"]))


def test_backtests_of_learners_stand_beside_what_they_earn_for_real() -> None:
    policies = {
        name: log_learners.POLICIES[name] for name in ("random", "first arm", "bernoulli-ts")
    }
    rows = log_learners.world_rows(0, 1200, 2, policies)
    assert [row["policy"] for row in rows] == list(policies)
    for row in rows:
        assert float(row["replay"]) == pytest.approx(float(row["real"]), abs=0.12)
        assert int(row["rounds"]) == pytest.approx(300, abs=60)
    assert set(log_learners.correlations(rows, "replay")) == {"stationary 0"}
