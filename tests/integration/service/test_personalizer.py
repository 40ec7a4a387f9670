"""Personalizer's own client, unchanged, against a running service; and its routes against whatever
may be sent."""

from __future__ import annotations

import json
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.service.houses import House
from tests.integration.service.neighbourhood import street
from tests.integration.service.running import Running, running
from tests.postgres import Server
from tidepull.agent.personalizer import FIELD, MOST_ACTIONS, context_of, logged_context, merged
from tidepull.agent.personalizer import settings as made_of
from tidepull.agent.served import ServedAgent
from tidepull.service.personalizer import Personalizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from azure.cognitiveservices.personalizer import PersonalizerClient
    from azure.cognitiveservices.personalizer.models import (
        ErrorResponseException,
        RankableAction,
        RankRequest,
    )
    from msrest.authentication import CognitiveServicesCredentials
    from msrest.exceptions import HttpOperationError

NEWS, SPORT, CHESS = (
    RankableAction(id="news", features=[{"kind": "text"}]),
    RankableAction(id="sport", features=[{"kind": "video", "length": 4}]),
    RankableAction(id="chess", features=[{"kind": "game"}, {"level": {"from": 1, "to": 5}}]),
)
CONTEXT: list[dict[str, Any]] = [
    {"timeOfDay": "morning"},
    {"user": {"age": 31, "vip": True, "tags": ["new", "eu"]}},
]
MENU: dict[str, Any] = {
    "name": "menu",
    "arms": ["news", "sport", "chess"],
    "context": {FIELD: {"kind": "Hashed", "columns": 16}},
    "policy": "bernoulli-ts",
    "seed": 3,
    "control": 0,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("menu"), personalizer="menu") as service:
        assert service.ask("POST", "/v1/agents", MENU)[0] == 201
        yield service


@pytest.fixture(scope="module")
def client(service: Running) -> Any:
    return client_of(service)


def client_of(service: Any, key: str | None = None) -> Any:
    return PersonalizerClient(service.url, CognitiveServicesCredentials(key or service.token))


@pytest.fixture
def menu(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.service.personalizer = Personalizer("menu")
    house.make(**MENU)
    yield house
    house.close()


def ask(house: House, path: str, body: Any = None) -> Any:
    return house.ask("POST", f"/personalizer/v1.0/{path}", body)


def body(*actions: str, **given: Any) -> dict[str, Any]:
    return {"actions": [{"id": action, "features": [{"a": 1}]} for action in actions], **given}


# ---- its client


def test_client_ranks_rewards_and_activates(client: Any, service: Running) -> None:
    request = RankRequest(actions=[NEWS, SPORT, CHESS], context_features=CONTEXT, event_id="first")
    answer = client.rank(request)
    assert answer.event_id == "first"
    assert sorted(one.id for one in answer.ranking) == ["chess", "news", "sport"]
    assert answer.ranking[0].id == answer.reward_action_id
    assert sum(one.probability for one in answer.ranking) == pytest.approx(1)
    again = client.rank(request)
    assert (again.reward_action_id, again.ranking[1].id) == (
        answer.reward_action_id,
        answer.ranking[1].id,
    )
    assert client.events.reward("first", 1.0) is None
    assert client.events.activate("first") is None
    assert service.ask("GET", "/v1/agents/menu")[1]["rewards"] == 1


def test_client_gets_an_event_id_where_it_gives_none(client: Any) -> None:
    first, second = (client.rank(RankRequest(actions=[NEWS, SPORT])) for _ in range(2))
    assert first.event_id != second.event_id
    client.events.reward(event_id=first.event_id, value=0)


def test_client_learns_which_action_is_best(client: Any) -> None:
    for n in range(60):
        shown = client.rank(
            RankRequest(actions=[NEWS, SPORT], event_id=f"learn {n}")
        ).reward_action_id
        client.events.reward(f"learn {n}", float(shown == "sport"))
    late = [client.rank(RankRequest(actions=[NEWS, SPORT])).reward_action_id for _ in range(20)]
    assert late.count("sport") >= 17


def test_client_leaves_excluded_actions_where_they_came_and_never_shows_them(client: Any) -> None:
    for _ in range(10):
        answer = client.rank(
            RankRequest(actions=[NEWS, SPORT, CHESS], excluded_actions=["sport", "none"])
        )
        assert answer.ranking[1].id == "sport"
        assert answer.ranking[1].probability == 0
        assert answer.reward_action_id == answer.ranking[0].id != "sport"


def test_client_may_use_any_event_id_that_personalizer_takes(client: Any) -> None:
    for event in ("a/b c?d#e", "ü" * 256, "17-abcdef01", "x" * 256):
        assert client.rank(RankRequest(actions=[NEWS, SPORT], event_id=event)).event_id == event
        client.events.reward(event, 1)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RankRequest(actions=[]), "fit: actions"),
        (RankRequest(actions=[NEWS] * 51), "fit: actions"),
        (RankRequest(actions=[NEWS, NEWS]), "same id"),
        (RankRequest(actions=[RankableAction(id="", features=[{"a": 1}])]), "fit: actions[0].id"),
        (RankRequest(actions=[RankableAction(id="a", features=[{}])]), "at least one feature"),
        (RankRequest(actions=[NEWS], excluded_actions=["news"]), "excludedActions"),
        (RankRequest(actions=[NEWS], context_features=["text"]), "fit: contextFeatures"),
        (RankRequest(actions=[NEWS], context_features=[{"": 1}]), "name that is empty"),
        (RankRequest(actions=[NEWS], context_features=[{"a": 1e300}]), "at most 1e+15"),
        (RankRequest(actions=[NEWS], event_id=""), "fit: eventId"),
        (RankRequest(actions=[NEWS, SPORT, CHESS], event_id="known"), "another"),
    ],
)
def test_client_understands_what_is_wrong(client: Any, request_: Any, says: str) -> None:
    client.rank(RankRequest(actions=[NEWS, SPORT], event_id="known", context_features=[{"k": 1}]))
    with pytest.raises(ErrorResponseException) as caught:
        client.rank(request_)
    error = caught.value.error.error
    assert error.code == "BadRequest"
    assert says in error.message
    assert caught.value.response.status_code == (409 if says == "another" else 400)


