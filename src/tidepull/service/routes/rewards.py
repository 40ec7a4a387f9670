"""What decisions were worth."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from tidepull.agent.commands import Caller
from tidepull.errors import InputError, StoreError, TidepullError
from tidepull.service.auth import Scope
from tidepull.service.hosting import Hosted
from tidepull.service.messages import RewardAnswer, RewardBatch, RewardBody, RewardsTaken, RewardTaken
from tidepull.service.operation import Call, Operation
from tidepull.service.problems import HttpError, problem_of

AT_ONCE = 0.002
"""Seconds of a batch after which others have a turn: a reward of `tide` takes a third of a millisecond."""


async def reward(call: Call) -> RewardTaken:
    """Take a reward; it is safe when this returns."""
    body: RewardBody = call.body
    hosted = await call.agent()
    news, seq = hosted.agent.reward_ahead(body.id, body.reward, at=body.at, key=body.key, caller=call.caller)
    await hosted.turns.committed(seq)
    call.service.metrics.rewarded(call.name, int(news))
    call.service.taken(hosted)
    return RewardTaken(id=body.id, duplicate=not news)


async def rewards(call: Call) -> RewardsTaken:
    """Take many, each for itself."""
    bodies: list[RewardBody] = call.body.rewards
    if len(bodies) > call.service.limits.batch:
        raise HttpError(
            422, f"A batch has at most {call.service.limits.batch:,} rewards, this one has {len(bodies):,}."
        )
    hosted = await call.agent()
    with hosted.in_use():
        steps = await _all_taken(hosted, bodies, call.caller)
        waits = [hosted.turns.committed(step[1]) if isinstance(step, tuple) else None for step in steps]
        answers = [await _answered(*one) for one in zip(bodies, steps, waits, strict=True)]
    taken = sum(answer.status == 200 for answer in answers)
    call.service.metrics.rewarded(call.name, sum(answer.duplicate is False for answer in answers))
    call.service.taken(hosted)
    return RewardsTaken(taken=taken, refused=len(answers) - taken, rewards=answers)


Step = tuple[bool, int] | TidepullError
"""Whether a reward is news and the number of its record; or why it was refused."""


async def _all_taken(hosted: Hosted, bodies: list[RewardBody], caller: Caller) -> list[Step]:
    steps: list[Step] = []
    since = time.perf_counter()
    for body in bodies:
        if time.perf_counter() - since > AT_ONCE:
            await asyncio.sleep(0)
            since = time.perf_counter()
        try:
            steps.append(
                hosted.agent.reward_ahead(body.id, body.reward, at=body.at, key=body.key, caller=caller)
            )
        except InputError as error:
            steps.append(error)
        except StoreError as error:  # the ledger does not take the rest either
            return steps + [error] * (len(bodies) - len(steps))
    return steps


async def _answered(body: RewardBody, step: Step, safe: Awaitable[None] | None) -> RewardAnswer:
    """By what became of its own record: others of the batch may have been committed before or after it."""
    if safe is not None:
        try:
            await safe
        except StoreError as error:
            step = error
    if isinstance(step, tuple):
        return RewardAnswer(id=body.id, status=200, duplicate=not step[0])
    problem = problem_of(step)
    assert problem is not None
    return RewardAnswer(id=body.id, status=problem.status, detail=problem.detail)


OPERATIONS = [
    Operation(
        "POST",
        "/v1/agents/{name}/reward",
        "reward",
        "Say what a decision was worth: now, tomorrow, twice, or never.",
        reward,
        Scope.DECIDE,
        RewardTaken,
        RewardBody,
        problems=(409, 410),
        example={"id": "17-5f0c2d1e", "reward": 1.0},
        answered={"id": "17-5f0c2d1e", "duplicate": False},
    ),
    Operation(
        "POST",
        "/v1/agents/{name}/rewards",
        "rewards",
        "Many rewards at once; each is taken or refused for itself.",
        rewards,
        Scope.DECIDE,
        RewardsTaken,
        RewardBatch,
        example={"rewards": [{"id": "17-5f0c2d1e", "reward": 1.0}, {"id": "visit 18", "reward": 0}]},
        answered={
            "taken": 1,
            "refused": 1,
            "rewards": [
                {"id": "17-5f0c2d1e", "status": 200, "duplicate": False},
                {"id": "visit 18", "status": 404, "detail": "there is no decision 'visit 18' of this agent."},
            ],
        },
    ),
]
