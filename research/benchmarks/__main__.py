"""The speed page: every part beside its rivals and the machine's own limits, in one run.

    python -m research.benchmarks [--quick] [--parts limits service ...]

Prints tables and puts them into docs/performance.md, each part between its own markers. `--quick`
measures for a short time and leaves the page as it is. Services with their load generator and
processes that start use all cores; everything else runs on one. Below 10 minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import tidepull
from research.benchmarks import (
    agent_speed,
    decision,
    epoch,
    horizon,
    limits,
    machine,
    rounds,
    service_load,
    service_workers,
    start,
    tails,
)
from tidepull._internal.system import one_blas_thread

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]


def use_one_core() -> None:
    """Everything, also the rivals' thread pools, on one core."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def limits_part(_: bool) -> list[Table]:
    found = limits.measure()
    rows = [
        ["product of two 512 by 512 matrices, float32 (BLAS)", f"{found.gflops:.0f} GFLOP/s"],
        ["copy of 256 MB, read and written", f"{found.gigabytes:.1f} GB/s"],
        ["sync of a page to the disk", f"{found.sync_ms:.2f} ms ({1e3 / found.sync_ms:,.0f}/s)"],
        ["commit of a row by SQLite", f"{found.commit_ms:.2f} ms ({1e3 / found.commit_ms:,.0f}/s)"],
    ]
    return [("Limits of the machine, one core", ["limit", "figure"], rows)]


def service_part(quick: bool) -> list[Table]:
    seconds, cases = (2.0 if quick else 10.0), [(8, False), (8, True)]
    found = {
        policy: service_load.measured(policy, cases, seconds) for policy in service_load.POLICIES
    }
    rows = []
    for policy, measured in found.items():
        for row, bare in zip(measured, found["none"], strict=True):
            rows.append(
                [
                    "bare framework" if policy == "none" else f"`{policy}`",
                    str(row["batch"]),
                    f"{row['per_second']:,.0f}",
                    f"{row['per_second'] / bare['per_second']:.0%}",
                    *(f"{row[part]:.1f}" for part in ("p50_ms", "p99_ms", "p99.9_ms")),
                    f"{row['processor_us']:.0f}",
                    f"{row['processor_us'] / bare['processor_us']:.1f}x",
                ]
            )
    columns = [
        "policy", "in a request", "decisions a second", "of the bare framework", "p50, ms", "p99, ms", "p99.9, ms",
        "processor, µs a decision", "of the bare framework",
    ]  # fmt: skip
    return [("Durable decisions over HTTP, 8 connections, 5 arms, 5 fields", columns, rows)]


def workers_part(quick: bool) -> list[Table]:
    policies, seconds = (["bernoulli-ts"], 2.0) if quick else (["bernoulli-ts", "tide"], 6.0)
    rows = []
    for policy in policies:
        found = service_workers.compare(policy, [1, 2], seconds, turns=1 if quick else 2)
        for count, row in found.items():
            rows.append(
                [
                    f"`{policy}`",
                    str(count),
                    f"{row['rate']:,.0f}",
                    f"{row['rate'] / found[1]['rate']:.2f}x",
                    f"{row['processor_us']:.0f}",
                    f"{row['processor_us'] / found[1]['processor_us']:.2f}x",
                ]
            )
    columns = ["policy", "workers", "decisions a second", "of one worker"]
    columns += ["processor, µs a decision", "of one worker"]
    return [("Workers, 20 agents, single decisions, 8 connections", columns, rows)]


def start_part(quick: bool) -> list[Table]:
    found = start.measure(1 if quick else 5)
    rows = [
        [step, f"{cold:.2f}", f"{warm:.2f}"]
        for step, cold, warm in zip(start.STEPS, found.cold, found.warm, strict=True)
    ]
    columns = [
        "`tide`, 5 arms, 5 fields",
        "nothing compiled, read-only, no home, s",
        "kernels on disk, s",
    ]
    sizes = [
        ["packages of a bare installation on disk", f"{start.installed_megabytes():.0f}"],
        [
            "memory of a process with one warm agent of `tide`",
            f"{start.warm_agent_megabytes():.0f}",
        ],
    ]
    return [
        ("From the start of Python to the first decision", columns, rows),
        ("Room", ["what", "MB"], sizes),
    ]


