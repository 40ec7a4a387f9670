"""Search spaces: the ranges that the suites' grids declare, searched between their candidates.

[0.001, 0.01, 0.1]      numbers from 0.001 to 0.1, on a logarithmic scale
[0.8, 0.9, ..., 0.999]  1 - x on a logarithmic scale: what matters of a discount is its distance from 1
[16, 64]                whole numbers from 16 to 64
[[16, 16], [32, 32]]    one of these
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from tidepull.bench.suite import find_suite, own_suites
from tidepull.errors import ParameterError

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


def declared_ranges(policy: str, problem: str, suite: str | None = None) -> tuple[Range, ...]:
    """The grid of a policy for a problem, from one suite or from those that come with tidepull."""
    files = [find_suite(suite)] if suite else sorted(own_suites().glob("paper-grid-*.toml"))
    found: Mapping[str, Sequence[Any]] = {}
    for file in files:
        table = tomllib.loads(file.read_text())
        here = any(fnmatchcase(problem, str(p.get("name", p["id"]))) for p in table["problems"])
        for entry in table["policies"]:
            if entry.get("id", entry["name"]) == policy and entry.get("grid") and (here or not found):
                found = entry["grid"]
    return tuple(Range(name, tuple(candidates)) for name, candidates in found.items())


def ranges_from_text(texts: Sequence[str]) -> tuple[Range, ...]:
    """Ranges given by hand: `window=5,300` or `exploration="boltzmann","epsilon-greedy"`."""
    ranges = []
    for text in texts:
        name, equals, values = text.partition("=")
        try:
            candidates = tomllib.loads(f"x = [{values}]")["x"]
        except tomllib.TOMLDecodeError:
            candidates = []
        if not equals or len(candidates) < 2:
            raise ParameterError(f"--range {text}: write name=lowest,highest or name=a,b,c")
        ranges.append(Range(name.strip(), tuple(candidates)))
    return tuple(ranges)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _key(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
