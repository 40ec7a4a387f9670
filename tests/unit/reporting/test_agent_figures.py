"""The picture of an agent: colours that can be told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidepull import Agent


def test_picture_of_many_arms_with_a_retired_one_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    agent = Agent.memory(arms=list("abcde"), context={}, policy="bernoulli-ts", seed=1)
    for n in range(200):
        at = 1_782_900_000.0 + 3600 * n
        agent.reward(agent.choose(at=at), float(n % 3 == 0), at=at)
    agent.retire("b")
    agent.plot(tmp_path / "shop.png")
    assert (tmp_path / "shop.png").stat().st_size > 10_000
