"""Searching hyperparameters beyond grids: Optuna proposes, short horizons weed out, the store
remembers.

A bracket asks for `BRACKET` settings and plays them on the shortest horizon; the best third goes on
to a horizon three times as long, and so on (successive halving). Everything is a function of the
search's seed and of trials in the store, so an interrupted search continues by starting over: what
was run is not run again.

The search space is given by the ranges of the suites' grids, searched between their candidates:

    [0.001, 0.01, 0.1]      numbers from 0.001 to 0.1, on a logarithmic scale
    [0.8, 0.9, ..., 0.999]  1 - x on a logarithmic scale: what matters of a discount is its distance from 1
    [16, 64]                whole numbers from 16 to 64
    [[16, 16], [32, 32]]    one of these
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import InputError, ParameterError, SuiteError
from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import setting_text
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.suite import find_suite, own_suites, read_table

WIDE = 10.0
"""Ranges whose ends differ by this factor are searched on a logarithmic scale."""

Scale: TypeAlias = Literal["linear", "log", "one-minus-log", "choice"]


@dataclass(frozen=True, slots=True)
class Range:
    """One parameter's range; `candidates` are as declared."""

    name: str
    candidates: tuple[Any, ...]

    @property
    def scale(self) -> Scale:
        """How values are drawn."""
        if not all(isinstance(c, int | float) and not isinstance(c, bool) for c in self.candidates):
            return "choice"
        low, high = min(self.candidates), max(self.candidates)
        if low == high:
            return "choice"
        if 0 < low < high < 1 and (1 - low) / (1 - high) >= WIDE:
            return "one-minus-log"
        return "log" if low > 0 and high / low >= WIDE else "linear"

    def suggest(self, trial: Any) -> Any:
        """A value for an Optuna trial; floats keep four significant digits."""
        low, high = min(self.candidates, key=_key), max(self.candidates, key=_key)
        if self.scale == "choice":
            # Optuna remembers choices by value, and lists cannot be one.
            places = list(range(len(self.candidates)))
            return self.candidates[trial.suggest_categorical(self.name, places)]
        if all(isinstance(c, int) for c in self.candidates):
            return trial.suggest_int(self.name, low, high, log=self.scale == "log")
        if self.scale == "one-minus-log":
            return 1 - _short(trial.suggest_float(self.name, 1 - high, 1 - low, log=True))
        return _short(trial.suggest_float(self.name, low, high, log=self.scale == "log"))


@dataclass(frozen=True, slots=True)
class Space:
    """What is searched, and the parameters that the suite keeps fixed beside it."""

    ranges: tuple[Range, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)


def declared_space(policy: str, problem: str, suite: str | None = None) -> Space:
    """The grid of a policy for a problem, from one suite or from those that come with tidepull."""
    files = [find_suite(suite)] if suite else sorted(own_suites().glob("paper-grid-*.toml"))
    tables = [(file, read_table(file)) for file in files]
    # A problem that no suite has is searched like the first suite's.
    tables.sort(key=lambda pair: problem not in [p.shown_name for p in pair[1].problems])
    for file, table in tables:
        grids = [one for one in table.policies if (one.id or one.name) == policy and one.grid]
        named = [entry for entry in grids if entry.name == policy] or grids
        if len(named) > 1:
            names = ", ".join(entry.name for entry in named)
            raise SuiteError(
                f"{file} has several grids for {policy} ({names}): give ranges with --range"
            )
        if named:
            ranges = (Range(name, tuple(candidates)) for name, candidates in named[0].grid.items())
            return Space(tuple(ranges), named[0].parameters)
    return Space()


