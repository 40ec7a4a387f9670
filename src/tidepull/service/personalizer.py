"""Personalizer's interface over one agent: actions are arms, added as they appear and described by
their features; features of the context are one hashed field.

Its words: an event is a decision, an action an arm, the reward wait time is `reward_within`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct

from tidepull.agent.commands import Request
from tidepull.agent.decisions import Decision
from tidepull.agent.personalizer import FIELD, MOST_ACTIONS, context_of, merged, settings
from tidepull.agent.schema import FREE, Hashed, clean_features
from tidepull.agent.served import ServedAgent
from tidepull.errors import DecisionError, ExpiredError, OtherRewardError
from tidepull.service.auth import Scope
from tidepull.service.hosted import HostedAgent
from tidepull.service.operations import JSON, Call, Operations, RawResponse
from tidepull.service.problem_details import ErrorResponse, HttpError

DESCRIBE_INTERVAL = 60.0
"""Seconds after which actions whose features have changed are described anew; each time is a line
of the ledger."""


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
    """Reward of an event."""

    value: Annotated[float, Meta(ge=-1, le=1)]


Actions = Mapping[str, Mapping[str, Any]]
"""Actions in order, each with its features."""


class Personalizer:
    """The agent of that name, behind Personalizer's interface."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._growing = asyncio.Lock()
        self._described: dict[str, float] = {}
        self._started = time.monotonic()
        self._ranked: dict[str, float] = {}  # when each action was asked for last

    async def agent(self, call: Call, actions: Actions) -> HostedAgent:
        """The agent, with an arm for every action; the first call creates it."""
        try:
            hosted = await call.agent()
        except HttpError as error:
            if error.status != 404:
                raise
            hosted = await self._create(call, actions)
        self._ranked |= dict.fromkeys(actions, time.monotonic())
        new, changed = await hosted.ask(lambda agent: self._unprepared(agent, actions))
        if new:
            await hosted.change(lambda agent: self._grow(agent, actions))
        elif changed:
            await hosted.change(lambda agent: _describe(agent, changed))
        return hosted

    def _unprepared(
        self, agent: ServedAgent, actions: Actions
    ) -> tuple[set[str], dict[str, dict[str, Any]]]:
        """Actions that the agent does not know, or else those that it knows otherwise."""
        new = set(actions) - _known(agent)
        return new, {} if new else self._changed(agent, actions)

    def _grow(self, agent: ServedAgent, actions: Actions) -> None:
        """An arm for every action. When there are as many as an agent gets to know, those that
        were not asked for longest give their places to new ones."""
        known = _known(agent)
        for action in [action for action in actions if action not in known]:
            features = {FREE: actions[action]} if agent.describes else None
            if len(known) < MOST_ACTIONS:
                agent.add(action, features)
            else:
                gone = self._oldest(agent, known)
                agent.replace(gone, action, features)
                known.discard(gone)
                self._ranked.pop(gone, None)
            known.add(action)

    def _oldest(self, agent: ServedAgent, known: set[str]) -> str:
        """The action that was not asked for longest, if no reward can come for it any more. An
        agent that learns from ids alone is built anew for each, so an admin does it."""
        oldest = min(known, key=lambda action: self._ranked.get(action, self._started))
        idle = time.monotonic() - self._ranked.get(oldest, self._started)
        wait = agent.settings.reward_within or 0.0
        if agent.describes and idle > wait:
            return oldest
        why = (
            f"all of them were ranked within the last {wait:g} seconds: try again later"
            if agent.describes
            else "replace one that is not used any more (`tidepull client replace`)"
        )
        raise HttpError(422, f"There are {MOST_ACTIONS:,} different actions already, and {why}.")

    async def _create(self, call: Call, actions: Actions) -> HostedAgent:
        hosting = call.service.hosting
        async with self._growing:
            if self.name not in await hosting.names():
                return await hosting.create(self.name, settings(actions), forwarded=call.forwarded)
        return await call.agent()

    def _changed(self, agent: ServedAgent, actions: Actions) -> dict[str, dict[str, Any]]:
        """What is to be described anew: what differs from what the agent knows, and was not just
        looked at."""
        now = time.monotonic()
        if not agent.describes or all(
            now - self._described.get(action, -DESCRIBE_INTERVAL) < DESCRIBE_INTERVAL
            for action in actions
        ):
            return {}
        self._described |= dict.fromkeys(actions, now)
        features = {
            action: clean_features(action, {FREE: parts}) for action, parts in actions.items()
        }
        return {action: new for action, new in features.items() if new != agent.features(action)}


