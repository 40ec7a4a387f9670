"""The clients: the same answers as the agent's own, retries that count once, and the shell's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import tidepull
from tests.integration.service.running import Running, running
from tidepull.agent import attempts
from tidepull.agent import client as clients
from tidepull.agent.requests import HttpRequest, delete_before, pause
from tidepull.cli.app import app
from tidepull.errors import ParameterError, ServiceError


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("clients")) as running_service:
        yield running_service


@pytest.fixture
def client(service: Running) -> Iterator[tidepull.Client]:
    with tidepull.Client(service.url, token=service.token) as made:
        yield made
        for name in made.agents():
            made.agent(name).delete()


def make(client: tidepull.Client) -> clients.RemoteAgent:
    return client.create(
        "shop",
        arms=["blue", "green"],
        context={"device": ["phone", "desktop"], "age": float, "seen": datetime},
        policy=("sw-ucb", {"window": 100}),
        reward_within=timedelta(days=1),
        seed=1,
    )


def test_client_does_all_that_an_agent_does(client: tidepull.Client, tmp_path: Path) -> None:
    shop = make(client)
    assert client.agents() == ["shop"]
    made = shop.choose(
        {"device": "phone", "age": 3, "seen": datetime(2026, 1, 1, tzinfo=UTC)}, id="first"
    )
    assert isinstance(made, tidepull.Decision)
    assert (
        shop.choose(
            {"device": "phone", "age": 3, "seen": datetime(2026, 1, 1, tzinfo=UTC)}, id="first"
        )
        == made
    )
    assert (shop.reward(made.id, 1.0), shop.reward(made.id, 1.0)) == (True, False)
    many = shop.choose_many([{"age": n} for n in range(5)])
    assert len({one.id for one in many}) == 5
    taken = shop.rewards({many[0].id: 0.5, "nobody": 1.0})
    assert [one.status for one in taken] == [200, 404]
    assert str(shop.explain()).startswith("6 decisions")
    assert "over random arms" in str(shop.lift())
    assert shop.state()["decisions"] == 6
    assert (shop.add("pink"), shop.retire("blue")) == (["blue", "green", "pink"], ["green", "pink"])
    assert shop.rename("pink", "rose") == shop.arms == ["green", "rose"]
    assert sum(map(sum, (line["decisions"] for line in shop.chart(bins=3)["arms"].values()))) == 6
    assert len(shop.heatmap()["best"]) == 7
    assert shop.waiting()["rewarded"] == 2
    shop.freeze()
    assert shop.state()["frozen"]
    shop.unfreeze()
    shop.rollback(made.id)
    shop.export(tmp_path / "shop.jsonl")
    assert len((tmp_path / "shop.jsonl").read_text().splitlines()) == 6


def test_asynchronous_client_gives_the_same_answers(
    client: tidepull.Client, service: Running
) -> None:
    make(client)

    async def talk() -> None:
        async with tidepull.AsyncClient(service.url, token=service.token) as other:
            assert await other.agents() == ["shop"]
            shop = other.agent("shop")
            made = await asyncio.gather(*(shop.choose({"age": n}) for n in range(20)))
            assert len({one.id for one in made}) == 20
            assert await shop.reward(made[0].id, 1.0)
            assert str(await shop.explain()).startswith("20 decisions")
            assert (await shop.state())["rewards"] == 1
            assert await shop.arms() == ["blue", "green"]

    asyncio.run(talk())


def test_refusal_is_an_error_with_the_service_s_sentence(client: tidepull.Client) -> None:
    shop = make(client)
    with pytest.raises(ServiceError, match="there is no field 'shoe'") as refused:
        shop.choose({"shoe": 44})
    assert (refused.value.status, refused.value.exit_code) == (422, 2)
    assert refused.value.request
    with pytest.raises(ServiceError, match="There is no agent 'bar'"):
        client.agent("bar").explain()


class Flaky(httpx.BaseTransport):
    """Lets the service do its work, and loses the answer, or is busy, now and then."""

    def __init__(self, script: list[str]) -> None:
        self._real = httpx.HTTPTransport()
        self.script = script
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        what = self.script.pop(0) if self.script else "good"
        if what == "refused":
            raise httpx.ConnectError("nobody there")
        if what == "busy":
            return httpx.Response(503, headers={"retry-after": "0"}, json={"detail": "Later."})
        answer = self._real.handle_request(request)
        if what == "lost":
            answer.close()
            raise httpx.ReadTimeout("lost on the way")
        return answer

    def close(self) -> None:
        self._real.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda *_: 0.0)


def test_retried_decision_and_reward_count_once(client: tidepull.Client, service: Running) -> None:
    make(client)
    flaky = Flaky(["lost", "busy", "refused", "good", "lost", "good"])
    with tidepull.Client(service.url, token=service.token, transport=flaky) as other:
        shop = other.agent("shop")
        made = shop.choose({"age": 1})
        assert len(set(flaky.bodies)) == 1  # the same id each time
        assert not shop.reward(made.id, 1.0)  # the lost answer was the one with the news
    state = client.agent("shop").state()
    assert (state["decisions"], state["rewards"]) == (1, 1)


def test_retried_reward_is_added_once(client: tidepull.Client, service: Running) -> None:
    client.create("shop", arms=["a", "b"], context={}, on_duplicate="add", reward_within=3600)
    with tidepull.Client(
        service.url, token=service.token, transport=Flaky(["good", "lost", "good", "good"])
    ) as other:
        shop = other.agent("shop")
        made = shop.choose()
        shop.reward(made.id, 1.0)
        shop.reward(made.id, 1.0)
    rows = [line["mean"] for line in client.agent("shop").chart(bins=1)["groups"].values()]
    assert [2.0] in rows


def test_what_cannot_be_repeated_is_not(client: tidepull.Client, service: Running) -> None:
    flaky = Flaky(["lost"])
    with (
        tidepull.Client(service.url, token=service.token, transport=flaky) as other,
        pytest.raises(ServiceError, match="cannot be reached"),
    ):
        other.create("shop", arms=["a", "b"])
    assert len(flaky.bodies) == 1
    assert client.agents() == ["shop"]


def test_client_gives_up_after_its_retries() -> None:
    with (
        tidepull.Client("http://127.0.0.1:9", retries=2) as client,
        pytest.raises(ServiceError, match="cannot be reached"),
    ):
        client.agents()


def test_client_goes_on_with_the_next_address_when_one_does_not_answer(service: Running) -> None:
    dead = "http://127.0.0.1:9"
    with tidepull.Client([dead, service.url], token=service.token, retries=1) as client:
        make(client)
        assert client.agents() == ["shop"]
    with tidepull.Client(
        [service.url, dead], token=service.token, transport=Flaky(["busy"])
    ) as client:
        assert client.agents() == ["shop"]
        client.agent("shop").delete()
    with pytest.raises(ParameterError, match="or a list of them"):
        tidepull.Client([])


def test_unsure_answer_is_repeated_only_where_that_is_safe() -> None:
    once: HttpRequest[Any] = HttpRequest("DELETE", "/x", dict, repeatable=False)
    again: HttpRequest[Any] = HttpRequest("POST", "/x", dict)
    assert [ask.may_repeat(502, sent=True) for ask in (once, again)] == [False, True]
    assert [ask.may_repeat(503, sent=True) for ask in (once, again)] == [True, True]


def test_baselines_and_outcomes_go_over_the_wire(client: tidepull.Client) -> None:
    shop = client.create(
        "rule", arms=["a", "b"], context={}, policy="bernoulli-ts", control=0.5, seed=2
    )
    for n in range(40):
        decision = shop.choose(baseline="b", id=f"visit {n}")
        assert decision.group == "policy" or decision.arm == "b"
        shop.reward(decision, 1.0, also={"cost": n})
    with pytest.raises(ServiceError, match="another baseline"):
        shop.choose(baseline="a", id="visit 3")
    assert shop.lift().data["against"] == "your rule"
    cost = shop.lift(outcome="cost", points=2).data
    assert cost["of"] == "cost"
    assert cost["fixed_low"] > cost["low"]
    assert len(cost["history"]) == 2
    assert [one["of"] for one in shop.explain().data["outcomes"]] == ["cost"]


def test_candidates_and_records_go_over_the_wire(client: tidepull.Client) -> None:
    shop = client.create(
        "try", arms=["a", "b"], context={}, policy="random", control=0.0, seed=2,
        shadow=["bernoulli-ts"],
    )  # fmt: skip
    assert "no decisions" in str(shop.shadows()[0])
    for _ in range(300):
        decision = shop.choose()
        shop.reward(decision, float(decision.arm == "b"))
    (report,) = shop.shadows()
    assert report.data["significant"]
    assert report.data["gain"] > 0.3
    assert shop.change(shadow=[("ucb", {}), "lin-ts"])["shadow"][1] == [["ucb", {}], ["lin-ts", {}]]
    assert [one.data["policy"] for one in shop.shadows()] == ["ucb", "lin-ts"]
    step = shop.promote("ucb", share=0.1)
    assert str(step) == "ucb has 10% of decisions (0% before): as was asked for."
    assert (step.data["before"], step.data["share"]) == (0.0, 0.1)
    assert shop.state()["promotion"] == {"policy": "ucb", "parameters": {}, "share": 0.1}
    with pytest.raises(ServiceError, match="is no candidate") as refusal:
        shop.promote("sw-ucb", share=0.1)
    assert refusal.value.status == 422
    assert shop.promote("ucb").data["share"] == 0.2
    assert shop.promote(("ucb", {}), share=1).data["before"] == 0.2
    assert (shop.state()["policy"], shop.state()["promotion"]) == ("ucb", None)
    recorded = shop.record({}, "b", reward=1.0, propensity=0.5, id="order 1")
    assert (recorded.group, recorded.propensity) == ("imported", 0.5)
    assert shop.record({}, "b", reward=1.0, propensity=0.5, id="order 1") == recorded


def test_pauses_grow_and_follow_what_the_service_says() -> None:
    assert 0.025 <= pause(0, None) <= 0.05
    assert 0.2 <= pause(3, None) <= 0.4
    assert pause(50, None) <= 2.0
    assert (pause(0, "3"), pause(0, "3000")) == (3.0, 10.0)
    assert not HttpRequest("GET", "/", dict).may_repeat(404, sent=True)


def test_shell_asks_what_python_asks(service: Running, tmp_path: Path) -> None:
    runner, env = CliRunner(), {"TIDEPULL_URL": service.url, "TIDEPULL_TOKEN": service.token}

    def run(*words: str) -> Any:
        return runner.invoke(app, ["client", *words], env=env)

    fields = '{"age": "number"}'
    made = run(
        "create", "shop", "--arm", "a", "--arm", "b", "--fields", fields, "--policy", "bernoulli-ts"
    )
    assert made.exit_code == 0, made.output
    decision = json.loads(run("choose", "shop", "--context", '{"age": 3}', "--id", "v").stdout)
    assert decision["arm"] in ("a", "b")
    assert run("reward", "shop", "v", "1", "--also", '{"cost": 0.5}').exit_code == 0
    assert "gain over random arms" in run("lift", "shop", "--outcome", "cost").stdout
    assert "outcomes: cost" in str(run("lift", "shop", "--outcome", "price").exception)
    assert run("agents").stdout == "shop\n"
    assert run("explain", "shop").stdout.startswith("1 decision since")
    assert "over random arms" in run("lift", "shop").stdout
    assert json.loads(run("state", "shop").stdout)["rewards"] == 1
    for words in (
        ["add", "shop", "c"],
        ["rename", "shop", "c", "d"],
        ["retire", "shop", "d"],
        ["freeze", "shop"],
        ["change", "shop", '{"shadow": ["ucb"]}'],
        ["shadows", "shop"],
    ):
        assert run(*words).exit_code == 0
    assert run("promote", "shop", "ucb", "--share", "0.1").stdout.startswith("ucb has 10% of")
    assert (
        run("unfreeze", "shop").exit_code == run("rollback", "shop", decision["id"]).exit_code == 0
    )
    assert run("export", "shop", str(tmp_path / "x.csv")).exit_code == 0
    assert json.loads(run("chart", "shop", "--bins", "2").stdout)["seconds"] > 0
    (row,) = json.loads(run("history", "shop", "--json").stdout)
    assert (row["id"], row["reward"]) == ("v", 1.0)
    assert "v " in run("history", "shop").stdout
    assert isinstance(run("delete", "shop").exception, tidepull.TidepullError)
    assert run("delete", "shop", "--yes").exit_code == 0
    token = tmp_path / "token"
    token.write_text(service.token + "\n")
    alone = runner.invoke(
        app, ["client", "--token-file", str(token), "agents"], env={"TIDEPULL_URL": service.url}
    )
    assert (alone.exit_code, alone.stdout) == (0, "")


def test_history_is_the_same_locally_and_remotely(client: tidepull.Client) -> None:
    settings: dict[str, Any] = {
        "arms": ["a", "b"], "context": {"age": float, "seen": datetime}, "policy": "bernoulli-ts",
        "seed": 3, "control": 0.0,
    }  # fmt: skip
    twins = client.create("shop", **settings), tidepull.Agent.memory(**settings)
    for shop in twins:
        seen = datetime(2026, 1, 1, tzinfo=UTC)
        shop.choose({"age": 3, "seen": seen}, id="first", subject="Ann", at="2026-07-01T12:00")
        shop.reward("first", 1.0, at="2026-07-01T12:05")
    remote, local = (shop.history() for shop in twins)
    assert list(remote) == list(local)
    unlike = ["subject", "baseline"]  # another salt; None
    assert (remote.drop(columns=unlike) == local.drop(columns=unlike)).all(axis=None)
    assert remote["context.seen"][0] == datetime(2026, 1, 1, tzinfo=UTC)
    assert remote["subject"][0] is not None


def visited(client: tidepull.Client) -> clients.RemoteAgent:
    shop = client.create("shop", arms=["a", "b"], context={}, policy="bernoulli-ts")
    for n in range(10):
        at = f"2026-07-{n + 1:02}T12:00"
        decision = shop.choose(subject=f"user {n % 2}", id=f"visit {n}", at=at)
        shop.reward(decision, 1.0, at=at)
    return shop


def test_subject_is_forgotten_over_http_and_from_the_shell(
    client: tidepull.Client, service: Running
) -> None:
    shop = visited(client)
    assert sum(map(sum, (line["decisions"] for line in shop.chart()["arms"].values()))) == 10
    assert shop.forget("user 1") == 5
    assert shop.forget("user 1") == 0
    assert sum(map(sum, (line["decisions"] for line in shop.chart()["arms"].values()))) == 5
    assert [row["id"] for row in shop.history("rows")] == [f"visit {n}" for n in range(0, 10, 2)]
    env = {"TIDEPULL_URL": service.url, "TIDEPULL_TOKEN": service.token}
    refused = CliRunner().invoke(app, ["client", "forget", "shop", "user 0"], env=env)
    assert "add --yes" in str(refused.exception)
    done = CliRunner().invoke(app, ["client", "forget", "shop", "user 0", "--yes"], env=env)
    assert done.exit_code == 0
    assert shop.history("rows") == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_old_decisions_are_moved_to_a_file_over_http(
    client: tidepull.Client, service: Running, tmp_path: Path, asynchronous: bool
) -> None:
    shop, path = visited(client), tmp_path / "old.jsonl"
    if asynchronous:

        async def compact() -> int:
            async with tidepull.AsyncClient(service.url, token=service.token) as other:
                return await other.agent("shop").compact(path, "2026-07-05")

        assert asyncio.run(compact()) == 4
    else:
        assert shop.compact(path, "2026-07-05") == 4
    moved = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert moved == [f"visit {n}" for n in range(4)]
    assert [row["id"] for row in shop.history("rows")] == [f"visit {n}" for n in range(4, 10)]


def test_nothing_is_deleted_that_was_not_exported(client: tidepull.Client) -> None:
    shop = visited(client)
    with pytest.raises(ServiceError, match="4 decisions before that moment, and 3 were exported"):
        client.send(delete_before(shop, "2026-07-05", 3))
    assert len(shop.history("rows")) == 10