def ranges_from_text(texts: Sequence[str]) -> tuple[Range, ...]:
    """Ranges given by hand: `window=5,300` or `exploration="boltzmann","epsilon-greedy"`."""
    ranges: list[Range] = []
    for text in texts:
        name, equals, values = text.partition("=")
        try:
            candidates = tomllib.loads(f"x = [{values}]")["x"]
        except tomllib.TOMLDecodeError:
            candidates = []
        if not equals or len(candidates) < 2:
            raise ParameterError(f"--range {text}: write name=lowest,highest or name=a,b,c")
        if name.strip() in [known.name for known in ranges]:
            raise ParameterError(f"--range {name.strip()} is given twice; say it once")
        ranges.append(Range(name.strip(), tuple(candidates)))
    return tuple(ranges)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _key(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


BRACKET = 9
REDUCTION = 3
SHORTEST = 64

Run: TypeAlias = Callable[[Sequence[TrialSpec]], Mapping[str, tuple[float, float]]]
"""Runs or remembers specs; from each hash to reward and seconds. A trial that failed is left
out."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """What is searched: a policy's ranges on a problem, beside `fixed` parameters, judged on search
    seeds only."""

    problem: str
    policy: str
    ranges: tuple[Range, ...]
    horizon: int
    seeds: tuple[int, ...]
    seed: int = 0
    problem_parameters: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    delay: str = AT_ONCE

    @property
    def rungs(self) -> tuple[int, ...]:
        """Horizons of a bracket, from short to full."""
        full = [self.horizon // REDUCTION**k for k in (2, 1, 0)]
        return tuple(horizon for horizon in full if horizon >= SHORTEST) or (self.horizon,)

    def specs(self, parameters: Mapping[str, Any], horizon: int) -> list[TrialSpec]:
        """The trials that judge a setting on a rung."""
        return [
            TrialSpec(
                problem=self.problem,
                problem_parameters=self.problem_parameters,
                policy=self.policy,
                policy_parameters=parameters,
                name=f"{self.policy}-search-{horizon}",
                setting=setting_text(parameters),
                horizon=horizon,
                seed=seed,
                delay=self.delay,
                modules=self.modules,
            )
            for seed in self.seeds
        ]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A setting with its mean reward per round on the longest horizon that it reached."""

    parameters: Mapping[str, Any]
    horizon: int
    reward: float


@dataclass(slots=True)
class Outcome:
    """Where a search stands; `seconds` counts a setting that is drawn again, `tried` does not."""

    judged: list[Evaluation] = field(default_factory=list)
    seconds: float = 0.0
    tried: set[str] = field(default_factory=set)
    failed: int = 0

    @property
    def settings(self) -> int:
        """Number of different settings."""
        return len(self.tried)

    @property
    def best(self) -> Evaluation | None:
        """The highest mean reward among the settings that came furthest."""
        return max(self.judged, key=lambda j: (j.horizon, j.reward), default=None)


def search(
    space: SearchTask, run: Run, *, seconds: float, on_bracket: Callable[[Outcome], None]
) -> Outcome:
    """Brackets until the trials have taken `seconds` in all; the last one is cut short."""
    optuna = require_optuna()
    if not space.ranges:
        raise InputError(
            f"no suite declares a grid for {space.policy}: give ranges with --range name=low,high"
        )
    sampler = optuna.samplers.TPESampler(seed=space.seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    outcome = Outcome()
    while outcome.seconds < seconds:
        before, n_settings = outcome.seconds, outcome.settings
        _bracket(study, space, run, outcome, seconds)
        if outcome.settings > n_settings:
            on_bracket(outcome)
        if outcome.seconds == before:
            break
    return outcome


def _bracket(study: Any, space: SearchTask, run: Run, outcome: Outcome, seconds: float) -> None:
    asked = [study.ask() for _ in range(BRACKET)]
    alive = [
        (trial, {**space.fixed, **{r.name: r.suggest(trial) for r in space.ranges}})
        for trial in asked
    ]
    outcome.tried.update(repr(sorted(parameters.items())) for _, parameters in alive)
    for rung, horizon in enumerate(space.rungs):
        specs = {id(trial): space.specs(parameters, horizon) for trial, parameters in alive}
        known = run([spec for group in specs.values() for spec in group])
        outcome.seconds += sum(taken for _, taken in known.values())
        scored = []
        for trial, parameters in alive:
            rewards = [known[spec.hash][0] for spec in specs[id(trial)] if spec.hash in known]
            if len(rewards) < len(space.seeds):
                outcome.failed += 1
                study.tell(trial, state=require_optuna().trial.TrialState.FAIL)
                continue
            reward = float(np.mean(rewards)) / horizon
            trial.report(reward, step=horizon)
            scored.append((reward, trial, parameters))
        scored.sort(key=lambda entry: -entry[0])
        last = rung + 1 == len(space.rungs) or outcome.seconds >= seconds
        n_promoted = 0 if last else max(1, len(scored) // REDUCTION)
        for reward, trial, parameters in scored[n_promoted:]:
            outcome.judged.append(Evaluation(parameters, horizon, reward))
            if horizon == space.horizon:
                study.tell(trial, reward)
            else:
                study.tell(trial, state=require_optuna().trial.TrialState.PRUNED)
        alive = [(trial, parameters) for _, trial, parameters in scored[:n_promoted]]
        if not alive:
            return


def require_optuna() -> Any:
    """Optuna, or the sentence that says how to get it."""
    with needs("tuning", "experiments"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
