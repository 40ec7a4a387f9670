"""What a log says about time: what happened, whether rewards depend on time, how, and what follows from it."""

from __future__ import annotations

from tidepull.logs.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
