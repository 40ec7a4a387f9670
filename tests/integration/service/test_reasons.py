"""What an agent knew at an earlier moment, and why it took an arm, by a replay beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service.houses import House
from tidepull.service import hosted

START = 1_782_900_000.0


def live(house: House, first: int, last: int) -> list[str]:
    """Ids of decisions every half hour, each with its reward: phones like green, desktops blue."""
    ids = []
    for n in range(first, last):
        at, device = START + 1800 * n, ("phone", "desktop")[n % 2]
        body = {"context": {"device": device, "age": 30}, "at": at}
        made = house.ask("POST", "/v1/agents/shop/choose", body).json()
        liked = made["arm"] == {"phone": "green", "desktop": "blue"}[device]
        paid = {"id": made["id"], "reward": float(liked), "at": at + 60}
        assert house.ask("POST", "/v1/agents/shop/reward", paid).status_code == 200
        ids.append(made["id"])
    return ids


@pytest.fixture
def shop(house: House) -> House:
    house.make(policy="lin-ts", control=0.1)
    return house


def asked(house: House, path: str, **given: Any) -> Any:
    answer = house.ask("GET", f"/v1/agents/shop/{path}", **given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_was_known_at_a_moment_is_what_was_said_then(shop: House) -> None:
    live(shop, 0, 60)
    then = asked(shop, "explain"), asked(shop, "heatmap")
    shop.ask("POST", "/v1/agents/shop/arms", {"op": "add", "label": "pink"})
    live(shop, 60, 120)
    early = asked(shop, f"explain?at={START + 1800 * 20}")
    assert early["status"].startswith("21 decisions")
    moment = START + 1800 * 59 + 90
    assert (asked(shop, f"explain?at={moment}"), asked(shop, f"heatmap?at={moment}")) == then
    assert asked(shop, "explain")["status"].startswith("120 decisions")


def test_after_a_rollback_the_past_is_still_what_it_was(shop: House) -> None:
    last = live(shop, 0, 40)[-1]
    then, why = asked(shop, "explain"), asked(shop, f"why?id={last}")
    shop.ask("POST", "/v1/agents/shop/rollback", {"to": START + 1800 * 9.5})
    live(shop, 40, 50)
    assert asked(shop, f"explain?at={START + 1800 * 39 + 90}") == then
    assert asked(shop, f"why?id={last}") == why


def test_replay_stops_after_its_time_and_goes_on_when_asked_again(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(shop, 0, 30)
    then = asked(shop, "explain")
    live(shop, 30, 31)
    monkeypatch.setattr(hosted, "REPLAY_SECONDS", 0.0)
    path, waits = f"/v1/agents/shop/explain?at={START + 1800 * 29 + 90}", 0
    while (answer := shop.ask("GET", path)).status_code == 429:
        waits += 1
        assert f"Replaying the ledger: {waits} of 60 records" in answer.json()["detail"]
    assert waits == 59
    assert answer.json() == then


def test_reason_names_group_chances_and_other_contexts(shop: House) -> None:
    ids = live(shop, 0, 120)
    rows = asked(shop, f"decisions?limit=50&until={START + 1800 * 119}")["decisions"]
    assert [row["id"] for row in rows] == ids[:69:-1]
    own = next(row for row in rows if row["group"] == "policy" and row["arm"] == "blue")
    found = asked(shop, "why", params={"id": own["id"]})
    assert found["same"]
    assert {**found["decision"], "reward": 1.0} == own  # its reward came later
    (phone,) = found["what_if"]
    assert (phone["field"], phone["value"]) == ("device", "phone")
    assert phone["chances"]["green"] > 0.8 > 0.2 > own["chances"]["green"]
    control = next(row for row in rows if row["group"] == "control")
    assert "It fell into the control group, which gets random arms" in control["why"]


def test_single_decisions_are_for_admins(shop: House) -> None:
    (id,) = live(shop, 0, 1)
    reader = shop.token("shop", "read")
    for path in ("decisions", f"why?id={id}"):
        assert shop.ask("GET", f"/v1/agents/shop/{path}", token=reader).status_code == 403
    assert asked(shop, f"explain?at={START + 60}", token=reader)["status"]
    assert shop.ask("GET", "/v1/agents", token=reader).json()["scopes"] == ["read"]
    assert shop.ask("GET", "/v1/agents/shop/why?id=nothing").status_code == 404


def test_moment_before_another_policy_is_refused(shop: House) -> None:
    live(shop, 0, 20)
    shop.run(shop.service.hosting.get("shop")).agent.upgrade("bernoulli-ts")
    answer = shop.ask("GET", f"/v1/agents/shop/explain?at={START + 9000}")
    assert answer.status_code == 422
    assert "the policy was rebuilt or changed on" in answer.json()["detail"]
