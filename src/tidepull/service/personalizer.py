"""Personalizer's interface over one agent: actions are arms, added as they appear and described by their features;
features of the context are one hashed field.

Its words: an event is a decision, an action an arm, the reward wait time is `reward_within`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from tidepull.agent.agent import Agent
from tidepull.agent.commands import Request
from tidepull.agent.personalizer import FIELD, MOST_ACTIONS, context_of, merged, settings
from tidepull.agent.schema import FREE, Hashed, clean_features
from tidepull.errors import DecisionError, ExpiredError, OtherRewardError
from tidepull.service.app import JSON, Call, Operations
from tidepull.service.auth import Scope
from tidepull.service.hosting import HostedAgent, Hosting
from tidepull.service.problem_details import ErrorResponse, HttpError
from tidepull.service.shards import RawResponse

DESCRIBE_INTERVAL = 60.0
"""Seconds after which actions whose features have changed are described anew; each time is a line of the ledger."""


OPERATIONS = Operations()
Id = Annotated[str, Meta(min_length=1, max_length=256)]
Features = Annotated[list[dict[str, Any]], Meta(max_length=64)]


class RankableAction(Struct, kw_only=True, rename="camel"):
    """Something that can be shown."""

    id: Id
    features: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=64)]


class RankRequest(Struct, kw_only=True, rename="camel"):
    """Actions to rank in a context; what else is sent is overlooked, as Personalizer does."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=50)]
    context_features: Features | None = None
    excluded_actions: Annotated[list[Id], Meta(max_length=50)] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class RankedAction(Struct, kw_only=True):
    """An action and the exact chance that it had."""

    id: str
    probability: float


