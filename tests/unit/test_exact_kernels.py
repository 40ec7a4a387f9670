"""Kernels agree in every bit in Python and compiled, on whatever policies give them."""

from __future__ import annotations

import copy
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tidepull
from tidepull._internal import compiler
from tidepull._internal.kernels import Kernel
from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.posteriors.kernels import solve_columns
from tidepull.types import Context, Event, ProblemShape


def bits(value: Any) -> Any:
    """What two results must have in common."""
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if hasattr(value, "arrays"):
        return bits(value.arrays)
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    return None if value is None else (np.asarray(value).dtype.kind, np.asarray(value).tobytes())


ENOUGH = 12
"""Calls of a kernel that are compared in a test: copies of its arrays take long."""


class Twins:
    """Runs every exact kernel twice, on equal arguments, and counts calls that differ."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        self._inside = False

    def __call__(self, kernel: Kernel, *args: Any) -> Any:
        if self._inside:  # a kernel in Python calls others
            return kernel.py_func(*args)
        with compiler.allowed():
            if not kernel.exact or self.calls[kernel.name] == ENOUGH:
                return kernel.dispatcher(*args)
            plain = (SimpleNamespace(arrays=a.arrays) if hasattr(a, "arrays") else a for a in args)
            twins = copy.deepcopy(tuple(plain))
            result = kernel.dispatcher(*args)
        self._inside = True
        with np.errstate(all="ignore"):
            same = bits(kernel.py_func(*twins)) == bits(result)
        self._inside = False
        self.calls[kernel.name] += 1
        self.different[kernel.name] += not (same and bits(twins) == bits(args))
        return result


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> Twins:
    """Every call of a kernel is made twice."""
    tidepull.warm_up()
    both = Twins()
    monkeypatch.setattr(Kernel, "__call__", lambda kernel, *args: both(kernel, *args))
    return both


def play(learner: Guarded, shape: ProblemShape, binary: bool, rounds: int) -> None:
    rng = np.random.default_rng(1)
    for t in range(rounds):
        observation = rng.normal(size=shape.observation_dim) if shape.observation_dim else None
        rows = rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None
        context = Context(observation, rows, time=1.7e9 + 3e3 * t if t // 2 % 2 else None)
        arm = (
            learner.choose_by(context, 4, lambda shares: int(np.argmax(shares)))
            if t % 2
            else learner.choose(context)
        )
        swing = np.sin(t / 3 + arm) + 0.3 * rng.normal()
        learner.learn(Event(context, arm, float(swing > 0) if binary else float(swing)))
        while learner.upkeep():
            pass


SHAPES = [
    ProblemShape(3),
    ProblemShape(3, observation_dim=2),
    ProblemShape(3, observation_dim=6),
    ProblemShape(3, arm_dim=3),
]


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tide_decides_and_learns_alike(twins: Twins, shape: ProblemShape, binary: bool) -> None:
    play(build_policy("tide", shape, seed=1), shape, binary, 36)
    assert +twins.different == Counter()
    assert twins.calls["tide.models.weights.reweigh"] == ENOUGH
    assert twins.calls["tide.models.structural_kernels.learn_reward"] == ENOUGH


@pytest.mark.parametrize("policy", ["lin-ts", "lin-ucb", "sw-lin-ucb"], ids=str)
def test_linear_policies_decide_and_learn_alike(twins: Twins, policy: Any) -> None:
    play(build_policy(policy, SHAPES[3], seed=1), SHAPES[3], False, 30)
    assert +twins.different == Counter()
    assert twins.calls["posteriors.kernels.add_row"] == ENOUGH


def test_discounted_linear_policy_decides_alike(twins: Twins) -> None:
    play(build_policy("d-lin-ucb", SHAPES[3], seed=1), SHAPES[3], False, 30)
    assert +twins.different == Counter()
    assert twins.calls["posteriors.kernels.solve_columns"] == ENOUGH


def test_columns_are_solved_alike_until_the_kernel_is_compiled() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 7))
    U, B = np.ascontiguousarray(np.linalg.cholesky(X.T @ X).T), rng.normal(size=(7, 4))
    plain, quick = B.copy(), B.copy()
    solve_columns.py_func(U, plain)  # type: ignore[attr-defined]
    solve_columns.until_compiled(U, quick)  # type: ignore[attr-defined]
    assert bits(plain) == bits(quick)
    np.testing.assert_allclose(X.T @ X @ plain, B, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[1]], ids=str)
def test_steps_of_networks_are_alike(twins: Twins, shape: ProblemShape, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    given: dict[str, Any] = {"units": (8, 8, 8), "learning_rate": 0.1, "dtype": dtype, "rng": rng}
    for encoder in (
        RecurrentEncoder(shape, **given),
        FeedforwardEncoder(shape, order=1, sinusoids=3, **given),
    ):
        for n in range(20):
            context = Context(rng.normal(size=2) if shape.observation_dim else None)
            encoder.features(context)
            encoder.append(Event(context, n % 3, float(10 * rng.normal())))
    assert +twins.different == Counter()
    assert twins.calls["encoders.kernels.cell_step"] == ENOUGH
    assert twins.calls["encoders.kernels.dense_step"] == ENOUGH
