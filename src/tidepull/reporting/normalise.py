"""The regret of random arms on a problem: 1 on the scale on which the oracle is 0."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tidepull.errors import TidepullError
from tidepull.problems import build_problem
from tidepull.reporting.frame import Study


@runtime_checkable
class _HasRandomRegret(Protocol):
    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms."""


def random_regret(study: Study) -> float | None:
    """From the trials of `random` when there are any, else the problem's own formula on its first seed; None
    where neither is at hand."""
    for group in study.groups:
        if group.rows[0].policy == "random":
            return float(group.regrets.mean())
    try:
        problem = build_problem(
            (study.problem_id, study.parameters), seed=study.groups[0].rows[0].problem_seed
        )
    except TidepullError:  # its data, or the module that registers it, is not at hand
        return None
    if not isinstance(problem, _HasRandomRegret):
        return None
    return float(problem.random_regret(study.horizon))
