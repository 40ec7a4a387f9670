"""`tidepull diagnose --json` on record, for a log of three weeks whose arms follow the hour of the
day.

Exact where the arithmetic is equal; elsewhere numbers may differ by a millionth. `python -m
tests.golden.test_diagnose` records anew.
"""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from tests.golden import records
from tidepull.cli.app import app

NAME = "diagnose"
START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
ROWS, BETWEEN, MOST = 2000, 900.0, 1000
"""Rows of the log, seconds between two of them on average, and events that the command makes of
them."""
ARMS = ("blue", "green", "red")
NEARLY = 1e-6


def write_log(path: Path) -> None:
    """Arms drawn with known chances, paid by the hour of the day and a little by age; some rewards
    are missing."""
    rng = np.random.default_rng(11)
    shares = np.array([0.5, 0.3, 0.2])
    lines = ["time,arm,reward,propensity,age,device"]
    moment = START
    for _ in range(ROWS):
        moment += round(float(rng.exponential(BETWEEN)), 3)
        arm, age = int(rng.choice(3, p=shares)), int(rng.integers(20, 60))
        device = ("phone", "desktop")[int(rng.integers(2))]
        turn = np.cos(2 * np.pi * ((moment - START) / 3600 - 8 * arm) / 24)
        reward = int(rng.random() < 0.35 + 0.25 * turn + 0.004 * (age - 40))
        shown = "" if rng.random() < 0.02 else str(reward)
        lines.append(
            f"{datetime.fromtimestamp(moment, UTC).isoformat()},{ARMS[arm]},{shown},{shares[arm]},{age},{device}"
        )
    path.write_text("\n".join(lines) + "\n")


def diagnosed(folder: Path) -> Any:
    """What the command prints."""
    path = folder / "log.csv"
    write_log(path)
    done = CliRunner().invoke(app, ["diagnose", str(path), "--most", str(MOST), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.replace(str(path), "log.csv"))


def test_diagnosis_is_as_recorded(tmp_path: Path) -> None:
    relative = 0.0 if records.is_exact(NAME) else NEARLY
    differ = list(records.differences(diagnosed(tmp_path), records.read(NAME)["printed"], relative))
    assert not differ, "\n".join([*differ[:20], records.advice(NAME)])


def record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        records.write(NAME, {"printed": diagnosed(Path(folder))})


if __name__ == "__main__":
    record()
