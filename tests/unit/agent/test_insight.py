"""What an agent says of itself: words, tables, files, pictures, warnings; and the same from the
shell."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.unit.agent.worlds import SHOP, START, serve, visit
from tidepull.agent.clock import Clock
from tidepull.agent.insight import NOT_ENOUGH, beliefs_of
from tidepull.agent.log import RecentShares, next_change, spans
from tidepull.agent.served import ServedAgent
from tidepull.cli.app import app
from tidepull.errors import DataError, InputError
from tidepull.tide.explain import Belief

MONDAY = datetime(2026, 6, 1, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def evening_shop() -> ServedAgent:
    """Red is best from 18 to 23, blue otherwise; decisions every half hour for ten weeks."""
    agent = ServedAgent.memory(
        arms=["blue", "green", "red"], context={}, policy=("lin-ts", {"noise_std": 0.5}), seed=1, control=0.2,
        training="inline",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for n in range(70 * 48):
        at = MONDAY + 1800.0 * n
        best = "red" if 18 <= (n / 2) % 24 < 23 else "blue"
        decision = agent.choose({}, at=at)
        agent.reward(
            decision.id, float(rng.random() < (0.7 if decision.arm == best else 0.2)), at=at + 60
        )
    return agent


def test_report_says_when_which_arm_is_best_and_what_it_gained(evening_shop: ServedAgent) -> None:
    report = evening_shop.explain()
    text = str(report)
    assert report.status.startswith("3,360 decisions since 01 June 2026, 3,360 with a reward")
    assert set(report.chances) == {"blue", "green", "red"}
    assert sum(report.chances.values()) == pytest.approx(1, abs=1e-3)
    red = next(line for line in report.when if line.startswith("red is best"))
    assert any(f"from {hour}:00" in red for hour in (17, 18, 19))
    assert report.next is not None
    assert "takes over from" in report.next
    assert report.lift.low > 0
    assert "more reward than random arms (95% sure at every look: " in text
    assert "Warning: Arm 'green' got" in text


def test_report_of_a_new_agent_has_nothing_to_say() -> None:
    assert str(ServedAgent.memory(**SHOP).explain()).startswith("No decisions yet.")


def test_report_names_what_changed() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    serve(agent, 0, 5)
    agent.add("pink", at=START)
    agent.rename("pink", "rose", at=START + 60)
    agent.freeze()
    changes = agent.explain().changes
    assert changes[0] == "01 July 2026 10:00: arm 'pink' added"
    assert changes[1] == "01 July 2026 10:01: arm 'pink' renamed to 'rose'"
    assert changes[2].endswith(": frozen")
    assert "It is frozen" in str(agent.explain())


def test_report_after_a_rollback_tells_what_is_believed_then() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    serve(agent, 0, 60)
    before = agent.explain().chances
    serve(agent, 60, 120)
    reader = agent.reader()
    assert agent.aside(reader).report().chances != before
    agent.rollback(START + 300.0 * 59.5)
    assert agent.explain().chances == before
    assert agent.aside(reader).report().chances == before


def test_report_of_a_moment_is_the_one_that_was_made_then() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    serve(agent, 0, 60)
    then = agent.explain()
    serve(agent, 60, 90)
    assert agent.explain(at=START + 300.0 * 59.9) == then
    assert agent.explain(at=START - 1).status == "No decisions yet."
    agent.compact(None, before=START + 300.0 * 30)
    with pytest.raises(InputError, match="what was known then cannot be rebuilt"):
        agent.explain(at=START + 300.0 * 10)


def test_report_tells_no_hours_after_a_few_decisions() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    serve(agent, 0, 1)
    report = agent.explain()
    assert report.status == "1 decision since 01 July 2026, no reward yet."
    assert report.when == [NOT_ENOUGH]
    assert report.next is None
    assert "Chance to be best" not in str(report)


def test_tide_s_beliefs_are_told_by_the_labels_of_arms() -> None:
    heard = [Belief("arm 1 is best", "turns", 0.96), Belief("arm 0 fades", "changes", 0.04)]
    policy = SimpleNamespace(explain=lambda _: SimpleNamespace(beliefs=heard))
    assert beliefs_of(policy, {0: "blue", 1: "red"}, False) == [("red is best", 0.96)]


def test_a_belief_is_told_only_where_all_models_that_hold_it_are_sure_together() -> None:
    heard = [
        Belief("follows the hour of the day, the weekend", "structural", 0.6),
        Belief("follows the hour of the day, with a slow deviation", "structural", 0.375),
        Belief("nothing changes", "stationary", 0.025),
    ]
    policy = SimpleNamespace(explain=lambda _: SimpleNamespace(beliefs=heard))
    ((words, chance),) = beliefs_of(policy, {}, False)
    assert words == "reward follows the hour of the day"
    assert chance == pytest.approx(0.975)
    heard[0] = Belief("no season", "structural", 0.6)
    assert beliefs_of(policy, {}, False) == []


def test_that_no_season_shows_is_not_told() -> None:
    words = "no season, with a slow deviation"
    beliefs = (Belief(words, "structural", 0.99),)
    policy = SimpleNamespace(explain=lambda _: SimpleNamespace(beliefs=beliefs))
    assert beliefs_of(policy, {}, False) == [("arms change slowly", 0.99)]


def test_tide_says_nothing_of_time_after_a_few_decisions() -> None:
    agent = ServedAgent.memory(**{**SHOP, "policy": "tide"}, training="manual")
    serve(agent, 0, 10)
    assert agent.explain().beliefs == []


def test_hours_that_go_over_midnight_are_one_span() -> None:
    best = np.zeros((2, 24), int)
    best[:, 22:] = best[:, :3] = 1
    assert spans(best) == [(0, "from 3:00 to 22:00"), (1, "from 22:00 to 3:00")]
    assert spans(np.zeros((2, 24), int)) == [(0, "at all hours")]
    change = next_change(best, datetime(2026, 6, 1, 21, 30, tzinfo=UTC))
    assert change == (datetime(2026, 6, 1, 22, tzinfo=UTC), 0, 1)
    unknown = RecentShares(Clock()).best_hours(2)
    assert spans(unknown) == []
    assert next_change(unknown, datetime(2026, 6, 1, tzinfo=UTC)) is None


def test_warning_says_that_rewards_have_stopped() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    for n in range(80):
        at = START + 300.0 * n
        decision = agent.choose(visit(n), at=at)
        if n < 50:
            agent.reward(decision.id, 1.0, at=at + 60)
        if n in (49, 52):
            assert agent.explain().alarms == []
    assert (
        agent.explain()
        .alarms[0]
        .startswith("Rewards have stopped coming: none for the last 29 decisions")
    )


def test_warning_says_that_a_context_drifts_out_of_its_range() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    for n in range(60):
        agent.choose({"age": 40.0 + n % 5, "device": "tv" if n > 30 else "phone"})
    for _ in range(12):
        agent.choose({"age": 1e6 * 1.5**_})
    alarms = agent.explain().alarms
    assert any(
        "Field 'device' had values 29 times that its list does not have" in alarm
        for alarm in alarms
    )


def test_history_has_a_row_for_each_decision() -> None:
    agent = ServedAgent.memory(**SHOP, training="inline")
    made = serve(agent, 0, 30)
    frame = agent.history()
    assert list(frame["arm"]) == [arm for arm, _, _ in made]
    assert list(frame["propensity"]) == [p for _, p, _ in made]
    assert frame["reward"].notna().sum() == 23
    assert frame["at"].iloc[0].timestamp() == START
    assert set(frame.columns) >= {"id", "group", "rewarded_at", "context.age", "context.device"}
    with pytest.raises(InputError, match="kind must be"):
        agent.history("excel")  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_export_can_be_learnt_by_another_agent(tmp_path: Path, ending: str) -> None:
    agent = ServedAgent.memory(**SHOP, training="inline", control=0.0)
    serve(agent, 0, 300)
    path = tmp_path / f"log.{ending}"
    assert agent.export(path) == 300
    heir = ServedAgent.memory(**{**SHOP, "seed": 8}, training="inline", control=0.0)
    assert heir.learn_from(path) == sum(1 for n in range(297) if n % 7)
    rows = heir.history("rows")
    assert {row["group"] for row in rows} == {"imported"}
    old = [row for row in agent.history("rows") if row["reward"] is not None]
    assert [(r["arm"], r["reward"], r["at"]) for r in rows] == [
        (r["arm"], r["reward"], r["at"]) for r in old
    ]
    made = [heir.choose(visit(n), at=START + 300.0 * (400 + n)).arm for n in range(40)]
    assert made.count("red") > 25


def test_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    agent = ServedAgent.memory(**SHOP)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"arm": "red", "reward": 1}\nnonsense\n')
    with pytest.raises(DataError, match="bad.jsonl: line 2 cannot be read"):
        agent.learn_from(bad)
    with pytest.raises(DataError, match="there is no file"):
        agent.learn_from(tmp_path / "none.csv")
    with pytest.raises(InputError, match="the file's ending says the format"):
        agent.export(tmp_path / "log.xlsx")


def test_picture_is_drawn(tmp_path: Path, evening_shop: ServedAgent) -> None:
    evening_shop.plot(tmp_path / "agent.png")
    assert (tmp_path / "agent.png").read_bytes().startswith(b"\x89PNG")


def run(*words: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["agent", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_shell_tells_what_python_tells(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with ServedAgent(path, **SHOP, training="inline") as agent:
        serve(agent, 0, 60)
        assert run(path, "explain") == (0, str(agent.explain()) + "\n")
        assert run(path, "lift") == (0, str(agent.lift()) + "\n")
    assert json.loads(run(path, "lift", "--json", "--since", "2020-01-01")[1])["n_policy"] > 40
    assert len(json.loads(run(path, "history", "--json", "--last", 7)[1])) == 7
    assert run(path, "history")[1].count("visit ") == 20
    assert run(path, "export", tmp_path / "log.csv")[0] == 0
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 61
    assert run(path, "plot", tmp_path / "shop.svg")[0] == 0
    code, text = run(path, "check")
    assert code == 0
    assert "every decision comes out as it was" in text
