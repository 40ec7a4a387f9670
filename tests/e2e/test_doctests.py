"""Examples in docstrings are true.

They run in a process of their own: doctest replaces `sys.stdout`, which a thread of another test
may replace at the same moment.
"""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from unittest.mock import patch

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


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    return [test for test in FINDER.find(module, name) if test.examples]


def failures(name: str) -> str:
    """What the examples of a module report; what they register is gone after it."""
    report: list[str] = []
    for test in examples(name):
        with patch.dict(policies._entries), patch.dict(problems._entries):
            doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    return "".join(report)


@cache
def reports() -> dict[str, str]:
    """The reports of all modules, from a process of their own."""
    program = (
        "import json; from tests.e2e.test_doctests import MODULES, failures; "
        "found = {name: failures(name) for name in MODULES}; print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_come_out_as_written(name: str) -> None:
    assert reports()[name] == ""


def test_there_are_examples() -> None:
    assert sum(len(examples(name)) for name in MODULES) >= 9
