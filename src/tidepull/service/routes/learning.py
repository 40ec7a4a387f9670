"""Holding still, going back."""

from __future__ import annotations

from tidepull.service.auth import Scope
from tidepull.service.messages import Held, RollbackBody, StateShown
from tidepull.service.operation import Call, Operation
from tidepull.service.routes.agents import _STATE, state_shown


async def freeze(call: Call) -> Held:
    """Decisions go on, rewards are recorded and not learnt."""
    hosted = await call.agent()
    await hosted.elsewhere(lambda agent: agent.freeze())
    return Held(frozen=hosted.agent.frozen)


async def unfreeze(call: Call) -> Held:
    """Rewards are learnt again."""
    hosted = await call.agent()
    await hosted.elsewhere(lambda agent: agent.unfreeze())
    return Held(frozen=hosted.agent.frozen)


async def rollback(call: Call) -> StateShown:
    """Forget what was learnt since; a replay, so a thread does it."""
    body: RollbackBody = call.body
    hosted = await call.agent()
    await hosted.elsewhere(lambda agent: agent.rollback(body.to))
    return state_shown(hosted)


OPERATIONS = [
    Operation(
        "POST",
        "/v1/agents/{name}/freeze",
        "freeze",
        "Stop learning; decisions go on.",
        freeze,
        Scope.ADMIN,
        Held,
        answered={"frozen": True},
    ),
    Operation(
        "POST",
        "/v1/agents/{name}/unfreeze",
        "unfreeze",
        "Learn again.",
        unfreeze,
        Scope.ADMIN,
        Held,
        answered={"frozen": False},
    ),
    Operation(
        "POST",
        "/v1/agents/{name}/rollback",
        "rollback",
        "Forget what was learnt since a moment or a decision.",
        rollback,
        Scope.ADMIN,
        StateShown,
        RollbackBody,
        example={"to": "2026-07-01T12:00"},
        answered=_STATE,
    ),
]
