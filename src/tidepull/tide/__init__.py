"""`tide`: posterior sampling over many models about time, weighed by how well they predict."""

from __future__ import annotations

from tidepull.tide.parameters import TideParameters
from tidepull.tide.policy import Tide

__all__ = ["Tide", "TideParameters"]
