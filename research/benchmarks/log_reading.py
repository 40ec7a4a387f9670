"""What reading, diagnosing and backtesting a log cost: minutes of processor time and peak memory
against rows.

    python -m research.benchmarks.log_reading run [--rows 100000,1000000,10000000] [--kinds
    csv,parquet,jsonl] python -m research.benchmarks.log_reading table python -m
    research.benchmarks.log_reading draw

Every log has a time, one of ten arms, a reward, a propensity, two numbers and a text. Each is read
in a fresh process; logs in CSV are also diagnosed (with the page) and backtested (`random` and one
arm, by all estimators), in processes of their own that read them first. `run` resumes: what
`research/results/log_reading.csv` has is not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

AT_ONCE = 200_000
COLUMNS = ("kind", "work", "rows", "megabytes", "cpu_seconds", "peak_megabytes")
WORKS = ("read", "diagnose", "backtest")
FIGURE = Path(__file__).parents[2] / "research" / "lab" / "figures" / "log_cost.svg"


def write(path: Path, kind: str, rows: int) -> None:
    """A log of so many rows."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv
    from pyarrow import parquet

    writer: Any = None
    rng = np.random.default_rng(0)
    with path.open("wb") as handle:
        for start in range(0, rows, AT_ONCE):
            n = min(AT_ONCE, rows - start)
            table = pa.table(
                {
                    "time": 1.7e9 + np.arange(start, start + n, dtype=float),
                    "arm": np.array([f"arm{k}" for k in range(10)])[rng.integers(10, size=n)],
                    "reward": rng.integers(2, size=n),
                    "propensity": np.full(n, 0.1),
                    "age": rng.integers(18, 80, size=n),
                    "spent": np.round(rng.exponential(30, size=n), 2),
                    "device": np.array(["phone", "tv", "desk"])[rng.integers(3, size=n)],
                }
            )
            if kind == "jsonl":
                handle.write("".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode())
                continue
            if writer is None:
                maker = pa_csv.CSVWriter if kind == "csv" else parquet.ParquetWriter
                writer = maker(handle, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def work_alone(path: Path, work: str) -> dict[str, Any]:
    """Seconds and peak memory of one piece of work in this process."""
    from tidepull import logs
    from tidepull.reporting.log_page import render

    before = time.process_time()
    log = logs.read(path)
    if work == "diagnose":
        assert render(logs.diagnose(log))
    elif work == "backtest":
        assert logs.backtest(log, ["random", f"arm:{log.arms[0]}"]).estimates
    spent = time.process_time() - before
    assert log.reading.bad.count == 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "work": work,
        "rows": len(log),
        "cpu_seconds": f"{spent:.1f}",
        "peak_megabytes": f"{peak:.0f}",
    }


def run(out: Path, kinds: list[str], sizes: list[int]) -> None:
    """Everything that is not in the file yet."""
    found = known(out)
    done = {(row["kind"], row["work"], int(row["rows"])) for row in found}
    for rows in sizes:
        for kind in kinds:
            works = WORKS if kind == "csv" else WORKS[:1]
            missing = [work for work in works if (kind, work, rows) not in done]
            if missing:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / f"log.{kind}"
                    write(path, kind, rows)
                    for work in missing:
                        found.append(
                            {
                                "kind": kind,
                                "megabytes": f"{path.stat().st_size / 1e6:.0f}",
                                **_apart(path, work),
                            }
                        )
                        save(out, found)


def _apart(path: Path, work: str) -> dict[str, Any]:
    words = [
        sys.executable,
        "-m",
        "research.benchmarks.log_reading",
        "run",
        "--alone",
        str(path),
        "--work",
        work,
    ]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    made: dict[str, Any] = json.loads(said.splitlines()[-1])
    return made


def known(out: Path) -> list[dict[str, Any]]:
    """The rows that are there."""
    if not out.exists():
        return []
    with out.open(newline="") as handle:
        return list(csv.DictReader(handle))


def save(out: Path, found: list[dict[str, Any]]) -> None:
    """All rows, in the order of works and formats."""
    order = {work: n for n, work in enumerate(WORKS)}
    with out.open("w", newline="") as handle:
        table = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(
            sorted(found, key=lambda row: (order[row["work"]], row["kind"], int(row["rows"])))
        )


def table(out: Path) -> None:
    """Markdown."""
    print(
        "| work | format | rows | megabytes | minutes of processor time | peak memory, megabytes |"
    )
    print("|---|---|---|---|---|---|")
    for row in known(out):
        minutes, peak = float(row["cpu_seconds"]) / 60, int(row["peak_megabytes"])
        print(
            f"| {row['work']} | {row['kind']} | {int(row['rows']):,} | {row['megabytes']} | "
            f"{minutes:.2f} | {peak:,} |"
        )


def draw(out: Path) -> None:
    """Minutes and memory over rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "tidepull"
    found = known(out)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    titles = ("minutes of processor time", "peak memory, GB")
    for axes, column, unit, title in zip(
        panels, ("cpu_seconds", "peak_megabytes"), (60, 1000), titles, strict=True
    ):
        for work, kind in dict.fromkeys((row["work"], row["kind"]) for row in found):
            mine = [row for row in found if (row["work"], row["kind"]) == (work, kind)]
            told = [int(row["rows"]) for row in mine], [float(row[column]) / unit for row in mine]
            axes.plot(*told, marker="o", markersize=4, label=f"{work}, {kind}")
        axes.set(title=title, xlabel="rows", xscale="log")
    panels[0].set_yscale("log")
    panels[1].set_ylim(bottom=0)
    panels[1].axhline(2, color="grey", linestyle=":", linewidth=1)
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table", "draw"))
    parser.add_argument("--rows", default="100000,1000000,10000000")
    parser.add_argument("--kinds", default="csv,parquet,jsonl")
    parser.add_argument("--out", type=Path, default=Path("research/results/log_reading.csv"))
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work", choices=WORKS, default="read", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(work_alone(given.alone, given.work)))
    elif given.what == "run":
        run(given.out, given.kinds.split(","), [int(rows) for rows in given.rows.split(",")])
    else:
        {"table": table, "draw": draw}[given.what](given.out)


if __name__ == "__main__":
    main()
