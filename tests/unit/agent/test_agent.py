"""The agent as its users see it: decisions, rewards late, lost and doubled, groups, arms that come
and go, restarts."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.agent.worlds import SHOP, START, serve, visit, worth
from tidepull import state as snapshots
from tidepull.agent.agent import Agent
from tidepull.agent.schema import ENOUGH
from tidepull.errors import (
    ArmError,
    ContextError,
    DecisionError,
    ExpiredError,
    HeldError,
    InputError,
    LedgerError,
    ParameterError,
    RewardError,
    SnapshotError,
    WrongStoreError,
)
from tidepull.state import difference


def shop(**given: Any) -> Agent:
    return Agent.memory(**{**SHOP, "training": "inline", **given})


def test_agent_learns_the_best_arm() -> None:
    agent = shop(control=0.0)
    made = serve(agent, 0, 700, late=1)
    assert np.mean([arm == "red" for arm, _, _ in made[500:]]) > 0.8


def test_same_reward_again_has_no_effect_and_another_is_refused() -> None:
    agent, twin = shop(), shop()
    for one in (agent, twin):
        decision = one.choose(visit(0), at=START)
        assert one.reward(decision.id, 1.0)
    assert not agent.reward(decision.id, 1)
    with pytest.raises(RewardError, match=r"has the reward 1 already, and 0 is another"):
        agent.reward(decision.id, 0.0)
    assert serve(agent, 1, 80) == serve(twin, 1, 80)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "1", None, 1e16, [1.0]])
def test_reward_that_is_no_number_is_refused(reward: Any) -> None:
    agent = shop()
    with pytest.raises(RewardError, match="reward must be a finite number"):
        agent.reward(agent.choose({}).id, reward)


def test_reward_that_the_policy_refuses_can_be_given_again() -> None:
    agent = shop(policy="bernoulli-ts")
    decision = agent.choose({})
    with pytest.raises(RewardError, match="reward must be 0 or 1 for bernoulli-ts"):
        agent.reward(decision.id, 0.5)
    assert agent.reward(decision.id, 1.0)


@pytest.mark.parametrize("id", ["1-00000000", "99-abcdef01", "nobody", "-1", "1" * 30])
def test_unknown_ids_are_refused_by_name(id: str) -> None:
    agent = shop()
    agent.choose({})
    with pytest.raises(DecisionError, match=f"there is no decision '{id}'"):
        agent.reward(id, 1.0)


def test_id_of_another_agent_is_unknown() -> None:
    first, second = shop(seed=1), shop(seed=2)
    second.choose({})
    with pytest.raises(DecisionError, match="there is no decision"):
        second.reward(first.choose({}).id, 1.0)


def test_decision_with_a_name_is_made_once() -> None:
    agent = shop()
    first = agent.choose(visit(3), id="order 17")
    assert agent.choose(visit(4), id="order 17") == first
    assert agent.reward("order 17", 1.0)
    assert not agent.reward(first.id, 1.0)


def test_reward_that_comes_too_late_is_refused_by_name() -> None:
    agent = shop(reward_within=timedelta(hours=1))
    decision = agent.choose({}, at=START)
    with pytest.raises(ExpiredError, match=f"decision {decision.id} has expired.*3600 seconds"):
        agent.reward(decision.id, 1.0, at=START + 3601)
    assert agent.reward(decision.id, 1.0, at=START + 3599)


def test_missing_reward_counts_as_the_default_when_its_time_is_over() -> None:
    agent, told = shop(reward_within=60, default_reward=0.0), shop(reward_within=60)
    for one in (agent, told):
        lost = one.choose(visit(0), at=START)
        kept = one.choose(visit(1), at=START + 1)
        if one is told:
            one.reward(lost.id, 0.0, at=START + 2)
        one.reward(kept.id, 1.0, at=START + 2)
    late = [[one.choose(visit(n), at=START + 62 + n) for n in range(20)] for one in (agent, told)]
    assert [(d.arm, d.propensity) for d in late[0]] == [(d.arm, d.propensity) for d in late[1]]
    with pytest.raises(ExpiredError):
        agent.reward(lost.id, 1.0, at=START + 30)


@pytest.mark.parametrize(("again", "worth_it"), [("add", 3.0), ("replace", 2.0)])
def test_rewards_that_add_up_or_replace_are_learnt_when_their_time_is_over(
    again: Any, worth_it: float
) -> None:
    changing, plain = shop(on_duplicate=again, reward_within=60, control=0), shop(control=0)
    first = changing.choose(visit(0), at=START)
    assert changing.reward(first.id, 1.0, at=START + 1)
    assert changing.reward(first.id, 2.0, at=START + 2)
    other = plain.choose(visit(0), at=START)
    plain.reward(other.id, worth_it, at=START + 61)
    assert other.arm == first.arm
    made = [
        [one.choose(visit(n), at=START + 61 + n) for n in range(1, 25)] for one in (changing, plain)
    ]
    assert [(d.arm, d.propensity) for d in made[0]] == [(d.arm, d.propensity) for d in made[1]]
    with pytest.raises(ExpiredError):
        changing.reward(first.id, 1.0, at=START + 99)


def test_rewards_with_the_same_key_are_added_once() -> None:
    agent = shop(on_duplicate="add", reward_within=60)
    decision = agent.choose({}, at=START)
    assert agent.reward(decision.id, 1.0, key="click", at=START)
    assert not agent.reward(decision.id, 1.0, key="click", at=START)
    assert agent.reward(decision.id, 1.0, key="sale", at=START)
    assert agent.choose({}, id="1/click", at=START).arm in SHOP["arms"]
    with pytest.raises(DecisionError, match="an id must be text"):
        agent.choose({}, id="\x1f1/click")


def test_control_group_is_as_large_as_said_and_draws_evenly() -> None:
    made = serve(shop(control=0.3), 0, 1000, late=1)
    control = [arm for arm, _, group in made if group == "control"]
    assert abs(len(control) / 1000 - 0.3) < 0.05
    assert min(control.count(arm) for arm in SHOP["arms"]) / len(control) > 0.25
    assert {p for _, p, group in made if group == "control"} == {1 / 3}


def test_subject_stays_in_its_group() -> None:
    agent = shop(control=0.5)
    groups = [{agent.choose({}, subject=f"user {n}").group for _ in range(3)} for n in range(40)]
    assert all(len(group) == 1 for group in groups)
    assert 10 < sum(group == {"control"} for group in groups) < 30


def test_control_arm_is_played_by_the_control_alone_whatever_the_policy_thinks() -> None:
    made = serve(shop(control=0.3, control_arm="blue"), 0, 400, late=1)
    assert {arm for arm, _, group in made if group == "control"} == {"blue"}
    assert {p for _, p, group in made if group == "control"} == {1.0}


def test_propensity_is_the_frequency_with_which_arms_are_played() -> None:
    agent = shop(control=0.0, min_share=0.1, policy="bernoulli-ts")
    for n in range(30):
        agent.reward(agent.choose({}).id, float(n % 3 == 0))
    agent.freeze()
    made = [agent.choose({}) for _ in range(1500)]
    for arm in SHOP["arms"]:
        played = np.array([d.arm == arm for d in made])
        # The chance of the arm that was played, summed up as 1/p, counts every decision once if p
        # is right.
        weight = sum(1 / d.propensity for d in made if d.arm == arm) / len(made)
        assert abs(weight - 1) < 0.25, arm
        assert played.any()


@pytest.mark.parametrize("policy", ["bernoulli-ts", "ucb", "tide"])
def test_every_available_arm_has_a_chance_by_default(policy: str) -> None:
    """Also with a policy that names one arm, and among some arms only."""
    agent = shop(control=0.0, policy=policy)
    serve(agent, 0, 60, late=1)
    for n in range(60, 120):
        chances = agent.chances(agent.choose(visit(n), arms=["blue", "red"] if n % 2 else None))
        assert min(chances.values()) >= 0.001
        assert sum(chances.values()) == pytest.approx(1)
        assert len(chances) == (2 if n % 2 else 3)


def one_best(n_arms: int, **given: Any) -> Agent:
    """An agent whose policy names one arm."""
    arms = [str(n) for n in range(n_arms)]
    agent = Agent.memory(arms=arms, context={}, policy="ucb", seed=3, control=0.0, **given)
    for arm in arms:
        agent.reward(agent.choose(arms=[arm]), float(arm == "7"))
    return agent


def test_least_chances_are_drawn_from_as_they_are_logged() -> None:
    agent = one_best(50)
    made = [agent.choose() for _ in range(3000)]
    rare = [decision for decision in made if decision.propensity < 0.5]
    assert {decision.propensity for decision in rare} == {0.001}
    assert {decision.propensity for decision in made} == {0.001, 1 - 50 * 0.001 + 0.001}
    assert abs(len(rare) - 147) < 4 * 147**0.5


def test_many_arms_share_a_twentieth_and_a_least_share_of_zero_is_kept() -> None:
    agent, greedy = one_best(200), one_best(200, min_share=0.0)
    assert min(agent.chances(agent.choose()).values()) == 0.05 / 200
    assert sorted(greedy.chances(greedy.choose()).values())[-2:] == [0.0, 1.0]


def test_shares_stay_between_least_and_most() -> None:
    agent = shop(control=0.0, share_bounds={"blue": (0.2, 1.0), "red": (0.0, 0.5)})
    made = serve(agent, 0, 600, late=1)[200:]
    shares = {arm: np.mean([a == arm for a, _, _ in made]) for arm in SHOP["arms"]}
    assert shares["blue"] > 0.15
    assert shares["red"] < 0.55


def test_choice_among_given_arms_is_one_of_them() -> None:
    agent = shop(control=0.2)
    assert {agent.choose({}, arms=["blue", "red"]).arm for _ in range(60)} == {"blue", "red"}
    with pytest.raises(ArmError, match="there is no arm 'rde'; did you mean 'red'"):
        agent.choose({}, arms=["rde"])
    with pytest.raises(ArmError, match="at least one arm"):
        agent.choose({}, arms=[])


def test_arms_come_go_and_change_their_names() -> None:
    agent = shop()
    old = agent.choose({}, arms=["green"])
    agent.add("pink")
    agent.rename("green", "lime")
    agent.retire("red")
    assert agent.arms == ["blue", "lime", "pink"]
    assert {agent.choose({}).arm for _ in range(60)} == {"blue", "lime", "pink"}
    assert agent.choose({}, arms=["lime"]).arm == "lime"
    assert agent.reward(old.id, 1.0)
    agent.add("red")
    assert set(agent.arms) == {"blue", "lime", "pink", "red"}
    for change, message in (
        (lambda: agent.add("red"), "already an arm 'red'"),
        (lambda: agent.retire("black"), "there is no arm 'black'"),
        (lambda: agent.rename("red", "blue"), "already an arm 'blue'"),
        (lambda: agent.choose({}, arms=["green"]), "there is no arm 'green'"),
        (lambda: agent.add("new", [1.0]), "has no features"),
        (lambda: agent.add(""), "label of an arm must be text"),
    ):
        with pytest.raises(ArmError, match=message):
            change()


def test_only_arm_cannot_retire() -> None:
    agent = shop(arms=["a", "b"])
    agent.retire("a")
    with pytest.raises(ArmError, match="'b' is the only arm left"):
        agent.retire("b")
    with pytest.raises(ArmError, match="the arm 'a' is retired"):
        agent.choose({}, arms=["a", "b"])


@pytest.mark.parametrize("policy", ["lin-ts", "ucb"])
@pytest.mark.parametrize("context", [SHOP["context"], None], ids=["schema", "guessed"])
def test_grown_policy_decides_like_one_that_had_the_room_from_the_start(
    policy: str, context: Any
) -> None:
    n = 120
    narrow = shop(capacity=4, control=1.0, policy=policy, context=context)
    wide = shop(capacity=8, control=1.0, policy=policy, context=context)
    for agent in (narrow, wide):
        serve(agent, 0, n)
        for label in ("pink", "grey"):
            agent.add(label)
    states = [one._commands.state.learning.policy for one in (narrow, wide)]
    assert states[0] is not None
    assert states[1] is not None
    shares: list[list[float]] = []
    for agent in (narrow, wide):
        serve(agent, n, n + 30)
        shares.append([])
        for m in range(20):
            agent.choose(visit(m), at=START + 300.0 * (n + 30) + m)
            shares[-1] += agent._commands.decisions._pending[
                agent._commands.ledger.last
            ].choice.counts.tolist()
    assert narrow._commands.state.arms.room == 8
    assert states[0].rounds == states[1].rounds
    if policy == "ucb":
        assert shares[0] == shares[1]
    else:  # the two drew other random numbers while their rooms differed
        first, second = (np.array(s).reshape(20, -1).mean(axis=0) / 65535 for s in shares)
        assert np.abs(first - second).max() < 0.2


def test_grown_tide_is_in_the_state_of_one_that_had_the_room_from_the_start() -> None:
    """With the same arms played and the same work done, and but for random numbers drawn, nothing
    differs."""
    narrow, wide = (shop(capacity=room, control=1.0, policy="tide") for room in (4, 8))
    for agent in (narrow, wide):
        serve(agent, 0, 70)
        agent.add("pink", at=START)
        agent.add("grey", at=START)
    left, right = (
        one._commands.state.learning.take()()["policy"]["state"]["patterns"]
        for one in (narrow, wide)
    )
    for name in ("bank", "scale", "pending", "trackers", "contexts"):
        assert difference(left[name], right[name], name) is None


@pytest.mark.parametrize("room", [None, 8])
def test_arms_with_features_start_from_what_their_features_suggest(room: int | None) -> None:
    arms = {
        "cheap": {"price": 1.0, "kind": "a"},
        "fair": {"price": 2.0, "kind": "a"},
        "dear": {"price": 3.0, "kind": "b"},
    }
    agent = Agent.memory(
        arms=arms,
        context={},
        policy=("lin-ts", {"noise_std": 0.3}),
        time_features=False,
        control=0,
        seed=3,
        capacity=room,
        training="inline",
    )
    for n in range(300):
        decision = agent.choose({})
        agent.reward(decision.id, -arms[decision.arm]["price"] + 0.1 * (n % 3))  # type: ignore[operator]
    agent.add("dearer", {"price": 4.0, "kind": "b"})
    agent.add("gift", {"price": -4.0, "kind": "a"})
    made = [agent.choose({}).arm for _ in range(100)]
    assert made.count("gift") > 60
    assert made.count("gift") > 3 * made.count("dearer")
    with pytest.raises(ArmError, match="every arm needs them"):
        agent.add("plain")
    with pytest.raises(ArmError, match="arm 'bad': field 'price' must be a number"):
        agent.add("bad", {"price": "cheap", "kind": "a"})


def test_context_that_does_not_fit_changes_nothing() -> None:
    agent, twin = shop(), shop()
    with pytest.raises(ContextError, match="did you mean 'age'"):
        agent.choose({"aeg": 3})
    assert serve(agent, 0, 40) == serve(twin, 0, 40)


def test_schema_is_guessed_from_the_first_decisions() -> None:
    agent = shop(context=None)
    made = serve(agent, 0, 60)
    assert {group for _, _, group in made[:ENOUGH]} == {"warmup"}
    assert "warmup" not in {group for _, _, group in made[ENOUGH:]}
    schema = agent._commands.state.learning.schema
    assert schema is not None
    assert list(schema.fields) == ["device", "age"]
    agent.choose({"device": "tv", "what": 3})
    assert agent.reward("visit 0", 1.0)


def test_schema_is_guessed_of_every_kind_and_the_first_context_after_it_must_fit() -> None:
    agent = shop(context=None)
    kinds = {"age": 3, "ok": True, "tags": ["a"], "when": "2026-06-01T10:00", "mixed": 1}
    for n in range(ENOUGH):
        agent.choose({**kinds, "mixed": n if n % 2 else "text"})
    with pytest.raises(ContextError, match="field 'when' must be a datetime"):
        agent.choose({"when": "tomorrow"})
    assert agent.choose(kinds).group != "warmup"
    assert agent.check().sound


def test_frozen_agent_records_rewards_and_learns_nothing() -> None:
    agent, twin = shop(control=0.0), shop(control=0.0)
    for one in (agent, twin):
        serve(one, 0, 50)
    agent.freeze()
    assert agent.frozen
    policy = agent._commands.state.learning.policy
    assert policy is not None

    def learnt() -> str:
        return str([model["moment"] for model in policy.snapshot()["state"]["models"]])

    before = learnt()
    serve(agent, 50, 90)
    assert learnt() == before
    agent.unfreeze()
    serve(agent, 90, 100)
    assert learnt() != before


def test_rollback_forgets_what_was_learnt_since_and_keeps_arms() -> None:
    agent, twin = shop(snapshot_every=40), shop()
    for one in (agent, twin):
        serve(one, 0, 60)
    serve(agent, 60, 100)
    agent.add("pink")
    agent.rollback(START + 300.0 * 59.5)
    twin.add("pink")
    assert agent.arms[-1] == "pink"
    states = [one._commands.state.learning.take()() for one in (agent, twin)]
    assert str(states[0]) == str(states[1])
    assert agent.reward("visit 99", 1.0)  # recorded, and not learnt
    assert str(agent._commands.state.learning.take()()) == str(states[1])


def test_agent_decides_while_a_snapshot_is_sealed_and_the_decision_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path / "shop.db", **{**SHOP, "training": "manual"})
    serve(agent, 0, 30)
    rounds, sealed = agent._commands.state.decisions, snapshots.checksum

    def meanwhile(content: Any) -> str:
        other = threading.Thread(target=agent.choose, args=(visit(31),), daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive(), "it waits for the snapshot"
        return sealed(content)

    monkeypatch.setattr(snapshots, "checksum", meanwhile)
    agent.save()
    ledger = agent._commands.ledger
    assert snapshots.load(ledger.snapshot(ledger.snapshots()[0]))["decisions"] == rounds
    assert agent._commands.state.decisions == rounds + 1
    agent.close()


def test_agent_goes_on_when_a_snapshot_could_not_be_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = shop(training="manual")
    serve(agent, 0, 30)

    def damaged(_: Any) -> str:
        raise SnapshotError("numbers that are not finite")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "checksum", damaged)
        with pytest.raises(SnapshotError, match="not finite"):
            agent.save()
    before = len(agent._commands.ledger.snapshots())
    agent.choose(visit(31))
    agent.save()
    assert len(agent._commands.ledger.snapshots()) == before + 1


def test_clock_that_goes_back_is_noted() -> None:
    now = [START]
    agent = shop(now=lambda: now[0])
    agent.choose({})
    now[0] = START - 7200
    assert agent.choose({}).timestamp == START - 7200
    now[0] += 5
    assert any(
        "the clock went back by 7200 seconds" in change for change in agent.explain().changes
    )


def test_private_field_and_subject_are_stored_as_hashes() -> None:
    from tidepull.agent.fields import Category

    agent = shop(context={"mail": Category(private=True)})
    agent.choose({"mail": "a@b.example"}, subject="Ann")
    agent.choose({"mail": "a@b.example"})
    contexts = [record.context for record in agent._commands.ledger.tail(0)]
    assert contexts[0] == contexts[1]
    assert "a@b" not in repr(list(agent._commands.ledger.tail(0)))
    assert "Ann" not in repr(list(agent._commands.ledger.tail(0)))


# ---- kept


def test_forgotten_subject_is_gone_from_the_ledger_and_the_agent_goes_on(
    place: str, tmp_path: Path
) -> None:
    with Agent(place, **SHOP, training="inline", snapshot_every=30) as agent:
        serve(agent, 0, 40)
        for _ in range(3):
            mine = agent.choose({"age": 77.125}, subject="Ann", at=START + 300.0 * 40)
        agent.reward(mine.id, 1.0)
        other = agent.choose({"age": 33.0}, subject="Bob", at=START + 300.0 * 40)
        hashed = agent._commands.hash("Ann")
        assert agent.forget("Ann") == 3
        assert agent.forget("Ann") == 0
        with pytest.raises(DecisionError):
            agent.reward(mine.id, 1.0)
        assert agent.reward(other.id, 1.0)
        with pytest.raises(InputError, match="rollback: what was known then cannot be rebuilt"):
            agent.rollback(START + 300.0 * 20)
        ahead = serve(agent, 41, 60)
    for file in tmp_path.iterdir():
        assert b"77.125" not in file.read_bytes()
        assert hashed not in file.read_bytes()
    with Agent(place, read_only=True) as agent:
        left = list(agent._commands.ledger.tail(0))
    assert not any(
        record.subject == hashed or b"77.125" in (record.context or b"") for record in left
    )
    with Agent(place, training="inline") as agent:
        assert agent._commands.state.differences == 0
        assert len(ahead) == 19
        agent.add("pink")
        agent.add("grey")  # more room: built anew from what is left
        assert agent._commands.state.arms.room == 8
        assert agent.reward("visit 56", 1.0)
        serve(agent, 60, 70)


def test_contexts_are_dropped_after_the_time_that_they_may_be_kept(place: str) -> None:
    with Agent(place, **SHOP, training="inline", snapshot_every=20, retention=3000) as agent:
        made = serve(agent, 0, 100)
        contexts = [r.context is not None for r in agent._commands.ledger.tail(0) if r.kind == 1]
    assert not any(contexts[:60])
    assert all(contexts[-10:])
    assert made == serve(twin := shop(retention=3000), 0, 100)
    with Agent(place, training="inline") as agent:
        assert serve(agent, 100, 120) == serve(twin, 100, 120)


def test_archived_decisions_leave_the_ledger_and_what_was_learnt_stays(
    place: str, tmp_path: Path
) -> None:
    twin = shop()
    with Agent(place, **SHOP, training="inline", snapshot_every=30) as agent:
        for one in (agent, twin):
            serve(one, 0, 60)
        first = agent.history("rows")[0]["id"]
        assert agent.compact(tmp_path / "old.parquet", START + 300.0 * 50) == 50
        assert agent.compact(tmp_path / "older.parquet", START) == 0
        assert [row["id"] for row in agent.history("rows")] == [f"visit {n}" for n in range(50, 60)]
        with pytest.raises(DecisionError, match=f"there is no decision '{first}'"):
            agent.reward(first, 1.0)
        with pytest.raises(ExpiredError, match="it was archived"):
            agent.reward(agent._commands.decisions.id(1), 1.0)
    with Agent(place, training="inline") as agent:
        late = [
            [one.choose(visit(n), at=START + 300.0 * n) for n in range(60, 90)]
            for one in (agent, twin)
        ]
        assert [(d.arm, d.propensity) for d in late[0]] == [(d.arm, d.propensity) for d in late[1]]
    heir = shop(seed=9)
    assert heir.learn_from(tmp_path / "old.parquet") == sum(1 for n in range(50) if n % 7)


def test_agent_goes_on_after_a_restart_as_if_nothing_had_happened(place: str) -> None:
    undisturbed = serve(shop(), 0, 300)
    made = []
    for first in range(0, 300, 50):
        given = SHOP if first == 0 else {}
        with Agent(place, **given, training="inline", snapshot_every=70) as agent:
            assert agent._commands.state.differences == 0
            made += serve(agent, first, first + 50)
    assert made == undisturbed


def test_tide_goes_on_after_a_restart_as_if_nothing_had_happened(tmp_path: Path) -> None:
    undisturbed = serve(shop(policy="tide"), 0, 140)
    made = []
    for first in (0, 50, 90):
        given = {**SHOP, "policy": "tide"} if first == 0 else {}
        with Agent(tmp_path / "shop.db", **given, training="inline", snapshot_every=60) as agent:
            assert agent._commands.state.differences == 0
            made += serve(agent, first, [50, 90, 140][[0, 50, 90].index(first)])
    assert made == undisturbed


def test_work_in_the_background_is_repeated_where_it_was_done(tmp_path: Path) -> None:
    with Agent(tmp_path / "shop.db", **{**SHOP, "policy": "tide"}, snapshot_every=10_000) as agent:
        serve(agent, 0, 120)
    with Agent(tmp_path / "shop.db") as agent:
        assert sum(record.slices for record in agent._commands.ledger.tail(0)) > 0
        assert agent._commands.state.decisions == 120
        assert agent._commands.state.differences == 0


def test_snapshot_in_the_middle_of_work_is_repeated_as_a_step(tmp_path: Path) -> None:
    """A snapshot sends unfinished work back to its start, so a replay without it would go on
    otherwise."""
    with Agent(tmp_path / "shop.db", **{**SHOP, "policy": "tide"}, training="manual") as agent:
        unfinished = 0
        for n in range(75):
            serve(agent, n, n + 1)
            agent.work()
            if n % 5 == 0:
                unfinished += agent._commands.state.learning.pending
                agent.save()
        assert unfinished > 2
        assert agent.check().differences == 0


@pytest.mark.parametrize("again", ["refuse", "add", "replace"])
def test_rewards_that_fall_due_are_the_same_after_restarts(place: str, again: Any) -> None:
    given = {
        **SHOP,
        "on_duplicate": again,
        "reward_within": 2000,
        "default_reward": 0.25,
        "training": "inline",
    }
    undisturbed = serve(Agent.memory(**given), 0, 90)
    made = []
    for first in (0, 30, 60):
        with Agent(place, **given, snapshot_every=50) as agent:
            made += serve(agent, first, first + 30)
            assert agent.check().differences == 0
    assert made == undisturbed


def test_second_writer_is_told_who_holds_the_agent(place: str) -> None:
    with Agent(place, **SHOP) as agent:
        serve(agent, 0, 5)
        with pytest.raises(
            HeldError, match=r"shop.* is held by this process \(.* since .*read_only=True"
        ):
            Agent(place)
        with Agent(place, read_only=True) as reader:
            assert reader._commands.state.decisions == 5
            with pytest.raises(LedgerError, match="read_only"):
                reader.choose({})
    with Agent(place) as again:
        again.choose({})


def test_agent_is_opened_again_without_its_choices_or_with_the_same(place: str) -> None:
    Agent(place, **SHOP, control=0.2).close()
    Agent(place).close()
    Agent(place, **SHOP, control=0.2).close()
    for given, message in (
        ({"propensity_draws": 9}, "made with another propensity_draws; it has 32: leave"),
        ({"policy": "ucb"}, "made with another policy"),
        ({"context": {"age": str}}, "made with other context"),
    ):
        with pytest.raises(ParameterError, match=message):
            Agent(place, **given)


def test_agent_cannot_be_opened_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(
        WrongStoreError, match="there is no agent at .*shop.db yet; to make one, give arms"
    ):
        Agent(tmp_path / "shop.db")
    with pytest.raises(WrongStoreError, match="directory of .* does not exist"):
        Agent(tmp_path / "no" / "shop.db", **SHOP)
    with pytest.raises(WrongStoreError, match="there is no agent at"):
        Agent(tmp_path / "other.db", read_only=True)


def test_closed_agent_leaves_one_file_and_says_that_it_is_closed(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "shop.db", **SHOP)
    agent.choose({})
    agent.close()
    assert {file.name for file in tmp_path.iterdir()} == {"shop.db", "shop.db.lock"}
    agent.close()
    with pytest.raises(LedgerError, match="is closed; open it again"):
        agent.choose({})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": []}, "arms must name at least one arm"),
        ({"arms": "blue"}, "arms must be a list of labels"),
        ({"arms": ["a", "a"]}, "there are two arms 'a'"),
        ({"arms": {"a": [1.0], "b": None}}, "must both have features"),
        ({"control": 1.5}, "control must be a number from 0 to 1"),
        ({"min_share": -0.1}, "min_share must be"),
        ({"propensity_draws": 0}, "propensity_draws must be a whole number"),
        ({"timezone": "Mars"}, "there is no time zone 'Mars'"),
        ({"policy": "tied"}, "did you mean 'tide'"),
        ({"policy": "oracle"}, "the oracle needs the truth"),
        ({"policy": ("ucb", {"xi": -1})}, "xi must be"),
        ({"default_reward": 0.0}, "default_reward needs reward_within"),
        ({"on_duplicate": "add"}, "needs reward_within"),
        ({"on_duplicate": "often"}, "on_duplicate must be"),
        ({"reward_within": -3}, "reward_within must be a positive"),
        ({"share_bounds": {"black": (0, 1)}}, "there is no arm 'black'"),
        ({"share_bounds": {"blue": (0.9, 0.1)}}, "must have a pair"),
        ({"share_bounds": {"blue": (0.6, 1), "red": (0.6, 1)}}, "they must leave room for 1"),
        ({"control_arm": "black"}, "control_arm: there is no arm 'black'"),
        ({"training": "never"}, "training must be"),
        ({"snapshot_every": 0}, "snapshot_every must be"),
        ({"context": {"age": complex}}, "field 'age' must be float"),
        ({"capacity": 2}, "capacity must be a whole number from 3"),
    ],
)
def test_wrong_choices_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shop(**given)


def test_worth_and_visits_are_the_same_in_every_process() -> None:
    assert visit(4) == {"device": "desktop", "age": visit(4)["age"]}
    assert {worth(n, "red") for n in range(20)} == {0.0, 1.0}


def test_a_mistyped_path_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(WrongStoreError, match="there is no agent at .*typo.db yet; to make one"):
        Agent(tmp_path / "typo.db")
    assert not list(tmp_path.iterdir())


def test_memory_has_the_name_that_sqlite_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Agent(":memory:", arms=["a", "b"], policy="ucb") as agent:
        assert agent.reward(agent.choose(), 1.0)
        assert repr(agent) == "<Agent at memory: ucb, arms a, b>"
    assert not list(tmp_path.iterdir())


def test_a_held_file_names_the_service_that_many_processes_can_call(tmp_path: Path) -> None:
    with (
        Agent(tmp_path / "shop.db", arms=["a", "b"], policy="ucb"),
        pytest.raises(HeldError, match="`tidepull serve`"),
    ):
        Agent(tmp_path / "shop.db")
