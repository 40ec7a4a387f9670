"""Agents, their arms, and whether they learn."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from tidepull.agent.fields import Boolean, Category, Field, Number, Tags, Timestamp
from tidepull.agent.insight import AgentStatus
from tidepull.agent.served import ServedAgent
from tidepull.service.auth import Scope
from tidepull.service.hosted import HostedAgent
from tidepull.service.messages import (
    AgentShown,
    AgentsShown,
    ArmChange,
    ArmShown,
    ArmsShown,
    CandidateShown,
    CompactBody,
    Deleted,
    ForgetBody,
    Forgotten,
    Held,
    NewAgent,
    PolicyChoice,
    PromoteBody,
    PromotionShown,
    RollbackBody,
    SettingsBody,
    SettingsChanged,
    StateShown,
    shown,
)
from tidepull.service.operations import Call, Operations
from tidepull.service.problem_details import HttpError

OPERATIONS = Operations()
_KINDS: dict[str, type[Field]] = {
    "number": Number,
    "text": Category,
    "boolean": Boolean,
    "moment": Timestamp,
    "tags": Tags,
}


@OPERATIONS.post("/v1/agents", Scope.ADMIN, status=201, problems=(409,))
async def create_agent(call: Call, body: NewAgent) -> StateShown:
    """Make an agent."""
    return await state_shown(
        await call.service.hosting.create(
            body.name, agent_arguments(body), forwarded=call.forwarded
        )
    )


@OPERATIONS.get("/v1/agents", "any")
async def list_agents(call: Call) -> AgentsShown:
    """The agents that the token is for, and what it may do."""
    hosting = call.service.hosting
    names = [name for name in await hosting.names() if call.token.is_for(name)]
    others = await call.service.forwarder.ask_workers("list_agents", call)
    answers = [one.data for one in others.values() if one.status == 200]
    shown = [msgspec.json.decode(answer, type=AgentsShown) for answer in answers]
    opened = {agent.name for one in shown for agent in one.agents if agent.open}
    agents = [AgentShown(name=name, open=hosting.is_open(name) or name in opened) for name in names]
    return AgentsShown(agents=agents, scopes=[s.value for s in Scope if call.token.allows(s)])


@OPERATIONS.get(
    "/v1/agents/{name}/state",
    Scope.READ,
    id="get_state",
    summary="Where an agent stands; an alias of `GET /v1/agents/{name}`.",
)
@OPERATIONS.get("/v1/agents/{name}", Scope.READ)
async def get_agent(call: Call) -> StateShown:
    """State of an agent: counts, settings, time of the last decision."""
    return await state_shown(await call.agent())


@OPERATIONS.add("DELETE", "/v1/agents/{name}", Scope.ADMIN)
async def delete_agent(call: Call) -> Deleted:
    """Delete an agent and its ledger permanently."""
    await call.service.hosting.delete(call.name, forwarded=call.forwarded)
    return Deleted(name=call.name)


async def state_shown(hosted: HostedAgent) -> StateShown:
    """The state of an agent as it goes over the wire."""
    state, settings = await hosted.ask(ServedAgent.state), hosted.agent.settings
    promotion = None
    if settings.promotion is not None:
        policy, parameters, share = settings.promotion
        promotion = CandidateShown(policy=policy, parameters=parameters, share=share)
    now = {**asdict(state), "arms": _arms(state), "promotion": promotion, "name": hosted.name}
    return shown(StateShown, settings, **now)


@OPERATIONS.post("/v1/agents/{name}/settings", Scope.ADMIN)
async def change_settings(call: Call, body: SettingsBody) -> SettingsChanged:
    """Change settings of an agent, as a record in its ledger."""
    arguments = agent_arguments(body)
    hosted = await call.agent()
    changes = await hosted.change(lambda agent: agent.change(**arguments))
    return SettingsChanged(changes=changes)


@OPERATIONS.post("/v1/agents/{name}/promote", Scope.ADMIN)
async def promote(call: Call, body: PromoteBody) -> PromotionShown:
    """Give a candidate a share of the decisions, as a record in the agent's ledger."""
    hosted = await call.agent()
    step = await hosted.change(lambda agent: agent.promote(_named(body.shadow), body.share))
    return shown(PromotionShown, step, words=str(step))


