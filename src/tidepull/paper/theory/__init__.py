"""Linear posterior sampling when contexts carry bounded measurement error: the bound, and its
test."""

from __future__ import annotations
