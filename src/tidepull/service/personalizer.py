"""Personalizer's interface over one agent: actions are arms, added as they appear and described by their features;
features of the context are one hashed field.

Its words: an event is a decision, an action an arm, the reward wait time is `reward_within`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidepull.agent.agent import Agent
from tidepull.agent.commands import Request
from tidepull.agent.personalizer import FIELD, MOST_ACTIONS, context_of, settings
from tidepull.agent.schema import FREE, Hashed, clean_features
from tidepull.errors import DecisionError, ExpiredError, OtherRewardError
from tidepull.service.hosting import Hosted, Hosting
from tidepull.service.problems import HttpError

AGAIN = 60.0
"""Seconds after which actions whose features have changed are described anew; each time is a line of the ledger."""


@dataclass(frozen=True, slots=True)
class Asked:
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
    ) -> Hosted:
        """The agent, with an arm for every action; made when the first call comes."""
        try:
            hosted = await hosting.get(self.name, forwarded=forwarded)
        except HttpError as error:
            if error.status != 404:
                raise
            hosted = await self._made(hosting, actions, forwarded)
        if not set(actions) <= _known(hosted.agent):
            async with self._growing:
                await hosted.elsewhere(lambda agent: _grow(agent, actions))
        elif changed := self._changed(hosted.agent, actions):
            async with self._growing:
                await hosted.elsewhere(lambda agent: _describe(agent, changed))
        return hosted

    async def _made(
        self, hosting: Hosting, actions: Mapping[str, Mapping[str, Any]], forwarded: bool
    ) -> Hosted:
        async with self._growing:
            if self.name not in await hosting.names():
                return await hosting.make(self.name, settings(actions), forwarded=forwarded)
        return await hosting.get(self.name, forwarded=forwarded)

    def _changed(self, agent: Agent, actions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """What is to be described anew: what differs from what the agent knows, and was not just looked at."""
        now = time.monotonic()
        if not agent.describes or all(
            now - self._described.get(action, -AGAIN) < AGAIN for action in actions
        ):
            return {}
        self._described |= dict.fromkeys(actions, now)
        given = {action: clean_features(action, {FREE: features}) for action, features in actions.items()}
        return {action: made for action, made in given.items() if made != agent.features(action)}

    async def rank(
        self, hosting: Hosting, asked: Asked, *, forwarded: bool = False
    ) -> tuple[Hosted, str, list[tuple[str, float]]]:
        """The action to show, and all of them with their chances, best first; safe when this returns."""
        hosted = await self.agent(hosting, asked.actions, forwarded=forwarded)
        open_arms = set(hosted.agent.arms)
        among = [action for action in asked.actions if action in open_arms and action not in asked.excluded]
        if not among:
            raise HttpError(422, "No action is left: all are in excludedActions, or retired.")
        context = context_of(asked.features) if _takes_features(hosted.agent) else None
        request = Request(context, among, None, None, asked.event, asked.deferred)
        (decision,), seq = hosted.agent.choose_ahead([request])
        chances = hosted.agent.chances(asked.event)
        await hosted.turns.committed(seq)
        return hosted, decision.arm, ranking(list(asked.actions), chances, decision.arm)

    async def reward(
        self, hosting: Hosting, event: str, value: float, *, forwarded: bool = False
    ) -> tuple[Hosted, str]:
        """Take a reward; "news", or why it has no effect, as Personalizer has none for a second or late one."""
        hosted = await self._existing(hosting, forwarded)
        try:
            news, seq = hosted.agent.reward_ahead(event, value)
        except (ExpiredError, OtherRewardError) as error:
            return hosted, "late" if isinstance(error, ExpiredError) else "second"
        await hosted.turns.committed(seq)
        return hosted, "news" if news else "second"

    async def activate(self, hosting: Hosting, event: str, *, forwarded: bool = False) -> Hosted:
        """What was shown counts; too late has no effect."""
        hosted = await self._existing(hosting, forwarded)
        try:
            _, seq = hosted.agent.activate_ahead(event)
        except ExpiredError:
            return hosted
        await hosted.turns.committed(seq)
        return hosted

    async def _existing(self, hosting: Hosting, forwarded: bool) -> Hosted:
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
