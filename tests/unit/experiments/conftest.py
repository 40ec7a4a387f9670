from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidepull.experiments import spec
from tidepull.policies import policies
from tidepull.problems import problems


@pytest.fixture(autouse=True)
def _forget_own_modules() -> Iterator[None]:
    """What a test's own modules register is gone after it, so that other tests see tidepull's ids
    only."""
    before = [dict(registry._entries) for registry in (problems, policies)]
    loaded = dict(spec._loaded)
    yield
    problems._entries, policies._entries = before  # type: ignore[assignment]
    spec._loaded.clear()
    spec._loaded.update(loaded)
