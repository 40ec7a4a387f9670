"""Rounds of policies in process: beside other libraries, and how their cost grows.

A round is `choose`, `learn` and the upkeep that became due, in processor time of the thread. Rivals
run behind tidepull's adapters, which hand on contexts and rewards.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.agent_speed import CONTEXT, visits
from tidepull._internal.system import one_blas_thread
from tidepull.agent.agent import Agent
from tidepull.integrations import external  # noqa: F401  (registers the policies of others)
from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

RIVALS: dict[str, tuple[ProblemShape, tuple[str, ...]]] = {
    "5 arms, no context": (
        ProblemShape(5),
        ("bernoulli-ts", "tide", "mabwiser-thompson", "river-thompson"),
    ),
    "5 arms, a context of 8 numbers": (
        ProblemShape(5, observation_dim=8),
        ("lin-ts", "tide", "mabwiser-lints", "river-linucb-disjoint", "vw-squarecb"),
    ),
}
GROWING = ("bernoulli-ts", "lin-ts", "tide")
WARM_UP = 100
_START = 1.78e9
"""Seconds since 1970 of the first decision of agents; each count of them has a day of its own."""


@dataclass(frozen=True)
class RoundRow:
    """Microseconds of a round: the median, the 99th percentile, the mean."""

    policy: str
    median: float
    p99: float
    mean: float


def measure(policy: str, shape: ProblemShape, rounds: int) -> RoundRow:
    """The last rounds of so many, after a tenth and at least `WARM_UP`."""
    rng, spent = np.random.default_rng(0), []
    learner = build_policy(policy, shape, seed=0)
    with one_blas_thread():
        for _ in range(max(WARM_UP, rounds // 10) + rounds):
            context = Context(
                observation=rng.normal(size=shape.observation_dim)
                if shape.observation_dim
                else None
            )
            reward = float(rng.random() < 0.3)
            started = time.thread_time_ns()
            arm = learner.choose(context)
            learner.learn(Event(context, arm, reward))
            while learner.upkeep():
                pass
            spent.append(time.thread_time_ns() - started)
    late = np.array(spent[-rounds:]) / 1e3
    median, p99 = np.percentile(late, [50, 99])
    return RoundRow(policy, float(median), float(p99), float(late.mean()))


def libraries(rounds: int) -> dict[str, list[RoundRow]]:
    """Ours and theirs, case by case."""
    return {
        case: [measure(policy, shape, rounds) for policy in policies]
        for case, (shape, policies) in RIVALS.items()
    }


def growth(rounds: int, horizons: tuple[int, ...]) -> list[tuple[str, dict[str, float]]]:
    """Mean microseconds of a round by what grows; everything else is 5 arms and 5 numbers."""
    shape = ProblemShape(5, observation_dim=5)
    rows = [
        (f"round {horizon:,}", {p: _around(p, shape, horizon) for p in GROWING})
        for horizon in horizons
    ]
    for arms in (2, 10, 100, 1000):
        few = max(100, rounds // (1 + arms // 100))
        of = {p: measure(p, ProblemShape(arms, observation_dim=5), few).mean for p in GROWING}
        rows.append((f"{arms:,} arms", of))
    for fields in (1, 5, 20, 50):
        of = {p: measure(p, ProblemShape(5, observation_dim=fields), rounds).mean for p in GROWING}
        rows.append((f"{fields} numbers in the context", of))
    return rows


def _around(policy: str, shape: ProblemShape, horizon: int) -> float:
    """The mean of the last hundred rounds before a round."""
    rng, learner = np.random.default_rng(0), build_policy(policy, shape, seed=0)
    spent = 0
    with one_blas_thread():
        for t in range(horizon):
            context = Context(observation=rng.normal(size=shape.observation_dim))
            reward = float(rng.random() < 0.3)
            started = time.thread_time_ns()
            learner.learn(Event(context, learner.choose(context), reward))
            while learner.upkeep():
                pass
            if t >= horizon - 100:
                spent += time.thread_time_ns() - started
    return spent / 1e3 / min(100, horizon)


@dataclass(frozen=True)
class AgentsRow:
    """So many agents in one process: microseconds of a decision with its reward, and megabytes of
    each further agent."""

    agents: int
    micro: float
    megabytes: float


def agents(counts: tuple[int, ...], calls: int, policy: str = "tide") -> list[AgentsRow]:
    """Agents in memory that decide in turn, a decision every minute; another one loads the kernels
    before."""
    rows, given, opened = [], visits(calls), list[Agent]()
    _play([_agent(policy, 0)], given, _START)
    first = 0.0
    for day, count in enumerate(counts):
        while len(opened) < count:
            opened.append(_agent(policy, len(opened)))
        spent = _play(opened, given, _START + 86_400.0 * day)
        first = first or _resident()
        grown = 0.0 if count == 1 else (_resident() - first) / (count - 1)
        rows.append(AgentsRow(count, spent / 1e3 / calls, grown))
    return rows


def _play(opened: list[Agent], given: list[dict[str, Any]], start: float) -> int:
    """Nanoseconds of all decisions in turn, with rewards and upkeep."""
    rng, spent = np.random.default_rng(1), 0
    for n, context in enumerate(given):
        agent, moment = opened[n % len(opened)], start + 60.0 * n
        reward = float(rng.random() < 0.3)
        started = time.thread_time_ns()
        agent.reward(agent.choose(context, at=moment).id, reward, at=moment + 5)
        while agent.work():
            pass
        spent += time.thread_time_ns() - started
    return spent


def _agent(policy: str, seed: int) -> Agent:
    arms = [f"arm {k}" for k in range(5)]
    return Agent.memory(arms=arms, context=CONTEXT, policy=policy, seed=seed, training="manual")


def _resident() -> float:
    """Megabytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024
