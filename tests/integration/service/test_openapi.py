"""The service's own description: true, whole, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.service.fuzzing import fuzzed
from tests.integration.service.houses import House
from tests.integration.service.running import running
from tidepull.service.handlers import OPERATIONS
from tidepull.service.openapi import answer_example, document, texts
from tidepull.service.operations import Operation


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_examples_of_an_operation_fit_its_types(operation: Operation) -> None:
    if operation.body is not None:
        operation.read(msgspec.json.encode(texts()["bodies"][operation.id]))
    assert (answer_example(operation) is None) == (operation.status == 204)
    if operation.answer not in (None, dict):
        msgspec.convert(answer_example(operation), operation.answer)


def test_description_names_every_path_and_scope(house: House) -> None:
    said = house.ask("GET", "/v1/openapi.json").json()
    assert said == msgspec.json.decode(msgspec.json.encode(document(OPERATIONS)))
    assert said["openapi"] == "3.1.0"
    listed = {
        (method.upper(), path) for path, methods in said["paths"].items() for method in methods
    }
    assert listed == {(operation.method, operation.path) for operation in OPERATIONS}
    for methods in said["paths"].values():
        for method in methods.values():
            assert all(
                "example" in part["content"][kind]
                for part in _good(method)
                for kind in part["content"]
            )


def _good(method: dict[str, Any]) -> list[Any]:
    return [answer for status, answer in method["responses"].items() if status in ("200", "201")]


def test_whatever_schemathesis_sends_is_answered_as_described(tmp_path: Path) -> None:
    with running(tmp_path, personalizer="menu") as service:
        sent = fuzzed(service, examples=3)
    assert len(sent) == len(OPERATIONS)
    assert min(sent.values()) >= 1
