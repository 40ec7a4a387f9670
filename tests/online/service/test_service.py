"""The service's main road: agents are made, decide, learn, explain, and are there again after a restart."""

from __future__ import annotations

import asyncio
import time

import httpx

from tests.online.service.houses import House
from tidepull.online.agent import Agent


def choose(house: House, n: int, **more: object) -> httpx.Response:
    body = {"context": {"device": "phone", "age": 20 + n}, "id": f"visit {n}", **more}
    return house.ask("POST", "/v1/agents/shop/choose", body)


def test_service_decides_and_learns_as_the_agent_does(shop: House) -> None:
    twin = Agent.memory(
        arms=["blue", "green", "red"],
        context={"device": ["phone", "desktop"], "age": float},
        policy="bernoulli-ts",
        seed=7,
        upkeep="manual",
    )
    for n in range(30):
        at = 1_782_900_000.0 + 60 * n
        made = choose(shop, n, at=at).json()
        same = twin.choose({"device": "phone", "age": 20 + n}, id=f"visit {n}", at=at)
        assert made == {
            "id": same.id,
            "arm": same.arm,
            "propensity": same.propensity,
            "group": same.group,
            "at": at,
        }
        paid = shop.ask("POST", "/v1/agents/shop/reward", {"id": made["id"], "reward": n % 2, "at": at})
        assert paid.json() == {"id": made["id"], "news": True}
        twin.reward(same.id, n % 2, at=at)
    assert shop.ask("GET", "/v1/agents/shop/explain").json()["words"] == str(twin.explain())


def test_decision_is_on_disk_when_its_answer_leaves(shop: House) -> None:
    made = choose(shop, 0).json()
    with Agent(shop.root / "shop.db", read_only=True) as reader:
        assert [row["id"] for row in reader.history("rows")] == ["visit 0"]
        assert reader.history("rows")[0]["arm"] == made["arm"]


def test_same_key_gives_the_same_decision_and_another_body_conflicts(shop: House) -> None:
    first = choose(shop, 3)
    assert choose(shop, 3).json() == first.json()
    other = choose(shop, 3, subject="somebody")
    assert other.status_code == 409
    assert "another subject" in other.json()["detail"]
    by_header = shop.ask(
        "POST",
        "/v1/agents/shop/choose",
        {"context": {"age": 23, "device": "phone"}},
        headers={"idempotency-key": "visit 3"},
    )
    assert by_header.json() == first.json()
    assert shop.ask("GET", "/v1/agents/shop").json()["decisions"] == 1


def test_requests_of_one_turn_share_one_commit(shop: House) -> None:
    async def together() -> list[httpx.Response]:
        body = {"context": {"age": 1}}
        return await asyncio.gather(*(shop.asked("POST", "/v1/agents/shop/choose", body) for _ in range(16)))

    before = shop.service.metrics.registry.get_sample_value("tidepull_commit_seconds_count")
    answers = shop.run(together())
    assert len({answer.json()["id"] for answer in answers}) == 16
    after = shop.service.metrics.registry.get_sample_value("tidepull_commit_seconds_count")
    assert before is not None
    assert after is not None
    assert after - before <= 3


def test_batch_is_all_or_nothing(shop: House) -> None:
    good = {"decisions": [{"context": {"age": n}} for n in range(5)]}
    assert len(shop.ask("POST", "/v1/agents/shop/choose/batch", good).json()["decisions"]) == 5
    bad = {"decisions": [{"context": {"age": 1}}, {"context": {"shoe": 1}}]}
    answer = shop.ask("POST", "/v1/agents/shop/choose/batch", bad)
    assert answer.status_code == 422
    assert "decisions[1]" in answer.json()["detail"]
    assert shop.ask("GET", "/v1/agents/shop/state").json()["decisions"] == 5


def test_rewards_of_a_batch_are_taken_one_by_one(shop: House) -> None:
    made = choose(shop, 0).json()
    body = {"rewards": [{"id": made["id"], "reward": 1}, {"id": "nobody", "reward": 1}]}
    answer = shop.ask("POST", "/v1/agents/shop/rewards", body).json()
    assert (answer["taken"], answer["refused"]) == (1, 1)
    assert [one["status"] for one in answer["rewards"]] == [200, 404]


def test_restart_goes_on_where_it_stopped(shop: House) -> None:
    made = [choose(shop, n).json() for n in range(5)]
    shop.stop()
    shop.open()
    assert [choose(shop, n).json() for n in range(5)] == made
    state = shop.ask("GET", "/v1/agents/shop").json()
    assert state["decisions"] == 5
    assert state["saved"] > 0


def test_agent_that_nobody_asks_is_closed_and_opened_again(shop: House) -> None:
    choose(shop, 0)
    assert shop.ask("GET", "/v1/agents").json() == {"agents": [{"name": "shop", "open": True}]}
    time.sleep(0.01)
    shop.run(shop.service.hosting.close_idle(0.001))
    assert shop.ask("GET", "/v1/agents").json() == {"agents": [{"name": "shop", "open": False}]}
    assert choose(shop, 1).status_code == 200


def test_arms_freeze_and_rollback_do_what_they_say(shop: House) -> None:
    made = choose(shop, 0).json()
    arms = shop.ask("POST", "/v1/agents/shop/arms", {"op": "add", "label": "pink"}).json()["arms"]
    assert [arm["label"] for arm in arms] == ["blue", "green", "red", "pink"]
    assert shop.ask("POST", "/v1/agents/shop/freeze").json() == {"frozen": True}
    assert shop.ask("POST", "/v1/agents/shop/unfreeze").json() == {"frozen": False}
    assert shop.ask("POST", "/v1/agents/shop/rollback", {"to": made["id"]}).status_code == 200
    assert shop.ask("DELETE", "/v1/agents/shop").json() == {"name": "shop"}
    assert shop.ask("GET", "/v1/agents/shop").status_code == 404
    shop.make()
    actions = [entry["operation"] for entry in shop.lines("audit.jsonl")]
    assert actions == [
        "create_agent",
        "change_arms",
        "freeze",
        "unfreeze",
        "rollback",
        "delete_agent",
        "create_agent",
    ]
