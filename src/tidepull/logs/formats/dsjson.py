"""DSJSON, the log of Vowpal Wabbit's and Personalizer's decision services: one decision a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidepull.logs.formats.flat import flattened
from tidepull.logs.formats.rows import NotARowError, Row, label_at
from tidepull.logs.opening import json_lines

_NAMES = ("id", "Id", "i")


def fits(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is of this kind."""
    return "_label_cost" in first or ("c" in first and "a" in first and "p" in first)


def actions(path: Path) -> dict[str, list[Mapping[str, Any]]]:
    """The features of every action of a file, as they were in the last decision that had it."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for _, given, _ in json_lines(path):
        shared = None if given is None else given.get("c")
        sent = shared.get("_multi") if isinstance(shared, Mapping) else None
        offered: list[Any] = sent if isinstance(sent, list) else []
        for place, action in enumerate(offered):
            if isinstance(action, Mapping):
                given_with = action.get("j")  # what came with the call; `i` is Personalizer's own
                parts = given_with if isinstance(given_with, list) else [_own(action)]
                found[label_at(offered, place)] = [part for part in parts if isinstance(part, Mapping)]
    return found


def _own(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in action.items() if name not in _NAMES and not name.startswith("_")}


def row(given: Mapping[str, Any]) -> Row:
    """One decision. A decision that was not activated (`_skipLearn`) has no reward."""
    if "_outcomes" in given:
        raise NotARowError("a decision of several slots (_outcomes), which cannot be read")
    shared = given.get("c")
    if not isinstance(shared, Mapping) or not isinstance(shared.get("_multi"), list):
        raise NotARowError("no actions (c._multi)")
    actions = shared["_multi"]
    order, chances = given.get("a"), given.get("p")
    if isinstance(given.get("_labelIndex"), int):
        chosen = given["_labelIndex"]
    elif isinstance(given.get("_label_Action"), int):
        chosen = given["_label_Action"] - 1
    elif isinstance(order, list) and order:
        chosen = order[0] - 1
    else:
        raise NotARowError("no chosen action (_labelIndex)")
    chance = given.get("_label_probability")
    if chance is None and isinstance(chances, list) and chances:
        chance = chances[0]
    cost = None if given.get("_skipLearn") else given.get("_label_cost")
    return Row(
        arm=label_at(actions, chosen),
        reward=None if cost is None else -float(cost),
        time=given.get("Timestamp"),
        propensity=chance,
        id=given.get("EventId"),
        available=[label_at(actions, n) for n in range(len(actions))],
        context=flattened({name: value for name, value in shared.items() if not name.startswith("_")}),
    )
