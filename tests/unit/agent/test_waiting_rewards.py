"""Rewards that are waited for: no caller's time and no clock that jumps can take them away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.service.houses import House
from tidepull.agent.agent import SETTLED_AT_A_TIME
from tidepull.agent.clock import HELD, PROVED, SteadyTime
from tidepull.agent.commands import SETTLED_AT_ONCE
from tidepull.agent.records import Kind
from tidepull.agent.served import ServedAgent
from tidepull.errors import ExpiredError

HOUR, DAY, YEAR = 3600.0, 86_400.0, 31_536_000.0
WAITS: dict[str, Any] = {
    "arms": ["a", "b"],
    "context": {},
    "policy": "bernoulli-ts",
    "seed": 1,
    "reward_within": HOUR,
    "default_reward": 0.0,
    "training": "manual",
}


class Hands:
    """The hands of a wall clock, and of one that cannot jump."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_782_900_000.0, 0.0

    def go(self, seconds: float, jump: float = 0.0) -> None:
        self.steady += seconds
        self.wall += seconds + jump

    @property
    def time(self) -> SteadyTime:
        return SteadyTime(lambda: self.wall, lambda: self.steady)


def settled(agent: ServedAgent) -> int:
    return sum(record.kind is Kind.DUE for record in agent._commands.ledger.tail(0))


# ---- what callers of a service may say


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.clear["decide"] = house.token("shop", "decide")
    house.stop()
    house.open()
    yield house
    house.close()


@pytest.fixture
def waiting(house: House) -> tuple[House, list[str], str]:
    """A service with sixty decisions that wait, and a token that may decide."""
    house.make(reward_within=HOUR, default_reward=0.0, context={})
    ids = [house.ask("POST", "/v1/agents/shop/choose", {}).json()["id"] for _ in range(60)]
    return house, ids, house.clear["decide"]


def pay_all(house: House, ids: list[str], token: str) -> dict[str, Any]:
    body = {"rewards": [{"id": id, "reward": 1} for id in ids]}
    answer: dict[str, Any] = house.ask("POST", "/v1/agents/shop/rewards", body, token=token).json()
    return answer


@pytest.mark.parametrize("ahead", [YEAR, 60 + HELD, None])
def test_a_token_for_deciding_cannot_put_the_time_ahead(waiting: Any, ahead: float | None) -> None:
    house, ids, token = waiting
    at = "9999-12-30" if ahead is None else time.time() + ahead
    for path, body in (
        ("choose", {"at": at}),
        ("choose/batch", {"decisions": [{"at": at}]}),
        ("reward", {"id": ids[0], "reward": 1, "at": at}),
    ):
        answer = house.ask("POST", f"/v1/agents/shop/{path}", body, token=token)
        assert answer.status_code == 422
        assert "at is" in answer.json()["detail"]
        assert "ahead of the service's clock" in answer.json()["detail"]
    one = house.ask(
        "POST",
        "/v1/agents/shop/rewards",
        {"rewards": [{"id": ids[0], "reward": 1, "at": at}]},
        token=token,
    ).json()
    assert one["rewards"][0]["status"] == 422
    assert pay_all(house, ids, token)["taken"] == 60


def test_a_token_for_deciding_cannot_go_further_back_than_rewards_wait(waiting: Any) -> None:
    house, ids, token = waiting
    for at, status in (
        (time.time() - HOUR - 60, 422),
        (time.time() - HOUR + 60, 200),
        (time.time() + 60, 200),
    ):
        answer = house.ask("POST", "/v1/agents/shop/choose", {"at": at}, token=token)
        assert answer.status_code == status, answer.text
    assert pay_all(house, ids, token)["taken"] == 60


def test_any_past_may_be_said_where_rewards_are_waited_for_without_end(house: House) -> None:
    house.make(context={})
    answer = house.ask(
        "POST", "/v1/agents/shop/choose", {"at": "2020-01-01"}, token=house.clear["decide"]
    )
    assert answer.status_code == 200


def test_an_admin_may_say_any_time_and_nothing_is_settled_by_it(waiting: Any) -> None:
    house, ids, token = waiting
    for at in ("9999-12-30", "2020-01-01"):
        for _ in range(3):
            assert house.ask("POST", "/v1/agents/shop/choose", {"at": at}).status_code == 200
    assert pay_all(house, ids, token)["taken"] == 60


# ---- clocks that jump


