"""Arms come and go."""

from __future__ import annotations

from typing import Any

from tidepull.agent.agent import Agent
from tidepull.service.auth import Scope
from tidepull.service.hosting import Hosted
from tidepull.service.messages import ArmChange, ArmShown, ArmsShown
from tidepull.service.operation import Call, Operation
from tidepull.service.problems import HttpError


async def listed(call: Call) -> ArmsShown:
    """All arms."""
    return _shown(await call.agent())


async def change(call: Call) -> ArmsShown:
    """Add, retire or rename an arm; where there is no room, that takes a replay, so a thread does it."""
    body: ArmChange = call.body
    if (body.to is not None) != (body.op == "rename"):
        raise HttpError(422, "`to` is the new label of an arm that is renamed, and of nothing else.")
    if body.features is not None and body.op != "add":
        raise HttpError(422, "`features` are of an arm that is added, and of nothing else.")
    hosted = await call.agent()
    await hosted.elsewhere(lambda agent: _changed(agent, body))
    return _shown(hosted)


def _changed(agent: Agent, body: ArmChange) -> None:
    if body.op == "add":
        agent.add(body.label, body.features)
    elif body.op == "retire":
        agent.retire(body.label)
    else:
        agent.rename(body.label, body.to or "")


def _shown(hosted: Hosted) -> ArmsShown:
    return ArmsShown(
        arms=[ArmShown(label=label, retired=retired) for label, retired in hosted.agent.state().arms]
    )


_ARMS: dict[str, Any] = {"arms": [{"label": "blue", "retired": False}, {"label": "pink", "retired": False}]}
OPERATIONS = [
    Operation(
        "GET",
        "/v1/agents/{name}/arms",
        "list_arms",
        "All arms, also retired ones.",
        listed,
        Scope.READ,
        ArmsShown,
        answered=_ARMS,
    ),
    Operation(
        "POST",
        "/v1/agents/{name}/arms",
        "change_arms",
        "Add, retire or rename an arm.",
        change,
        Scope.ADMIN,
        ArmsShown,
        ArmChange,
        example={"op": "add", "label": "pink"},
        answered=_ARMS,
    ),
]
