"""Vowpal Wabbit's own inputs for contextual bandits: text (one line or one block a decision) and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidepull.logs.formats.flat import flattened
from tidepull.logs.formats.rows import NotARowError, Row, label_at
from tidepull.logs.opening import lines

_LABEL = re.compile(r"^(\d+):(-?[\d.eE+-]+):([\d.eE+-]+)$")


def fits_text(first: str) -> bool:
    """Whether the first line of a file is of the text format."""
    head, bar, _ = first.partition("|")
    return bool(bar) and (
        head.strip() == "" or head.split()[0] == "shared" or bool(_LABEL.match(head.split()[0]))
    )


def fits_json(first: Mapping[str, Any]) -> bool:
    """Whether the first object of a file is of the JSON format."""
    return isinstance(first.get("_multi"), list)


def text_rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    """The decisions of a text file: blocks between empty lines where actions have features, else single lines."""
    block: list[tuple[int, str]] = []
    single = False
    for number, line in lines(path):
        if line.strip():
            block.append((number, line))
            single = single or _are_single(block)
        if single or not line.strip():
            yield from _rows(block, single)
            block = []
    yield from _rows(block, single)


def _are_single(block: list[tuple[int, str]]) -> bool:
    """Whether lines are decisions of their own: a second one has a label."""
    if block[0][1].startswith("shared") or _label(block[-1][1]) is None:
        return False
    return sum(_label(line) is not None for _, line in block) > 1


def _rows(block: list[tuple[int, str]], single: bool) -> Iterator[tuple[int, Row | str]]:
    """The decision of a block, or one a line."""
    if not block:
        return
    if block[0][1].startswith("shared") or (len(block) > 1 and not single):
        yield block[0][0], _caught(lambda: _block(block))
        return
    for number, line in block:
        yield number, _caught(lambda line=line: _single(line))


def _caught(read: Any) -> Row | str:
    try:
        row: Row = read()
    except ValueError as error:
        return str(error)
    return row


def _block(block: list[tuple[int, str]]) -> Row:
    shared = block[0][1] if block[0][1].startswith("shared") else None
    actions = [line for _, line in (block[1:] if shared is not None else block)]
    found = [(n, label) for n, label in enumerate(map(_label, actions)) if label is not None]
    if len(found) != 1:
        raise NotARowError(f"{len(found)} of {len(actions)} actions have a label (action:cost:probability)")
    place, (_, cost, chance) = found[0]
    names = [_tag(line) or str(n) for n, line in enumerate(actions)]
    context = {} if shared is None else _features(shared)
    return Row(names[place], -cost, None, chance, None, names, context)


def _single(line: str) -> Row:
    label = _label(line)
    if label is None:
        raise NotARowError("no label (action:cost:probability)")
    action, cost, chance = label
    return Row(str(action), -cost, None, chance, None, None, _features(line))


def _label(line: str) -> tuple[int, float, float] | None:
    for word in line.partition("|")[0].split():
        found = _LABEL.match(word)
        if found:
            return int(found[1]), float(found[2]), float(found[3])
    return None


def _tag(line: str) -> str | None:
    words = line.partition("|")[0].split()
    tags = [word[1:] for word in words if word.startswith("'")]
    return tags[0] if tags else None


def _features(line: str) -> dict[str, float]:
    made: dict[str, float] = {}
    for part in line.split("|")[1:]:
        words = part.split()
        space = "" if part.startswith((" ", "\t")) or not words else words.pop(0).partition(":")[0]
        for word in words:
            name, colon, value = word.rpartition(":")
            whole, number = (name, float(value)) if colon else (word, 1.0)
            made[f"{space}.{whole}" if space else whole] = number
    return made


def json_row(given: Mapping[str, Any]) -> Row:
    """One decision in JSON: labelled as a whole, or at the chosen action."""
    actions = given["_multi"]
    if not isinstance(actions, list):
        raise NotARowError("_multi is no list of actions")
    place, cost, chance = _json_label(given, actions)
    shared = {
        name: value for name, value in given.items() if not name.startswith("_") and name != "Timestamp"
    }
    offered = [label_at(actions, n) for n in range(len(actions))]
    return Row(offered[place], -cost, given.get("Timestamp"), chance, None, offered, flattened(shared))


def _json_label(given: Mapping[str, Any], actions: list[Any]) -> tuple[int, float, float]:
    for holder, place in [(given, None), *((action, n) for n, action in enumerate(actions))]:
        if not isinstance(holder, Mapping):
            continue
        found = _LABEL.match(str(holder.get("_label", "")))
        if found:
            action, cost, chance = int(found[1]) - 1, float(found[2]), float(found[3])
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
