"""Decisions and their rewards, one at a time or many in one request."""

from __future__ import annotations

import time

from tidepull.agent.commands import Caller, Request
from tidepull.agent.decisions import Decision
from tidepull.agent.served import ServedAgent
from tidepull.errors import InputError, StoreError, TidepullError
from tidepull.service.auth import Scope
from tidepull.service.messages import (
    MOST_NAME,
    ChooseBatch,
    ChooseBody,
    DecisionMade,
    DecisionsMade,
    RecordBody,
    RewardAnswer,
    RewardBatch,
    RewardBody,
    RewardsTaken,
    RewardTaken,
)
from tidepull.service.operations import Call, Operations
from tidepull.service.problem_details import HttpError, problem_of

OPERATIONS = Operations()
REWARDS_SECONDS = 0.002
"""Time for rewards of a batch after which others of the same agent have a turn."""
Step = tuple[bool, int] | TidepullError
"""Whether a reward is news and the number of its record; or why it was refused."""


@OPERATIONS.post("/v1/agents/{name}/choose", Scope.DECIDE, problems=(409,))
async def choose(call: Call, body: ChooseBody) -> DecisionMade:
    """Choose an arm. The decision is on disk before the answer leaves."""
    request = _request(body, _key(call), call.caller)
    hosted = await call.agent()
    decision = await hosted.choose(request)
    call.service.metrics.decided(call.name)
    call.service.schedule_upkeep(hosted)
    return _decision_shown(decision)


@OPERATIONS.post("/v1/agents/{name}/choose/batch", Scope.DECIDE, problems=(409,))
async def choose_batch(call: Call, body: ChooseBatch) -> DecisionsMade:
    """Make many decisions in one commit, all or none."""
    bodies: list[ChooseBody] = body.decisions
    _require_batch(call, len(bodies), "decisions")
    if b"idempotency-key" in call.headers:
        raise HttpError(
            422, "In a batch every decision has its own `id`: leave the Idempotency-Key out."
        )
    call.charge(len(bodies))
    requests = [_request(body, None, call.caller) for body in bodies]
    hosted = await call.agent()
    decisions = await hosted.durable(lambda agent: agent.choose_ahead(requests))
    call.service.metrics.decided(call.name, len(decisions))
    call.service.schedule_upkeep(hosted)
    return DecisionsMade(decisions=[_decision_shown(decision) for decision in decisions])


@OPERATIONS.post("/v1/agents/{name}/record", Scope.DECIDE)
async def record(call: Call, body: RecordBody) -> DecisionMade:
    """Learn from a decision that was made elsewhere, such as by the present rule."""
    arguments = {
        name: getattr(body, name) for name in ("reward", "propensity", "subject", "at", "id")
    }
    hosted = await call.agent()
    decision = await hosted.change(lambda agent: agent.record(body.context, body.arm, **arguments))
    call.service.metrics.decided(call.name)
    call.service.schedule_upkeep(hosted)
    return _decision_shown(decision)


def _require_batch(call: Call, size: int, what: str) -> None:
    most = call.service.limits.batch
    if size > most:
        raise HttpError(422, f"A batch has at most {most:,} {what}, this one has {size:,}.")


def _key(call: Call) -> str | None:
    header = call.headers.get(b"idempotency-key")
    if header is None:
        return None
    key = header.decode("latin-1")
    if not 0 < len(key) <= MOST_NAME or not key.isprintable():
        raise HttpError(422, "The Idempotency-Key must have 1 to 256 printable characters.")
    if call.body.id not in (None, key):
        raise HttpError(422, "The Idempotency-Key and the field `id` differ: give one of them.")
    return key


def _request(body: ChooseBody, key: str | None, caller: Caller) -> Request:
    return Request(
        body.context,
        body.arms,
        body.subject,
        body.at,
        key or body.id,
        caller=caller,
        baseline=body.baseline,
    )


def _decision_shown(decision: Decision) -> DecisionMade:
    return DecisionMade(
        id=decision.id,
        arm=decision.arm,
        propensity=decision.propensity,
        group=decision.group,  # type: ignore[arg-type]
        at=decision.timestamp,
    )


@OPERATIONS.post("/v1/agents/{name}/reward", Scope.DECIDE, problems=(409, 410))
async def reward(call: Call, body: RewardBody) -> RewardTaken:
    """Report the reward of a decision, now or later."""
    hosted = await call.agent()
    news = await hosted.durable(lambda agent: _reward_ahead(agent, body, call.caller))
    call.service.metrics.rewarded(call.name, int(news))
    call.service.schedule_upkeep(hosted)
    return RewardTaken(id=body.id, duplicate=not news)


@OPERATIONS.post("/v1/agents/{name}/rewards", Scope.DECIDE)
async def rewards(call: Call, body: RewardBatch) -> RewardsTaken:
    """Report many rewards; each is accepted or refused on its own."""
    bodies: list[RewardBody] = body.rewards
    _require_batch(call, len(bodies), "rewards")
    call.charge(len(bodies))
    hosted = await call.agent()
    answers: list[RewardAnswer] = []
    while left := bodies[len(answers) :]:
        answers += await hosted.make(
            lambda agent, left=left: _take_some(agent, left, call.caller),  # type: ignore[misc]
            lambda agent, steps, left=left: _answer_all(agent, left, steps),  # type: ignore[misc]
        )
    taken = sum(answer.status == 200 for answer in answers)
    call.service.metrics.rewarded(call.name, sum(answer.duplicate is False for answer in answers))
    call.service.schedule_upkeep(hosted)
    return RewardsTaken(taken=taken, refused=len(answers) - taken, rewards=answers)


def _reward_ahead(agent: ServedAgent, body: RewardBody, caller: Caller) -> tuple[bool, int]:
    return agent.reward_ahead(
        body.id, body.reward, at=body.at, key=body.key, caller=caller, also=body.also
    )


def _take_some(agent: ServedAgent, bodies: list[RewardBody], caller: Caller) -> list[Step]:
    """Rewards in order, at least one, until their time is over."""
    steps: list[Step] = []
    end = time.monotonic() + REWARDS_SECONDS
    for body in bodies:
        try:
            steps.append(_reward_ahead(agent, body, caller))
        except InputError as error:
            steps.append(error)
        except StoreError as error:  # the ledger does not take the rest either
            return steps + [error] * (len(bodies) - len(steps))
        if time.monotonic() >= end:
            break
    return steps


def _answer_all(
    agent: ServedAgent, bodies: list[RewardBody], steps: list[Step]
) -> list[RewardAnswer]:
    """The last one first: its commit does for all of them."""
    pairs = list(zip(bodies, steps, strict=False))
    return [_answer_one(agent, body, step) for body, step in reversed(pairs)][::-1]


def _answer_one(agent: ServedAgent, body: RewardBody, step: Step) -> RewardAnswer:
    """By what became of its own record: others of the batch may have been committed before or after
    it."""
    if isinstance(step, tuple):
        try:
            agent.commit(step[1])
            return RewardAnswer(id=body.id, status=200, duplicate=not step[0])
        except StoreError as error:
            step = error
    problem = problem_of(step)
    assert problem is not None
    return RewardAnswer(id=body.id, status=problem.status, detail=problem.detail)
