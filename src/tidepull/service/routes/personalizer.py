"""Personalizer's three questions, with its paths, its key, its statuses and its errors."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tidepull.agent.personalizer import merged
from tidepull.service.auth import Scope
from tidepull.service.operation import JSON, Call, Operation, Raw
from tidepull.service.personalizer import Asked, Personalizer
from tidepull.service.problems import HttpError

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


class InnerError(Struct, kw_only=True):
    """A finer code."""

    code: str


class PersonalizerError(Struct, kw_only=True, rename="camel"):
    """BadRequest, ResourceNotFound or InternalServerError (or a status, as Azure's gateway had it), and a sentence."""

    code: str
    message: str
    inner_error: InnerError | UnsetType = UNSET


class ErrorResponse(Struct, kw_only=True):
    """What went wrong."""

    error: PersonalizerError


async def rank(call: Call) -> RankResponse:
    """Rank actions; the decision is safe when this returns."""
    body: RankRequest = call.body
    event = body.event_id or str(uuid.uuid4())
    actions = {action.id: merged(action.features) for action in body.actions}
    if len(actions) != len(body.actions):
        raise HttpError(422, "At actions: two have the same id.")
    if not all(any(part for part in action.features) for action in body.actions):
        raise HttpError(422, "At actions: every action should have at least one feature.")
    excluded = set(body.excluded_actions or ())
    asked = Asked(event, actions, excluded, body.context_features, bool(body.defer_activation))
    hosted, best, ranked = await _personalizer(call).rank(
        call.service.hosting, asked, forwarded=call.forwarded
    )
    call.service.metrics.decided(call.name)
    call.service.taken(hosted)
    made = [RankedAction(id=action, probability=chance) for action, chance in ranked]
    return RankResponse(ranking=made, event_id=event, reward_action_id=best)


async def reward(call: Call) -> Raw:
    """Take a reward."""
    hosted, came = await _personalizer(call).reward(
        call.service.hosting, _event(call), call.body.value, forwarded=call.forwarded
    )
    if came == "news":
        call.service.metrics.rewarded(call.name)
    else:
        call.service.metrics.ignored(came)
    call.service.taken(hosted)
    return _NOTHING


async def activate(call: Call) -> Raw:
    """An event that was deferred was shown."""
    hosted = await _personalizer(call).activate(call.service.hosting, _event(call), forwarded=call.forwarded)
    call.service.taken(hosted)
    return _NOTHING


_NOTHING = Raw(b"", JSON)


def _personalizer(call: Call) -> Personalizer:
    found = call.service.personalizer
    if found is None:
        raise HttpError(404, "This service was started without --personalizer NAME.")
    return found


def _event(call: Call) -> str:
    if not 0 < len(call.event) <= 256:
        raise HttpError(422, "The event id must have 1 to 256 characters.")
    return call.event


def error_of(problem: HttpError) -> tuple[int, ErrorResponse]:
    """A problem as Personalizer had it: what is wrong with a request is a 400."""
    status = 400 if problem.status in (413, 422) else problem.status
    code = "BadRequest"
    inner: InnerError | UnsetType = UNSET
    if status in (401, 403, 429):
        code = str(status)
    elif status == 404:
        code = "ResourceNotFound"
    elif status >= 500:
        code = "InternalServerError"
    if problem.status == 413:
        inner = InnerError(code="PayloadSizeExceeded")
    return status, ErrorResponse(
        error=PersonalizerError(code=code, message=problem.detail, inner_error=inner)
    )


_BASE = "/personalizer/v1.0"
_RANKED = {
    "ranking": [{"id": "news", "probability": 0.75}, {"id": "sport", "probability": 0.25}],
    "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
    "rewardActionId": "news",
}
OPERATIONS = [
    Operation(
        "POST",
        f"{_BASE}/rank",
        "personalizer_rank",
        "Personalizer: rank actions. For the agent of `--personalizer NAME`.",
        rank,
        Scope.DECIDE,
        RankResponse,
        RankRequest,
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
        answered=_RANKED,
    ),
    Operation(
        "POST",
        f"{_BASE}/events/{{eventId}}/reward",
        "personalizer_reward",
        "Personalizer: what an event was worth.",
        reward,
        Scope.DECIDE,
        None,
        RewardRequest,
        status=204,
        problems=(404,),
        errors=ErrorResponse,
        example={"value": 1.0},
    ),
    Operation(
        "POST",
        f"{_BASE}/events/{{eventId}}/activate",
        "personalizer_activate",
        "Personalizer: an event whose activation was deferred was shown.",
        activate,
        Scope.DECIDE,
        status=204,
        problems=(404,),
        errors=ErrorResponse,
    ),
]
