"""An agent for asyncio: the loop goes on while a call waits, and calls keep their order."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tidepull
from tidepull.errors import DecisionError


def _agent(**settings: Any) -> tidepull.Agent:
    return tidepull.Agent.memory(
        arms=["a", "b"], context={}, policy="bernoulli-ts", seed=0, **settings
    )


def test_loop_runs_while_a_call_of_the_agent_waits() -> None:
    def slow_clock() -> float:
        time.sleep(0.3)
        return 1.8e9

    async def ticks() -> int:
        async with tidepull.AsyncAgent(_agent(now=slow_clock)) as agent:
            choice, count = asyncio.ensure_future(agent.choose()), 0
            while not choice.done():
                await asyncio.sleep(0.005)
                count += 1
            assert (await choice).arm in ("a", "b")
            return count

    assert asyncio.run(ticks()) >= 10


def test_thread_of_the_agent_gives_way_to_the_loop_after_a_millisecond() -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        tidepull.AsyncAgent(_agent())
        assert sys.getswitchinterval() == pytest.approx(0.001)
        sys.setswitchinterval(0.0005)
        tidepull.AsyncAgent(_agent())
        assert sys.getswitchinterval() == pytest.approx(0.0005)
    finally:
        sys.setswitchinterval(before)


def test_calls_made_together_are_decided_in_their_order_as_by_the_agent_itself() -> None:
    async def together() -> list[str]:
        async with tidepull.AsyncAgent(_agent()) as agent:
            made = await asyncio.gather(*(agent.choose(id=f"visit {n}") for n in range(20)))
            assert await agent.reward(made[3].id, 1.0)
            assert not await agent.reward(made[3], 1.0)
            return [one.arm for one in made]

    with _agent() as plain:
        assert asyncio.run(together()) == [plain.choose(id=f"visit {n}").arm for n in range(20)]


def test_other_methods_batches_and_errors_reach_the_caller() -> None:
    async def use() -> None:
        agent = _agent()
        async with tidepull.AsyncAgent(agent) as shop:
            await shop.call(agent.add, "c")
            assert await shop.call(lambda: agent.arms) == ["a", "b", "c"]
            assert len(await shop.choose_many([None, None])) == 2
            with pytest.raises(DecisionError):
                await shop.reward("no such decision", 1.0)

    asyncio.run(use())


def test_closing_lets_another_agent_open_the_file(tmp_path: Path) -> None:
    async def visit() -> str:
        agent = tidepull.Agent(
            tmp_path / "shop.db", arms=["a", "b"], context={}, policy="bernoulli-ts"
        )
        async with tidepull.AsyncAgent(agent) as shop:
            return (await shop.choose()).id

    first, second = asyncio.run(visit()), asyncio.run(visit())
    with tidepull.Agent(tmp_path / "shop.db") as agent:
        assert [row["id"] for row in agent.history("rows")] == [first, second]
