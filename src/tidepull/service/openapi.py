"""The service's own description, OpenAPI 3.1, made from its operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, get_type_hints

import msgspec

from tidepull import __version__
from tidepull.service.messages import NAME
from tidepull.service.operations import Operation
from tidepull.service.problem_details import ProblemBody

_REF = "#/components/schemas/{name}"
_STATUS_TEXT = {
    400: "The body is not JSON.",
    401: "A valid token is needed.",
    403: "The token is not for this agent, or lacks the scope.",
    404: "There is no such agent, or no such decision.",
    405: "The method is not for this path.",
    408: "The body came too slowly.",
    409: "It contradicts what is there already.",
    410: "The decision no longer waits for a reward.",
    413: "The body is too large.",
    415: "The body is not of the type application/json.",
    421: "A service without tokens answers to localhost only; or another shard has the agent.",
    422: "A field does not fit.",
    429: "Too many requests.",
    500: "Something went wrong in the service.",
    502: "The shard that has the agent gave no answer; send it again with the same id.",
    503: "The agent or its ledger is not at hand; try again.",
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole description."""
    return _document(tuple(operations))


@lru_cache(maxsize=4)
def _document(operations: tuple[Operation, ...]) -> dict[str, Any]:
    types = {
        kind
        for op in operations
        for kind in (op.answer, op.body, op.errors)
        if kind not in (None, dict)
    } | {ProblemBody}
    _, components = msgspec.json.schema_components(sorted(types, key=str), ref_template=_REF)
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidepull",
            "version": __version__,
            "summary": "Decisions under drift and seasonality.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`tidepull token new`",
                },
                "key": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
            },
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": _responses(operation),
    }
    if operation.scope is None:
        entry["security"] = []
    elif operation.errors is not None:
        entry["security"] = [{"key": []}, {"token": []}]
    elif operation.scope != "any":
        entry["description"] = f"Needs the scope `{operation.scope}`."
    if parameters := [*_path(operation), *_query(operation), *operation.parameters]:
        entry["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _ref(operation.body), "example": operation.example}
        entry["requestBody"] = {"required": True, "content": {"application/json": content}}
    return entry


def _responses(operation: Operation) -> dict[str, Any]:
    entry: dict[str, Any] = {str(operation.status): _success(operation)}
    errors, kind = ProblemBody, "application/problem+json"
    if operation.errors is not None:
        errors, kind = operation.errors, "application/json"
    for status in sorted(_statuses(operation)):
        entry[str(status)] = {
            "description": _STATUS_TEXT[status],
            "content": {kind: {"schema": _ref(errors)}},
        }
    return entry


def _success(operation: Operation) -> dict[str, Any]:
    if operation.status == 204:
        return {"description": operation.summary}
    content: dict[str, Any] = {"example": operation.answer_example}
    if operation.answer is not None:
        content["schema"] = (
            {"type": "object"} if operation.answer is dict else _ref(operation.answer)
        )
    else:
        content["schema"] = {"type": "string"}
    return {
        "description": operation.summary,
        "content": dict.fromkeys(operation.content_types, content),
    }


def _statuses(operation: Operation) -> set[int]:
    statuses = {500, 503, 421, *operation.problems}
    if operation.scope is not None:
        statuses |= {401, 403, 429, 502}
    if operation.per_agent:
        statuses |= {404}
    if operation.body is not None:
        statuses |= {400, 408, 413, 415, 422}
    if operation.query is not None:
        statuses |= {422}
    if operation.errors is not None:
        statuses = (statuses | {400}) - {413, 422}
    return statuses


def _path(operation: Operation) -> list[dict[str, Any]]:
    if "{eventId}" in operation.path:
        event = {"type": "string", "minLength": 1, "maxLength": 256}
        return [
            {
                "name": "eventId",
                "in": "path",
                "description": "Id of the event.",
                "required": True,
                "schema": event,
                "example": "visit 17",
            }
        ]
    if not operation.per_agent:
        return []
    schema = {"type": "string", "pattern": NAME}
    about = {"description": "Name of the agent.", "required": True}
    return [{"name": "name", "in": "path", **about, "schema": schema, "example": "shop"}]


_QUERY = {
    "at": "Moment to report on. Default: now.",
    "since": "Only decisions since this moment.",
    "until": "Only decisions until this moment.",
    "before": "Only decisions before this moment.",
    "bins": "Number of intervals.",
    "level": "Confidence level of the interval.",
    "points": "Number of earlier moments at which the gain is given, too.",
    "outcome": "A further outcome instead of the reward.",
    "format": "Format of the file.",
    "field": "Field of the context by whose values rewards are grouped.",
    "limit": "Largest number of decisions.",
    "id": "Id of the decision.",
    "agent": "Agent that must be able to answer, too.",
}
"""What each parameter of a query means; all that are called alike mean the same."""


def _query(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    hints = get_type_hints(operation.query, include_extras=True)
    defaults = {field.name: field for field in msgspec.structs.fields(operation.query)}
    parameters = []
    for name, hint in hints.items():
        schema = msgspec.json.schema(hint)
        schema["anyOf"] = [part for part in schema.get("anyOf", []) if part != {"type": "null"}]
        if not schema["anyOf"]:
            del schema["anyOf"]
        required = defaults[name].required
        about = {"description": _QUERY[name], "required": required, "schema": schema}
        parameters.append({"name": name, "in": "query", **about})
    return parameters


def _ref(kind: Any) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
