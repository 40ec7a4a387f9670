"""Where figures were measured: processor, versions, and the speed of its matrix products."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import numpy as np

import tidepull
from research.benchmarks.timing import best_of

PACKAGES = (
    "numpy", "scipy", "numba", "torch", "jax", "optax", "vowpalwabbit", "river", "mabwiser", "uvicorn",
)  # fmt: skip


def describe() -> str:
    """Processor and versions, in one sentence."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if version(name))
    return (
        f"{processor()}, one of {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, tidepull {tidepull.__version__}, {versions}"
    )


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = dict(
            line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line
        )
        named = {key.strip(): value.strip() for key, value in fields.items()}
        vector = next(
            (v for v in ("avx512f", "avx2", "sse2") if v in named.get("flags", "").split()), ""
        )
        return f"{named.get('model name', platform.machine())} ({vector})"
    return platform.processor() or platform.machine()


def blas_gflops(hidden: int, rounds: int) -> float:
    """Speed of one BLAS product as large as the gradient of the recurrent weights, H' dG."""
    rng = np.random.default_rng(0)
    H = rng.standard_normal((rounds, hidden), np.float32)
    G = rng.standard_normal((rounds, 4 * hidden), np.float32)
    out = np.empty((hidden, 4 * hidden), np.float32)
    seconds = best_of({"blas": lambda: np.matmul(H.T, G, out=out)}, 40)["blas"]
    return 2 * rounds * hidden * 4 * hidden / seconds / 1e9
