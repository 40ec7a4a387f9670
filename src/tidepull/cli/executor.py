"""`--on`: where a command runs its trials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidepull.bench.running.executors import InProcess, LocalProcesses
from tidepull.protocols import Executor


@contextmanager
def executor_for(
    on: str, workers: int | None, address: str, modules: tuple[str, ...] = ()
) -> Iterator[tuple[Executor, int]]:
    """The executor, and how many trials it runs at once; its processes end with the block."""
    if on == "here":
        yield InProcess(), 1
    elif on == "ray":
        from tidepull.bench.running.ray_executor import RayCluster

        with RayCluster(address, modules=modules) as cluster:
            yield cluster, cluster.workers
    else:
        with LocalProcesses(workers) as local:
            yield local, local.workers