def agent_arguments(body: NewAgent | SettingsBody) -> dict[str, Any]:
    """The arguments of `Agent`, or of `Agent.change`."""
    fields = {name: getattr(body, name) for name in body.__struct_fields__ if name != "name"}
    arguments = {name: value for name, value in fields.items() if value is not None}
    if "context" in arguments:
        arguments["context"] = {name: _field(kind) for name, kind in arguments["context"].items()}
    if "policy" in arguments:
        arguments["policy"] = _named(arguments["policy"])
    if "shadow" in arguments:
        arguments["shadow"] = [_named(one) for one in arguments["shadow"]]
    return arguments


def _named(policy: str | PolicyChoice) -> Any:
    return policy if isinstance(policy, str) else (policy.id, policy.parameters)


def _field(kind: Any) -> Any:
    return _KINDS[kind]() if isinstance(kind, str) else kind


@OPERATIONS.get("/v1/agents/{name}/arms", Scope.READ)
async def list_arms(call: Call) -> ArmsShown:
    """All arms, also retired ones."""
    return await _arms_shown(await call.agent())


@OPERATIONS.post("/v1/agents/{name}/arms", Scope.ADMIN)
async def change_arms(call: Call, body: ArmChange) -> ArmsShown:
    """Add, retire, rename or replace an arm."""
    if (body.to is not None) != (body.op in ("rename", "replace")):
        raise HttpError(
            422, "`to` is the new label of an arm that is renamed or replaced, and nothing else."
        )
    if body.features is not None and body.op not in ("add", "replace"):
        raise HttpError(422, "`features` are of an arm that is added, and of nothing else.")
    hosted = await call.agent()
    await hosted.change(lambda agent: _change_arms(agent, body))
    return await _arms_shown(hosted)


def _change_arms(agent: ServedAgent, body: ArmChange) -> None:
    if body.op == "add":
        agent.add(body.label, body.features)
    elif body.op == "retire":
        agent.retire(body.label)
    elif body.op == "replace":
        agent.replace(body.label, body.to or "", body.features)
    else:
        agent.rename(body.label, body.to or "")


async def _arms_shown(hosted: HostedAgent) -> ArmsShown:
    return ArmsShown(arms=_arms(await hosted.ask(ServedAgent.state)))


def _arms(state: AgentStatus) -> list[ArmShown]:
    return [ArmShown(label=label, retired=retired) for label, retired in state.arms]


@OPERATIONS.post("/v1/agents/{name}/freeze", Scope.ADMIN)
async def freeze(call: Call) -> Held:
    """Stop learning; decisions go on."""
    hosted = await call.agent()
    await hosted.change(ServedAgent.freeze)
    return Held(frozen=hosted.agent.frozen)


@OPERATIONS.post("/v1/agents/{name}/unfreeze", Scope.ADMIN)
async def unfreeze(call: Call) -> Held:
    """Resume learning."""
    hosted = await call.agent()
    await hosted.change(ServedAgent.unfreeze)
    return Held(frozen=hosted.agent.frozen)


@OPERATIONS.post("/v1/agents/{name}/rollback", Scope.ADMIN)
async def rollback(call: Call, body: RollbackBody) -> StateShown:
    """Undo what was learnt since a moment or a decision."""
    hosted = await call.agent()
    await hosted.change(lambda agent: agent.rollback(body.to))
    return await state_shown(hosted)


@OPERATIONS.post("/v1/agents/{name}/forget", Scope.ADMIN)
async def forget(call: Call, body: ForgetBody) -> Forgotten:
    """Delete all decisions about a subject, for good. What was learnt from them stays."""
    hosted = await call.agent()
    return Forgotten(deleted=await hosted.erase(lambda agent: agent.forget(body.subject)))


@OPERATIONS.post("/v1/agents/{name}/compact", Scope.ADMIN, problems=(409,))
async def compact(call: Call, body: CompactBody) -> Forgotten:
    """Delete old decisions that were exported. What was learnt from them stays."""
    hosted = await call.agent()
    return Forgotten(deleted=await hosted.erase(lambda agent: _compact(agent, body)))


def _compact(agent: ServedAgent, body: CompactBody) -> int:
    there = sum(1 for _ in agent.rows_aside(agent.aside(), before=body.before))
    if there not in (0, body.decisions):
        raise HttpError(
            409,
            f"There are {there:,} decisions before that moment, and {body.decisions:,} were "
            "exported: export them again, with the same `before`.",
        )
    return agent.compact(None, body.before) if there else 0
