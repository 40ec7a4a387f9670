"""`--on`: where a command runs its trials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidepull.errors import ParameterError
from tidepull.experiments.executors import InProcess, LocalProcesses
from tidepull.protocols import Executor


def check_address(on: str, address: str | None) -> None:
    """An address means a Ray cluster; trials that would run elsewhere are the caller's mistake."""
    if address is not None and on != "ray":
        raise ParameterError(
            f"--address is for --on ray, and trials would run on '{on}'; add --on ray or leave it out"
        )


@contextmanager
def executor_for(
    on: str, workers: int | None, address: str | None, modules: tuple[str, ...] = ()
) -> Iterator[tuple[Executor, int]]:
    """The executor, and how many trials it runs at once; its processes end with the block."""
    check_address(on, address)
    if on == "here":
        yield InProcess(), 1
    elif on == "ray":
        from tidepull.experiments.cluster import RayCluster

        with RayCluster(address or "auto", modules=modules) as cluster:
            yield cluster, cluster.workers
    else:
        with LocalProcesses(workers) as local:
            yield local, local.workers
