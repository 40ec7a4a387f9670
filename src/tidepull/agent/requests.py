"""What a client asks a service, without saying how it is sent: one place for paths, bodies, answers
and retries."""

from __future__ import annotations

import json
import math
import random
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload
from urllib.parse import quote
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from tidepull.agent.decisions import Decision, DecisionId, id_of
from tidepull.agent.fields import is_missing
from tidepull.errors import ContextError, RewardError, ServiceError

P = ParamSpec("P")
T = TypeVar("T")
AGAIN = (429, 503)
"""Statuses that say that nothing was done, and that it may work later."""

UNSURE = (502, 504)
"""Statuses after which nobody knows whether it was done."""

FAILING = (0, 429, 500, 502, 503, 504)
"""Statuses (0: no answer) that say that the service is not well, not that the request is wrong."""

LONGEST_WAIT = 10.0
TimeLike = float | datetime | str


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """What an agent says of itself: `str()` of it is plain words, `data` is all that was
    answered."""

    data: dict[str, Any]

    def __str__(self) -> str:
        return str(self.data["words"])


@dataclass(frozen=True, slots=True)
class RewardResult:
    """What became of one reward of many: `status` 200, or why not (`detail`)."""

    id: str
    status: int
    duplicate: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest(Generic[T]):
    """A request; `read` makes its answer. `repeatable`: to send it twice is to send it once.
    `quick`: somebody waits for it, so that it has the short deadline. `fallback` makes the answer
    where the service has none; `known` is one for which the service is not asked."""

    method: str
    path: str
    read: Callable[..., T]
    body: Any = None
    query: dict[str, Any] | None = None
    repeatable: bool = True
    quick: bool = False
    fallback: Callable[[], T] | None = None
    known: T | None = None

    def answer_failure(self, error: ServiceError) -> T:
        """The answer where the service is not well; an error that is the caller's stays one."""
        if self.fallback is None or error.status not in FAILING:
            raise error
        return self.fallback()

    def answer(self, status: int, content: bytes, kind: str) -> T:
        """What the answer means; a `ServiceError` if it is a refusal."""
        if status >= 400:
            raise service_error(status, content)
        return self.read(
            json.loads(content) if kind.partition(";")[0] == "application/json" else content
        )

    def may_repeat(self, status: int | None, *, sent: bool) -> bool:
        """Whether to try again after a status (None: there was no answer; `sent`: the request may
        have arrived)."""
        if status is None:
            return self.repeatable or not sent
        return status in AGAIN or (status in UNSURE and self.repeatable)


def service_error(status: int, content: bytes) -> ServiceError:
    """The problem that a service answered."""
    try:
        problem = json.loads(content)
        return ServiceError(status, str(problem["detail"]), problem.get("request"))
    except (ValueError, KeyError, TypeError):
        return ServiceError(
            status,
            f"the service answered {status} without a reason: is the address that of tidepull?",
        )


def pause(attempt: int, after: str | None) -> float:
    """Seconds to wait before the next attempt: what the service said, or longer each time, never
    all at once."""
    if after is not None and after.isdigit():
        return min(LONGEST_WAIT, float(after))
    return min(2.0, 0.05 * 2.0**attempt) * (0.5 + random.random() / 2)


def moment(at: TimeLike | None) -> float | str | None:
    """A moment as it is sent."""
    return at.isoformat() if isinstance(at, datetime) else at


def plain_value(value: Any, name: str = "") -> Any:
    """A value of a context as it is sent."""
    if is_missing(value):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        raise ContextError(f"context: field '{name}' must be a finite number, got {value!r}")
    if isinstance(value, Decimal | np.number):
        return float(value)
    return str(value) if isinstance(value, UUID) else moment(value)


