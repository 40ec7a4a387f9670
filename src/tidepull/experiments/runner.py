"""Running a suite into a store: what is missing, and only that, in any order, any number of times.

The time left is estimated from trials that were measured; it is unknown until something similar was
run.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from tidepull._internal.files import abandoned
from tidepull.errors import InputError, StoreError
from tidepull.experiments.rows import Census, entries, plan_of, take_census, write_plan
from tidepull.experiments.spec import Result, TrialSpec, canonical
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite
from tidepull.protocols import Executor

TrialKind: TypeAlias = tuple[str, int, str, str]
"""Policy, horizon, problem, parameters: trials of one kind take about the same time."""


def kind_of(spec: TrialSpec) -> TrialKind:
    """The kind of a trial to come."""
    policy, problem = spec.resolved_parameters
    return spec.policy, spec.horizon, spec.problem, f"[{policy},{problem}]"


def kind_of_stored(content: Mapping[str, Any]) -> TrialKind:
    """The kind of a stored trial, from its spec's content."""
    parameters = canonical([content["policy_parameters"], content["problem_parameters"]])
    return content["policy"], content["horizon"], content["problem"], parameters


class Estimator:
    """Mean seconds of each kind; of the same policy, horizon and problem, or policy and horizon,
    when new."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], tuple[int, float]] = {}
        self._left: Counter[TrialKind] = Counter()

    def expect(self, specs: Iterable[TrialSpec]) -> None:
        """Take note of trials to come."""
        self._left.update(kind_of(spec) for spec in specs)

    def measured(self, kind: TrialKind, seconds: float) -> None:
        """Learn from a finished trial."""
        for prefix in (kind, kind[:3], kind[:2]):
            count, total = self._totals.get(prefix, (0, 0.0))
            self._totals[prefix] = (count + 1, total + seconds)

    def finished(self, kind: TrialKind) -> None:
        """One fewer to come."""
        self._left[kind] -= 1

    def seconds_left(self) -> tuple[float, int]:
        """Seconds of one worker for all trials to come, and how many more there are of unknown
        length."""
        seconds, unknown = 0.0, 0
        for kind, count in self._left.items():
            prefixes = (kind, kind[:3], kind[:2])
            known = next((self._totals[p] for p in prefixes if p in self._totals), None)
            if known is None:
                unknown += count
            else:
                seconds += count * known[1] / known[0]
        return seconds, unknown


WRITERS = 4
MOST_WAITING = 32


@dataclass(frozen=True, slots=True)
class Work:
    """A suite against a store: what is left to do, and what became of the rest."""

    todo: tuple[TrialSpec, ...]
    total: int
    done: int
    failed_before: tuple[str, ...]
    damaged: dict[str, str]


@dataclass(slots=True)
class Progress:
    """Where a sweep stands; a display may read it at any time."""

    total: int
    started: float = field(default_factory=time.monotonic)
    handed_out: int = 0
    done: int = 0
    failed: int = 0
    cpu_seconds: float = 0.0
    by_problem: dict[str, Counter[str]] = field(default_factory=dict)
    estimator: Estimator = field(default_factory=Estimator)

    @property
    def running(self) -> int:
        """Trials that are out with the executor."""
        return self.handed_out - self.done - self.failed

    @property
    def left(self) -> int:
        """Trials without a result yet."""
        return self.total - self.done - self.failed


def prepare(
    suite: Suite, store: Store, *, only: Sequence[str] = (), retry_failed: bool = False
) -> Work:
    """Count what is to be done; every stored trial of the suite is verified."""
    wanted: dict[str, TrialSpec] = {}
    for spec in suite.specs:
        if not only or any(fnmatchcase(spec.id, pattern) for pattern in only):
            wanted.setdefault(spec.hash, spec)
    if not wanted:
        raise InputError(
            f"no trial of {suite.name} fits {' '.join(only)}; ids look like {suite.specs[0].id}"
        )
    census = take_census(store, wanted)
    failed = {hash for hash in wanted if store.failure_path(hash).exists()} - census.sound
    skipped = census.sound if retry_failed else census.sound | failed
    return Work(
        todo=tuple(spec for hash, spec in wanted.items() if hash not in skipped),
        total=len(wanted),
        done=len(census.sound),
        failed_before=()
        if retry_failed
        else tuple(wanted[hash].id for hash in wanted if hash in failed),
        damaged={wanted[hash].id: fault for hash, fault in census.damaged.items()},
    )


def without_known(work: Work, known: Container[str]) -> Work:
    """The work without trials (by hash) whose results are known from elsewhere; they count as
    done."""
    todo = tuple(spec for spec in work.todo if spec.hash not in known)
    return replace(work, todo=todo, done=work.done + len(work.todo) - len(todo))


def start(suite: Suite, store: Store, work: Work) -> Progress:
    """Write the suite's plan into the store, clear what a crash left there, and get ready to
    count."""
    for path in abandoned(store.directory):
        path.unlink(missing_ok=True)
    write_plan(store, plan_of(suite.name, suite.text, suite.specs))
    progress = Progress(total=len(work.todo), estimator=estimator(store, work))
    for spec in work.todo:
        progress.by_problem.setdefault(spec.problem_name or spec.problem, Counter())["total"] += 1
    return progress


def estimator(store: Store, work: Work) -> Estimator:
    """What the store's trials say about the time that the work will take."""
    times = Estimator()
    times.expect(work.todo)
    for _, _, text in entries(store, Census()):
        manifest = json.loads(text)
        times.measured(kind_of_stored(manifest["spec"]), manifest["seconds"])
    return times


def sweep(
    work: Work, store: Store, executor: Executor, progress: Progress, *, until: float = math.inf
) -> Iterator[Result]:
    """Run, store, count; yields every result after it is safely stored. After `until` (of the
    monotonic clock) no trial is begun.

    Threads write, because a disk takes longer to sync a file than a processor to make it; a result
    that has reached the driver is stored whatever interrupts it.
    """
    writing: deque[tuple[Result, Future[None]]] = deque()
    with ThreadPoolExecutor(WRITERS) as writers:
        try:
            for result in executor.run(_handing_out(work.todo, progress, until)):
                writing.append((result, writers.submit(store.write, result)))
                while writing and (writing[0][1].done() or len(writing) > MOST_WAITING):
                    yield _settled(*writing.popleft(), progress)
            while writing:
                yield _settled(*writing.popleft(), progress)
        finally:
            while writing:
                with suppress(StoreError):
                    _settled(*writing.popleft(), progress)


def _handing_out(
    specs: Sequence[TrialSpec], progress: Progress, until: float
) -> Iterator[TrialSpec]:
    for spec in specs:
        if time.monotonic() >= until:
            return
        progress.handed_out += 1
        yield spec


def _settled(result: Result, written: Future[None], progress: Progress) -> Result:
    written.result()
    kind = kind_of(result.spec)
    outcome = "failed" if result.trial is None else "done"
    progress.by_problem[result.spec.problem_name or result.spec.problem][outcome] += 1
    progress.cpu_seconds += result.cpu_seconds
    progress.estimator.finished(kind)
    if result.trial is None:
        progress.failed += 1
    else:
        progress.done += 1
        progress.estimator.measured(kind, result.seconds)
    return result