def test_client_without_a_valid_key_is_not_let_in(service: Running) -> None:
    with pytest.raises(ErrorResponseException) as caught:
        client_of(service, "tp_0_x").rank(RankRequest(actions=[NEWS]))
    assert caught.value.response.status_code == 401
    assert caught.value.error.error.code == "401"


def test_client_is_told_of_events_that_never_were_and_of_rewards_that_cannot_be(
    client: Any,
) -> None:
    for call, status in [(("nobody", 1.0), 404), (("first", 1.5), 400)]:
        with pytest.raises(HttpOperationError) as caught:
            client.events.reward(*call)
        assert caught.value.response.status_code == status
    with pytest.raises(HttpOperationError) as caught:
        client.events.activate("nobody")
    assert "no decision" in caught.value.response.text


# ---- an agent that grows


def test_agent_is_made_by_the_first_call_with_personalizers_defaults(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.service.personalizer = Personalizer("menu")
    assert ask(house, "events/x/reward", {"value": 1}).status_code == 404
    assert ask(house, "rank", body("a", "b", eventId="x")).status_code == 201
    state = house.ask("GET", "/v1/agents/menu").json()
    assert (state["reward_within"], state["default_reward"], state["on_duplicate"]) == (
        600,
        0,
        "refuse",
    )
    assert state["context"][FIELD]["kind"] == "Hashed"
    house.close()


def test_actions_become_arms_as_they_appear_up_to_a_limit(menu: House, monkeypatch: Any) -> None:
    assert ask(menu, "rank", body("tea", "news", "cake")).status_code == 201
    assert menu.service.hosting.opened[0].agent.arms == ["news", "sport", "chess", "tea", "cake"]
    monkeypatch.setattr("tidepull.service.personalizer.MOST_ACTIONS", 6)
    assert ask(menu, "rank", body("ham", "egg")).status_code == 400
    assert ask(menu, "rank", body("ham", "news")).status_code == 201
    assert MOST_ACTIONS == 1000


def test_action_ids_cannot_be_used_up(menu: House, monkeypatch: pytest.MonkeyPatch) -> None:
    later = SimpleNamespace(monotonic=time.monotonic)
    monkeypatch.setattr("tidepull.service.personalizer.time", later)
    monkeypatch.setattr("tidepull.service.personalizer.MOST_ACTIONS", 6)
    menu.ask("DELETE", "/v1/agents/menu")  # one with described actions is made instead
    flood = [f"junk {n}" for n in range(3)]
    assert ask(menu, "rank", body("news", *flood, eventId="flood")).status_code == 201
    assert ask(menu, "rank", body("news", "sport", "chess")).status_code == 201
    refused = ask(menu, "rank", body("news", "tea"))
    assert refused.status_code == 400
    assert "within the last 600 seconds: try again later" in refused.text
    later.monotonic = lambda: time.monotonic() + 700
    for _ in range(2):
        assert ask(menu, "rank", body("news", "sport", "chess")).status_code == 201
    for n, action in enumerate(["tea", "cake", "ham"]):
        answer = ask(menu, "rank", body("news", action, eventId=f"{n}"))
        assert answer.status_code == 201
        assert {one["id"] for one in answer.json()["ranking"]} == {"news", action}
    labels = [arm["label"] for arm in menu.ask("GET", "/v1/agents/menu/arms").json()["arms"]]
    assert sorted(labels) == sorted(["news", "sport", "chess", "tea", "cake", "ham"])
    first = json.loads(menu.ask("GET", "/v1/agents/menu/export").text.splitlines()[0])
    assert set(first["available"]) == {"news", *flood}  # as it was then


def test_retired_arm_is_not_shown(menu: House) -> None:
    menu.ask("POST", "/v1/agents/menu/arms", {"op": "retire", "label": "news"})
    answer = ask(menu, "rank", body("news", "sport")).json()
    assert [one["id"] for one in answer["ranking"]] == ["news", "sport"]
    assert answer["rewardActionId"] == "sport"


def test_chances_are_those_that_the_ledger_has(menu: House) -> None:
    for n in range(40):
        answer = ask(menu, "rank", body("news", "sport", "chess", eventId=f"{n}")).json()
        by_id = {one["id"]: one["probability"] for one in answer["ranking"]}
        exported = menu.ask("GET", "/v1/agents/menu/export").text.splitlines()[-1]
        row = json.loads(exported)
        assert by_id[answer["rewardActionId"]] == pytest.approx(row["propensity"], abs=2e-4)
        # The export has the shares of draws; 0.001 of them is then spread for each of three arms.
        least = {id: 0.997 * share + 0.001 for id, share in row["chances"].items()}
        assert by_id == pytest.approx(least, abs=2e-4)
        ask(menu, f"events/{n}/reward", {"value": n % 2})


def test_second_and_late_rewards_have_no_effect_and_are_counted(menu: House) -> None:
    ask(menu, "rank", body("news", "sport", eventId="x"))
    assert [ask(menu, "events/x/reward", {"value": value}).status_code for value in (1, 0, 1)] == [
        204
    ] * 3
    assert menu.ask("GET", "/v1/agents/menu").json()["rewards"] == 1
    assert b'rewards_ignored_total{why="second"} 2.0' in menu.ask("GET", "/metrics").content


def test_routes_say_so_where_the_service_has_no_personalizer(shop: House) -> None:
    answer = ask(shop, "rank", body("a"))
    assert answer.status_code == 404
    assert "--personalizer" in answer.json()["error"]["message"]


def test_token_of_another_agent_is_not_for_personalizer(menu: House) -> None:
    key = menu.token("shop", "admin")
    time.sleep(0.6)  # the tokens file is looked at twice a second
    answer = menu.ask(
        "POST",
        "/personalizer/v1.0/rank",
        body("a"),
        token="",
        headers={"Ocp-Apim-Subscription-Key": key},
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "403")


# ---- what actions are like


def test_client_shows_new_actions_by_what_they_are_like(tmp_path: Path) -> None:
    def dish(name: str, taste: str) -> RankableAction:
        return RankableAction(id=name, features=[{"taste": taste}, {"calories": 300}])

    dishes = [
        dish("cake", "sweet"),
        dish("tart", "sweet"),
        dish("soup", "salty"),
        dish("ham", "salty"),
    ]
    tastes = {one.id: one.features[0]["taste"] for one in dishes}
    described = {one.id: merged(one.features) for one in dishes}
    # Draws are the same in every run; without a default, rewards are learnt when they come.
    settings = {**made_of(described, seed=1), "default_reward": None}
    ServedAgent(tmp_path / "menu.db", **settings).close()
    with running(tmp_path, personalizer="menu") as service:
        client = client_of(service)
        for n in range(120):
            wants = ("sweet", "salty")[n % 2]
            asked = RankRequest(
                actions=dishes, context_features=[{"wants": wants}], event_id=f"{n}"
            )
            client.events.reward(
                f"{n}", float(tastes[client.rank(asked).reward_action_id] == wants)
            )
        new = [dish("fudge", "sweet"), dish("chips", "salty")]
        asked = [
            RankRequest(actions=new, context_features=[{"wants": w}], event_id=f"{w}{n}")
            for w in ("sweet", "salty")
            for n in range(15)
        ]
        shown = [client.rank(one).reward_action_id for one in asked]
        assert shown[:15].count("fudge") >= 12
        assert shown[15:].count("chips") >= 12
        assert len(service.ask("GET", "/v1/agents/menu")[1]["arms"]) == 6


def test_first_call_makes_an_agent_that_learns_from_what_actions_are_like(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.service.personalizer = Personalizer("menu")
    assert ask(house, "rank", body("tea", "news")).status_code == 201
    agent = house.service.hosting.opened[0].agent
    assert (agent.settings.policy, agent.features("tea")) == ("lin-ts", {"features": {"a": 1.0}})
    house.close()


def test_action_that_has_become_another_one_is_described_anew_once_in_a_while(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.service.personalizer = personalizer = Personalizer("menu")
    before: dict[str, Any] = {
        "actions": [{"id": "a", "features": [{"k": 1}]}, {"id": "b", "features": [{"k": 2}]}]
    }
    after: dict[str, Any] = {
        "actions": [{"id": "a", "features": [{"k": 1}]}, {"id": "b", "features": [{"k": 3}]}]
    }
    assert [ask(house, "rank", sent).status_code for sent in (before, before, after)] == [201] * 3
    agent = house.service.hosting.opened[0].agent
    assert agent.features("b") == {"features": {"k": 2.0}}  # it was looked at just now
    personalizer._described.clear()
    assert ask(house, "rank", after).status_code == 201
    assert agent.features("b") == {"features": {"k": 3.0}}
    wrong = {"actions": [{"id": "c", "features": [{"": 1}]}]}
    assert ask(house, "rank", wrong).status_code == 400
    house.close()


def test_agent_whose_arms_have_no_features_goes_on_without(menu: House) -> None:
    assert ask(menu, "rank", body("tea", "news")).status_code == 201
    assert menu.service.hosting.opened[0].agent.features("tea") is None


# ---- across shards


def test_client_may_ask_any_shard(postgres: Server, tmp_path: Path) -> None:
    with street(postgres, tmp_path) as shards:
        first, second = shards.start(), shards.start()
        one, two = (client_of(shard, shards.token) for shard in (first, second))
        request = RankRequest(actions=[NEWS, SPORT], context_features=CONTEXT, event_id="x")
        shown = {client.rank(request).reward_action_id for client in (one, two, one)}
        assert len(shown) == 1  # one decision, whoever was asked
        deferred = RankRequest(actions=[NEWS, SPORT, CHESS], event_id="y", defer_activation=True)
        assert one.rank(deferred).reward_action_id == two.rank(deferred).reward_action_id
        two.events.reward("x", 1.0)
        one.events.reward("y", 1.0)
        assert [shard.ask("GET", "/v1/agents/menu")[1]["rewards"] for shard in (first, second)] == [
            1,
            1,
        ]
        two.events.activate("y")
        assert [shard.ask("GET", "/v1/agents/menu")[1]["rewards"] for shard in (first, second)] == [
            2,
            2,
        ]
        with pytest.raises(HttpOperationError) as caught:
            one.events.reward("nobody", 1.0)
        assert caught.value.response.status_code == 404
        owner, other = (first, two) if shards.owner("menu") == first.url else (second, one)
        owner.end(signal.SIGKILL)
        assert other.rank(request).reward_action_id in shown


# ---- deferred activation


class Clock:
    now = 1.7e9

    def __call__(self) -> float:
        return self.now


def deferring(**given: Any) -> tuple[ServedAgent, Clock]:
    clock = Clock()
    chosen: dict[str, Any] = {
        "arms": ["a", "b"],
        "context": {},
        "policy": "bernoulli-ts",
        "seed": 1,
        "control": 0,
    }
    agent = ServedAgent.memory(
        **{**chosen, "reward_within": 600, "default_reward": 0, **given}, now=clock
    )
    return agent, clock


def defer(agent: ServedAgent, id: str) -> None:
    from tidepull.agent.commands import Request

    agent.choose_ahead([Request(id=id, deferred=True)])


def settled(agent: ServedAgent, clock: Clock) -> list[float | None]:
    """What each decision was worth when all their time is over."""
    clock.now += 601
    agent.choose(id="later")
    while agent.slice():
        pass
    return [row["reward"] for row in agent.history("rows")][:-1]


def test_deferred_decision_that_nobody_saw_teaches_nothing() -> None:
    agent, clock = deferring()
    defer(agent, "unseen")
    agent.choose(id="seen")
    assert settled(agent, clock) == [None, 0.0]
    assert agent.state().rewards == 1


def test_deferred_decision_that_was_seen_gets_the_default_reward() -> None:
    agent, clock = deferring()
    defer(agent, "seen")
    assert [agent.activate_ahead("seen")[0] for _ in range(2)] == [True, False]
    assert settled(agent, clock) == [0.0]


@pytest.mark.parametrize(("again", "worth"), [("refuse", 0.25), ("add", 1.0), ("replace", 0.75)])
def test_rewards_before_the_activation_count_from_it_on(again: str, worth: float) -> None:
    agent, clock = deferring(policy="ucb", on_duplicate=again)
    defer(agent, "x")
    agent.reward_ahead("x", 0.25)
    agent.reward_ahead("x", 0.75)
    assert agent.history("rows")[0]["reward"] is None
    agent.activate_ahead("x")
    assert settled(agent, clock) == [worth]


def test_rewards_of_what_was_never_activated_are_ignored() -> None:
    agent, clock = deferring()
    defer(agent, "x")
    agent.reward_ahead("x", 1.0)
    assert settled(agent, clock) == [None]
    assert agent.state().rewards == 0


def test_deferral_survives_a_restart(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {
        "arms": ["a", "b"],
        "context": {},
        "policy": "bernoulli-ts",
        "seed": 1,
    }
    with ServedAgent(tmp_path / "a.db", **chosen, reward_within=600, default_reward=0) as agent:
        defer(agent, "x")
        agent.reward("x", 1.0)
    with ServedAgent(tmp_path / "a.db") as agent:
        assert agent.state().rewards == 0
        news, seq = agent.activate_ahead("x")
        assert news
        agent.commit(seq)
    with ServedAgent(tmp_path / "a.db") as agent:
        assert agent.state().rewards == 1
        assert agent.check().sound


# ---- free-form features


def test_log_and_call_lead_to_the_same_features() -> None:
    from tidepull.agent.clock import Clock as Zone
    from tidepull.agent.schema import Schema
    from tidepull.logs.formats import flatten

    schema = Schema({FIELD: {"kind": "Hashed", "columns": 32}}, Zone())
    called = schema.clean(context_of(CONTEXT))
    logged = schema.clean(logged_context(flatten({"FromUrl": CONTEXT})))
    assert called == logged
    assert called[FIELD]["user.age"] == 31
    assert {"timeOfDay=morning", "user.tags=new", "user.tags=eu"} < set(called[FIELD])


def test_features_that_come_later_share_columns() -> None:
    from tidepull.agent.clock import Clock as Zone
    from tidepull.agent.schema import Schema

    schema = Schema({FIELD: {"kind": "Hashed", "columns": 4}}, Zone())
    seen = schema.fresh()
    rows = [schema.encode(schema.clean({FIELD: {"colour": f"{n}"}}), 0.0, seen) for n in range(40)]
    assert all(sorted(row) == [0.0, 0.0, 0.0, 1.0] for row in rows)
    assert [row.index(1.0) for row in rows[:4]] == [0, 1, 2, 3]
    assert {row.index(1.0) for row in rows[4:]} == {0, 1, 2, 3}


# ---- a warm start


@pytest.mark.parametrize("given", [[], ["--policy", "bernoulli-ts"]], ids=["features", "ids"])
def test_agent_made_from_personalizers_logs_goes_on_where_they_end(
    tmp_path: Path, given: list[str]
) -> None:
    from tests.integration.cli.typing_it import tidepull

    lines = []
    for n in range(300):
        place = n % 2
        at = f"2026-07-{1 + n // 24:02d}T{n % 24:02d}:00:00Z"
        both = [
            {
                "_tag": name,
                "i": {"constant": 1, "id": name},
                "j": [{"kind": "text" if name == "news" else "video"}],
            }
            for name in ("news", "sport")
        ]
        lines.append(
            {
                "_label_cost": -float(place == 1), "_label_probability": 0.5, "_label_Action": place + 1,
                "_labelIndex": place, "Timestamp": at, "Version": "1", "EventId": str(n),
                "a": [place + 1, 2 - place], "p": [0.5, 0.5], "c": {"FromUrl": CONTEXT, "_multi": both},
            }
        )  # fmt: skip
    (tmp_path / "log.json").write_text("\n".join(json.dumps(line) for line in lines))
    made = ["agent", str(tmp_path / "menu.db"), "personalizer", str(tmp_path / "log.json")]
    assert "300 decisions learnt, 2 actions" in tidepull(*made, *given).stdout
    with running(tmp_path, personalizer="menu") as service:
        asked = RankRequest(actions=[NEWS, SPORT], context_features=CONTEXT)
        shown = [client_of(service).rank(asked).reward_action_id for _ in range(20)]
    assert shown.count("sport") >= 15


# ---- whatever may be sent

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_BRANCHES = st.lists(_LEAVES, max_size=4) | st.dictionaries(
    st.text(max_size=8), _LEAVES, max_size=4
)
_FREE = _LEAVES | _BRANCHES | st.dictionaries(st.text(max_size=8), _LEAVES | _BRANCHES, max_size=4)
_IDS = st.sampled_from(["news", "sport", "", "x" * 256, "x" * 257, "\x1f", "ä", "a/b"]) | _FREE
_ACTION = (
    st.fixed_dictionaries(
        {}, optional={"id": _IDS, "features": st.lists(_FREE, max_size=2) | _FREE}
    )
    | _FREE
)
_RANK = st.fixed_dictionaries(
    {},
    optional={
        "actions": st.lists(_ACTION, max_size=4) | _FREE,
        "contextFeatures": st.lists(_FREE, max_size=3) | _FREE,
        "excludedActions": st.lists(_IDS, max_size=3) | _FREE,
        "eventId": _IDS,
        "deferActivation": st.booleans() | _FREE,
    },
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    rank=_RANK | _FREE,
    reward=st.fixed_dictionaries({}, optional={"value": _FREE}) | _FREE,
    event=_IDS,
)
def test_whatever_is_sent_gets_an_answer_of_personalizers_form(
    menu: House, rank: Any, reward: Any, event: Any
) -> None:
    from urllib.parse import quote

    where = f"events/{quote(str(event), safe='')}"
    for path, sent, good in [
        ("rank", rank, 201),
        (f"{where}/reward", reward, 204),
        (f"{where}/activate", None, 204),
    ]:
        answer = ask(menu, path, None if path.endswith("activate") else json.dumps(sent).encode())
        assert answer.status_code in (good, 400, 404, 409), (path, sent, answer.text)
        if answer.status_code == 201:
            made = answer.json()
            assert made["rewardActionId"] in {one["id"] for one in made["ranking"]}
        elif answer.status_code != 204:
            error = answer.json()["error"]
            assert error["code"] in ("BadRequest", "ResourceNotFound")
            assert error["message"].endswith((".", "?", "!"))
