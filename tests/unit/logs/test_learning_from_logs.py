"""An agent learns from any log that can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.logs import writing
from tidepull import logs
from tidepull.agent.agent import Agent
from tidepull.errors import InputError

FIELDS = {"age": float, "device": ["phone", "tv"]}


def test_decisions_of_a_log_are_its_rows(tmp_path: Path) -> None:
    table = writing.rows()
    table[3]["reward"], table[4]["age"] = None, None
    writing.jsonl(tmp_path / "log.jsonl", table)
    told = list(logs.read(tmp_path / "log.jsonl").decisions())
    assert [row["arm"] for row in told] == [row["arm"] for row in table]
    assert [row.get("reward") for row in told] == [row["reward"] for row in table]
    assert np.allclose([row["at"] for row in told], writing.START + 1800 * np.arange(60))
    assert told[0]["context"] == {"age": table[0]["age"], "device": table[0]["device"]}
    assert told[4]["context"] == {"device": table[4]["device"]}


@pytest.mark.parametrize("format", ["csv", "dsjson"])
def test_a_log_that_was_read_teaches_an_agent_what_its_file_would(
    format: str, tmp_path: Path
) -> None:
    table = writing.rows(200)
    for row in table:
        row["reward"] = float(row["arm"] == "green")
    name, write = writing.FORMATS[format]
    write(tmp_path / name, table)
    writing.nested(tmp_path / "plain.jsonl", table)
    made = [
        Agent.memory(arms=writing.ARMS, context=FIELDS, policy="bernoulli-ts", seed=1)
        for _ in range(2)
    ]
    assert made[0].learn_from(logs.read(tmp_path / name)) == 200
    assert made[1].learn_from(tmp_path / "plain.jsonl") == 200
    later = writing.START + 1e6
    first, second = (
        [agent.choose({"age": 30, "device": "tv"}, at=later + n).arm for n in range(20)]
        for agent in made
    )
    assert first == second
    assert first.count("green") >= 18


def test_learning_from_a_log_refuses_arms_that_the_agent_has_not_got(tmp_path: Path) -> None:
    writing.csv(tmp_path / "log.csv", writing.rows())
    agent = Agent.memory(arms=["blue", "green"], context=FIELDS, policy="bernoulli-ts", seed=1)
    with pytest.raises(InputError, match="red"):
        agent.learn_from(logs.read(tmp_path / "log.csv"))
