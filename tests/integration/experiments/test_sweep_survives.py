"""The whole command, killed and interrupted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidepull.experiments.maintenance import check, differences
from tidepull.experiments.store import Store

OWN = Path(__file__).parents[2] / "unit" / "experiments" / "own_trivial.py"
SUITE = f"""
name = "many"
seeds = "0-9"
horizon = 20
modules = ["{OWN}"]
[[problems]]
id = "coins"
[[problems]]
id = "few-coins"
[[policies]]
name = "lever"
parameters = {{ sleep = 0.002 }}
grid = {{ arm = [0, 1] }}
[[policies]]
name = "brittle"
id = "lever"
parameters = {{ fail_on_seed = 7 }}
grid = {{ sleep = [0.0, 0.001] }}
[[policies]]
name = "any-lever"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "many.toml"
    path.write_text(SUITE)
    return path


QUICK = "import typer; from tidepull.cli.sweep import sweep; typer.run(sweep)"
# A parent that ignores Ctrl-C (nohup, a background job) would hand that down.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
WHOLE = LISTEN + "import sys; sys.argv.insert(1, 'sweep'); from tidepull.cli import main; main()"


def begin(suite: Path, out: Path, *options: str, main: str = WHOLE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", main, str(suite), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [*command, *options],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def wait_for(out: Path, trials: int, process: subprocess.Popen[str]) -> None:
    while len(list(out.glob("trials/*/*.json"))) < trials and process.poll() is None:
        time.sleep(0.02)


def test_killing_the_driver_ten_times_changes_nothing(suite: Path, tmp_path: Path) -> None:
    assert finish(begin(suite, tmp_path / "calm"))[0] == 1
    chance = random.Random(0)
    kills = 0
    for threshold in sorted(chance.sample(range(90), 10)):
        process = begin(
            suite,
            tmp_path / "stormy",
            *(["--on", "here"] if kills % 2 else ["--workers", "1"]),
            main=QUICK,
        )
        wait_for(tmp_path / "stormy", threshold, process)
        time.sleep(chance.uniform(0, 0.01))
        kills += process.poll() is None
        process.kill()
        finish(process)
    assert kills == 10
    code, errors = finish(begin(suite, tmp_path / "stormy", "--on", "here"))
    assert code in (0, 1), errors
    calm, stormy = Store.open(tmp_path / "calm"), Store.open(tmp_path / "stormy")
    assert differences(calm, stormy) == []
    assert len(calm.hashes()) == 96
    assert len(calm.failures()) == 4
    assert check(stormy).orphans == []
    files = [
        {path.relative_to(store.directory) for path in store.directory.rglob("*")}
        for store in (calm, stormy)
    ]
    assert files[0] == files[1]


def test_ctrl_c_ends_at_once_and_keeps_what_is_finished(tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text(
        SUITE.replace(
            '[[policies]]\nname = "any-lever"',
            '[[policies]]\nname = "slow"\nid = "lever"\nparameters = { sleep = 60 }',
        )
    )
    process = begin(slow, tmp_path / "store")
    wait_for(tmp_path / "store", 5, process)
    time.sleep(0.3)  # Both workers are asleep in trials of a minute by now.
    asked = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    code, errors = finish(process)
    assert time.monotonic() - asked < 20  # A second on an idle machine; the trials take a minute.
    assert code == 130
    assert "the same command continues" in errors
    assert "Traceback" not in errors
    store = Store.open(tmp_path / "store")
    assert check(store).good
    assert len(store.hashes()) >= 5


def test_a_dead_driver_takes_its_workers_along(tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text(SUITE.replace("sleep = 0.002", "sleep = 60"))
    process = begin(slow, tmp_path / "store")
    children: list[str] = []
    while len(children) < 2 and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        time.sleep(0.01)
    process.kill()
    finish(process)
    deadline = time.monotonic() + 100
    while (
        any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
