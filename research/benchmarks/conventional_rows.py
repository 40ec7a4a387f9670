"""D-(Lin)UCB and SW-(Lin)UCB beside the paper's rows.

python -m research.benchmarks.conventional_rows [--jobs 2]    run, and print the tables
python -m research.benchmarks.conventional_rows --write       also put them into research/lab/policies.md

Without contexts the discount or window is the best of the paper's grid of ten, by mean reward over
2,048 rounds on seeds 100 to 104; the linear ones follow from the variation budget. Then each
setting plays ten trials of 4,096 rounds: in ten worlds (seeds 0 to 9), and, as the paper did, ten
times in one world.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import scipy

import tidepull
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.loop import Trial
from tidepull.experiments.spec import TrialSpec, canonical
from tidepull.policies.linear import optimal_discount, optimal_window
from tidepull.problems import build_problem, shape_of
from tidepull.protocols import HasVariationBudget
from tidepull.reporting.published import REGRET, Reported

PAGE = Path(__file__).parents[2] / "research" / "lab" / "policies.md"
BEGIN, END = "<!-- conventional-rows: begin -->", "<!-- conventional-rows: end -->"
HORIZON, SEARCH_HORIZON = 4096, 2048
SEEDS, SEARCH_SEEDS = range(10), range(100, 105)
DISCOUNTS = (0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)
WINDOWS = (5, 10, 25, 50, 75, 100, 150, 200, 250, 300)
# Settings with which the authors' published code gives the paper's numbers.
PUBLISHED = {
    "flipping-gaussian": (0.95, 25),
    "flipping-bernoulli": (0.995, 50),
    "sinusoidal-bernoulli": (0.995, 75),
    "circular-markov-chain": (0.8, 5),
}
LINEAR = ("flipping-vector", "rotating-vector-32", "rotating-vector-2048")
Settings = dict[str, float | int | str]


@dataclass(frozen=True)
class Line:
    """One row of a table: a policy with a setting, and the paper's cell that it answers to."""

    problem: str
    policy: str
    settings: Settings
    origin: str

    @property
    def paper(self) -> Reported:
        return REGRET[self.problem]["discounted" if self.policy.startswith("d-") else "windowed"]

    def specs(self) -> list[TrialSpec]:
        return [
            self._spec(HORIZON, seed, problem_seed)
            for problem_seed in (None, SEEDS[0])
            for seed in SEEDS
        ]

    def search_specs(self) -> list[TrialSpec]:
        return [self._spec(SEARCH_HORIZON, seed, None) for seed in SEARCH_SEEDS]

    def _spec(self, horizon: int, seed: int, problem_seed: int | None) -> TrialSpec:
        return TrialSpec(
            problem=self.problem,
            policy=self.policy,
            policy_parameters=self.settings,
            horizon=horizon,
            seed=seed,
            problem_seed=problem_seed,
        )


def key(spec: TrialSpec) -> str:
    where = "one world" if spec.problem_seed is not None else "ten worlds"
    return f"{spec.problem} {spec.policy} {canonical(dict(spec.policy_parameters))} {where}"


def run(specs: Iterable[TrialSpec], jobs: int) -> tuple[dict[str, list[Trial]], float]:
    """The trials by key, in order of seeds, and the processor time that they took."""
    unique = {f"{key(spec)} {spec.seed}": spec for spec in specs}
    trials: dict[str, dict[int, Trial]] = defaultdict(dict)
    seconds = 0.0
    for done, result in enumerate(LocalProcesses(jobs).run(unique.values()), start=1):
        if result.trial is None:
            raise RuntimeError(result.error)
        trials[key(result.spec)][result.spec.seed] = result.trial
        seconds += result.cpu_seconds
        if sys.stderr.isatty():
            print(f"\r{done}/{len(unique)} trials", end="", file=sys.stderr)
    ordered = {
        name: [by_seed[seed] for seed in sorted(by_seed)] for name, by_seed in trials.items()
    }
    return ordered, seconds


def grid(problem: str) -> list[Line]:
    discounted = [Line(problem, "d-ucb", {"discount": d}, "best of the grid") for d in DISCOUNTS]
    return discounted + [
        Line(problem, "sw-ucb", {"window": w}, "best of the grid") for w in WINDOWS
    ]


