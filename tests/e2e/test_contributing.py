"""The checklists of CONTRIBUTING.md can be followed: their files are there, their code runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidepull
from tidepull.logs.formats import LoggedDecision, NotARowError, flatten
from tidepull.policies.exploration import any_arm, best_arm
from tidepull.problems import problems
from tidepull.state import Stateful

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}
NAMES = {
    **vars(tidepull.types),
    "dataclass": dataclass,
    "parameter": tidepull.parameter,
    "Parameters": tidepull.Parameters,
    "Stateful": Stateful,
    "Streams": tidepull.Streams,
    "any_arm": any_arm,
    "best_arm": best_arm,
    "np": np,
    "Any": Any,
    "LoggedDecision": LoggedDecision,
    "NotARowError": NotARowError,
    "flatten": flatten,
}
"""What the page says is imported from where."""


def code(section: str) -> dict[str, Any]:
    """The names that the code of a section defines."""
    (block,) = re.findall(r"```python\n(.*?)```", SECTIONS[section], re.S)
    found: dict[str, Any] = {**NAMES, "__name__": __name__}
    exec(compile("from __future__ import annotations\n" + block, section, "exec"), found)
    return found


def paths() -> list[tuple[str, str]]:
    """Every path of the repository with the line that names it, but for those of new files."""
    pattern = r"(?<![\w/.])((?:src|tests|docs|research|manual)/[\w./-]*\w)(?![\w/*])"
    return [(path, line) for line in PAGE.splitlines() for path in re.findall(pattern, line)]


def new_files() -> set[str]:
    """The files that the checklists add."""
    return set(re.findall(r"`([\w./-]+)` \(new\)", PAGE))


def test_every_path_is_there_or_is_added() -> None:
    missing = {path for path, _ in paths() if not (ROOT / path).exists()} - new_files()
    assert not missing
    assert not {path for path in new_files() if (ROOT / path).exists()}


@pytest.mark.parametrize(
    ("section", "root"), [("policy", "tidepull"), ("problem", "tidepull.problems")]
)
def test_row_names_the_module_of_the_new_file(section: str, root: str) -> None:
    text = SECTIONS[f"Add a {section}"]
    row = re.search(r'`\("[\w-]+", "([\w.]+)", "(\w+)", "(\w+)"', text)
    assert row is not None
    file = "src/" + f"{root}.{row[1]}".replace(".", "/") + ".py"
    assert file in new_files()
    assert {row[2], row[3]} <= set(code(f"Add a {section}"))


def test_policy_of_the_page_plays() -> None:
    made = code("Add a policy")
    build = tidepull.Entry("greedy", "greedy", made["GreedyParameters"], made["Greedy"]).build
    policy = build(made["GreedyParameters"](), tidepull.ProblemShape(8), tidepull.Streams(0))
    trial = tidepull.run_trial("flipping-gaussian", policy, horizon=200)
    assert len(set(trial.arms)) == 8


def test_problem_of_the_page_has_the_regret_that_it_says() -> None:
    made = code("Add a problem")
    regret = []
    for seed in range(20):
        problem = made["RisingArms"](made["RisingParameters"](), tidepull.Streams(seed))
        regret.append(tidepull.run_trial(problem, "random", horizon=300, seed=seed).regret[-1])
    assert np.mean(regret) == pytest.approx(problem.random_regret(300), rel=0.1)
    assert "rising-bernoulli" not in problems.ids()


def test_log_format_of_the_page_reads_a_row() -> None:
    made = code("Add a log format")
    record = {"shown": "red", "bought": 1, "when": 5, "chance": 0.5, "visitor": {"age": 31}}
    assert made["is_shop"](record)
    row = made["shop_row"](record)
    assert (row.cells["arm"], row.cells["propensity"], row.context) == ("red", 0.5, {"age": 31})
