"""Ten teams that let an agent take over from their present rule, in steps.

    python -m research.benchmarks.safe_teams [--weeks 10] [--seeds 1] [--policy lin-ts] [--teams ...]

Every team lets its rule decide for a week, while the policy looks on (`control=1`, and the arm of the
rule as `baseline`). From then on it calls `agent.promote(policy)` every three days, the recipe of the
product, and does what that says. The team `drift` has an agent today, with the policy `fixed`, and
promotes another one from its shadow. Judged by the true expected reward of the arms that were played,
beside that of the rule in the same decisions: the gain in every week and over all weeks. Writes
research/results/safe_teams.csv; the table is in docs/how-to/try-it-safely.md.
"""

from __future__ import annotations

import argparse
import csv
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tidepull import Agent
from tidepull.registry import Named
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "safe_teams.csv"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "try-it-safely.md"
BEGIN, END = "<!-- teams: begin -->\n", "<!-- teams: end -->\n"
GAINS = ("gain", "last_week", "worst_week")
MONDAY, DAY = 1_780_272_000.0, 86_400.0
DEVICES = ("phone", "desktop")
EVERY = 3
"""Days between two steps."""


@dataclass(frozen=True)
class Visit:
    """A decision to make: when (days since the start, hour of the day), and for whom."""

    day: float
    hour: float
    phone: bool
    age: float

    @property
    def context(self) -> dict[str, Any]:
        """What the agent is told."""
        return {"device": DEVICES[not self.phone], "age": self.age}


@dataclass(frozen=True)
class Team:
    """A team: the true mean reward of each arm in a visit, and the arm that its rule takes."""

    words: str
    arms: int
    visits: int
    means: Callable[[Visit], FloatArray]
    rule: Callable[[Visit], int]
    money: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    late: float = 0.0
    today: Named | None = None  # a policy in the agent that is the rule of today
    policy: Named | None = None  # for such a world, instead of the one that is given


def _evening(visit: Visit) -> bool:
    return 17 <= visit.hour < 23


def _seasonal(visit: Visit) -> FloatArray:
    """The second arm is best from 17 to 23, the third at night, the first else."""
    night = visit.hour < 10
    best = 1 if _evening(visit) else 2 if night else 0
    return np.where(np.arange(3) == best, 0.50, 0.36)


def _perfect(visit: Visit) -> FloatArray:
    best = 1 if _evening(visit) else 2 if visit.phone else 0
    return np.where(np.arange(3) == best, 0.50, 0.42)


def _by_context(visit: Visit) -> FloatArray:
    young = visit.age < 35
    best = (0 if visit.phone else 1) if young else 2
    return np.where(np.arange(4) == best, 0.50, 0.38)


_MANY = np.random.default_rng(7).uniform(0.25, 0.50, 30)
_DRIFT = np.array([0.0, 0.33, 0.66])

TEAMS: dict[str, Team] = {
    "clicks": Team(
        "four banners, the second best one for all", 4, 500,
        lambda _: np.array([0.34, 0.40, 0.48, 0.30]), lambda _: 1,
    ),
    "revenue": Team(
        "orders of very different size, one offer for all", 3, 500,
        lambda _: np.array([4.0, 4.6, 5.6]), lambda _: 1, money=True, policy="hurdle-ts",
    ),
    "hours": Team(
        "best arm by the hour; the rule knows the evening, not the night", 3, 400,
        _seasonal, lambda visit: 1 if _evening(visit) else 0,
    ),
    "context": Team(
        "best arm by age and device; the rule knows the device", 4, 400,
        _by_context, lambda visit: 0 if visit.phone else 1,
    ),
    "perfect": Team(
        "the rule takes the best arm in every visit", 3, 500,
        _perfect, lambda visit: int(np.argmax(_perfect(visit))),
    ),
    "bad": Team(
        "the rule takes the worst arm", 4, 300,
        lambda _: np.array([0.25, 0.45, 0.36, 0.40]), lambda _: 0,
    ),
    "drift": Team(
        "the best arm changes every few weeks; today the policy `fixed` decides", 3, 300,
        lambda visit: 0.4 + 0.12 * np.cos(2 * np.pi * (visit.day / 84 - _DRIFT)),
        lambda _: 0, today=("fixed", {"arm": 0}), policy=("sw-ucb", {"window": 2000}),
    ),
    "few": Team(
        "60 visits a day", 3, 60,
        lambda _: np.array([0.40, 0.45, 0.52]), lambda _: 1,
    ),
    "many": Team(
        "30 arms, a good one for all", 30, 250,
        lambda _: _MANY, lambda _: int(np.argsort(_MANY)[-6]),
    ),
    "late": Team(
        "clicks come after a day on average, no click means no message", 3, 300,
        lambda visit: _seasonal(visit)[[0, 1, 2]], lambda _: 0,
        settings={"reward_within": 4 * DAY, "default_reward": 0.0}, late=DAY,
    ),
}  # fmt: skip