class RankResponse(Struct, kw_only=True, rename="camel"):
    """All actions in order, and the one to show."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct, kw_only=True):
    """What an event was worth."""

    value: Annotated[float, Meta(ge=-1, le=1)]


@dataclass(frozen=True, slots=True)
class RankCall:
    """A call of `rank`: actions in order with their features, those that must not be chosen, features of the context,
    and whether it waits for `activate`."""

    event: str
    actions: Mapping[str, Mapping[str, Any]]
    excluded: set[str]
    features: Sequence[Mapping[str, Any]] | None
    deferred: bool


class Personalizer:
    """The agent of that name, behind Personalizer's interface. `forwarded`: another shard sent the call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._growing = asyncio.Lock()
        self._described: dict[str, float] = {}

    async def agent(
        self, hosting: Hosting, actions: Mapping[str, Mapping[str, Any]], *, forwarded: bool = False
    ) -> HostedAgent:
        """The agent, with an arm for every action; made when the first call comes."""
        try:
            hosted = await hosting.get(self.name, forwarded=forwarded)
        except HttpError as error:
            if error.status != 404:
                raise
            hosted = await self._create(hosting, actions, forwarded)
        if not set(actions) <= _known(hosted.agent):
            async with self._growing:
                await hosted.in_thread(lambda agent: _grow(agent, actions))
        elif changed := self._changed(hosted.agent, actions):
            async with self._growing:
                await hosted.in_thread(lambda agent: _describe(agent, changed))
        return hosted

    async def _create(
        self, hosting: Hosting, actions: Mapping[str, Mapping[str, Any]], forwarded: bool
    ) -> HostedAgent:
        async with self._growing:
            if self.name not in await hosting.names():
                return await hosting.create(self.name, settings(actions), forwarded=forwarded)
        return await hosting.get(self.name, forwarded=forwarded)

    def _changed(self, agent: Agent, actions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """What is to be described anew: what differs from what the agent knows, and was not just looked at."""
        now = time.monotonic()
        if not agent.describes or all(
            now - self._described.get(action, -DESCRIBE_INTERVAL) < DESCRIBE_INTERVAL for action in actions
        ):
            return {}
        self._described |= dict.fromkeys(actions, now)
        given = {action: clean_features(action, {FREE: features}) for action, features in actions.items()}
        return {action: made for action, made in given.items() if made != agent.features(action)}

    async def rank(
        self, hosting: Hosting, call: RankCall, *, forwarded: bool = False
    ) -> tuple[HostedAgent, str, list[tuple[str, float]]]:
        """The action to show, and all of them with their chances, best first; safe when this returns."""
        hosted = await self.agent(hosting, call.actions, forwarded=forwarded)
        open_arms = set(hosted.agent.arms)
        among = [action for action in call.actions if action in open_arms and action not in call.excluded]
        if not among:
            raise HttpError(422, "No action is left: all are in excludedActions, or retired.")
        context = context_of(call.features) if _takes_features(hosted.agent) else None
        request = Request(context, among, None, None, call.event, call.deferred)
        (decision,), seq = hosted.agent.choose_ahead([request])
        chances = hosted.agent.chances(call.event)
        await hosted.commits.wait(seq)
        return hosted, decision.arm, ranking(list(call.actions), chances, decision.arm)

    async def reward(
        self, hosting: Hosting, event: str, value: float, *, forwarded: bool = False
    ) -> tuple[HostedAgent, str]:
        """Take a reward; "news", or why it has no effect, as Personalizer has none for a second or late one."""
        hosted = await self._existing(hosting, forwarded)
        try:
            news, seq = hosted.agent.reward_ahead(event, value)
        except (ExpiredError, OtherRewardError) as error:
            return hosted, "late" if isinstance(error, ExpiredError) else "second"
        await hosted.commits.wait(seq)
        return hosted, "news" if news else "second"

    async def activate(self, hosting: Hosting, event: str, *, forwarded: bool = False) -> HostedAgent:
        """What was shown counts; too late has no effect."""
        hosted = await self._existing(hosting, forwarded)
        try:
            _, seq = hosted.agent.activate_ahead(event)
        except ExpiredError:
            return hosted
        await hosted.commits.wait(seq)
        return hosted

    async def _existing(self, hosting: Hosting, forwarded: bool) -> HostedAgent:
        try:
            return await hosting.get(self.name, forwarded=forwarded)
        except HttpError as error:
            if error.status != 404:
                raise
            raise DecisionError("no event was ranked yet") from None


def ranking(actions: Sequence[str], chances: Mapping[str, float], best: str) -> list[tuple[str, float]]:
    """All actions: the chosen one first, then by their chances; what was excluded stays where it came.

    >>> ranking(["a", "b", "c"], {"b": 0.25, "c": 0.75}, "b")
    [('a', 0.0), ('b', 0.25), ('c', 0.75)]
    """
    ranked = iter(sorted(chances, key=lambda one: (one != best, -chances[one], actions.index(one))))
    order = [next(ranked) if action in chances else action for action in actions]
    return [(action, chances.get(action, 0.0)) for action in order]


def _known(agent: Agent) -> set[str]:
    return {label for label, _ in agent.state().arms}


def _takes_features(agent: Agent) -> bool:
    context = agent.settings.context
    return context is not None and context.get(FIELD, {}).get("kind") == Hashed.__name__


def _grow(agent: Agent, actions: Mapping[str, Mapping[str, Any]]) -> None:
    known = _known(agent)
    new = [action for action in actions if action not in known]
    if len(known) + len(new) > MOST_ACTIONS:
        raise HttpError(
            422,
            f"This would be more than {MOST_ACTIONS:,} different actions, which is the most that an agent gets to know:"
            " give actions ids that stay, or start another agent.",
        )
    for action in new:
        agent.add(action, {FREE: actions[action]} if agent.describes else None)


def _describe(agent: Agent, changed: Mapping[str, Mapping[str, Any]]) -> None:
    for action, features in changed.items():
        agent.describe(action, features)


_BASE = "/personalizer/v1.0"
_RANKED = {
    "ranking": [{"id": "news", "probability": 0.75}, {"id": "sport", "probability": 0.25}],
    "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
    "rewardActionId": "news",
}


@OPERATIONS.post(
    f"{_BASE}/rank",
    Scope.DECIDE,
    answer=RankResponse,
    body=RankRequest,
    status=201,
    problems=(404, 409),
    errors=ErrorResponse,
    example={
        "contextFeatures": [{"timeOfDay": "morning"}, {"user": {"age": 31, "vip": True}}],
        "actions": [
            {"id": "news", "features": [{"kind": "text"}]},
            {"id": "sport", "features": [{"kind": "video", "length": 4}]},
        ],
        "excludedActions": [],
        "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
        "deferActivation": False,
    },
    answer_example=_RANKED,
)
async def personalizer_rank(call: Call) -> RankResponse:
    """Personalizer: rank actions. For the agent of `--personalizer NAME`."""
    body: RankRequest = call.body
    event = body.event_id or str(uuid.uuid4())
    actions = {action.id: merged(action.features) for action in body.actions}
    if len(actions) != len(body.actions):
        raise HttpError(422, "At actions: two have the same id.")
    if not all(any(part for part in action.features) for action in body.actions):
        raise HttpError(422, "At actions: every action should have at least one feature.")
    excluded = set(body.excluded_actions or ())
    ranking_call = RankCall(event, actions, excluded, body.context_features, bool(body.defer_activation))
    hosted, best, ranked = await _personalizer(call).rank(
        call.service.hosting, ranking_call, forwarded=call.forwarded
    )
    call.service.metrics.decided(call.name)
    call.service.schedule_upkeep(hosted)
    ranking = [RankedAction(id=action, probability=chance) for action, chance in ranked]
    return RankResponse(ranking=ranking, event_id=event, reward_action_id=best)


@OPERATIONS.post(
    f"{_BASE}/events/{{eventId}}/reward",
    Scope.DECIDE,
    body=RewardRequest,
    status=204,
    problems=(404,),
    errors=ErrorResponse,
    example={"value": 1.0},
)
async def personalizer_reward(call: Call) -> RawResponse:
    """Personalizer: what an event was worth."""
    hosted, outcome = await _personalizer(call).reward(
        call.service.hosting, _event(call), call.body.value, forwarded=call.forwarded
    )
    if outcome == "news":
        call.service.metrics.rewarded(call.name)
    else:
        call.service.metrics.ignored(outcome)
    call.service.schedule_upkeep(hosted)
    return _EMPTY


@OPERATIONS.post(
    f"{_BASE}/events/{{eventId}}/activate", Scope.DECIDE, status=204, problems=(404,), errors=ErrorResponse
)
async def personalizer_activate(call: Call) -> RawResponse:
    """Personalizer: an event whose activation was deferred was shown."""
    hosted = await _personalizer(call).activate(call.service.hosting, _event(call), forwarded=call.forwarded)
    call.service.schedule_upkeep(hosted)
    return _EMPTY


_EMPTY = RawResponse(b"", JSON)


def _personalizer(call: Call) -> Personalizer:
    personalizer = call.service.personalizer
    if personalizer is None:
        raise HttpError(404, "This service was started without --personalizer NAME.")
    return personalizer


def _event(call: Call) -> str:
    if not 0 < len(call.event) <= 256:
        raise HttpError(422, "The event id must have 1 to 256 characters.")
    return call.event
