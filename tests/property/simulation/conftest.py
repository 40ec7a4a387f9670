"""A process of their own for the histories: threads of other tests would see the simulated
clock."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest


@pytest.fixture(scope="session")
def alone() -> Iterator[Callable[..., Any]]:
    """Call a function in a process that runs nothing else, and return what it returns."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield lambda function, *given: pool.submit(function, *given).result()