def ranking(
    actions: Sequence[str], chances: Mapping[str, float], best: str
) -> list[tuple[str, float]]:
    """All actions: the chosen one first, then by their chances; what was excluded stays where it
    came.

    >>> ranking(["a", "b", "c"], {"b": 0.25, "c": 0.75}, "b")
    [('a', 0.0), ('b', 0.25), ('c', 0.75)]
    """
    ranked = iter(sorted(chances, key=lambda one: (one != best, -chances[one], actions.index(one))))
    order = [next(ranked) if action in chances else action for action in actions]
    return [(action, chances.get(action, 0.0)) for action in order]


def _known(agent: ServedAgent) -> set[str]:
    return {label for label, _ in agent.state().arms}


def _takes_features(agent: ServedAgent) -> bool:
    context = agent.settings.context
    return context is not None and context.get(FIELD, {}).get("kind") == Hashed.__name__


def _describe(agent: ServedAgent, changed: Actions) -> None:
    for action, features in changed.items():
        agent.describe(action, features)


_BASE = "/personalizer/v1.0"


@OPERATIONS.post(
    f"{_BASE}/rank", Scope.DECIDE, status=201, problems=(404, 409), errors=ErrorResponse
)
async def personalizer_rank(call: Call, body: RankRequest) -> RankResponse:
    """Personalizer: rank actions. For the agent of `--personalizer NAME`."""
    event = body.event_id or str(uuid.uuid4())
    actions = {action.id: merged(action.features) for action in body.actions}
    if len(actions) != len(body.actions):
        raise HttpError(422, "At actions: two have the same id.")
    if not all(any(part for part in action.features) for action in body.actions):
        raise HttpError(422, "At actions: every action should have at least one feature.")
    hosted = await _personalizer(call).agent(call, actions)
    decision, chances = await hosted.durable(lambda agent: _rank(agent, body, actions, event))
    call.service.metrics.decided(call.name)
    call.service.schedule_upkeep(hosted)
    ranked = ranking(list(actions), chances, decision.arm)
    return RankResponse(
        ranking=[RankedAction(id=action, probability=chance) for action, chance in ranked],
        event_id=event,
        reward_action_id=decision.arm,
    )


def _rank(
    agent: ServedAgent, body: RankRequest, actions: Actions, event: str
) -> tuple[tuple[Decision, dict[str, float]], int]:
    """The decision with every action's chance, and its number."""
    excluded, open_arms = set(body.excluded_actions or ()), set(agent.arms)
    among = [action for action in actions if action in open_arms and action not in excluded]
    if not among:
        raise HttpError(422, "No action is left: all are in excludedActions, or retired.")
    context = context_of(body.context_features) if _takes_features(agent) else None
    request = Request(context, among, None, None, event, bool(body.defer_activation))
    (decision,), seq = agent.choose_ahead([request])
    return (decision, agent.chances(event)), seq


@OPERATIONS.post(
    f"{_BASE}/events/{{eventId}}/reward",
    Scope.DECIDE,
    status=204,
    problems=(404,),
    errors=ErrorResponse,
)
async def personalizer_reward(call: Call, body: RewardRequest) -> RawResponse:
    """Personalizer: report the reward of an event."""
    hosted, event = await _existing(call)
    try:
        news = await hosted.durable(lambda agent: agent.reward_ahead(event, body.value))
    except (ExpiredError, OtherRewardError) as error:  # Personalizer answers as if it was taken
        call.service.metrics.ignored("late" if isinstance(error, ExpiredError) else "second")
    else:
        if news:
            call.service.metrics.rewarded(call.name)
        else:
            call.service.metrics.ignored("second")
    call.service.schedule_upkeep(hosted)
    return _EMPTY


@OPERATIONS.post(
    f"{_BASE}/events/{{eventId}}/activate",
    Scope.DECIDE,
    status=204,
    problems=(404,),
    errors=ErrorResponse,
)
async def personalizer_activate(call: Call) -> RawResponse:
    """Personalizer: confirm that a deferred event was shown."""
    hosted, event = await _existing(call)
    with suppress(ExpiredError):  # too late has no effect
        await hosted.durable(lambda agent: agent.activate_ahead(event))
    call.service.schedule_upkeep(hosted)
    return _EMPTY


_EMPTY = RawResponse(b"", JSON)


def _personalizer(call: Call) -> Personalizer:
    personalizer = call.service.personalizer
    if personalizer is None:
        raise HttpError(404, "This service was started without --personalizer NAME.")
    return personalizer


async def _existing(call: Call) -> tuple[HostedAgent, str]:
    """The agent, which some event was ranked by, and the event of a path."""
    _personalizer(call)
    if not 0 < len(call.event) <= 256:
        raise HttpError(422, "The event id must have 1 to 256 characters.")
    try:
        return await call.agent(), call.event
    except HttpError as error:
        if error.status != 404:
            raise
        raise DecisionError("no event was ranked yet") from None