def seconds(duration: float | timedelta | None) -> float | None:
    """A duration as it is sent."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def without_none(**values: Any) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in values.items() if value is not None}


def choice_body(
    context: Mapping[str, Any] | None,
    arms: Iterable[str] | None,
    subject: str | int | UUID | None,
    at: TimeLike | None,
    id: str | int | UUID | None,
    baseline: str | None = None,
) -> dict[str, Any]:
    """The body of a decision; it has an id in any case, so that it can be repeated."""
    if not isinstance(context, Mapping | None):
        raise ContextError(f"context must be a dictionary, got a {type(context).__name__}")
    return without_none(
        context=None
        if context is None
        else {name: plain_value(value, name) for name, value in context.items()},
        arms=None if arms is None else list(arms),
        subject=id_of(subject),
        at=moment(at),
        id=id_of(id) or uuid.uuid4().hex,
        baseline=baseline,
    )


def finite(what: str, value: Any) -> float:
    """A number as it is sent, or a `RewardError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, str) or not math.isfinite(number):
        raise RewardError(f"{what} must be a finite number, got {value!r}")
    return number


def reward_body(
    id: DecisionId,
    reward: float | Decimal,
    at: TimeLike | None,
    key: str | None,
    also: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The body of a reward; it has a key in any case, so that it counts once where rewards add
    up."""
    return without_none(
        id=id_of(id),
        reward=finite("reward", reward),
        at=moment(at),
        key=key or uuid.uuid4().hex,
        also=None
        if also is None
        else {name: finite(f"also: {name}", value) for name, value in also.items()},
    )


def fallback_decision(body: Mapping[str, Any], arm: str) -> Decision:
    """The decision of a client whose service does not answer; the service knows nothing of it."""
    return Decision.from_seconds(body["id"], arm, 1.0, "fallback", time.time())


_KINDS: dict[Any, str] = {
    float: "number",
    int: "number",
    str: "text",
    bool: "boolean",
    datetime: "moment",
    list: "tags",
}


def agent_body(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The body that makes an agent, from what `tidepull.Agent` takes."""
    body = without_none(name=name, **settings)
    if isinstance(body.get("context"), Mapping):
        body["context"] = {
            field: _KINDS[kind] if isinstance(kind, type) and kind in _KINDS else kind
            for field, kind in body["context"].items()
        }
    if isinstance(body.get("policy"), tuple):
        body["policy"] = _named(body["policy"])
    if "shadow" in body:
        body["shadow"] = [_named(one) for one in body["shadow"]]
    if isinstance(body.get("timezone"), ZoneInfo):
        body["timezone"] = body["timezone"].key
    for field in ("reward_within", "retention", "sticky"):
        if field in body:
            body[field] = seconds(body[field])
    if "arms" in body and not isinstance(body["arms"], Mapping):
        body["arms"] = list(body["arms"])
    return body


def _named(policy: Any) -> Any:
    """A policy as it is sent."""
    if isinstance(policy, tuple | list):
        return {"id": policy[0], "parameters": policy[1]}
    return policy


if TYPE_CHECKING:
    from tidepull.agent.client import AsyncRemoteAgent, RemoteAgent

    class SentRequest(Generic[P, T]):
        """A method that returns an answer, or in an asynchronous agent a coroutine of it."""

        @overload
        def __get__(self, agent: RemoteAgent, kind: Any = None) -> Callable[P, T]: ...
        @overload
        def __get__(
            self, agent: AsyncRemoteAgent, kind: Any = None
        ) -> Callable[P, Coroutine[Any, Any, T]]: ...
        def __get__(self, agent: Any, kind: Any = None) -> Any: ...


def sent(build: Callable[Concatenate[Any, P], HttpRequest[T]]) -> SentRequest[P, T]:
    """A method that lets its agent's client send the request that `build` makes."""

    @wraps(build)
    def method(self: AgentRequests, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self.client.send(build(self, *args, **kwargs))

    return cast("SentRequest[P, T]", method)


class AgentRequests:
    """The methods of an agent of a service: each makes a request, which the agent's client sends."""

    def __init__(self, client: Any, name: str) -> None:
        self.name = name
        self.client = client
        self._path = f"/v1/agents/{quote(name, safe='')}"

    @sent
    def choose(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        arms: Iterable[str] | None = None,
        subject: str | int | UUID | None = None,
        at: TimeLike | None = None,
        id: str | int | UUID | None = None,
        baseline: str | None = None,
        fallback: str | None = None,
    ) -> HttpRequest[Decision]:
        """Choose an arm; the decision is durable when the answer is there.

        Parameters
        ----------
        context : mapping of str to value, optional
            Values of the context's fields.
        arms : iterable of str, optional
            Labels among which to choose. By default these are all arms that are not retired.
        subject : str, int or UUID, optional
            Person or thing that the decision concerns.
        at : float, datetime or str, optional
            Moment of the decision. By default it is now.
        id : str, int or UUID, optional
            Name of the decision. By default a random name is made.
        baseline : str, optional
            Arm that your present rule takes in this decision; the control group gets it.
        fallback : str, optional
            Arm to return where the service does not answer in time, or is not well. The decision
            has the group "fallback", and its reward is not sent. By default that is an error.

        Returns
        -------
        Decision
            The arm with its exact propensity.
        """
        body = choice_body(context, arms, subject, at, id, baseline)
        return self._post(
            "choose",
            lambda answer: Decision.from_seconds(**answer),
            body,
            quick=True,
            fallback=None if fallback is None else lambda: fallback_decision(body, fallback),
        )

    @sent
    def choose_many(
        self, contexts: Sequence[Mapping[str, Any]], *, fallback: str | None = None
    ) -> HttpRequest[list[Decision]]:
        """Make one decision for each context, all in one commit.

        Parameters
        ----------
        contexts : sequence of mapping
            One context for each decision.
        fallback : str, optional
            Arm of all decisions where the service does not answer in time; see `choose`.

        Returns
        -------
        list of Decision
            The decisions, in the order of the contexts.
        """
        bodies = [choice_body(context, None, None, None, None) for context in contexts]

        def read(answer: Any) -> list[Decision]:
            return [Decision.from_seconds(**decision) for decision in answer["decisions"]]

        return self._post(
            "choose/batch",
            read,
            {"decisions": bodies},
            quick=True,
            fallback=None
            if fallback is None
            else lambda: [fallback_decision(body, fallback) for body in bodies],
        )

    @sent
    def reward(
        self,
        id: DecisionId,
        reward: float | Decimal,
        *,
        at: TimeLike | None = None,
        key: str | None = None,
        also: Mapping[str, float] | None = None,
    ) -> HttpRequest[bool]:
        """Report the reward of a decision.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.
        reward : float or Decimal
            Its reward.
        at : float, datetime or str, optional
            Moment of the reward. By default it is now.
        key : str, optional
            Name of the reward. By default a random name is made.
        also : mapping of str to float, optional
            Further outcomes by name, such as the cost. They are not learnt, but compared by
            `lift(outcome=...)`.

        Returns
        -------
        bool
            True if the reward is new, False if it is a duplicate, or of a fallback.
        """
        body = reward_body(id, reward, at, key, also)
        known = False if isinstance(id, Decision) and id.is_fallback else None
        return self._post(
            "reward", lambda answer: not answer["duplicate"], body, quick=True, known=known
        )

    @sent
    def rewards(self, rewards: Mapping[str, float]) -> HttpRequest[list[RewardResult]]:
        """Report several rewards; each is accepted or refused on its own.

        Parameters
        ----------
        rewards : mapping of str to float
            Rewards by the ids of their decisions.

        Returns
        -------
        list of RewardResult
            One result for each reward.
        """
        bodies = [reward_body(id, reward, None, None) for id, reward in rewards.items()]

        def read(answer: Any) -> list[RewardResult]:
            return [RewardResult(**result) for result in answer["rewards"]]

        return self._post("rewards", read, {"rewards": bodies}, quick=True)

    @sent
    def add(self, label: str, features: Mapping[str, Any] | None = None) -> HttpRequest[list[str]]:
        """Add an arm, or a retired one again.

        Parameters
        ----------
        label : str
            Label of the arm.
        features : mapping, optional
            Its features, where arms have them.

        Returns
        -------
        list of str
            Labels of the arms that can be chosen now.
        """
        return self._change_arms(op="add", label=label, features=features)

    @sent
    def retire(self, label: str) -> HttpRequest[list[str]]:
        """Retire an arm: it is not chosen any more.

        Parameters
        ----------
        label : str
            Label of the arm.

        Returns
        -------
        list of str
            Labels of the arms that can be chosen now.
        """
        return self._change_arms(op="retire", label=label)

    @sent
    def rename(self, label: str, to: str) -> HttpRequest[list[str]]:
        """Give an arm another label.

        Parameters
        ----------
        label, to : str
            Present and new label of the arm.

        Returns
        -------
        list of str
            Labels of the arms that can be chosen now.
        """
        return self._change_arms(op="rename", label=label, to=to)

    @sent
    def record(
        self,
        context: Mapping[str, Any] | None,
        arm: str,
        *,
        reward: float | Decimal | None = None,
        propensity: float | None = None,
        subject: str | int | UUID | None = None,
        at: TimeLike | None = None,
        id: str | int | UUID | None = None,
    ) -> HttpRequest[Decision]:
        """Learn from a decision that was made elsewhere, such as by your present rule.

        Parameters
        ----------
        context : mapping of str to value, or None
            Values of the context's fields.
        arm : str
            Arm that was played.
        reward : float or Decimal, optional
            Its reward. By default it is reported later, with `reward`.
        propensity : float, optional
            Probability with which the arm was chosen. By default the choice was not random.
        subject : str, int or UUID, optional
            Person or thing that the decision concerned.
        at : float, datetime or str, optional
            Moment of the decision. By default it is now.
        id : str, int or UUID, optional
            Name of the decision. By default a random name is made.

        Returns
        -------
        Decision
            The decision, in the group "imported".
        """
        body = choice_body(context, None, subject, at, id)
        body |= without_none(
            arm=arm, reward=None if reward is None else float(reward), propensity=propensity
        )
        return self._post("record", lambda answer: Decision.from_seconds(**answer), body)

    @sent
    def shadows(self) -> HttpRequest[list[TextAnswer]]:
        """Report what the candidates of the setting `shadow` would have chosen and earned."""
        return self._get(
            "shadows", lambda answer: [TextAnswer(report) for report in answer["shadows"]]
        )

    @sent
    def promote(
        self, policy: str | tuple[str, Mapping[str, Any]], share: float | None = None
    ) -> HttpRequest[TextAnswer]:
        """Give a candidate a share of the decisions, in steps; see `tidepull.Agent.promote`.

        Parameters
        ----------
        policy : str or (str, mapping)
            Id of the candidate, or its id and parameters.
        share : float, optional
            Share of the decisions, from 0 to 1. 0 takes all back. 1 puts the candidate in the
            policy's place. By default it is the next safe step.

        Returns
        -------
        TextAnswer
            The share before and after, and why; `print` shows it in words.
        """
        body = without_none(shadow=_named(policy), share=share)
        return self._post("promote", TextAnswer, body, repeatable=share is not None)

    @sent
    def change(self, /, **settings: Any) -> HttpRequest[dict[str, Any]]:
        """Change settings of the agent, as a record in its ledger.

        Parameters
        ----------
        **settings
            Settings of `tidepull.Agent.change`.

        Returns
        -------
        dict of str to (before, after)
            What changed.
        """
        body = agent_body("", settings)
        del body["name"]
        return self._post("settings", lambda answer: dict(answer["changes"]), body)

    @sent
    def replace(
        self, label: str, to: str, features: Mapping[str, Any] | None = None
    ) -> HttpRequest[list[str]]:
        """Give the place of an arm to a new one, so that an agent does not grow for ever.

        Parameters
        ----------
        label, to : str
            Labels of the arm that goes and of the one that comes.
        features : mapping, optional
            Features of the new arm, where arms have them.

        Returns
        -------
        list of str
            Labels of the arms that can be chosen now.
        """
        return self._change_arms(op="replace", label=label, to=to, features=features)

    @sent
    def explain(self, *, at: TimeLike | None = None) -> HttpRequest[TextAnswer]:
        """Report in plain words what the agent has learnt; `print` shows it.

        Parameters
        ----------
        at : float, datetime or str, optional
            Moment for which to report what was known then. By default it is now.

        Returns
        -------
        TextAnswer
            The report.
        """
        return self._get("explain", TextAnswer, **without_none(at=moment(at)))

    @sent
    def lift(
        self,
        *,
        since: TimeLike | None = None,
        level: float = 0.95,
        points: int = 0,
        outcome: str | None = None,
    ) -> HttpRequest[TextAnswer]:
        """Estimate the gain in reward over the control group.

        Parameters
        ----------
        since : float, datetime or str, optional
            First moment of the decisions that count. By default all decisions count.
        level : float, default: 0.95
            Level of the intervals.
        points : int, default: 0
            Number of moments for which the gain so far is returned, too.
        outcome : str, optional
            Name of a further outcome to compare instead of the reward.

        Returns
        -------
        TextAnswer
            The gain and its intervals; `print` shows it in words.
        """
        asked = without_none(since=moment(since), level=level, points=points, outcome=outcome)
        return self._get("lift", TextAnswer, **asked)

    @sent
    def state(self) -> HttpRequest[dict[str, Any]]:
        """Return the settings of the agent, its arms and its counts."""
        return self._get("state", dict)

    @sent
    def chart(
        self, *, since: TimeLike | None = None, until: TimeLike | None = None, bins: int = 120
    ) -> HttpRequest[dict[str, Any]]:
        """Return decisions and rewards over time, by arm and group.

        Parameters
        ----------
        since : float, datetime or str, optional
            First moment. By default it is that of the first decision.
        until : float, datetime or str, optional
            Last moment. By default it is that of the last decision.
        bins : int, default: 120
            Number of intervals of time.

        Returns
        -------
        dict
            Counts and sums of rewards in each interval.
        """
        return self._get("history", dict, since=moment(since), until=moment(until), bins=bins)

    @sent
    def heatmap(self, *, at: TimeLike | None = None) -> HttpRequest[dict[str, Any]]:
        """Return the arm that is best with a chance of 99% in every hour of the week.

        Parameters
        ----------
        at : float, datetime or str, optional
            Moment at which it was known. By default it is now.

        Returns
        -------
        dict
            Arms and numbers of decisions by weekday and hour.
        """
        return self._get("heatmap", dict, **without_none(at=moment(at)))

    @sent
    def waiting(self) -> HttpRequest[dict[str, Any]]:
        """Return how many rewards are pending, and how late rewards come."""
        return self._get("waiting", dict)

    @sent
    def freeze(self) -> HttpRequest[None]:
        """Stop learning; decisions continue, and rewards are recorded."""
        return self._post("freeze", _nothing)

    @sent
    def unfreeze(self) -> HttpRequest[None]:
        """Learn again; rewards that came while the agent was frozen are not learnt."""
        return self._post("unfreeze", _nothing)

    @sent
    def rollback(self, to: TimeLike | Decision) -> HttpRequest[None]:
        """Undo what was learnt after a moment or a decision.

        Parameters
        ----------
        to : float, datetime, str or Decision
            A moment, or a decision or its id.
        """
        body = {"to": to.id if isinstance(to, Decision) else moment(to)}
        return self._post("rollback", _nothing, body, repeatable=False)

    @sent
    def export(self, path: str | Path, *, before: TimeLike | None = None) -> HttpRequest[None]:
        """Write all decisions to a file.

        Parameters
        ----------
        path : str or pathlib.Path
            The .jsonl, .csv or .parquet file.
        before : float, datetime or str, optional
            Moment before which the decisions were made. By default all are written.
        """

        def read(content: bytes) -> None:
            Path(path).write_bytes(content)

        suffix = Path(path).suffix.lstrip(".")
        return self._get("export", read, format=suffix, before=moment(before))

    @sent
    def forget(self, subject: str | int | UUID) -> HttpRequest[int]:
        """Delete all decisions about a subject, for good.

        Parameters
        ----------
        subject : str, int or UUID
            The subject, as `choose` got it.

        Returns
        -------
        int
            Number of deleted decisions.
        """
        return self._post("forget", _deleted, {"subject": id_of(subject)})

    @sent
    def delete(self) -> HttpRequest[None]:
        """Delete the agent and everything that is stored of it, for good."""
        return HttpRequest("DELETE", self._path, _nothing, repeatable=False)

    def _get(self, what: str, read: Callable[..., T], **query: Any) -> HttpRequest[T]:
        return HttpRequest("GET", f"{self._path}/{what}", read, query=without_none(**query))

    def _post(
        self, what: str, read: Callable[..., T], body: Any = None, **details: Any
    ) -> HttpRequest[T]:
        return HttpRequest("POST", f"{self._path}/{what}", read, body, **details)

    def _change_arms(self, **change: Any) -> HttpRequest[list[str]]:
        return self._post("arms", _open, without_none(**change), repeatable=False)


def arms_of(agent: AgentRequests) -> HttpRequest[list[str]]:
    """The labels of the arms that can be chosen."""
    return agent._get("arms", _open)


def rows_of(agent: AgentRequests) -> HttpRequest[list[dict[str, Any]]]:
    """All decisions, as an export has them."""

    def read(content: bytes) -> list[dict[str, Any]]:
        return [json.loads(line) for line in content.splitlines()]

    return agent._get("export", read, format="jsonl")


def delete_before(agent: AgentRequests, before: TimeLike, decisions: int) -> HttpRequest[int]:
    """Delete decisions before a moment, of which an export has so many."""
    body = {"before": moment(before), "decisions": decisions}
    return agent._post("compact", _deleted, body, repeatable=False)


def create(body: dict[str, Any]) -> HttpRequest[str]:
    """An agent is made; its name."""
    return HttpRequest(
        "POST", "/v1/agents", lambda state: str(state["name"]), body, repeatable=False
    )


def agents() -> HttpRequest[list[str]]:
    """The agents that the token is for."""
    return HttpRequest(
        "GET", "/v1/agents", lambda answer: [one["name"] for one in answer["agents"]]
    )


def date_fields(state: Mapping[str, Any]) -> list[str]:
    """The fields of an agent's contexts that are moments."""
    fields: dict[str, Any] = state["context"] or {}
    return [name for name, field in fields.items() if field["kind"] == "Timestamp"]


def _open(answer: Any) -> list[str]:
    return [arm["label"] for arm in answer["arms"] if not arm["retired"]]


def _deleted(answer: Any) -> int:
    return int(answer["deleted"])


def _nothing(_: Any) -> None:
    """The answer has nothing to say."""