def visits_of(rng: np.random.Generator, team: Team, day: int) -> list[Visit]:
    """The visits of a day, more of them in the evening."""
    weights = 1.3 + np.cos(2 * np.pi * (np.arange(24) - 19) / 24)
    hours = np.sort(
        rng.choice(24, team.visits, p=weights / weights.sum()) + rng.random(team.visits)
    )
    phone, age = rng.random(team.visits) < 0.6, rng.uniform(18, 70, team.visits)
    return [
        Visit(day + hour / 24, hour, bool(p), float(a))
        for hour, p, a in zip(hours.tolist(), phone, age, strict=True)
    ]


class Run:
    """An agent in a team's world; `own` and `rules` are true mean rewards of each week."""

    def __init__(self, team: Team, policy: Named, seed: int, weeks: int) -> None:
        self.team, self.policy = team, policy
        self._rng = np.random.default_rng([seed, 1])
        self._visits = np.random.default_rng([seed, 0])
        rule: dict[str, Any] = {"policy": policy, "control": 1.0}
        if team.today is not None:
            rule = {"policy": team.today, "shadow": [policy], "control": 0.0}
        self.labels = [f"arm {n}" for n in range(team.arms)]
        self.agent = Agent.memory(
            arms=self.labels, context={"device": list(DEVICES), "age": float}, seed=seed,
            training="background", snapshot_every=1 << 40, **rule, **team.settings,
        )  # fmt: skip
        self.own, self.rules = np.zeros(weeks), np.zeros(weeks)
        self.shares: list[float] = []
        self._waiting: list[tuple[float, str]] = []

    def play(self, days: int) -> None:
        """All days; the first week nothing is promoted."""
        for day in range(days):
            if day >= 7 and (day - 7) % EVERY == 0:
                self.shares.append(self.agent.promote(self.policy).share)
            for visit in visits_of(self._visits, self.team, day):
                self._visit(visit, day // 7)

    def _visit(self, visit: Visit, week: int) -> None:
        at, means = MONDAY + DAY * visit.day, self.team.means(visit)
        while self._waiting and self._waiting[0][0] <= at:
            paid_at, id = heapq.heappop(self._waiting)
            self.agent.reward(id, 1.0, at=paid_at)
        rule = self.team.rule(visit)
        named = None if self.team.today is not None else self.labels[rule]
        decision = self.agent.choose(visit.context, at=at, baseline=named)
        arm = self.labels.index(decision.arm)
        self.own[week] += means[arm]
        self.rules[week] += means[rule]
        if self.team.late:
            if self._rng.random() < means[arm]:
                delay = min(self._rng.exponential(self.team.late), 3.9 * DAY)
                heapq.heappush(self._waiting, (at + delay, decision.id))
        else:
            self.agent.reward(decision, self._reward(float(means[arm])), at=at)

    def _reward(self, mean: float) -> float:
        if not self.team.money:
            return float(self._rng.random() < mean)
        order = self._rng.random() < 0.4
        return float(order * mean / 0.4 * self._rng.lognormal(-0.18, 0.6))


def outcome(name: str, policy: str, seed: int, weeks: int) -> dict[str, Any]:
    """What became of a team: its gain over its rule in all, and in its worst week."""
    team = TEAMS[name]
    chosen = team.policy or policy
    run = Run(team, chosen, seed, weeks)
    run.play(7 * weeks)
    gains = run.own / run.rules - 1
    return {
        "team": name,
        "words": team.words,
        "seed": seed,
        "policy": chosen if isinstance(chosen, str) else chosen[0],
        "weeks": weeks,
        "gain": run.own.sum() / run.rules.sum() - 1,
        "worst_week": gains.min(),
        "last_week": gains[-1],
        "largest_share": max(run.shares),
        "share": run.shares[-1],
        "by_week": " ".join(f"{gain:+.3f}" for gain in gains),
    }


def page(text: str) -> str:
    """The page of the manual with the table of what is in the results."""
    with OUT.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    columns = ("team", "policy", "gain", "last week", "worst week", "share at the end")
    lines: list[tuple[str, ...]] = [columns, ("---", "---", "---:", "---:", "---:", "---:")]
    lines += [
        (
            row["words"], f"`{row['policy']}`", *(f"{float(row[name]):+.1%}" for name in GAINS),
            f"{float(row['share']):.0%}",
        )
        for row in rows
    ]  # fmt: skip
    head, rest = text.split(BEGIN)
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return head + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1]


def main() -> None:
    """Play all teams, and put what became of them into the manual."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--weeks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--policy", default="lin-ts")
    parser.add_argument("--teams", nargs="*", default=list(TEAMS))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows = []
    for name in given.teams:
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            row = outcome(name, given.policy, seed, given.weeks)
            rows.append({n: f"{v:.4f}" if isinstance(v, float) else v for n, v in row.items()})
            print(*rows[-1].values(), flush=True)
            with given.out.open("w", newline="") as handle:
                writer = csv.DictWriter(handle, rows[0])
                writer.writeheader()
                writer.writerows(rows)
    if given.out == OUT:
        PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
