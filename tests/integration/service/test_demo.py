"""What the report and the page say is so: of the demo by its truth, and of arms that are alike nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from examples.serve_shop import LIKED, NEW_FOR, OTHERWISE, best, fill
from tidepull.agent.insight import NO_BEST_ARM, AgentReport
from tidepull.agent.served import ServedAgent
from tidepull.types import IntArray

pytestmark = pytest.mark.slow
END = datetime(2026, 7, 1, 19, 30, tzinfo=UTC).timestamp()  # a Wednesday
MONDAY = datetime(2026, 6, 22, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0
ADDED = END - NEW_FOR * 28 * DAY


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedAgent]:
    path = tmp_path_factory.mktemp("demo") / "shop.db"
    fill(path, end=END)
    with ServedAgent(path, read_only=True) as agent:
        yield agent


@pytest.fixture(scope="module")
def report(demo: ServedAgent) -> AgentReport:
    return demo.explain()


def week_of(agent: ServedAgent) -> list[list[str | None]]:
    insight = agent.aside()
    week: IntArray = insight.best_of_week()
    return [[insight.open.get(arm) for arm in day] for day in week.tolist()]


def test_hours_that_are_named_are_right_by_day_28(demo: ServedAgent, report: AgentReport) -> None:
    truth = [[best(MONDAY + d * DAY + (h + 0.5) * HOUR, 0.0) for h in range(24)] for d in range(7)]
    week = week_of(demo)
    wrong = [
        (d, h, said, truth[d][h])
        for d, day in enumerate(week)
        for h, said in enumerate(day)
        if said is not None and said != truth[d][h]
    ]
    assert not wrong
    assert sum(said is not None for day in week for said in day) > 20
    assert [week[day][20] for day in range(5)] == ["dinner"] * 5
    named = {sentence.split(" is best ")[0] for sentence in report.when}
    assert named == {said for day in week for said in day if said is not None}


def require_true_change(words: str) -> None:
    """ "Next change at 17:00: dinner takes over from picnic." is so."""
    found = re.fullmatch(
        r"Next change (?:at|on (\w+) at) (\d+):00: (\w+) takes over from (\w+)\.", words
    )
    assert found is not None
    day, hour, new, old = found.groups()
    moments = END - END % HOUR + HOUR * np.arange(1, 7 * 24)
    moment = next(
        at
        for at in moments.tolist()
        if (then := datetime.fromtimestamp(at, UTC)).hour == int(hour)
        and (day is None or f"{then:%A}" == day)
    )
    assert best(moment + HOUR / 2, 0.0) == new
    assert old in {best(at + HOUR / 2, 0.0) for at in moments.tolist() if at < moment} | {
        best(END, 0.0)
    }


def test_next_change_and_beliefs_agree_with_the_truth(report: AgentReport) -> None:
    if report.next is not None:  # it is said where two arms are sure
        require_true_change(report.next)
    assert "the hour of the day" in report.beliefs[0]
    assert max(report.chances.items(), key=lambda item: item[1])[0] == best(END, 0.0) == "dinner"


def test_interval_of_the_gain_has_the_true_one_inside(
    demo: ServedAgent, report: AgentReport
) -> None:
    gains = []
    for row in demo.history("rows"):
        if row["group"] == "policy":
            at = datetime.fromisoformat(row["at"]).timestamp()
            right, arms = best(at, ADDED), 3 + (at >= ADDED)
            gains.append((row["arm"] == right) - 1 / arms)
    gain = (LIKED - OTHERWISE) * float(np.mean(gains))
    assert report.lift.against == "random arms"
    assert 0 < report.lift.low < gain < report.lift.high


def test_of_three_identical_arms_no_hour_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with ServedAgent(
        tmp_path / "alike.db", arms=["red", "green", "blue"], context={}, seed=1, training="inline"
    ) as agent:
        for n in range(2500):
            at = END + n * 21 * DAY / 2500
            agent.reward(agent.choose(at=at).id, float(rng.random() < 0.08), at=at)
        said = agent.explain()
        assert said.when == [NO_BEST_ARM]
        assert said.next is None
        assert {arm for day in week_of(agent) for arm in day} == {None}
