"""The paper's own numbers, as data: table of average regrets, default hyperparameters, horizons.

Every figure is copied from the paper ("±" is the standard deviation over ten trials) and is always
shown beside ours with the label "paper". `reported` says where the table has a figure for what was
run here, `standard_errors` how far apart the two are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tidepull.experiments.delay import AT_ONCE
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.stats import summarise


@dataclass(frozen=True, slots=True)
class Reported:
    """Mean and standard deviation of final regret over ten trials."""

    mean: float
    std: float


COLUMNS: Final = (
    "nlps-best",
    "rnlps-best",
    "nlps-default",
    "rnlps-default",
    "discounted",
    "windowed",
)
"""Best NN, Best RNN, Default NN, Default RNN, D-(Lin)UCB, SW-(Lin)UCB."""

_ROWS: dict[str, list[tuple[float, float] | None]] = {
    "flipping-gaussian": [
        (719.35, 93.54), (254.59, 68.43), (643.38, 34.5), (357.58, 88.46), (1381.3, 13.32), (1327.27, 15.55),
    ],
    "flipping-bernoulli": [
        (1267.9, 180.28), (1251.9, 313.97), (1151, 196.4), (1308.5, 180.01), (1199.9, 34.91), (1220.6, 16.19),
    ],
    "sinusoidal-bernoulli": [
        (1344.94, 182.95), (643.94, 138.29), (1003.24, 58.46), (643.94, 138.29), (935.24, 30.61), (1154.64, 36.94),
    ],
    "circular-markov-chain": [
        (2151.97, 758.29), (895.23, 188.75), (2151.97, 758.29), (2001.57, 1360.54), (3005.1, 372.93), (3154.96, 16.97),
    ],
    "flipping-digits": [(3372.38, 182.87), (3014.88, 41.88), (3334.48, 66.88), (3314.28, 64.5), None, None],
    "wall-following": [(2791.47, 311.13), (2383.47, 420.15), (2790.07, 360.8), (2348.27, 147.86), None, None],
    "flipping-vector": [
        (1082.86, 155.53), (1052.22, 146.74), (1082.86, 155.53), (1052.22, 146.74), (1073.92, 4.7), (1084.6, 7.74),
    ],
    "rotating-vector-32": [
        (1102.34, 89.45), (473.72, 103.27), (1333.47, 93.68), (482.05, 95.64), (3345.18, 4.82), (1028.9, 1.49),
    ],
    "rotating-vector-2048": [
        (1103.81, 110.36), (910.81, 297.53), (1121.37, 74.59), (1118.18, 413.99), (504.77, 2.03), (31.52, 1),
    ],
}  # fmt: skip

REGRET: Final = MappingProxyType(
    {
        problem: MappingProxyType(
            {
                column: Reported(*cell)
                for column, cell in zip(COLUMNS, cells, strict=True)
                if cell is not None
            }
        )
        for problem, cells in _ROWS.items()
    }
)
"""Problem -> column -> final regret, as printed."""

HORIZONS: Final = MappingProxyType(
    {
        **dict.fromkeys(("flipping-gaussian", "flipping-bernoulli", "sinusoidal-bernoulli"), 4096),
        "circular-markov-chain": 4096,
        "flipping-digits": 4095,
        "wall-following": 5455,
        **dict.fromkeys(("flipping-vector", "rotating-vector-32", "rotating-vector-2048"), 4096),
    }
)
"""Rounds in each trial of the table; hyperparameter search on problems without contexts used
2,048."""

NON_CONTEXTUAL: Final = tuple(HORIZONS)[:4]
CONTEXTUAL: Final = tuple(HORIZONS)[4:]

DEFAULTS: Final[MappingProxyType[tuple[str, str], MappingProxyType[str, Any]]] = MappingProxyType(
    {
        ("nlps", "non-contextual"): MappingProxyType(
            {
                "learning_rate": 0.1, "epochs": 16, "train_every": 32, "noise_std": 0.1, "prior_std": 1.0,
                "units": (32, 32, 32), "order": 1, "sinusoids": 1,
            }
        ),
        ("rnlps", "non-contextual"): MappingProxyType(
            {
                "learning_rate": 0.01, "epochs": 16, "train_every": 32, "noise_std": 0.1, "prior_std": 0.5,
                "units": (32, 32, 32),
            }
        ),
        ("nlps", "contextual"): MappingProxyType(
            {
                "learning_rate": 0.01, "epochs": 64, "train_every": 32, "noise_std": 0.1, "prior_std": 1.0,
                "units": (32, 32, 32), "order": 1, "sinusoids": 2,
            }
        ),
        ("rnlps", "contextual"): MappingProxyType(
            {
                "learning_rate": 0.001, "epochs": 64, "train_every": 32, "noise_std": 0.3, "prior_std": 0.5,
                "units": (32, 32, 32),
            }
        ),
    }
)  # fmt: skip
"""(Policy, kind of problem) -> the paper's default hyperparameters; its "variances" are standard
deviations."""

GRIDS: Final[MappingProxyType[tuple[str, str], MappingProxyType[str, Any]]] = MappingProxyType(
    {
        (policy, kind): MappingProxyType(
            {
                "learning_rate": (0.001, 0.01, 0.1), "epochs": (16, 64), "train_every": (32, 128),
                "noise_std": (0.1, 0.3), "prior_std": (0.5, 1.0), "units": units,
                **({"order": (1, 4), "sinusoids": sinusoids} if policy == "nlps" else {}),
            }
        )
        for policy in ("nlps", "rnlps")
        for kind, units, sinusoids in (
            ("non-contextual", ((16, 16, 16), (32, 32, 32)), (1, 2, 4)),
            ("contextual", ((32, 32, 32), (64, 64, 64)), (2, 4, 8)),
        )
    }
)  # fmt: skip
"""(Policy, kind of problem) -> the candidates of the search: 576 settings of NN, 96 of RNN."""

DISCOUNTS: Final = (0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)
WINDOWS: Final = (5, 10, 25, 50, 75, 100, 150, 200, 250, 300)
EPSILONS: Final = (0.01, 0.03, 0.05, 0.1)
TEMPERATURES: Final = (0.001, 0.005, 0.01, 0.05)
"""Candidates of D-UCB, SW-UCB, and of the two other kinds of exploration."""

SEARCH_TRIALS: Final = 5
SEARCH_HORIZON: Final = 2048
TRIALS: Final = 10
"""Trials of each setting in the search, their rounds without contexts, and trials of the table."""


def figure(problem: str, column: str) -> Reported | None:
    """One cell of the table; None where the paper has none."""
    return REGRET[problem].get(column) if problem in REGRET else None


def paper_column(name: str) -> str | None:
    """The column of the paper's table that a policy's name stands for."""
    if name in COLUMNS:
        return name
    for prefixes, column in (
        (("d-ucb", "d-lin-ucb"), "discounted"),
        (("sw-ucb", "sw-lin-ucb"), "windowed"),
    ):
        if name.removesuffix("-best") in prefixes:
            return column
    return None


def reported(study: Study, name: str) -> Reported | None:
    """The paper's figure, where it has one for the problem, the policy and the horizon; its rewards
    come at once."""
    column = paper_column(name) if study.delay == AT_ONCE else None
    if column is None or HORIZONS.get(study.problem) != study.horizon:
        return None
    return figure(study.problem, column)


def reported_share(study: Study, name: str, random: float | None) -> float:
    """The paper's regret as a share of random's, whose regret grows evenly with the horizon; nan if
    unknown.

    It lets trials of another length be held against the paper's.
    """
    column = paper_column(name) if study.delay == AT_ONCE else None
    theirs = figure(study.problem, column) if column else None
    if theirs is None or not random:
        return float("nan")
    return theirs.mean / (random * HORIZONS[study.problem] / study.horizon)


def standard_errors(ours: Group, theirs: Reported) -> float:
    """(Our mean - the paper's) / the standard error of that difference."""
    mine = summarise(ours.regrets)
    return errors_apart(mine.mean, mine.std, mine.trials, theirs)


def errors_apart(mean: float, std: float, trials: int, theirs: Reported) -> float:
    """The same of a mean and a standard deviation over so many trials; nan for a single one."""
    if trials < 2:
        return float("nan")
    error = math.sqrt(std**2 / trials + theirs.std**2 / TRIALS)
    return (mean - theirs.mean) / error if error > 0 else float("nan")
