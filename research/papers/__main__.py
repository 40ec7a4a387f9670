"""Plays other papers' tables beside tidepull's policies and writes the page; the same command
continues.

python -m research.papers [--quick] [--only PATTERN ...] [--no-play] [--out out/papers]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from research.papers.page import FOLDER, PAGE, page
from tidepull.experiments.archive import gathered, known_rewards, read_archive, write_archive
from tidepull.experiments.executors import InProcess
from tidepull.experiments.rows import load_rows, plan_of, read_plans, write_plan
from tidepull.experiments.runner import prepare, start, sweep, without_known
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite
from tidepull.reporting.frames import archived_frame, load_frame
from tidepull.reporting.tables import hardware

RESULTS = FOLDER.parent / "results" / "papers"
QUICK_ROUNDS = 10_000


def suites() -> list[Suite]:
    """Every paper's."""
    return [load_suite(path) for path in sorted((FOLDER / "suites").glob("*.toml"))]


def is_quick(spec: TrialSpec) -> bool:
    """The first seed of worlds that are not long, without networks."""
    return spec.seed == 1 and spec.horizon <= QUICK_ROUNDS and spec.policy != "rnlps"


def quick(suite: Suite) -> Suite | None:
    """What is left of a suite; None: nothing."""
    specs = tuple(spec for spec in suite.specs if is_quick(spec))
    return replace(suite, specs=specs) if specs else None


def play(suite: Suite, store: Store, only: Sequence[str], known: Path) -> None:
    """Play what neither the store nor the archive has; say every trial."""
    if only and not any(fnmatchcase(spec.id, one) for spec in suite.specs for one in only):
        return
    work = prepare(suite, store, only=only)
    if known.is_dir():
        work = without_known(work, known_rewards([known]))
    print(f"{suite.name}: {work.done} of {work.total} done", flush=True)
    for result in sweep(work, store, InProcess(), start(suite, store, work)):
        said = "failed" if result.trial is None else f"regret {result.trial.regret[-1]:.1f}"
        print(f"{result.spec.id}: {said}, {result.cpu_seconds:.1f} s", flush=True)


def main() -> None:
    """Play, keep, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="one seed of short worlds, page untouched"
    )
    parser.add_argument("--no-play", action="store_true", help="only write the page")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="such as '*/tide/*'"
    )
    parser.add_argument("--out", type=Path, default=Path("out/papers"), help="the store")
    options = parser.parse_args()
    store = Store.create(Path(f"{options.out}-quick") if options.quick else options.out)
    for suite in suites():
        chosen = quick(suite) if options.quick else suite
        if chosen is None:
            continue
        write_plan(store, plan_of(chosen.name, chosen.text, chosen.specs))
        if not options.no_play:
            play(chosen, store, options.only, Path("none") if options.quick else RESULTS)
    if options.quick:
        print(page(load_frame([store])))
        return
    write_archive(
        gathered(read_plans(store), load_rows(store), read_archive(RESULTS), hardware()), RESULTS
    )
    PAGE.write_text(page(archived_frame(RESULTS)))
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
