"""Absurd numbers for every parameter of every id: one sentence, before anything is built."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import tidepull
from tidepull.errors import ParameterError
from tidepull.policies import policies
from tidepull.problems import problems


def _leaves(hint: Any) -> set[Any]:
    inner = get_args(hint)
    return set().union(*map(_leaves, inner)) if inner else {hint}


def _shaped(entry: Any, name: str, value: float) -> Any:
    """A tuple of as many numbers as the parameter wants, or the number itself."""
    hint = get_type_hints(entry.parameters)[name]
    wanted = [option for option in (hint, *get_args(hint)) if get_origin(option) is tuple]
    if not wanted:
        return value
    inner = get_args(wanted[0])
    return [value] * (1 if Ellipsis in inner else len(inner))


ENTRIES: list[Any] = [*problems, *policies]
NUMBERS = [
    (entry, field.name)
    for entry in ENTRIES
    for field in fields(entry.parameters)
    if {int, float} & {*_leaves(get_type_hints(entry.parameters)[field.name])}
]


@pytest.mark.parametrize(("entry", "name"), NUMBERS, ids=lambda value: getattr(value, "id", value))
@pytest.mark.parametrize("value", [1e300, -1e300, 10**18, pytest.param(10**9000, id="huge")])
def test_number_beyond_all_measure_is_refused_by_name(entry: Any, name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"^{entry.id}: {name} must be"):
        entry.parse({name: _shaped(entry, name, value)})


@pytest.mark.parametrize(
    ("problem", "policy"),
    [
        ("flipping-bernoulli", ("rnlps", {"prior_std": 1e15})),
        ("flipping-bernoulli", ("rnlps", {"prior_std": 1e-100})),
        ("flipping-bernoulli", ("nlps", {"noise_std": 1e-100})),
        ("flipping-bernoulli", ("ucb", {"reward_range": 1e15, "xi": 1e15})),
        ("flipping-bernoulli", ("sw-ucb", {"window": 10**15})),
        ("flipping-vector", ("lin-ts", {"exploration": 1e15, "regularisation": 1e-100})),
        ("flipping-vector", ("sw-lin-ucb", {"window": 10**15, "feature_bound": 1e15})),
    ],
)
def test_largest_and_smallest_numbers_that_are_allowed_can_be_played(
    problem: str, policy: Any
) -> None:
    assert len(tidepull.run_trial(problem, policy, horizon=70).arms) == 70


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (("circular-markov-chain", {"n_arms": 10**6}), "1,000,000 arms would need 8 TB of memory"),
        (
            ("stationary-vector", {"pool_size": 10**9, "dim": 10**6}),
            "1,000,000,000 vectors of length 1,000,000 would need 24 PB",
        ),
    ],
)
def test_world_that_does_not_fit_is_refused_before_it_is_built(problem: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        tidepull.run_trial(problem, "random", horizon=1)
