"""Formats of one decision a line, or a few lines: Vowpal Wabbit's text and JSON, DSJSON, and
gittins.

DSJSON is the log of Vowpal Wabbit's and Personalizer's decision services. In the JSON lines of
gittins rewards stand further down than their decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tidepull.logs.formats import (
    LoggedDecision,
    NotARowError,
    flatten,
    json_lines,
    label_at,
    labels_of,
    lines,
)

_LABEL = re.compile(r"^(\d+):(-?[\d.eE+-]+):([\d.eE+-]+)$")
_DSJSON_IDS = ("id", "Id", "i")


def is_vw_text(first: str) -> bool:
    """Whether the first line of a file is of Vowpal Wabbit's text format."""
    head, bar, _ = first.partition("|")
    return bool(bar) and (
        head.strip() == "" or head.split()[0] == "shared" or bool(_LABEL.match(head.split()[0]))
    )


def is_vw_json(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is of Vowpal Wabbit's JSON format."""
    return isinstance(first.get("_multi"), list)


def is_dsjson(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is DSJSON."""
    return "_label_cost" in first or ("c" in first and "a" in first and "p" in first)


def is_gittins(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is of gittins."""
    return first.get("event") in ("decision", "resolution") and (
        "record" in first or "decision_id" in first
    )


def vw_text_rows(path: Path) -> Iterator[tuple[int, LoggedDecision | str]]:
    """The decisions of a text file: blocks between empty lines where actions have features, else
    single lines."""
    block: list[tuple[int, str]] = []
    single = False
    for number, line in lines(path):
        if line.strip():
            block.append((number, line))
            single = single or _are_single(block)
        if single or not line.strip():
            yield from _block_rows(block, single)
            block = []
    yield from _block_rows(block, single)


def _are_single(block: list[tuple[int, str]]) -> bool:
    """Whether lines are decisions of their own: a second one has a label."""
    if block[0][1].startswith("shared") or _label(block[-1][1]) is None:
        return False
    return sum(_label(line) is not None for _, line in block) > 1


def _block_rows(
    block: list[tuple[int, str]], single: bool
) -> Iterator[tuple[int, LoggedDecision | str]]:
    """The decision of a block, or one a line."""
    if not block:
        return
    if block[0][1].startswith("shared") or (len(block) > 1 and not single):
        yield block[0][0], _row_or_reason(lambda: _block([line for _, line in block]))
        return
    for number, line in block:
        yield number, _row_or_reason(lambda line=line: _single(line))  # type: ignore[misc]


def _row_or_reason(read: Callable[[], LoggedDecision]) -> LoggedDecision | str:
    try:
        return read()
    except ValueError as error:
        return str(error)


def _block(block: list[str]) -> LoggedDecision:
    shared = block[0] if block[0].startswith("shared") else None
    actions = block if shared is None else block[1:]
    labels = [(n, label) for n, label in enumerate(map(_label, actions)) if label is not None]
    if len(labels) != 1:
        raise NotARowError(
            f"{len(labels)} of {len(actions)} actions have a label (action:cost:probability)"
        )
    place, (_, cost, chance) = labels[0]
    names = [_tag(line) or str(n) for n, line in enumerate(actions)]
    cells = {"arm": names[place], "reward": -cost, "propensity": chance, "available": names}
    return LoggedDecision(cells, {} if shared is None else _features(shared))


def _single(line: str) -> LoggedDecision:
    label = _label(line)
    if label is None:
        raise NotARowError("no label (action:cost:probability)")
    action, cost, chance = label
    cells = {"arm": str(action), "reward": -cost, "propensity": chance}
    return LoggedDecision(cells, _features(line))


def _label(line: str) -> tuple[int, float, float] | None:
    for word in line.partition("|")[0].split():
        match = _LABEL.match(word)
        if match:
            return int(match[1]), float(match[2]), float(match[3])
    return None


def _tag(line: str) -> str | None:
    words = line.partition("|")[0].split()
    return next((word[1:] for word in words if word.startswith("'")), None)


def _features(line: str) -> dict[str, float]:
    features: dict[str, float] = {}
    for part in line.split("|")[1:]:
        words = part.split()
        space = "" if part.startswith((" ", "\t")) or not words else words.pop(0).partition(":")[0]
        for word in words:
            name, colon, value = word.rpartition(":")
            whole, number = (name, float(value)) if colon else (word, 1.0)
            features[f"{space}.{whole}" if space else whole] = number
    return features


def vw_json_row(record: Mapping[str, Any]) -> LoggedDecision:
    """One decision in Vowpal Wabbit's JSON: labelled as a whole, or at the chosen action."""
    actions = record["_multi"]
    if not isinstance(actions, list):
        raise NotARowError("_multi is no list of actions")
    place, cost, chance = _json_label(record, actions)
    offered = labels_of(actions)
    cells = {
        "arm": offered[place], "reward": -cost, "time": record.get("Timestamp"), "propensity": chance,
        "available": offered,
    }  # fmt: skip
    return LoggedDecision(cells, flatten(_shared(record, "Timestamp")))


def _shared(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What is neither Vowpal Wabbit's own (with an underscore) nor of these names."""
    return {key: record[key] for key in record if not key.startswith("_") and key not in names}


def _json_label(record: Mapping[str, Any], actions: list[Any]) -> tuple[int, float, float]:
    for holder, place in [(record, None), *((action, n) for n, action in enumerate(actions))]:
        if not isinstance(holder, Mapping):
            continue
        match = _LABEL.match(str(holder.get("_label", "")))
        if match:
            action, cost, chance = int(match[1]) - 1, float(match[2]), float(match[3])
        elif "_label_cost" in holder:
            action = int(holder.get("_labelIndex", int(holder.get("_label_Action", 0)) - 1))
            cost, chance = float(holder["_label_cost"]), float(holder["_label_probability"])
        else:
            continue
        chosen = action if place is None else place
        if not 0 <= chosen < len(actions):
            raise NotARowError(f"the label names action {chosen + 1} of {len(actions)}")
        return chosen, cost, chance
    raise NotARowError("no label (_label)")


def dsjson_actions(path: Path) -> dict[str, list[Mapping[str, Any]]]:
    """The features of every action of a DSJSON file, as they were in the last decision that had
    it."""
    features: dict[str, list[Mapping[str, Any]]] = {}
    for _, record in json_lines(path):
        shared = None if isinstance(record, str) else record.get("c")
        multi = shared.get("_multi") if isinstance(shared, Mapping) else None
        offered: list[Any] = multi if isinstance(multi, list) else []
        for place, action in enumerate(offered):
            if isinstance(action, Mapping):
                call = action.get("j")  # what came with the call; `i` is Personalizer's own
                parts = call if isinstance(call, list) else [_shared(action, *_DSJSON_IDS)]
                features[label_at(offered, place)] = [
                    part for part in parts if isinstance(part, Mapping)
                ]
    return features


def dsjson_row(record: Mapping[str, Any]) -> LoggedDecision:
    """One decision of DSJSON. A decision that was not activated (`_skipLearn`) has no reward."""
    if "_outcomes" in record:
        raise NotARowError("a decision of several slots (_outcomes), which cannot be read")
    shared = record.get("c")
    if not isinstance(shared, Mapping) or not isinstance(shared.get("_multi"), list):
        raise NotARowError("no actions (c._multi)")
    actions, order, chances = shared["_multi"], record.get("a"), record.get("p")
    if isinstance(record.get("_labelIndex"), int):
        chosen = record["_labelIndex"]
    elif isinstance(record.get("_label_Action"), int):
        chosen = record["_label_Action"] - 1
    elif isinstance(order, list) and order:
        chosen = order[0] - 1
    else:
        raise NotARowError("no chosen action (_labelIndex)")
    chance = record.get("_label_probability")
    if chance is None and isinstance(chances, list) and chances:
        chance = chances[0]
    cost = None if record.get("_skipLearn") else record.get("_label_cost")
    cells = {
        "arm": label_at(actions, chosen),
        "reward": None if cost is None else -float(cost),
        "time": record.get("Timestamp"),
        "propensity": chance,
        "id": record.get("EventId"),
        "available": labels_of(actions),
    }
    return LoggedDecision(cells, flatten(_shared(shared)))


def gittins_rows(path: Path) -> Iterator[tuple[int, LoggedDecision | str]]:
    """Every decision with its reward, if one came; a censored decision has none. The file is read
    twice: first what became of each decision, then the decisions."""
    rewards: dict[str, tuple[float | None, Any]] = {}
    for _, record in json_lines(path):
        if not isinstance(record, str) and record.get("event") == "resolution":
            reward = None if record.get("kind") == "censor" else record.get("reward")
            rewards[str(record.get("decision_id"))] = (reward, record.get("t"))
    for line, record in json_lines(path):
        if isinstance(record, str):
            yield line, record
        elif record.get("event") == "decision":
            try:
                yield line, _gittins_row(record, rewards)
            except (NotARowError, TypeError, KeyError, ValueError) as error:
                yield line, f"not as expected ({error})"
        elif record.get("event") != "resolution":
            yield line, f"neither a decision nor a resolution: {record.get('event')!r}"
    if rewards:
        first = next(iter(rewards))
        yield 0, f"{len(rewards):,} resolutions name no decision of this file, as {first!r}"


def _gittins_row(
    event: Mapping[str, Any], rewards: dict[str, tuple[float | None, Any]]
) -> LoggedDecision:
    record, offered, context = event["record"], event.get("candidates"), event.get("context")
    names = labels_of(offered) if isinstance(offered, list) else None
    chosen = record["chosen"]
    by_place = names is not None and isinstance(chosen, int) and str(chosen) not in names
    reward, at = rewards.pop(str(record["decision_id"]), (None, None))
    cells = {
        "arm": names[chosen] if names is not None and by_place else str(chosen),
        "reward": reward,
        "time": record.get("t"),
        "propensity": record.get("propensity"),
        "paid_at": at,
        "available": names,
        "id": record["decision_id"],
    }
    return LoggedDecision(cells, flatten(context) if isinstance(context, Mapping) else {})
