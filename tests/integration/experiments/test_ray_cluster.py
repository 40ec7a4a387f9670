"""A real cluster of two machines: the same bytes, and a killed machine loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.machines import ENVIRONMENT, Machine, free_port, two_machines
from tidepull.cli.sweep import sweep
from tidepull.experiments.maintenance import check, differences
from tidepull.experiments.store import Store

pytest.importorskip("ray", reason="needs the extra 'cluster'")

OWN = Path(__file__).parents[2] / "unit" / "experiments" / "own_trivial.py"
SUITE = f"""
name = "lost"
seeds = "0-11"
horizon = 20
modules = ["{OWN}"]
[[problems]]
id = "coins"
[[problems]]
id = "file-coins"
parameters = {{ path = "{OWN}" }}
[[policies]]
name = "lever"
parameters = {{ sleep = 0.2 }}
"""
SWEEP = "import sys; from tidepull.cli import main; sys.argv.insert(1, 'sweep'); main()"


def begin(suite: str, out: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SWEEP, suite, "--out", str(out), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        answer, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    summary: dict[str, Any] = json.loads(answer)
    return summary


@pytest.fixture
def cluster() -> Iterator[tuple[str, Machine]]:
    with two_machines() as made:
        yield made


def test_a_cluster_gives_the_same_bytes_and_survives_the_death_of_a_machine(
    cluster: tuple[str, Machine], tmp_path: Path
) -> None:
    address, second = cluster
    there = finish(begin("smoke", tmp_path / "ray", "--on", "ray", "--address", address))
    sweep("smoke", tmp_path / "local", on="here")
    assert there["ran"] == there["total"]
    assert differences(Store.open(tmp_path / "local"), Store.open(tmp_path / "ray")) == []

    (tmp_path / "lost.toml").write_text(SUITE)
    running = begin(
        str(tmp_path / "lost.toml"), tmp_path / "lost", "--on", "ray", "--address", address
    )
    while len(list(tmp_path.glob("lost/trials/*/*.json"))) < 6 and running.poll() is None:
        time.sleep(0.05)
    assert running.poll() is None
    second.kill()
    summary = finish(running)
    assert (summary["ran"], summary["total"], summary["failed"]) == (24, 24, 0)
    assert check(Store.open(tmp_path / "lost")).sound == 24
    sweep(str(tmp_path / "lost.toml"), tmp_path / "lost-here", on="here")
    assert differences(Store.open(tmp_path / "lost-here"), Store.open(tmp_path / "lost")) == []


def test_an_address_where_no_cluster_answers_is_one_sentence(tmp_path: Path) -> None:
    process = begin("smoke", tmp_path, "--on", "ray", "--address", f"127.0.0.1:{free_port()}")
    try:
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 2
    assert "no Ray cluster answers at '127.0.0.1:" in errors
    assert "Traceback" not in errors
