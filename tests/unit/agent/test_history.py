"""The history as a data frame: types do not hang on which rows come first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP, START
from tidepull.agent.agent import Agent


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_history_has_the_same_types_whichever_rows_come_first(kind: Any) -> None:
    pytest.importorskip(kind)
    agent = Agent.memory(**SHOP, training="inline")
    for n in range(130):
        decision = agent.choose({"age": 3.0} if n > 110 else {}, at=START + n)
        if n > 120:
            agent.reward(decision.id, 1, at=START + n + 0.25 * (n % 2))
    found = agent.history(kind)
    assert found.shape == (130, 9)
    last: dict[str, Any] = (
        found.to_dict("records")[-1] if kind == "pandas" else found.to_dicts()[-1]
    )
    assert last["reward"] == 1.0
    assert last["context.age"] == 3.0
    assert last["rewarded_at"] == datetime.fromtimestamp(START + 129.25, UTC)
    assert Agent.memory(**SHOP).history(kind).shape[0] == 0
