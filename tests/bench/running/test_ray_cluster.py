"""A real cluster of two machines, both on loopback: the same bytes, and a killed machine loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tidepull.bench.store.care import check, differences
from tidepull.bench.store.store import Store

pytest.importorskip("ray", reason="needs the extra 'cluster'")

OWN = Path(__file__).parents[1] / "own_trivial.py"
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
parameters = {{ sleep = 0.5 }}
"""
START = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
SWEEP = "import sys; from tidepull.cli import main; sys.argv.insert(1, 'sweep'); main()"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(sys.path),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Machine:
    """One `ray start`, with all its processes in a group of their own."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self._log = (folder / f"{name}.log").open("w")
        common = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000"]
        ports = [f"--dashboard-agent-listen-port={free_port()}", "--min-worker-port=0", "--max-worker-port=0"]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                "start",
                *options,
                *common,
                *ports,
                "--disable-usage-stats",
                "--block",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )

    def wait_until_up(self, seconds: float = 200) -> None:
        deadline = time.monotonic() + seconds
        while "Ray runtime started" not in (text := Path(self._log.name).read_text()):
            assert self.process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.1)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        self._log.close()


@pytest.fixture
def cluster() -> Iterator[tuple[str, Machine]]:
    """The address of the cluster, and its second machine."""
    folder = Path(tempfile.mkdtemp(prefix="tidepull-ray-", dir="/tmp"))  # Ray's sockets need a short path.
    address = f"127.0.0.1:{free_port()}"
    machines: list[Machine] = []
    try:
        port = address.rpartition(":")[2]
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        machines.append(Machine(folder, "head", *head))
        machines[0].wait_until_up()
        machines.append(Machine(folder, "second", f"--address={address}"))
        machines[1].wait_until_up()
        yield address, machines[1]
    finally:
        for machine in machines:
            machine.kill()
        shutil.rmtree(folder, ignore_errors=True)


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


def test_a_cluster_gives_the_same_bytes_and_survives_the_death_of_a_machine(
    cluster: tuple[str, Machine], tmp_path: Path
) -> None:
    address, second = cluster
    there = finish(begin("smoke", tmp_path / "ray", "--on", "ray", "--address", address))
    finish(begin("smoke", tmp_path / "local", "--on", "here"))
    assert there["ran"] == there["total"]
    assert differences(Store.open(tmp_path / "local"), Store.open(tmp_path / "ray")) == []

    (tmp_path / "lost.toml").write_text(SUITE)
    running = begin(str(tmp_path / "lost.toml"), tmp_path / "lost", "--on", "ray", "--address", address)
    while len(list(tmp_path.glob("lost/trials/*/*.json"))) < 6 and running.poll() is None:
        time.sleep(0.05)
    assert running.poll() is None
    second.kill()
    summary = finish(running)
    assert (summary["ran"], summary["total"], summary["failed"]) == (24, 24, 0)
    assert check(Store.open(tmp_path / "lost")).sound == 24
    finish(begin(str(tmp_path / "lost.toml"), tmp_path / "lost-here", "--on", "here"))
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
