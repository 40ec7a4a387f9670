"""The JSON lines of `gittins`: decisions, and what became of them further down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidepull.logs.formats.flat import flattened
from tidepull.logs.formats.rows import NotARowError, Row, label_at
from tidepull.logs.opening import json_lines


def fits(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is of this kind."""
    return first.get("event") in ("decision", "resolution") and ("record" in first or "decision_id" in first)


def rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    """Every decision with its reward, if one came; a censored decision has none. The file is read twice: first what
    became of each decision, then the decisions."""
    paid: dict[str, tuple[float | None, Any]] = {}
    for _, given, _ in json_lines(path):
        if given is not None and given.get("event") == "resolution":
            worth = None if given.get("kind") == "censor" else given.get("reward")
            paid[str(given.get("decision_id"))] = (worth, given.get("t"))
    for line, given, why in json_lines(path):
        if given is None:
            yield line, why
        elif given.get("event") == "decision":
            try:
                yield line, _row(given, paid)
            except (NotARowError, TypeError, KeyError, ValueError) as error:
                yield line, f"not as expected ({error})"
        elif given.get("event") != "resolution":
            yield line, f"neither a decision nor a resolution: {given.get('event')!r}"
    if paid:
        yield 0, f"{len(paid):,} resolutions name no decision of this file, as {next(iter(paid))!r}"


def _row(given: Mapping[str, Any], paid: dict[str, tuple[float | None, Any]]) -> Row:
    record = given["record"]
    offered = given.get("candidates")
    names = [label_at(offered, n) for n in range(len(offered))] if isinstance(offered, list) else None
    chosen = record["chosen"]
    by_place = names is not None and isinstance(chosen, int) and str(chosen) not in names
    context = given.get("context")
    worth, at = paid.pop(str(record["decision_id"]), (None, None))
    return Row(
        arm=names[chosen] if names is not None and by_place else str(chosen),
        reward=worth,
        time=record.get("t"),
        propensity=record.get("propensity"),
        paid_at=at,
        available=names,
        id=record["decision_id"],
        context=flattened(context) if isinstance(context, Mapping) else {},
    )
