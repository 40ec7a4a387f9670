"""Examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tidepull
from tidepull.registry import policies, problems

FINDER = doctest.DocTestFinder(exclude_empty=True)
OUTSIDE = ("tidepull.__main__", "tidepull.encoders.torch")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(tidepull.__path__, "tidepull.")
    if module.name not in OUTSIDE
]


@pytest.fixture(autouse=True)
def _own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example registers is gone after it."""
    for registry in (policies, problems):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    return [test for test in FINDER.find(module, name) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_come_out_as_written(name: str) -> None:
    for test in examples(name):
        runner = doctest.DocTestRunner(verbose=False)
        report: list[str] = []
        runner.run(test, out=report.append)
        assert not runner.failures, "".join(report)


def test_there_are_examples() -> None:
    assert sum(len(examples(name)) for name in MODULES) >= 9
