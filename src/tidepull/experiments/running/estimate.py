"""How long trials will take, from those already measured; unknown until something like them was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tidepull.experiments.suites.spec import TrialSpec, canonical

TrialKind: TypeAlias = tuple[str, int, str, str]
"""Policy, horizon, problem, parameters: trials of one kind take about the same time."""


def kind_of(spec: TrialSpec) -> TrialKind:
    """The kind of a trial to come."""
    policy, problem = spec.resolved_parameters
    return spec.policy, spec.horizon, spec.problem, f"[{policy},{problem}]"


def kind_of_stored(content: Mapping[str, Any]) -> TrialKind:
    """The kind of a stored trial, from its spec's content."""
    parameters = canonical([content["policy_parameters"], content["problem_parameters"]])
    return content["policy"], content["horizon"], content["problem"], parameters


class Estimator:
    """Mean seconds of each kind; of the same policy, horizon and problem, or policy and horizon, when new."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], tuple[int, float]] = {}
        self._left: Counter[TrialKind] = Counter()

    def expect(self, specs: Iterable[TrialSpec]) -> None:
        """Take note of trials to come."""
        self._left.update(kind_of(spec) for spec in specs)

    def measured(self, kind: TrialKind, seconds: float) -> None:
        """Learn from a finished trial."""
        for prefix in (kind, kind[:3], kind[:2]):
            count, total = self._totals.get(prefix, (0, 0.0))
            self._totals[prefix] = (count + 1, total + seconds)

    def finished(self, kind: TrialKind) -> None:
        """One fewer to come."""
        self._left[kind] -= 1

    def seconds_left(self) -> tuple[float, int]:
        """Seconds of one worker for all trials to come, and how many more there are of unknown length."""
        seconds, unknown = 0.0, 0
        for kind, count in self._left.items():
            known = next((self._totals[p] for p in (kind, kind[:3], kind[:2]) if p in self._totals), None)
            if known is None:
                unknown += count
            else:
                seconds += count * known[1] / known[0]
        return seconds, unknown
