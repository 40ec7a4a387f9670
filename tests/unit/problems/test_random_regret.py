from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pytest

from tests.unit.problems.buildable import buildable
from tidepull.problems import build_problem, problems
from tidepull.problems.datasets import WALL_FOLLOWING
from tidepull.problems.streams import ELECTRICITY
from tidepull.protocols import Problem


class KnowsRandomRegret(Problem, Protocol):
    def random_regret(self, horizon: int) -> float: ...


@pytest.mark.parametrize("id", problems.ids())
def test_regret_of_random_arms_equals_the_analytic_value(id: str) -> None:
    data = os.environ.get("TIDEPULL_DATA")
    if id == "wall-following" and not (data and (Path(data) / WALL_FOLLOWING.name).is_file()):
        pytest.skip(f"needs {WALL_FOLLOWING.name} in TIDEPULL_DATA")
    if id == "stream" and not (data and (Path(data) / ELECTRICITY.name).is_file()):
        pytest.skip(f"needs {ELECTRICITY.name} in TIDEPULL_DATA")
    horizon = 2000
    problem = cast(KnowsRandomRegret, build_problem(buildable(id), seed=1))
    expected = problem.random_regret(horizon)
    rng = np.random.default_rng(8)
    gaps = np.empty(horizon)
    for t in range(horizon):
        arm = int(rng.integers(problem.n_arms))
        means = problem.means()
        gaps[t] = means.max() - means[arm]
        problem.step(arm)
    assert abs(gaps.sum() - expected) < 4 * np.sqrt(horizon) * gaps.std()


def test_page_of_problems_describes_every_id_and_shows_its_random_regret() -> None:
    root = Path(__file__).parents[3]
    text = (root / "docs" / "problems.md").read_text()
    made_table = (root / "research" / "lab" / "problems.md").read_text()
    for entry in problems:
        assert f"`{entry.id}`" in text, entry.id
        if entry.id not in ("random-world", "from-log"):  # every number or log is another world
            assert f"| `{entry.id}`" in made_table, entry.id
