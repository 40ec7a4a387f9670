"""A real service whose syncs fail now and then, under mixed load: every answer is in the ledger
after a kill.

A library that is loaded before the C library answers some calls of fdatasync and fsync with EIO;
that needs no privilege. `research/benchmarks/service_faults.py` does the same through the kernel,
for longer, and with PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from research.benchmarks.service_faults import MixedLoad, kill_after
from research.benchmarks.service_kills import audited
from tests.integration.service.houses import SHOP

SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int syncs;

/* Every fourth call fails while the file FAILING_SYNCS is there, to which a byte is added each time. */
static int fails(void) {
  const char *path = getenv("FAILING_SYNCS");
  int handle = path ? open(path, O_WRONLY | O_APPEND) : -1;
  if (handle < 0) return 0;
  int now = atomic_fetch_add(&syncs, 1) % 4 == 3;
  if (now && write(handle, "x", 1) != 1) abort();
  close(handle);
  if (now) errno = EIO;
  return now;
}

int fdatasync(int handle) { return fails() ? -1 : (int)syscall(SYS_fdatasync, handle); }
int fsync(int handle) { return fails() ? -1 : (int)syscall(SYS_fsync, handle); }
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes syncs fail."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a library that makes syncs fail needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True
    )
    return folder / "shim.so"


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[tuple[int, int]]:
    """A service without tokens: its process and its port."""
    said = folder / "said"
    words = [
        sys.executable,
        "-m",
        "tidepull",
        "serve",
        "--db",
        str(folder),
        "--insecure",
        "--port",
        "0",
        "--quiet",
    ]
    with said.open("w") as handle:
        process = subprocess.Popen(
            words, env={**os.environ, **environment}, stdout=handle, stderr=handle
        )
    try:
        end = time.monotonic() + 60
        while (
            listening := re.search(r"listening on http://127\.0\.0\.1:(\d+)", said.read_text())
        ) is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.02)
        yield process.pid, int(listening[1])
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("policy", ["bernoulli-ts", "tide"])
def test_whoever_was_answered_finds_it_although_syncs_fail(
    shim: Path, tmp_path: Path, policy: str
) -> None:
    failures, load = tmp_path / "failures", MixedLoad()
    with served(tmp_path, LD_PRELOAD=str(shim), FAILING_SYNCS=str(failures)) as (pid, port):
        made = httpx.post(
            f"http://127.0.0.1:{port}/v1/agents", json={**SHOP, "policy": policy}, timeout=120
        )
        assert made.status_code == 201, made.text
        failures.touch()
        # Two seconds, and longer only where the machine is busy.
        killer = kill_after(
            pid, 2.0, lambda: failures.stat().st_size >= 5 and load.count("paid") > 50
        )
        asyncio.run(load.busy(port, ""))
        killer.join()
    assert audited(tmp_path / "shop.db", load) == []
    assert load.others == []
    assert load.refused
    assert failures.stat().st_size >= 5
    assert load.count("decided") > 50
    assert load.count("paid") > 50
