"""A suite that a program writes is the suite that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.experiments.suite import parse_suite, suite_text

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
ucbs = st.fixed_dictionaries({"id": st.just("d-ucb")}, optional={
    "parameters": st.fixed_dictionaries({}, optional={"discount": st.floats(0.01, 0.99), "exploration": st.none()}),
})  # fmt: skip
worlds = st.fixed_dictionaries(
    {"id": st.sampled_from(["flipping-gaussian", "stationary-bernoulli"])},
    optional={
        "horizon": st.integers(1, 10**6),
        "delay": st.sampled_from(["3", "geometric:20:0.05"]),
    },
)


@QUICK
@given(
    names,
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30),
    st.sets(st.integers(0, 500), min_size=1, max_size=6),
    st.dictionaries(names, ucbs, min_size=1, max_size=3),
    st.dictionaries(names, worlds, min_size=1, max_size=2),
    st.none() | st.integers(0, 99),
)
def test_suite_comes_back_from_its_text(
    name: str,
    description: str,
    seeds: set[int],
    policies: dict[str, dict[str, Any]],
    problems: dict[str, dict[str, Any]],
    problem_seed: int | None,
) -> None:
    text = suite_text(
        name,
        description,
        seeds=sorted(seeds),
        problems=[{"name": key, **table} for key, table in problems.items()],
        policies=[{"name": key, **table} for key, table in policies.items()],
        problem_seed=problem_seed,
    )
    suite = parse_suite(text, where="here.toml", folder=Path())
    assert (suite.name, suite.description) == (name, description)
    asked = {
        (problem, policy, seed) for problem in problems for policy in policies for seed in seeds
    }
    assert {(spec.problem_name, spec.name, spec.seed) for spec in suite.specs} == asked
    for spec in suite.specs:
        world, learner = problems[spec.problem_name], policies[spec.name]
        assert spec.problem == world["id"]
        assert spec.horizon == world.get("horizon", 4096)
        assert spec.delay_text == world.get("delay", "0")
        assert spec.problem_seed == problem_seed
        given_parameters = {k: v for k, v in learner.get("parameters", {}).items() if v is not None}
        assert dict(spec.policy_parameters) == given_parameters
    assert len({spec.id for spec in suite.specs}) == len(suite.specs)
