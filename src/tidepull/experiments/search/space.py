"""Search spaces: the ranges that the suites' grids declare, searched between their candidates.

[0.001, 0.01, 0.1]      numbers from 0.001 to 0.1, on a logarithmic scale
[0.8, 0.9, ..., 0.999]  1 - x on a logarithmic scale: what matters of a discount is its distance from 1
[16, 64]                whole numbers from 16 to 64
[[16, 16], [32, 32]]    one of these
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tidepull.errors import ParameterError, SuiteError
from tidepull.experiments.suites.suite import find_suite, own_suites, read_table

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
            return self.candidates[trial.suggest_categorical(self.name, list(range(len(self.candidates))))]
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
        grids = [entry for entry in table.policies if (entry.id or entry.name) == policy and entry.grid]
        named = [entry for entry in grids if entry.name == policy] or grids
        if len(named) > 1:
            names = ", ".join(entry.name for entry in named)
            raise SuiteError(f"{file} has several grids for {policy} ({names}): give ranges with --range")
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