@pytest.mark.parametrize("jump", [YEAR, 2 * HOUR, -DAY])
def test_a_clock_that_jumps_for_a_moment_changes_nothing(jump: float) -> None:
    hands = Hands()
    agent = ServedAgent.memory(**WAITS, now=hands.time)
    ids = [agent.choose().id for _ in range(70)]
    hands.go(1, jump)
    for _ in range(3):
        agent.choose()
    hands.go(1, -jump)
    agent.choose()
    assert settled(agent) == 0
    assert all(agent.reward(id, 1.0) for id in ids)
    assert "and is held" in agent.explain().changes[-1]


@pytest.mark.parametrize("jump", [YEAR, 2 * HOUR, -DAY])
def test_a_clock_that_jumps_for_good_moves_the_time_of_what_waits_with_it(jump: float) -> None:
    hands = Hands()
    agent = ServedAgent.memory(**WAITS, now=hands.time)
    first, second = agent.choose(), agent.choose()
    hands.go(60, jump)
    agent.choose()
    hands.go(PROVED + 1)
    third = agent.choose()
    assert third.timestamp - first.timestamp == pytest.approx(661 + jump)
    assert settled(agent) == 0
    hands.go(HOUR - 700)
    assert agent.reward(first.id, 1.0)
    hands.go(100)
    agent.choose()
    assert settled(agent) >= 1
    with pytest.raises(ExpiredError):
        agent.reward(second.id, 1.0)
    assert agent.reward(third.id, 1.0)


def test_a_jump_still_counts_after_a_restart(tmp_path: Path) -> None:
    hands = Hands()
    with ServedAgent(tmp_path / "a.db", **WAITS, now=hands.time) as agent:
        first = agent.choose()
        hands.go(60, YEAR)
        agent.choose()
        hands.go(PROVED + 1)
        agent.choose()
    hands.go(60)
    with ServedAgent(tmp_path / "a.db", now=hands.time, training="manual") as agent:
        agent.choose()
        assert settled(agent) == 0
        assert agent.reward(first.id, 1.0)
        assert agent.check().sound


def test_agents_in_a_database_go_by_its_clock(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedAgent(database, **WAITS) as agent:
        ids = [agent.choose().id for _ in range(20)]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 2 * HOUR)
    with ServedAgent(database, training="manual") as agent:
        assert abs(agent.choose().timestamp - real()) < 60
        assert all(agent.reward(id, 1.0) for id in ids)


# ---- many at once


def test_many_that_fall_due_at_once_are_settled_a_few_at_a_time() -> None:
    now = [1_782_900_000.0]
    agent = ServedAgent.memory(**WAITS, now=lambda: now[0])
    for _ in range(100):
        agent.choose()
    now[0] += HOUR + 1
    agent.choose()
    assert settled(agent) == SETTLED_AT_ONCE
    last = agent.choose()
    assert settled(agent) == 2 * SETTLED_AT_ONCE
    assert agent.slice()
    assert settled(agent) == 2 * SETTLED_AT_ONCE + SETTLED_AT_A_TIME
    while agent.slice():
        pass
    assert settled(agent) == 100
    assert agent.reward(last.id, 1.0)
    assert agent.state().rewards == 101


def test_work_in_the_background_goes_by_the_time_that_the_program_says() -> None:
    agent = ServedAgent.memory(**{**WAITS, "training": "inline", "on_duplicate": "replace"})
    start = 1_500_000_000.0
    ids = [agent.choose(at=start + n).id for n in range(30)]
    assert all(agent.reward(id, 1.0, at=start + 60) for id in ids)
    more = [agent.choose(at=start + 100 + n).id for n in range(30)]
    agent.choose(at=start + HOUR + 114.5)
    assert settled(agent) == 45
    assert agent.reward(more[-1], 1.0, at=start + HOUR + 115)


@pytest.mark.parametrize("again", ["refuse", "add"])
def test_what_is_learnt_is_the_same_however_many_are_settled_at_a_time(again: Any) -> None:
    arms = []
    for upkeep in ("inline", "manual"):
        agent = ServedAgent.memory(**{**WAITS, "training": upkeep, "on_duplicate": again})
        for n in range(40):
            decision = agent.choose(at=1e9 + n)
            if n % 6 == 0:  # too few to learn their delay
                agent.reward(decision.id, 1.0, at=1e9 + n)
        agent.choose(at=2e9)
        while agent.slice():
            pass
        arms.append([agent.choose(at=2e9 + 1 + n).arm for n in range(60)])
    assert arms[0] == arms[1]
