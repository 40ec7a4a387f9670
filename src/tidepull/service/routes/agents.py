"""Agents come, are listed, and go."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tidepull.agent.fields import Boolean, Category, Field, Number, Tags, Timestamp
from tidepull.service.auth import Scope, require
from tidepull.service.hosting import Hosted
from tidepull.service.messages import (
    AgentShown,
    AgentsShown,
    ArmShown,
    Deleted,
    NewAgent,
    PolicyChoice,
    StateShown,
)
from tidepull.service.operation import Call, Operation

_KINDS: dict[str, type[Field]] = {
    "number": Number,
    "text": Category,
    "boolean": Boolean,
    "moment": Timestamp,
    "tags": Tags,
}


async def create(call: Call) -> StateShown:
    """Make an agent."""
    body: NewAgent = call.body
    require(call.token, Scope.ADMIN, body.name)
    return state_shown(await call.service.hosting.make(body.name, _given(body), forwarded=call.forwarded))


async def listed(call: Call) -> AgentsShown:
    """The agents that the token may look at."""
    hosting = call.service.hosting
    names = [name for name in await hosting.names() if call.token.is_for(name)]
    return AgentsShown(agents=[AgentShown(name=name, open=hosting.is_open(name)) for name in names])


async def state(call: Call) -> StateShown:
    """Where an agent stands."""
    return state_shown(await call.agent())


async def delete(call: Call) -> Deleted:
    """Delete an agent and all it knows."""
    await call.service.hosting.delete(call.name, forwarded=call.forwarded)
    return Deleted(name=call.name)


def state_shown(hosted: Hosted) -> StateShown:
    """The state of an agent as it goes over the wire."""
    state, settings = hosted.agent.state(), hosted.agent.settings
    chosen = {
        name: getattr(settings, name)
        for name in (
            "policy",
            "parameters",
            "timezone",
            "control",
            "control_arm",
            "min_share",
            "reward_within",
            "default_reward",
            "on_duplicate",
        )
    }
    arms = [ArmShown(label=label, retired=retired) for label, retired in state.arms]
    return StateShown(name=hosted.name, **{**chosen, **asdict(state), "arms": arms})


def _given(body: NewAgent) -> dict[str, Any]:
    """The arguments of `Agent`."""
    given = {name: getattr(body, name) for name in body.__struct_fields__ if name != "name"}
    given = {name: value for name, value in given.items() if value is not None}
    if body.context is not None:
        given["context"] = {name: _field(kind) for name, kind in body.context.items()}
    if isinstance(body.policy, PolicyChoice):
        given["policy"] = (body.policy.id, body.policy.parameters)
    return given


def _field(kind: Any) -> Any:
    return _KINDS[kind]() if isinstance(kind, str) else kind


_STATE = {
    "name": "shop",
    "policy": "tide",
    "parameters": {},
    "timezone": "Europe/Berlin",
    "control": 0.05,
    "control_arm": None,
    "min_share": 0.0,
    "reward_within": 172800.0,
    "default_reward": 0.0,
    "on_duplicate": "refuse",
    "arms": [{"label": "blue", "retired": False}, {"label": "green", "retired": False}],
    "context": {"age": {"kind": "Number", "flag": False}},
    "frozen": False,
    "warmup": False,
    "decisions": 17,
    "rewards": 12,
    "latest": 1782907200.0,
    "records": 29,
    "saved": 0,
    "upkeep_pending": False,
}

OPERATIONS = [
    Operation(
        "GET",
        "/v1/agents",
        "list_agents",
        "The agents that the token is for.",
        listed,
        "any",
        AgentsShown,
        answered={"agents": [{"name": "shop", "open": True}]},
    ),
    Operation(
        "POST",
        "/v1/agents",
        "create_agent",
        "Make an agent.",
        create,
        Scope.ADMIN,
        StateShown,
        NewAgent,
        status=201,
        problems=(409,),
        answered=_STATE,
        example={
            "name": "shop",
            "arms": ["blue", "green"],
            "context": {"device": ["phone", "desktop"], "age": "number"},
            "timezone": "Europe/Berlin",
            "reward_within": 172800,
            "default_reward": 0,
        },
    ),
    Operation(
        "GET",
        "/v1/agents/{name}",
        "get_agent",
        "Where an agent stands.",
        state,
        Scope.READ,
        StateShown,
        answered=_STATE,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/state",
        "get_state",
        "The same.",
        state,
        Scope.READ,
        StateShown,
        answered=_STATE,
    ),
    Operation(
        "DELETE",
        "/v1/agents/{name}",
        "delete_agent",
        "Delete an agent and all it knows, for good.",
        delete,
        Scope.ADMIN,
        Deleted,
        answered={"name": "shop"},
    ),
]
