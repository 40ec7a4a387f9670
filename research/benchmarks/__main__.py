"""Speed, side by side with rivals on one core: prints tables and puts them into
docs/performance.md.

python -m research.benchmarks [--quick]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from research.benchmarks import decision, epoch, horizon, machine

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]


def use_one_core() -> None:
    """Everything, also the rivals' thread pools, on one core."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def epoch_table(turns: int) -> Table:
    rows = []
    for units in (16, 32, 64):
        row = epoch.measure(units, turns)
        rows.append(
            [
                str(units),
                f"{row.ours:.2f}",
                f"{row.torch:.2f} ({row.torch / row.ours:.1f}x)",
                f"{row.jax:.2f} ({row.jax / row.ours:.1f}x)",
                f"{row.operations:,}",
                f"{row.gflops:.0f}",
                f"{row.gflops / row.blas:.0%} of {row.blas:.0f}",
            ]
        )
    title = f"A training epoch of the recurrent network, {epoch.ROUNDS} rounds, {epoch.INPUTS} inputs (µs a round)"
    columns = [
        "units",
        "tidepull",
        "torch nn.LSTM",
        "JAX scan",
        "operations a round",
        "GFLOP/s",
        "of BLAS's GFLOP/s",
    ]
    return title, columns, rows


def feedforward_table(turns: int) -> Table:
    rows = [
        [str(units), f"{epoch.measure_feedforward(units, turns):.2f}"] for units in (16, 32, 64)
    ]
    return (
        "A training epoch of the feedforward network, 8 arms (µs a round)",
        ["units", "tidepull"],
        rows,
    )


def decision_table() -> Table:
    rows = [
        [f"`{row.policy}`", row.case, f"{row.median:.0f}", f"{row.p99:.0f}"]
        for policy in ("rnlps", "nlps")
        for row in (decision.measure(policy, case) for case in decision.CASES)
    ]
    return (
        "A decision and its update between trainings (µs)",
        ["policy", "problem", "median", "99th percentile"],
        rows,
    )


def horizon_table(horizons: Sequence[int]) -> Table:
    rows = []
    for policy in ("rnlps", "nlps"):
        for rounds in horizons:
            row = horizon.measure(policy, rounds)
            authors = horizon.AUTHORS_SECONDS if (policy, rounds) == ("rnlps", 4096) else None
            rows.append(
                [
                    f"`{policy}`",
                    f"{rounds:,}",
                    f"{row.seconds:.2f}",
                    f"{1e3 * row.seconds / rounds:.2f}",
                    f"{row.megabytes:.0f}",
                    f"{authors / row.seconds:.0f}x" if authors else "",
                ]
            )
    columns = [
        "policy",
        "rounds",
        "seconds",
        "ms a round",
        "peak memory (MB)",
        "faster than the authors' code",
    ]
    return "A whole trial of sinusoidal-bernoulli with the default settings", columns, rows


def start_table() -> Table:
    cold, warm = horizon.starts()
    rows = [["nothing on disk: compiles", f"{cold:.1f}"], ["kernels on disk", f"{warm:.1f}"]]
    return "From the start of Python to both networks ready", ["cache", "seconds"], rows


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
    Console(width=120).print(pretty)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer turns, short horizons, page untouched"
    )
    quick = parser.parse_args().quick
    use_one_core()
    print(machine.describe())
    turns, horizons = (2, (512, 1024)) if quick else (20, horizon.HORIZONS)
    tables = [
        show(epoch_table(turns)),
        show(feedforward_table(turns)),
        show(decision_table()),
        show(horizon_table(horizons)),
        show(start_table()),
    ]
    if not quick:
        from research.benchmarks.regret_rows import write_between

        where = f"`make bench`, {date.today()}: {machine.describe()}."
        write_between(PAGE, "speed", "\n\n".join([where, *map(markdown, tables)]))
        print(f"written to {PAGE.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
