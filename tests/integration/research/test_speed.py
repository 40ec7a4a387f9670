"""The speed benchmark compares like with like."""

from __future__ import annotations

import pytest

from research.benchmarks import epoch, rivals
from research.benchmarks.__main__ import markdown
from research.benchmarks.timing import best_of


def test_jax_rival_trains_the_same_network() -> None:
    network, inputs, rewards = epoch.problem(16, rounds=40)
    rival = rivals.jax_epoch(network, inputs, rewards, unroll=1)
    ours = epoch.our_epoch(network, inputs, rewards)
    for _ in range(3):
        error = epoch.mean_squared_error(network, inputs, rewards)
        assert rival() == pytest.approx(error, rel=1e-3)
        ours()


def test_torch_rival_starts_from_the_same_loss() -> None:
    pytest.importorskip("torch", reason="the extra 'torch' is not installed")
    network, inputs, rewards = epoch.problem(16, rounds=40)
    rival = rivals.torch_epoch(network, inputs, rewards)
    assert rival() == pytest.approx(epoch.mean_squared_error(network, inputs, rewards), rel=1e-3)


def test_best_of_times_every_call() -> None:
    calls = []
    best = best_of({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, turns=3)
    assert calls.count("a") == calls.count("b") == 15
    assert set(best) == {"a", "b"}
    assert all(0 <= seconds < 1 for seconds in best.values())


def test_tables_become_markdown() -> None:
    assert markdown(("T", ["a", "b"], [["1", "2"]])) == "**T**\n\n| a | b |\n|---|---|\n| 1 | 2 |"