def libraries_part(quick: bool) -> list[Table]:
    tables: list[Table] = []
    for case, found in rounds.libraries(200 if quick else 1000).items():
        first = found[0].median
        rows = [
            [f"`{row.policy}`", f"{row.median:.0f}", f"{row.p99:.0f}", f"{row.median / first:.1f}x"]
            for row in found
        ]
        columns = ["policy", "median, µs", "99%, µs", f"of `{found[0].policy}`"]
        tables.append((f"A round of a policy in process: {case}", columns, rows))
    return tables


def agent_part(quick: bool) -> list[Table]:
    kinds = [("bernoulli-ts", 3), ("lin-ts", 3), ("tide", 3), ("tide", 10)]
    found = [agent_speed.calls(policy, arms, 300 if quick else 3000) for policy, arms in kinds]
    rows = [
        [
            f"`{policy}`, {arms} arms",
            *(f"{row[part]:.2f}" for part in ("p50_ms", "p99_ms", "p99.9_ms")),
            f"{row['p50_ms'] / found[0]['p50_ms']:.1f}x",
        ]
        for (policy, arms), row in zip(kinds, found, strict=True)
    ]
    columns = ["policy", "median, ms", "99%, ms", "99.9%, ms", "of `bernoulli-ts`"]
    tables: list[Table] = [
        ("`choose` and its `reward` in an agent in memory, 5 fields", columns, rows)
    ]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TIDEPULL_BENCH_DIR")) as folder:
        commit = agent_speed.raw_commits(Path(folder))
        disk = [["SQLite alone, a row in each commit", f"{1e3 / commit:,.0f}"]]
        for threads in (1, 8):
            row = agent_speed.on_disk(Path(folder), threads, 30 if quick else 300)
            disk.append([row["what"], f"{row['events_a_second']:,.0f}"])
    return [
        *tables,
        ("Durable calls of an agent on disk", ["what", "a second, on the clock"], disk),
    ]


def tide_part(quick: bool) -> list[Table]:
    rounds, cases = (500, tails.CASES[:1]) if quick else (10_000, tails.CASES[:-1])
    with one_blas_thread():
        rows = [tails.cells(*case, tails.measure(*case, rounds)) for case in cases]
    return [("`choose`, `learn` and slices of `upkeep` (ms)", tails.COLUMNS, rows)]


def growth_part(quick: bool) -> list[Table]:
    horizons, count = ((100, 300), 100) if quick else ((100, 1000, 5000), 500)
    rows = [
        [what, *(f"{of[policy]:,.0f}" for policy in rounds.GROWING)]
        for what, of in rounds.growth(count, horizons)
    ]
    columns = ["what grows", *(f"`{policy}`, µs" for policy in rounds.GROWING)]
    counts = (1, 5) if quick else (1, 20, 50)
    with multiprocessing.get_context("spawn").Pool(1) as fresh:  # memory that nothing else has used
        found = fresh.apply(rounds.agents, (counts, 100 if quick else 1000))
    of_agents = [
        [str(row.agents), f"{row.micro / 1e3:.2f}", f"{row.megabytes:.1f}"] for row in found
    ]
    return [
        ("A round in process, by what grows (mean; else 5 arms and 5 numbers)", columns, rows),
        (
            "Agents of `tide` in one process",
            ["agents", "a decision and its reward, ms", "MB of each further agent"],
            of_agents,
        ),
    ]


