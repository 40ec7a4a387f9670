"""Deciding: one at a time, or many in one commit."""

from __future__ import annotations

from tidepull.agent.commands import Caller, Request
from tidepull.agent.decisions import Decision
from tidepull.service.auth import Scope
from tidepull.service.limits import MOST_NAME
from tidepull.service.messages import ChooseBatch, ChooseBody, DecisionMade, DecisionsMade
from tidepull.service.operation import Call, Operation
from tidepull.service.problems import HttpError


async def choose(call: Call) -> DecisionMade:
    """Make a decision; it is safe when this returns."""
    request = _request(call.body, _key(call), call.caller)
    hosted = await call.agent()
    (decision,), seq = hosted.agent.choose_ahead([request])
    await hosted.turns.committed(seq)
    call.service.metrics.decided(call.name)
    call.service.taken(hosted)
    return _made(decision)


async def choose_batch(call: Call) -> DecisionsMade:
    """Make decisions, all or none."""
    bodies: list[ChooseBody] = call.body.decisions
    if len(bodies) > call.service.limits.batch:
        raise HttpError(
            422, f"A batch has at most {call.service.limits.batch:,} decisions, this one has {len(bodies):,}."
        )
    if b"idempotency-key" in call.headers:
        raise HttpError(422, "In a batch every decision has its own `id`: leave the Idempotency-Key out.")
    requests = [_request(body, None, call.caller) for body in bodies]
    hosted = await call.agent()
    decisions, seq = hosted.agent.choose_ahead(requests)
    await hosted.turns.committed(seq)
    call.service.metrics.decided(call.name, len(decisions))
    call.service.taken(hosted)
    return DecisionsMade(decisions=[_made(decision) for decision in decisions])


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
    return Request(body.context, body.arms, body.subject, body.at, key or body.id, caller=caller)


def _made(decision: Decision) -> DecisionMade:
    return DecisionMade(
        id=decision.id,
        arm=decision.arm,
        propensity=decision.propensity,
        group=decision.group,  # type: ignore[arg-type]
        at=decision.timestamp,
    )


_ASKED = {"context": {"device": "phone", "age": 31}}
_ANSWERED = {
    "id": "17-5f0c2d1e",
    "arm": "green",
    "propensity": 0.53125,
    "group": "policy",
    "at": 1782907200.0,
}

OPERATIONS = [
    Operation(
        "POST",
        "/v1/agents/{name}/choose",
        "choose",
        "Choose an arm. The decision is on disk before the answer leaves.",
        choose,
        Scope.DECIDE,
        DecisionMade,
        ChooseBody,
        problems=(409,),
        example=_ASKED,
        answered=_ANSWERED,
        parameters=(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "Another way to give `id`: the same key with the same body is the same decision again.",
                "schema": {"type": "string", "minLength": 1, "maxLength": MOST_NAME, "pattern": "^[!-~]+$"},
                "example": "visit-17",
            },
        ),
    ),
    Operation(
        "POST",
        "/v1/agents/{name}/choose/batch",
        "choose_batch",
        "Make many decisions in one commit, all or none.",
        choose_batch,
        Scope.DECIDE,
        DecisionsMade,
        ChooseBatch,
        problems=(409,),
        example={
            "decisions": [
                {**_ASKED, "id": "visit 17"},
                {"context": {"device": "desktop"}, "subject": "user 42"},
            ]
        },
        answered={"decisions": [_ANSWERED, {**_ANSWERED, "id": "18-0b6e9a44", "group": "control"}]},
    ),
]
