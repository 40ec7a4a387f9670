"""The Open Bandit Dataset (ZOZO): CSV with fixed names, and the list of all items beside it."""

from __future__ import annotations

import csv as plain_csv
from pathlib import Path

from tidepull.logs.formats.csv import batches, columns_of
from tidepull.logs.opening import header_of, lines
from tidepull.logs.roles import Asked

__all__ = ["asked_of", "batches", "columns_of", "fits", "items_of"]

SIGNS = {"timestamp", "item_id", "position", "click", "propensity_score"}


def fits(columns: list[str]) -> bool:
    """Whether a header is one of this data set."""
    return set(columns) >= SIGNS


def asked_of(columns: list[str]) -> Asked:
    """The fixed names. What users have to do with each item is a feature of arms, not of contexts."""
    context = [name for name in columns if name == "position" or name.startswith("user_feature_")]
    return Asked("item_id", "click", "timestamp", "propensity_score", context=context)


def items_of(path: Path) -> list[str] | None:
    """All items, of which some may never have been shown; None where `item_context.csv` is not there."""
    beside = path.parent / "item_context.csv"
    if not beside.is_file():
        return None
    place = header_of(beside).index("item_id")
    rows = plain_csv.reader(line for number, line in lines(beside) if number > 1 and line)
    return sorted((row[place] for row in rows), key=int)
