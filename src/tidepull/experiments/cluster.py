"""A Ray cluster as an executor: trials become tasks of one CPU each, batched when they are short.

Workers only play; results come back to the driver, which stores them. A task that is lost with its
machine is sent out again, trial by trial, and a trial fails only after it was lost `ATTEMPTS`
times. A shipment carries the user's module files and the problems' data files to the machines.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import tidepull
from tidepull._internal.extras import connected
from tidepull._internal.files import write_whole
from tidepull.errors import InputError
from tidepull.experiments.spec import Result, TrialSpec, attempt


@dataclass(frozen=True, slots=True)
class Shipment:
    """Files by name: data, and modules under the paths by which specs call them."""

    data: Mapping[str, bytes] = field(default_factory=dict)
    modules: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the folder into which it is unpacked."""
        total = sha256()
        for name, content in (*sorted(self.data.items()), *sorted(self.modules.items())):
            total.update(f"{name} {len(content)} ".encode() + content)
        return total.hexdigest()[:24]


def pack(modules: Iterable[str], data: Iterable[Path]) -> Shipment:
    """Read what is to travel; modules named by dots must be importable over there."""
    return Shipment(
        data={path.name: path.read_bytes() for path in data},
        modules={name: Path(name).read_bytes() for name in modules if name.endswith(".py")},
    )


def unpack(shipment: Shipment) -> dict[str, str]:
    """Put the files into a folder of this machine, point tidepull to them; returns the modules' new
    paths."""
    folder = Path(tempfile.gettempdir()) / f"tidepull-{os.getuid()}" / shipment.digest
    moved = {}
    for number, (name, content) in enumerate(sorted(shipment.modules.items())):
        path = folder / "modules" / str(number) / Path(name).name
        _put(path, content)
        moved[name] = str(path)
    for name, content in shipment.data.items():
        _put(folder / "tidepull" / name, content)
    if shipment.data:
        # Both places where problems look for data, so that no file of this machine is taken for the
        # sent one.
        os.environ["TIDEPULL_DATA"] = str(folder / "tidepull")
        os.environ["XDG_CACHE_HOME"] = str(folder)
    return moved


def relocated(spec: TrialSpec, moved: Mapping[str, str]) -> TrialSpec:
    """The spec with its module files where they were unpacked."""
    return replace(spec, modules=tuple(moved.get(name, name) for name in spec.modules))


def _put(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)


ATTEMPTS = 3
TASK_SECONDS = 5.0
"""Short trials are batched into tasks of about this length, so that scheduling costs next to
nothing."""
LARGEST_BATCH = 64


class RayCluster:
    """The cluster at an address (`auto` finds the one that runs on this machine), left at the end
    of `with`.

    `modules` are your own modules that specs name; tidepull and they travel to the machines.
    """

    def __init__(self, address: str = "auto", *, modules: Sequence[str] = ()) -> None:
        self._ray = _connected(address, modules)
        self._task = self._ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(play)
        self._shipments: dict[tuple[Any, ...], Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    @property
    def workers(self) -> int:
        """CPUs of the cluster now; machines may come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
        """Yield results as they come back; closing the iterator (or Ctrl-C) calls back what is
        out."""
        flow = Flow(specs)
        pending: dict[Any, list[TrialSpec]] = {}
        try:
            while True:
                while len(pending) < 2 * self.workers and (batch := flow.next_batch()):
                    pending[self._submit(batch)] = batch
                if not pending:
                    return
                ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=1.0)
                for reference in ready:
                    yield from flow.collect(pending.pop(reference), self._fetch(reference))
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)

    def _submit(self, batch: list[TrialSpec]) -> Any:
        first = batch[0]
        key = (first.modules, first.data_files)
        if key not in self._shipments:
            self._shipments[key] = self._ray.put(pack(first.modules, first.data_files))
        return self._task.remote(self._shipments[key], batch)

    def _fetch(self, reference: Any) -> list[Result] | Exception:
        try:
            results: list[Result] = self._ray.get(reference)
            return results
        except self._ray.exceptions.RayError as lost:
            return RuntimeError(str(lost))


def play(shipment: Shipment, batch: list[TrialSpec]) -> list[Result]:
    """What a worker does."""
    moved = unpack(shipment)
    return [replace(attempt(relocated(spec, moved)), spec=spec) for spec in batch]


class Flow:
    """Specs on their way: in batches of alike length, again when they were lost."""

    def __init__(self, specs: Iterable[TrialSpec]) -> None:
        self._source = iter(specs)
        self._held: deque[TrialSpec] = deque()
        self._again: deque[TrialSpec] = deque()
        self._lost: dict[str, int] = {}
        self._seconds = TASK_SECONDS

    def next_batch(self) -> list[TrialSpec]:
        """One spec that was lost before, or as many new ones as fill a task; empty when there are
        none."""
        if self._again:
            return [self._again.popleft()]
        size = min(LARGEST_BATCH, max(1, int(TASK_SECONDS / max(self._seconds, 1e-3))))
        batch: list[TrialSpec] = []
        while len(batch) < size:
            spec = self._held.popleft() if self._held else next(self._source, None)
            if spec is None:
                break
            if batch and (spec.modules, spec.data_files) != (batch[0].modules, batch[0].data_files):
                self._held.appendleft(spec)
                break
            batch.append(spec)
        return batch

    def collect(
        self, batch: list[TrialSpec], outcome: list[Result] | Exception
    ) -> Iterator[Result]:
        """The results of a batch; after a loss, its specs go out again or have failed for good."""
        if not isinstance(outcome, Exception):
            # The mean of recent trials, so that batches follow a suite's slow and quick parts.
            mean = sum(result.seconds for result in outcome) / len(outcome)
            self._seconds += 0.5 * (mean - self._seconds)
            yield from outcome
            return
        for spec in batch:
            self._lost[spec.hash] = self._lost.get(spec.hash, 0) + 1
            if self._lost[spec.hash] < ATTEMPTS:
                self._again.append(spec)
            else:
                reason = (str(outcome).strip() or type(outcome).__name__).splitlines()[0]
                yield Result(
                    spec, None, f"lost {ATTEMPTS} times on the cluster; the last time: {reason}"
                )


def _connected(address: str, modules: Sequence[str]) -> Any:
    packages = [
        Path(tidepull.__file__).parent,
        *(_package(name) for name in modules if not name.endswith(".py")),
    ]
    travels = {"py_modules": [str(package) for package in packages], "excludes": ["__pycache__"]}
    return connected(address, "running on a Ray cluster", travels)


def _package(name: str) -> Path:
    top = importlib.util.find_spec(name.partition(".")[0])
    if top is None or not top.submodule_search_locations:
        raise InputError(
            f"the module '{name}' cannot travel to a cluster; name its .py file instead"
        )
    return Path(next(iter(top.submodule_search_locations)))
