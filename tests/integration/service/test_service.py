"""The service's main road: agents are made, decide, learn, explain, and are there again after a
restart."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.service.houses import House
from tidepull.agent.ledger.sqlite import SqliteLedger
from tidepull.agent.served import ServedAgent
from tidepull.service import hosted, stores


def choose(house: House, n: int, **more: object) -> httpx.Response:
    body = {"context": {"device": "phone", "age": 20 + n}, "id": f"visit {n}", **more}
    return house.ask("POST", "/v1/agents/shop/choose", body)


def test_service_decides_and_learns_as_the_agent_does(shop: House) -> None:
    twin = ServedAgent.memory(
        arms=["blue", "green", "red"],
        context={"device": ["phone", "desktop"], "age": float},
        policy="bernoulli-ts",
        seed=7,
        training="manual",
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
        paid = shop.ask(
            "POST", "/v1/agents/shop/reward", {"id": made["id"], "reward": n % 2, "at": at}
        )
        assert paid.json() == {"id": made["id"], "duplicate": False}
        twin.reward(same.id, n % 2, at=at)
    assert shop.ask("GET", "/v1/agents/shop/explain").json()["words"] == str(twin.explain())


def test_decision_is_on_disk_when_its_answer_leaves(shop: House) -> None:
    made = choose(shop, 0).json()
    with ServedAgent(shop.root / "shop.db", read_only=True) as reader:
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
        return await asyncio.gather(
            *(shop.asked("POST", "/v1/agents/shop/choose", body) for _ in range(16))
        )

    before = shop.service.metrics.registry.get_sample_value("tidepull_commit_seconds_count")
    answers = shop.run(together())
    assert len({answer.json()["id"] for answer in answers}) == 16
    after = shop.service.metrics.registry.get_sample_value("tidepull_commit_seconds_count")
    assert before is not None
    assert after is not None
    assert after - before <= 3


def test_requests_that_arrive_one_after_the_other_share_one_commit(shop: House) -> None:
    async def arriving(after: int) -> httpx.Response:
        for _ in range(after):
            await asyncio.sleep(0)
        return await shop.asked("POST", "/v1/agents/shop/choose", {"context": {"age": 1}})

    async def together() -> list[httpx.Response]:
        return await asyncio.gather(*(arriving(n) for n in range(8)))

    value = shop.service.metrics.registry.get_sample_value
    before = value("tidepull_commit_seconds_count") or 0
    assert [answer.status_code for answer in shop.run(together())] == [200] * 8
    assert (value("tidepull_commit_seconds_count") or 0) - before == 1


def test_decisions_of_one_turn_are_made_or_refused_each_for_itself(shop: House) -> None:
    bodies: list[Any] = [
        {"context": {"age": 1}, "id": "one"},
        {"context": {"agee": 1}, "id": "bad"},
        {"context": {"age": 2}, "id": "two"},
        {"context": {"age": 1}, "id": "one"},
        {"context": {"age": 3}, "arms": ["nobody"]},
        {"context": {"age": 9}, "id": "one"},
        {"context": {"agee": 1}, "id": "bad"},
    ]

    async def together() -> list[httpx.Response]:
        path = "/v1/agents/shop/choose"
        return await asyncio.gather(*(shop.asked("POST", path, body) for body in bodies))

    value = shop.service.metrics.registry.get_sample_value
    before = value("tidepull_commit_seconds_count") or 0
    answers = shop.run(together())
    assert (value("tidepull_commit_seconds_count") or 0) - before == 1
    assert [one.status_code for one in answers] == [200, 422, 200, 200, 422, 409, 422]
    assert answers[0].json() == answers[3].json() != answers[2].json()
    assert [answers[n].json()["id"] for n in (0, 2)] == ["one", "two"]
    assert "agee" in answers[1].json()["detail"]
    again = shop.run(shop.asked("POST", "/v1/agents/shop/choose", bodies[2]))
    assert again.json() == answers[2].json()


def test_step_alone_waits_for_nobody_and_a_stream_of_steps_not_for_its_end(shop: House) -> None:
    choose(shop, 0)
    agent = shop.service.hosting._open["shop"]

    async def alone() -> int:
        asked, turns = agent.ask(ServedAgent.state), 0
        while agent._steps:
            await asyncio.sleep(0)
            turns += 1
        await asked
        return turns

    async def stream() -> int:
        asked: list[Any] = []
        while len(asked) < 5 * hosted.GATHERED and len(asked) == len(agent._steps):
            asked.append(agent.ask(lambda _: None))
            await asyncio.sleep(0)
        await asyncio.gather(*asked)
        return len(asked)

    assert shop.run(alone()) <= hosted.QUIET_TURNS + 1
    assert shop.run(stream()) <= hosted.GATHERED + 1


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


def test_long_batch_of_rewards_gives_others_turns_and_keeps_the_agent_open(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [choose(shop, n).json()["id"] for n in range(12)]
    shop_agent, real = shop.service.hosting._open["shop"], ServedAgent.reward_ahead
    taken: list[str] = []
    seen: dict[int, bool] = {}

    def slow(self: ServedAgent, id: str, *given: Any, **named: Any) -> tuple[bool, int]:
        time.sleep(0.003)
        taken.append(id)
        return real(self, id, *given, **named)

    async def others() -> None:
        while len(taken) < len(ids):
            seen[len(taken)] = shop_agent.idle
            await asyncio.sleep(0)

    monkeypatch.setattr(ServedAgent, "reward_ahead", slow)
    body = {"rewards": [{"id": id, "reward": 1} for id in ids]}

    async def both() -> Any:
        return await asyncio.gather(shop.asked("POST", "/v1/agents/shop/rewards", body), others())

    answer, _ = shop.run(both())
    assert answer.json()["taken"] == 12
    assert len(seen) > 5, "others had to wait for the whole batch"
    assert not any(seen[n] for n in seen if n), "it could have been closed meanwhile"


def test_name_of_a_new_agent_is_on_disk_before_it_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(
        stores, "sync", lambda path: synced.append((path, (house.root / "shop.db").exists()))
    )
    house.make()
    assert synced == [(house.root, True)]


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
    assert shop.ask("GET", "/v1/agents").json()["agents"] == [{"name": "shop", "open": True}]
    time.sleep(0.01)
    shop.run(shop.service.hosting.close_idle(0.001))
    assert shop.ask("GET", "/v1/agents").json()["agents"] == [{"name": "shop", "open": False}]
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
    entries = shop.lines("audit.jsonl")
    assert [entry["event"] for entry in entries] == ["begin", "end"] * 7
    assert all(entry["status"] in (200, 201) for entry in entries if entry["event"] == "end")
    actions = [entry["operation"] for entry in entries if entry["event"] == "begin"]
    assert actions == [
        "create_agent",
        "change_arms",
        "freeze",
        "unfreeze",
        "rollback",
        "delete_agent",
        "create_agent",
    ]


def served(house: House, count: int) -> None:
    """Visits every half hour, each with a reward a minute later; blue pays most."""
    for n in range(count):
        at = 1_782_900_000.0 + 1800 * n
        made = choose(house, n, at=at).json()
        reward = {"id": made["id"], "reward": int(made["arm"] == "blue"), "at": at + 60}
        assert not house.ask("POST", "/v1/agents/shop/reward", reward).json()["duplicate"]


def test_history_has_an_interval_as_wide_above_the_mean_as_below(shop: House) -> None:
    for n in range(4):
        made = shop.ask("POST", "/v1/agents/shop/choose", {"arms": ["blue"]}).json()
        shop.ask("POST", "/v1/agents/shop/reward", {"id": made["id"], "reward": int(n == 0)})
    line = shop.ask("GET", "/v1/agents/shop/history?bins=1").json()["arms"]["blue"]
    assert line["mean"] == [0.25]
    assert line["low"][0] == pytest.approx(
        0.25 - 1.96 * 0.25, abs=1e-3
    )  # spread 0.5 over the root of 4
    assert line["high"][0] == pytest.approx(0.25 + 1.96 * 0.25, abs=1e-3)


def test_history_counts_every_decision_and_reward_once(shop: House) -> None:
    served(shop, 50)
    choose(shop, 50, at=1_782_900_000.0 + 1800 * 50)
    answer = shop.ask("GET", "/v1/agents/shop/history?bins=7").json()
    assert len(answer["starts"]) == 7
    assert sum(sum(line["decisions"]) for line in answer["arms"].values()) == 51
    assert sum(sum(line["rewarded"]) for line in answer["groups"].values()) == 50
    assert set(answer["arms"]["blue"]["mean"]) <= {1.0, None}
    part = shop.ask(
        "GET", f"/v1/agents/shop/history?since=1782900000&until={1_782_900_000 + 1800 * 9}"
    ).json()
    assert sum(sum(line["decisions"]) for line in part["arms"].values()) == 10
    shop.ask("POST", "/v1/agents/shop/freeze")
    assert (
        shop.ask("GET", "/v1/agents/shop/history?until=2999-01-01").json()["changes"][0]["words"]
        == "frozen"
    )


def test_what_was_read_before_is_read_on_and_not_again(shop: House) -> None:
    served(shop, 20)
    first = shop.ask("GET", "/v1/agents/shop/explain").json()
    for n in range(20, 30):
        choose(shop, n, at=1_782_900_000.0 + 1800 * n)
    again = shop.ask("GET", "/v1/agents/shop/explain").json()
    with ServedAgent(shop.root / "shop.db", read_only=True) as reader:
        assert again["words"] == str(reader.explain())
    assert first["status"].startswith("20 decisions")
    waiting = shop.ask("GET", "/v1/agents/shop/waiting").json()
    assert (waiting["decisions"], waiting["rewarded"], waiting["pending"]) == (30, 20, 10)
    assert waiting["delay_median"] == 60.0


def test_heatmap_names_no_arm_that_is_not_surely_best(shop: House) -> None:
    served(shop, 60)
    answer = shop.ask("GET", "/v1/agents/shop/heatmap").json()
    assert [len(row) for row in answer["best"]] == [24] * 7
    assert {arm for row in answer["best"] for arm in row} == {None}  # sixty decisions say little
    assert sum(map(sum, answer["decisions"])) == 60


def test_lift_grows_over_time_when_points_are_asked_for(shop: House) -> None:
    served(shop, 40)
    answer = shop.ask("GET", "/v1/agents/shop/lift?points=4&level=0.9").json()
    assert len(answer["history"]) == 4
    assert answer["level"] == 0.9
    assert answer["history"][-1]["gain"] == answer["gain"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("export?format=xls", "format must be one of 'jsonl', 'csv', 'parquet', got 'xls'"),
        ("lift?since=May", "since must be seconds since 1970"),
        ("history?until=May", "until must be seconds since 1970"),
    ],
)
def test_query_that_does_not_fit_names_its_field(shop: House, path: str, said: str) -> None:
    answer = shop.ask("GET", f"/v1/agents/shop/{path}")
    assert (answer.status_code, said in answer.json()["detail"]) == (422, True)


def test_export_has_every_decision_with_its_context(shop: House) -> None:
    served(shop, 5)
    answer = shop.ask("GET", "/v1/agents/shop/export")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["id"] for row in rows] == [f"visit {n}" for n in range(5)]
    assert rows[3]["context"] == {"device": "phone", "age": 23.0}
    assert answer.headers["content-disposition"] == 'attachment; filename="shop.jsonl"'
    assert shop.ask("GET", "/v1/agents/shop/export?format=csv").text.count("\n") == 6


def test_service_says_how_it_is_doing(shop: House) -> None:
    served(shop, 3)
    answer = shop.ask("GET", "/v1/service").json()
    assert answer["operations"]["choose"]["count"] == 3
    assert answer["operations"]["choose"]["p50"] > 0
    assert answer["commits"]["count"] == 6
    text = shop.ask("GET", "/metrics").text
    assert 'tidepull_decisions_total{agent="shop"} 3.0' in text


def test_full_disk_is_a_503_and_nothing_half_done_is_left(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = choose(shop, 0).json()
    with monkeypatch.context() as patched:

        def full(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        patched.setattr(SqliteLedger, "_insert", full)
        answers = [choose(shop, 1), choose(shop, 2)]
        assert [answer.status_code for answer in answers] == [503, 503]
        assert "disk is full" in answers[0].json()["detail"]
        assert answers[0].headers["retry-after"] == "1"
        patched.setattr(shop.service.request_log, "_audit", 10**6)  # nobody can write there
        assert shop.ask("POST", "/v1/agents/shop/freeze").status_code == 503
    assert choose(shop, 0).json() == made
    assert choose(shop, 1).status_code == 200
    assert shop.ask("GET", "/v1/agents/shop").json()["decisions"] == 2
    assert shop.service.request_log.lost == 2


def test_requests_do_not_wait_for_a_commit_that_hangs(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(shop, 0)
    hangs, real = threading.Event(), SqliteLedger._insert
    monkeypatch.setattr(hosted, "PATIENCE", 0.2)
    monkeypatch.setattr(SqliteLedger, "_insert", lambda *given: hangs.wait(20) and real(*given))
    body = {"context": {"age": 21}}

    async def held() -> list[Any]:
        first = asyncio.create_task(
            shop.asked("POST", "/v1/agents/shop/choose", {**body, "id": "first"})
        )
        await asyncio.sleep(0.05)
        behind = shop.asked("POST", "/v1/agents/shop/choose", {**body, "id": "behind"})
        waited = await asyncio.gather(first, behind)
        started = time.perf_counter()
        later = await shop.asked("POST", "/v1/agents/shop/choose", {**body, "id": "later"})
        return [*waited, later, time.perf_counter() - started]

    first, behind, later, took = shop.run(held())
    assert [answer.status_code for answer in (first, behind, later)] == [503, 503, 503]
    assert "repeat the request" in first.json()["detail"]
    assert took < 0.15
    hangs.set()
    for _ in range(100):
        again = shop.ask("POST", "/v1/agents/shop/choose", {**body, "id": "first"})
        if again.status_code == 200:
            break
        shop.run(asyncio.sleep(0.05))
    assert again.status_code == 200
    rows = shop.ask("GET", "/v1/agents/shop/export?format=jsonl").text.splitlines()
    ids = sorted(json.loads(row)["id"] for row in rows)
    assert ids == ["first", "visit 0"], "a request that was refused at once is in the ledger"
    idle = shop.service.hosting.hosted("shop")
    assert idle is not None
    assert idle.waiting == 0, "it would never be closed"


def test_busy_agent_is_waited_for(shop: House, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(shop, 0)
    real = ServedAgent.reward_ahead

    def slow(*given: Any, **named: Any) -> tuple[bool, int]:
        time.sleep(0.4)
        return real(*given, **named)

    monkeypatch.setattr(hosted, "PATIENCE", 0.1)
    monkeypatch.setattr(ServedAgent, "reward_ahead", slow)
    answer = shop.ask("POST", "/v1/agents/shop/reward", {"id": "visit 0", "reward": 1})
    assert answer.status_code == 200


def test_damaged_agent_is_a_503_and_others_go_on(shop: House) -> None:
    shop.make(name="bar")
    shop.stop()
    (shop.root / "bar.db").write_bytes(b"nonsense" * 100)
    shop.open()
    answer = shop.ask("POST", "/v1/agents/bar/choose", {})
    assert answer.status_code == 503
    assert "not a database" in answer.json()["detail"]
    assert choose(shop, 0).status_code == 200


def test_agent_that_a_newer_version_wrote_is_refused_with_a_sentence(shop: House) -> None:
    shop.stop()
    with sqlite3.connect(shop.root / "shop.db") as file:
        file.execute("PRAGMA user_version = 99")
    shop.open()
    answer = choose(shop, 0)
    assert answer.status_code == 503
    assert "was written by tidepull" in answer.json()["detail"]


def test_agent_that_another_process_holds_is_a_503_that_says_so(shop: House) -> None:
    shop.run(shop.service.hosting.close_idle(-1.0))
    with ServedAgent(shop.root / "shop.db"):
        answer = choose(shop, 0)
        assert answer.status_code == 503
        assert "is held by this process" in answer.json()["detail"]
    assert choose(shop, 0).status_code == 200
