"""`--on`: where a command runs its trials."""

from __future__ import annotations

from tidepull.bench.executors import InProcess, LocalProcesses
from tidepull.protocols import Executor


def make_executor(
    on: str, workers: int | None, address: str, modules: tuple[str, ...] = ()
) -> tuple[Executor, int]:
    """The executor, and how many trials it runs at once."""
    if on == "here":
        return InProcess(), 1
    if on == "ray":
        from tidepull.bench.ray_executor import RayCluster

        cluster = RayCluster(address, modules=modules)
        return cluster, cluster.workers
    local = LocalProcesses(workers)
    return local, local.workers
