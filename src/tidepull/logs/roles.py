"""Which column has which part of a log: said by the caller, else guessed from names that people use."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from tidepull.errors import DataError

NAMES = {
    "arm": (
        "arm",
        "action",
        "item_id",
        "arm_id",
        "action_id",
        "variant",
        "variation",
        "chosen",
        "choice",
        "item",
    ),
    "reward": ("reward", "click", "clicked", "conversion", "converted", "outcome", "payoff", "value"),
    "time": ("time", "timestamp", "at", "datetime", "date", "ts", "decided_at", "created_at"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "prob", "chance"),
    "paid_at": ("rewarded_at", "paid_at", "reward_time"),
    "available": ("available",),
    "id": ("decision_id", "event_id", "eventid", "id"),
}
"""Names of columns for every part, the likeliest first."""

NOT_CONTEXT = (
    "",
    "index",
    "id",
    "decision_id",
    "event_id",
    "eventid",
    "group",
    "chances",
    "__index_level_0__",
)
"""Columns that are neither a part of their own nor a context."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller said of a log's columns; None is guessed."""

    arm: str | None = None
    reward: str | None = None
    time: str | None = None
    propensity: str | None = None
    paid_at: str | None = None
    available: str | None = None
    id: str | None = None
    context: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Roles:
    """The column of every part, and those of the context; `nested` is a column with whole contexts, `limited` says
    that the caller named the context's columns."""

    arm: str
    reward: str | None
    time: str | None
    propensity: str | None
    paid_at: str | None
    available: str | None
    id: str | None
    context: tuple[str, ...]
    nested: str | None
    limited: bool = False

    def is_context(self, name: str) -> bool:
        """Whether a column, also one that appears late in a file, belongs to the context."""
        if self.limited or name in self.context:
            return name in self.context
        return name not in (*self.said().values(), self.nested) and name.lower() not in NOT_CONTEXT

    def said(self) -> dict[str, str]:
        """The parts that were found."""
        parts = [f.name for f in fields(self) if f.name not in ("context", "nested", "limited")]
        return {name: getattr(self, name) for name in parts if getattr(self, name) is not None}


def find_roles(columns: Iterable[str], asked: Asked, source: str) -> Roles:
    """The role of every column.

    >>> find_roles(["at", "variant", "clicked", "age"], Asked(), "shop.csv").said()
    {'arm': 'variant', 'reward': 'clicked', 'time': 'at'}
    """
    there = list(columns)
    found: dict[str, str | None] = {}
    for part, names in NAMES.items():
        wanted = getattr(asked, part)
        if wanted is not None:
            found[part] = _require(wanted, part, there, source)
        else:
            lower = {column.lower(): column for column in reversed(there)}
            taken = {column for column in found.values() if column is not None}
            free = [lower[name] for name in names if name in lower and lower[name] not in taken]
            found[part] = free[0] if free else None
    if found["arm"] is None:
        raise DataError(
            f"{source}: no column looks like the arm that was played; name it (--arm); {_listed(there)}"
        )
    if found["reward"] is None:
        raise DataError(f"{source}: no column looks like the reward; name it (--reward); {_listed(there)}")
    nested = "context" if "context" in there and asked.context is None else None
    used = {*found.values(), nested}
    if asked.context is None:
        context = tuple(name for name in there if name not in used and name.lower() not in NOT_CONTEXT)
    else:
        context = tuple(_require(name, "context", there, source) for name in asked.context)
    arm = found.pop("arm")
    assert arm is not None
    return Roles(arm=arm, **found, context=context, nested=nested, limited=asked.context is not None)


def _require(wanted: str, part: str, there: list[str], source: str) -> str:
    if wanted not in there:
        near = difflib.get_close_matches(wanted, there, n=1)
        hint = f"did you mean '{near[0]}'?" if near else _listed(there)
        raise DataError(f"{source}: there is no column '{wanted}' for the {part}; {hint}")
    return wanted


def _listed(there: list[str]) -> str:
    return (
        "its columns are "
        + ", ".join(repr(name) for name in there[:12])
        + (", ..." if len(there) > 12 else "")
    )
