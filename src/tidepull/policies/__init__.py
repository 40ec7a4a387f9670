"""The learners; importing this package registers their ids."""

from __future__ import annotations
