"""The service's own description, OpenAPI 3.1, made from its operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, get_type_hints

import msgspec

from tidepull import __version__
from tidepull.service.messages import NAME
from tidepull.service.operations import Operation
from tidepull.service.problem_details import ProblemBody

_REF = "#/components/schemas/{name}"


@cache
def texts() -> dict[str, dict[str, Any]]:
    """What the description says beside operations and their types: its head, statuses, parameters
    of queries and paths, and examples of bodies (by operations) and answers (by operations, or by
    types where all have the same one)."""
    file = resources.files("tidepull.service") / "openapi.json"
    return msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, Any]])


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
    head = texts()["document"]
    return {
        **head,
        "info": {**head["info"], "version": __version__},
        "paths": paths,
        "components": {**head["components"], "schemas": components},
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
    if parameters := [*_path(operation), *_query(operation)]:
        entry["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _ref(operation.body), "example": texts()["bodies"][operation.id]}
        entry["requestBody"] = {"required": True, "content": {"application/json": content}}
    return entry


def _responses(operation: Operation) -> dict[str, Any]:
    entry: dict[str, Any] = {str(operation.status): _success(operation)}
    errors, kind = ProblemBody, "application/problem+json"
    if operation.errors is not None:
        errors, kind = operation.errors, "application/json"
    for status in sorted(_statuses(operation)):
        entry[str(status)] = {
            "description": texts()["statuses"][str(status)],
            "content": {kind: {"schema": _ref(errors)}},
        }
    return entry


def _success(operation: Operation) -> dict[str, Any]:
    if operation.status == 204:
        return {"description": operation.summary}
    content: dict[str, Any] = {"example": answer_example(operation)}
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


def answer_example(operation: Operation) -> Any:
    """An example of the answer: the operation's own, or that of its type."""
    answers = texts()["answers"]
    return answers.get(operation.id, answers.get(getattr(operation.answer, "__name__", "")))


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
    """Parameters of the path, and headers."""
    known = texts()["parameters"]
    if "{eventId}" in operation.path:
        return [known["eventId"]]
    if not operation.per_agent:
        return []
    name = {**known["name"], "schema": {"type": "string", "pattern": NAME}}
    return [name, *([known[operation.id]] if operation.id in known else [])]


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
        about = {"description": texts()["queries"][name], "required": required, "schema": schema}
        parameters.append({"name": name, "in": "query", **about})
    return parameters


def _ref(kind: Any) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
