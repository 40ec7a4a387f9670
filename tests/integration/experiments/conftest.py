"""Modules of a test's own are forgotten after it."""

from __future__ import annotations

from tests.unit.experiments.conftest import _forget_own_modules

__all__ = ["_forget_own_modules"]
