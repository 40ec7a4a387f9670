"""Nothing that hangs holds up the event loop: other agents and `/healthz` answer at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.benchmarks.service_waiting import Prober, bare_server, measure, started

SECONDS = 0.8
"""For which each lock, file or socket is held."""

P99, LONGEST = 0.05, 0.3
"""Seconds: of all answers 99%, and every one, less than half as long as anything is held."""


def fast(mine: list[float], bare: list[float], most: float, quantile: float) -> bool:
    """Whether answers came in time, given what the machine itself took."""
    return float(np.quantile(mine, quantile)) < most + 3 * float(np.quantile(bare, quantile))


@pytest.mark.parametrize("ledger", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_nobody_waits_for_an_agent_that_hangs(ledger: str, tmp_path: Path) -> None:
    kinds: dict[str, list[float]] = {"health": [], "choose": [], "bare": []}
    slow: dict[str, float] = {}

    def note(held: str, probers: dict[str, Prober]) -> None:
        stands = held == "database that stands still"  # every agent is in it
        for kind, prober in probers.items():
            if kind == "choose" and stands:
                continue
            kinds[kind] += prober.seconds
            if not fast(prober.seconds, probers["bare"].seconds, LONGEST, 1.0):
                slow[f"{held}: {kind}"] = max(prober.seconds)
        if not stands and probers["choose"].refused:
            slow[f"{held}: refused"] = probers["choose"].refused

    with (
        bare_server() as bare,
        started(ledger, 1000, "bernoulli-ts", tmp_path) as (service, holds),
    ):
        for held, hold in holds.items():
            note(held, measure(service, bare, hold, SECONDS))
    assert not slow
    for kind in ("health", "choose"):
        assert fast(kinds[kind], kinds["bare"], P99, 0.99), (
            kind,
            float(np.quantile(kinds[kind], 0.99)),
        )