def networks_part(quick: bool) -> list[Table]:
    turns = 2 if quick else 20
    rows = []
    for units in (16,) if quick else (16, 32, 64):
        row = epoch.measure(units, turns)
        rows.append(
            [
                str(units),
                f"{row.ours:.2f}",
                f"{row.torch:.2f} ({row.torch / row.ours:.1f}x)",
                f"{row.jax:.2f} ({row.jax / row.ours:.1f}x)",
                f"{min(row.torch, row.jax) / row.ours:.1f}x",
                f"{row.operations:,}",
                f"{row.gflops:.0f}",
                f"{row.gflops / row.blas:.0%} of {row.blas:.0f}",
            ]
        )
    title = f"A training epoch of the recurrent network, {epoch.ROUNDS} rounds, {epoch.INPUTS} inputs (µs a round)"
    columns = [
        "units", "tidepull", "torch nn.LSTM", "JAX scan", "over the better", "operations a round", "GFLOP/s",
        "of BLAS's GFLOP/s",
    ]  # fmt: skip
    decisions = [
        [f"`{row.policy}`", row.case, f"{row.median:.0f}", f"{row.p99:.0f}"]
        for policy in ("rnlps", "nlps")
        for row in (decision.measure(policy, case) for case in decision.CASES)
        if not quick
    ]
    return [
        (title, columns, rows),
        (
            "A decision and its update between trainings (µs)",
            ["policy", "problem", "median", "99th percentile"],
            decisions,
        ),
    ]


def trials_part(quick: bool) -> list[Table]:
    rows = []
    for policy in ("rnlps", "nlps"):
        for count in (512,) if quick else horizon.HORIZONS:
            row = horizon.measure(policy, count)
            authors = horizon.AUTHORS_SECONDS if (policy, count) == ("rnlps", 4096) else None
            rows.append(
                [
                    f"`{policy}`",
                    f"{count:,}",
                    f"{row.seconds:.2f}",
                    f"{1e3 * row.seconds / count:.2f}",
                    f"{row.megabytes:.0f}",
                    f"{authors / row.seconds:.0f}x" if authors else "",
                ]
            )
    columns = [
        "policy", "rounds", "seconds", "ms a round", "peak memory (MB)", "faster than the authors' code",
    ]  # fmt: skip
    title = "A whole trial of sinusoidal-bernoulli with the default settings"
    tables: list[Table] = [(title, columns, rows)]
    if not quick:
        cold, warm = horizon.starts()
        starts = [["nothing on disk: compiles", f"{cold:.1f}"], ["kernels on disk", f"{warm:.1f}"]]
        title = "From the start of Python to both networks ready"
        tables.append((title, ["cache", "seconds"], starts))
    return tables


PARTS: dict[str, Callable[[bool], list[Table]]] = {
    "service": service_part,
    "workers": workers_part,
    "start": start_part,
    "limits": limits_part,
    "libraries": libraries_part,
    "agent": agent_part,
    "growth": growth_part,
    "tide": tide_part,
    "networks": networks_part,
    "trials": trials_part,
}
ALL_CORES = ("service", "workers", "start")
RIVALS = {"libraries": ("mabwiser", "river", "vowpalwabbit"), "networks": ("torch", "jax", "optax")}
"""Packages beside which a part is measured."""


def markdown(table: Table) -> str:
    title, columns, rows = table
    lines = [f"**{title}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def show(table: Table) -> Table:
    from rich.console import Console
    from rich.table import Table as RichTable

    title, columns, rows = table
    pretty = RichTable(*columns, title=title)
    for row in rows:
        pretty.add_row(*(cell.replace("`", "") for cell in row))
    Console(width=140).print(pretty)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short, and the page stays as it is")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    given = parser.parse_args()
    absent = {name for part in given.parts for name in RIVALS.get(part, ()) if not find_spec(name)}
    if absent:
        parser.error(f"install {', '.join(sorted(absent))}, or name other --parts")
    print(machine.describe())
    tidepull.warm_up(lambda: print("compiling kernels"))
    for name in sorted(given.parts, key=lambda part: list(PARTS).index(part)):
        if name not in ALL_CORES:
            use_one_core()
        started = time.monotonic()
        tables = [show(table) for table in PARTS[name](given.quick)]
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
        if not given.quick:
            write(name, tables)


def write(name: str, tables: Sequence[Table]) -> None:
    """A part of the page, with where and when it was measured."""
    from research.benchmarks.regret_rows import write_between

    where = f"`python -m research.benchmarks --parts {name}`, {date.today()}: {machine.describe()}."
    write_between(PAGE, f"speed {name}", "\n\n".join([where, *map(markdown, tables)]))


if __name__ == "__main__":
    main()
