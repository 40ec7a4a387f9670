"""What reading a log costs: minutes of processor time and peak memory against rows.

    python -m benchmarks.log_reading [--rows 100000,1000000,10000000] [--kinds csv,parquet,jsonl]

Every log has a time, one of ten arms, a reward, a propensity, two numbers and a text; each is read in a fresh process.
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
COLUMNS = ("kind", "rows", "megabytes", "cpu_seconds", "peak_megabytes")


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


def read_alone(path: Path) -> dict[str, Any]:
    """Seconds and peak memory of reading in this process."""
    from tidepull import logs

    before = time.process_time()
    log = logs.read(path)
    spent = time.process_time() - before
    assert log.reading.bad.count == 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": len(log), "cpu_seconds": f"{spent:.1f}", "peak_megabytes": f"{peak:.0f}"}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="100000,1000000,10000000")
    parser.add_argument("--kinds", default="csv,parquet,jsonl")
    parser.add_argument("--out", type=Path, default=Path("results/log_reading.csv"))
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(read_alone(given.alone)))
        return
    found = []
    for kind in given.kinds.split(","):
        for rows in map(int, given.rows.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"log.{kind}"
                write(path, kind, rows)
                words = [sys.executable, "-m", "benchmarks.log_reading", "--alone", str(path)]
                said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
                found.append({"kind": kind, "megabytes": f"{path.stat().st_size / 1e6:.0f}", **said})
            with given.out.open("w", newline="") as handle:
                table = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
                table.writeheader()
                table.writerows(found)


if __name__ == "__main__":
    main()
