"""Logs of decisions: reading them, and what another policy would have earned on them."""

from __future__ import annotations

from tidepull.logs.backtesting import Backtest, Estimate, backtest
from tidepull.logs.log import Log
from tidepull.logs.reading import read
from tidepull.logs.targets import Target, always, as_logged, uniform

__all__ = ["Backtest", "Estimate", "Log", "Target", "always", "as_logged", "backtest", "read", "uniform"]
