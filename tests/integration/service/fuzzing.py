"""Schemathesis against a running service: it makes requests of all kinds from the OpenAPI and
checks the answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.integration.service.houses import SHOP
from tests.integration.service.running import Running
from tidepull.service.handlers import OPERATIONS
from tidepull.service.openapi import document


def fuzzed(target: Running, examples: int) -> dict[str, int]:
    """How many requests each operation answered as the description says; the first that it does not
    is an error."""
    import schemathesis
    from schemathesis import GenerationMode

    schema: Any = schemathesis.openapi.from_dict(document(OPERATIONS))

    class Bearer:
        def get(self, case: Any, ctx: Any) -> str:
            return target.token

        def set(self, case: Any, data: str, ctx: Any) -> None:
            case.headers["Authorization"] = f"Bearer {data}"

    schema.auth()(Bearer)
    sent: dict[str, int] = {}
    for found in schema.get_all_operations():
        for mode in GenerationMode:
            _fuzz(target, found.ok(), mode, examples, sent)
    return sent


def _fuzz(target: Running, operation: Any, mode: Any, examples: int, sent: dict[str, int]) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # An agent's own schema, which no OpenAPI knows, refuses most contexts: that is no fault.
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        if "{name}" in operation.path:
            if target.ask("GET", "/v1/agents/shop")[0] == 404:
                target.ask("POST", "/v1/agents", SHOP)
            if mode.is_positive:
                case.path_parameters["name"] = "shop"
        sent[operation.label] = sent.get(operation.label, 0) + 1
        case.call_and_validate(base_url=target.url, excluded_checks=[positive_data_acceptance])

    with suppress(
        *([] if mode.is_positive else [Unsatisfiable])
    ):  # nothing can be wrong where nothing is sent
        answered()
