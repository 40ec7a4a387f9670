"""Logs of decisions: reading them, whether time matters in them, and what another policy would have
earned."""

from __future__ import annotations

from tidepull._internal.extras import needs

with needs("tidepull.logs", "tables"):
    import scipy  # noqa: F401

from tidepull.logs.backtesting import Backtest, Estimate, backtest
from tidepull.logs.diagnosis import Diagnosis, diagnose
from tidepull.logs.log import Log
from tidepull.logs.policies import Target, always, as_logged, uniform
from tidepull.logs.reading import read
from tidepull.logs.world import simulator

__all__ = [
    "Backtest",
    "Diagnosis",
    "Estimate",
    "Log",
    "Target",
    "always",
    "as_logged",
    "backtest",
    "diagnose",
    "read",
    "simulator",
    "uniform",
]
