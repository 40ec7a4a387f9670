"""`make mutants`: a seeded sample of mutants, judged by quick tests, into
research/results/mutants.csv and research/lab/mutants.md.

    python -m research.benchmarks.mutants [--size N] [--only TEXT] [--retry-survivors]

What is in the file and still true (the same line, the same tests passed) is not judged again.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from research.benchmarks.mutants.judge import Judge
from research.benchmarks.mutants.page import reasons, write_page
from research.benchmarks.mutants.plan import SRC, TARGETS, Target
from research.benchmarks.mutants.sample import Mutant, sample

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "research" / "results" / "mutants.csv"
FIELDS = ("place", "module", "line", "operator", "was", "now", "outcome", "seconds", "test")
SEED, SIZE = 12, 240
LEAST_SCORE = 0.85
Rows: TypeAlias = dict[str, dict[str, str]]


def main() -> int:
    asked = _arguments()
    of = {SRC + module: target for target in TARGETS for module in target.modules}
    chosen = sample(list(of), ROOT, asked.size, SEED)
    known = _read()
    todo = [
        m
        for m in chosen
        if _is_due(m, known, asked) and any(text in m.module for text in asked.only)
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        judge = Judge(ROOT, Path(folder)) if todo else None
        for target in TARGETS:
            mine = [m for m in todo if of[m.module] == target]
            if mine and judge is not None:
                _judge_all(judge, target, mine)
    known = _keep(chosen)
    score = write_page(list(known.values()), ROOT)
    if len(known) < len(chosen):
        print(f"{len(chosen) - len(known)} of the sample are not judged yet")
    return 0 if score >= LEAST_SCORE and len(known) == len(chosen) else 1


def _is_due(mutant: Mutant, known: Rows, asked: argparse.Namespace) -> bool:
    row = known.get(mutant.place)
    if row is None:
        return True
    return (
        asked.retry_survivors and row["outcome"] == "survived" and mutant.place not in reasons(ROOT)
    )


def _judge_all(judge: Judge, target: Target, mine: list[Mutant]) -> None:
    clean = judge.clean(target)
    print(
        f"{target.modules[0]} ...: {len(mine)} mutants; {clean.seconds:.1f} s for the tests alone",
        flush=True,
    )
    if clean.outcome != "survived":
        sys.exit(f"the tests of {target.modules[0]} fail without any mutant: {clean.test}")
    for mutant in mine:
        source = judge.source(mutant.module)
        was, now = mutant.lines(source)
        verdict = judge.judge(target, mutant.module, mutant.code(source))
        values = (
            mutant.place, mutant.module, mutant.line, mutant.operator, was, now,
            verdict.outcome, f"{verdict.seconds:.1f}", verdict.test,
        )  # fmt: skip
        _add(dict(zip(FIELDS, map(str, values), strict=True)))
        if verdict.outcome == "survived":
            print(f"  survived: {mutant.module}:{mutant.line}  {was}  ->  {now}", flush=True)


def _keep(chosen: list[Mutant]) -> Rows:
    """The verdicts on the sample, with the lines at which its mutants stand now."""
    with _locked():
        known = _read()
        kept = {
            m.place: {**known[m.place], "line": str(m.line)} for m in chosen if m.place in known
        }
        _write(kept)
    return kept


def _add(row: dict[str, str]) -> None:
    with _locked():
        _write({**_read(), row["place"]: row})


@contextmanager
def _locked() -> Iterator[None]:
    """Several processes may judge at once, each its own modules."""
    with (Path(tempfile.gettempdir()) / "tidepull-mutants.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read() -> Rows:
    if not RECORD.exists():
        return {}
    with RECORD.open(newline="") as file:
        return {row["place"]: row for row in csv.DictReader(file)}


def _write(rows: Rows) -> None:
    with RECORD.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            sorted(rows.values(), key=lambda row: (row["module"], int(row["line"]), row["place"]))
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.mutants", description=__doc__
    )
    parser.add_argument("--size", type=int, default=SIZE, help="how many mutants")
    parser.add_argument(
        "--only", nargs="*", default=[""], help="judge mutants of modules with this in their path"
    )
    parser.add_argument(
        "--retry-survivors", action="store_true", help="judge survivors without a reason again"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
