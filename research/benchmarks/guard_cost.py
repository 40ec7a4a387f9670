"""What the guard costs in a round: this tidepull beside an earlier one, in turns, on one core.

python -m research.benchmarks.guard_cost --before PATH [--write]

PATH is the `src` of a checkout of the earlier version. Two processes, one for each version, play
short blocks of rounds in turns; the fastest block of each counts, so that what else the machine
does is left out. `--write` puts the table into research/lab/performance_tide.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

TURNS = 100
"""Turns of each version: 20 blocks of 100 rounds."""

CASES = ("random", "ucb", "bernoulli-ts", "lin-ts")
ROOT = Path(__file__).parents[2]

_PLAYER = """
import sys, time
import numpy as np
from tidepull.experiments.loop import build_policy
from tidepull.types import Context, Event, ProblemShape
rng = np.random.default_rng(0)
shapes = {"lin-ts": ProblemShape(25, arm_dim=10)}
learners, contexts = {}, {}
for line in sys.stdin:
    id, times = line.strip(), []
    shape = shapes.get(id, ProblemShape(10))
    if id not in learners:
        learners[id] = build_policy(id, shape, seed=0)
        contexts[id] = Context(arm_features=rng.normal(size=(25, 10)) if shape.arm_dim else None)
    policy, context = learners[id], contexts[id]
    for _ in range(20):
        started = time.thread_time_ns()
        for t in range(100):
            arm = policy.choose(context)
            policy.learn(Event(context, arm, float(t & 1)))
        times.append((time.thread_time_ns() - started) / 1e5)
    print(*times, flush=True)
"""


class Player:
    """A process that plays rounds with the tidepull of one source tree."""

    def __init__(self, source: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PLAYER],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def microseconds(self, policy: str) -> list[float]:
        """One turn: processor time of a round, in each block."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{policy}\n")
        self._process.stdin.flush()
        return [float(text) for text in self._process.stdout.readline().split()]

    def stop(self) -> None:
        self._process.communicate()


def table(before: Path, turns: int) -> str:
    """Fastest and median block of both versions."""
    old, new = Player(before), Player(ROOT / "src")
    lines = [
        "| policy | before, fastest (median) | now, fastest (median) | more in a round |",
        "|---|---:|---:|---:|",
    ]
    for policy in CASES:
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(turns):
            for player, found in zip((old, new), times, strict=True):
                found += player.microseconds(policy)
        fastest = [min(found) for found in times]
        median = [sorted(found)[len(found) // 2] for found in times]
        lines.append(
            f"| `{policy}` | {fastest[0]:.1f} µs ({median[0]:.1f}) | {fastest[1]:.1f} µs "
            f"({median[1]:.1f}) "
            f"| {fastest[1] - fastest[0]:+.1f} µs |"
        )
    for player in (old, new):
        player.stop()
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--before", type=Path, required=True, help="the src of a checkout of the earlier version"
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of each version")
    parser.add_argument(
        "--write", action="store_true", help="put the table into research/lab/performance_tide.md"
    )
    options = parser.parse_args()
    text = table(options.before, options.turns)
    print(text)
    if options.write:
        from datetime import date

        from research.benchmarks import machine
        from research.benchmarks.regret_rows import write_between

        where = f"`python -m research.benchmarks.guard_cost`, {date.today()}: {machine.describe()}."
        write_between(
            ROOT / "research" / "lab" / "performance_tide.md", "guard", f"{where}\n\n{text}"
        )


if __name__ == "__main__":
    main()
