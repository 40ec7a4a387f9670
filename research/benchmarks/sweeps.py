"""What the runner costs: overhead of a trivial trial, memory of the driver, scaling with workers.

python -m research.benchmarks.sweeps overhead | memory [--trials 100000] | scaling [--repeats 3] |
reading [--trials 10000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from research.benchmarks import machine
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.rows import compact, load_rows
from tidepull.experiments.runner import prepare, start, sweep
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, parse_suite


def suite(policy: str, problem: str, trials: int, horizon: int) -> Suite:
    text = f"""
name = "bench"
seeds = "0-{trials - 1}"
horizon = {horizon}
[[problems]]
id = "{problem}"
[[policies]]
name = "{policy}"
"""
    return parse_suite(text, where="bench", folder=Path())


def trivial(trials: int) -> Suite:
    return suite("random", "stationary-bernoulli", trials, 10)


def overhead(trials: int = 2000) -> None:
    """Wall time a trial beyond the trial's own, and the driver's processor time a trial."""
    with tempfile.TemporaryDirectory() as folder:
        store, made = Store.create(folder), trivial(trials)
        work = prepare(made, store)
        progress = start(made, store, work)
        played, began, busy = 0.0, 0.0, 0.0
        for count, result in enumerate(sweep(work, store, LocalProcesses(1), progress)):
            if count == 0:  # The worker has started.
                began, busy = time.perf_counter(), time.process_time()
            elif result.trial is not None:
                played += result.trial.seconds
        wall, busy = time.perf_counter() - began, time.process_time() - busy
    print(
        f"{trials:,} trials of 10 rounds on 1 worker: {1e3 * (wall - played) / trials:.2f} ms "
        "overhead a trial, ",
        end="",
    )
    print(f"{1e3 * busy / trials:.2f} ms of them the driver's processor time")


def memory(trials: int) -> None:
    """Resident memory of the driver as trials go by."""
    with tempfile.TemporaryDirectory() as folder:
        store, made = Store.create(folder), trivial(trials)
        work = prepare(made, store)
        progress = start(made, store, work)
        began = time.perf_counter()
        for count, _ in enumerate(sweep(work, store, LocalProcesses(1), progress), 1):
            if count in (1, 1000) or count % (trials // 10) == 0:
                print(
                    f"{count:>9,} trials  {resident():6.1f} MB  {time.perf_counter() - began:7.1f} "
                    "s",
                    flush=True,
                )
        compact(store)
        print(f"after compacting  {resident():6.1f} MB")


def scaling(repeats: int, horizon: int = 4096) -> None:
    """Trials an hour of default rnlps on 1 and on 2 workers, taking turns."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(repeats):
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                store, made = (
                    Store.create(folder),
                    suite("rnlps", "sinusoidal-bernoulli", 2 + 6 * workers, horizon),
                )
                work = prepare(made, store)
                ends = [
                    time.perf_counter()
                    for _ in sweep(work, store, LocalProcesses(workers), start(made, store, work))
                ]
            # From one result to another, so that starting the workers does not count.
            rates[workers].append(3600 * (len(ends) - 2) / (ends[-2] - ends[0]))
            print(
                f"turn {turn + 1}: {workers} workers, {rates[workers][-1]:,.0f} trials an hour",
                flush=True,
            )
    one, two = max(rates[1]), max(rates[2])
    print(
        f"best of {repeats}: 1 worker {one:,.0f}, 2 workers {two:,.0f} trials an hour, "
        f"{two / one:.2f}x"
    )


def reading(trials: int) -> None:
    """Seconds to load the summaries of many trials, without and with an index."""
    with tempfile.TemporaryDirectory() as folder:
        store, made = Store.create(folder), suite("random", "flipping-vector", trials, 4)
        work = prepare(made, store)
        for _ in sweep(work, store, LocalProcesses(2), start(made, store, work)):
            pass
        (store.directory / "index.parquet").unlink(missing_ok=True)
        for state in ("no index", "index"):
            began = time.perf_counter()
            rows = load_rows(store).rows
            print(f"{len(rows):,} trials, {state}: {time.perf_counter() - began:.2f} s")
            compact(store)


def resident() -> float:
    line = next(
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["overhead", "memory", "scaling", "reading"])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    print(machine.describe())
    if chosen.what == "overhead":
        overhead()
    elif chosen.what == "memory":
        memory(chosen.trials)
    elif chosen.what == "reading":
        reading(min(chosen.trials, 10_000))
    else:
        scaling(chosen.repeats)


if __name__ == "__main__":
    main()
