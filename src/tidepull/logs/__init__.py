"""Logs of decisions: reading them, whether time matters in them, and what another policy would have
earned."""

from __future__ import annotations

from tidepull.errors import MissingExtraError

try:
    import scipy  # noqa: F401
except ModuleNotFoundError:
    raise MissingExtraError("tidepull.logs", "tables") from None

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
