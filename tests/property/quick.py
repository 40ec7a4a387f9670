"""One profile for the properties of this folder: few examples, the same in every run, however slow
the machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