def best_of_grids(jobs: int) -> tuple[list[Line], float]:
    lines = [line for problem in PUBLISHED for line in grid(problem)]
    trials, seconds = run((spec for line in lines for spec in line.search_specs()), jobs)
    best: dict[tuple[str, str], tuple[float, Line]] = {}
    for line in lines:
        reward = float(
            np.mean([trial.rewards.sum() for trial in trials[key(line.search_specs()[0])]])
        )
        group = (line.problem, line.policy)
        if group not in best or reward > best[group][0]:
            best[group] = (reward, line)
    return [line for _, line in best.values()], seconds


def with_published(chosen: list[Line]) -> list[Line]:
    """Each best setting, followed by that of the published code where it is another one."""
    lines = []
    for line in chosen:
        discount, window = PUBLISHED[line.problem]
        published: Settings = (
            {"discount": discount} if line.policy == "d-ucb" else {"window": window}
        )
        lines.append(line)
        if published != line.settings:
            lines.append(Line(line.problem, line.policy, published, "published code"))
    return lines


def linear_lines() -> list[Line]:
    lines = []
    for problem in LINEAR:
        world = build_problem(problem, seed=0)
        assert isinstance(world, HasVariationBudget)
        budget, dim = world.variation_budget(HORIZON), shape_of(world).arm_dim
        discount = optimal_discount(budget=budget, horizon=HORIZON, dim=dim)
        window = optimal_window(budget=budget, horizon=HORIZON, dim=dim)
        slip: Settings = {"discount": discount, "variant": "reference-code"}
        lines += [
            Line(problem, "d-lin-ucb", {"discount": discount}, "variation budget"),
            Line(problem, "d-lin-ucb", slip, "variation budget"),
            Line(problem, "sw-lin-ucb", {"window": window}, "variation budget"),
        ]
    faster: Settings = {"discount": 0.5}
    lines.insert(5, Line("rotating-vector-32", "d-lin-ucb", faster, "for comparison"))
    return lines


def spread(trials: list[Trial]) -> tuple[float, float]:
    finals = np.array([trial.regret[-1] for trial in trials])
    return float(finals.mean()), float(finals.std(ddof=1))


def table(lines: list[Line], trials: dict[str, list[Trial]]) -> str:
    text = [
        "| problem | policy | setting | from | ten worlds | one world | paper | off | off by "
        "worlds |",
        "|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        worlds, one = (spread(trials[key(line.specs()[i])]) for i in (0, -1))
        setting = ", ".join(
            f"{k} {v:.5g}" if not isinstance(v, str) else v for k, v in line.settings.items()
        )
        difference = worlds[0] - line.paper.mean
        cells = [
            f"`{line.problem}`",
            f"`{line.policy}`",
            setting,
            line.origin,
            *(f"{mean:.1f} ± {std:.1f}" for mean, std in (worlds, one)),
            f"{line.paper.mean:.1f} ± {line.paper.std:.1f}",
            *(emphasised(difference / std) for std in (line.paper.std, worlds[1])),
        ]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def emphasised(off: float) -> str:
    return f"**{off:+.1f}**" if abs(off) > 2 else f"{off:+.1f}"


def provenance(seconds: float) -> str:
    versions = (
        f"tidepull {tidepull.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"numba {numba.__version__}, Python {platform.python_version()}"
    )
    return (
        f"`python -m research.benchmarks.conventional_rows --write`: seeds {SEEDS[0]} to "
        f"{SEEDS[-1]}, search on seeds "
        f"{SEARCH_SEEDS[0]} to {SEARCH_SEEDS[-1]}; {versions}; {platform.system()} on "
        f"{platform.machine()} "
        f"({processor()}), {seconds:.0f} s of processor time."
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [
        ln.split(":", 1)[1].strip()
        for ln in info.read_text().splitlines()
        if ln.startswith("model name")
    ]
    return names[0] if names else platform.processor()


def write(text: str) -> None:
    page = PAGE.read_text()
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n{text}\n{after}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    best, search_seconds = best_of_grids(options.jobs)
    plain, linear = with_published(best), linear_lines()
    trials, seconds = run((spec for line in plain + linear for spec in line.specs()), options.jobs)
    made = provenance(search_seconds + seconds)
    text = f"{made}\n\n{table(plain, trials)}\n\n{table(linear, trials)}"
    print(text)
    if options.write:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
