"""What the machine itself can do: products of matrices, bytes of memory, syncs of its disk."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from research.benchmarks.agent_speed import raw_commits
from research.benchmarks.timing import best_of

SIZE, BYTES, SYNCS = 512, 256_000_000, 200


@dataclass(frozen=True)
class Limits:
    """Speed of a float32 product and of a copy, milliseconds of a sync and of a commit."""

    gflops: float
    gigabytes: float
    sync_ms: float
    commit_ms: float


def measure() -> Limits:
    """All four, on one core."""
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((SIZE, SIZE), np.float32) for _ in range(2))
    out, source = np.empty_like(A), np.ones(BYTES // 8)
    target = np.empty_like(source)
    best = best_of(
        {"product": lambda: np.matmul(A, B, out=out), "copy": lambda: np.copyto(target, source)}, 5
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("TIDEPULL_BENCH_DIR")) as folder:
        return Limits(
            2e-9 * SIZE**3 / best["product"],
            2e-9 * BYTES / best["copy"],
            1e3 * sync_seconds(Path(folder)),
            raw_commits(Path(folder), SYNCS),
        )


def sync_seconds(folder: Path) -> float:
    """The median of a page that is appended to a file and synced."""
    spent = []
    with (folder / "syncs").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - started)
    return float(np.median(spent))
