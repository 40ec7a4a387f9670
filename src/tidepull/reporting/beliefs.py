"""What policies that explain themselves (`tide`) believed about time: in words, as weights, as a
table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull.reporting.frames import Group, Study
from tidepull.reporting.stats import mean_interval
from tidepull.reporting.tables import Cell, Table, number, share
from tidepull.reporting.traces import Band


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Hypotheses in words with their weights at the end, the leading one first; weights of families
    in some rounds."""

    leading: tuple[tuple[str, float], ...]
    rounds: tuple[int, ...]
    families: Mapping[str, tuple[float, ...]]


def beliefs_of(diagnostics: Mapping[str, Any]) -> Beliefs | None:
    """`diagnostics["beliefs"]`, if it is there and has the shape that `tide` gives it."""
    try:
        told = diagnostics["beliefs"]
        leading = tuple((_text(one["words"]), _number(one["weight"])) for one in told["leading"])
        rounds = tuple(int(_number(t)) for t in told["rounds"])
        families = {
            _text(name): tuple(map(_number, told["families"][name])) for name in told["families"]
        }
    except (KeyError, IndexError, TypeError):
        return None
    sound = len(set(rounds)) == len(rounds) and all(
        len(w) == len(rounds) for w in families.values()
    )
    return Beliefs(leading, rounds, families) if leading and sound else None


def believers(study: Study) -> Iterator[Group]:
    """The groups whose trials came with beliefs."""
    return (
        group for group in study.groups if all(beliefs_of(row.diagnostics) for row in group.rows)
    )


def misunderstood(study: Study) -> Iterator[Group]:
    """The groups whose trials came with something else under that name."""
    for group in study.groups:
        told = [row.diagnostics for row in group.rows if row.diagnostics.get("beliefs")]
        if not all(map(beliefs_of, told)):
            yield group


def belief_bands(group: Group) -> dict[str, Band]:
    """Weight of each family of hypotheses over the rounds, mean over trials, without families that
    never matter."""
    told = [beliefs for row in group.rows if (beliefs := beliefs_of(row.diagnostics))]
    rounds = sorted(set.intersection(*(set(one.rounds) for one in told)))
    at = [[one.rounds.index(t) for t in rounds] for one in told]
    families = {name: None for one in told for name in one.families}
    bands = {}
    for name in families:
        table = np.array(
            [np.asarray(one.families.get(name, np.zeros(len(one.rounds))))[kept]
             for one, kept in zip(told, at, strict=True)]
        )  # fmt: skip
        if table.size and table.mean(axis=0).max() >= 0.01:
            low, high = mean_interval(table)
            mean = table.mean(axis=0)
            bands[name] = Band(
                np.array(rounds, float), mean, np.clip(low, 0, 1), np.clip(high, 0, 1)
            )
    return bands


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return value


def beliefs_table(study: Study, group: Group) -> Table:
    """A row for each trial: the leading hypothesis at its end, how sure, and the next one."""
    rows = []
    for row in group.rows:
        told = beliefs_of(row.diagnostics)
        assert told is not None, f"{group.name} has no beliefs"
        (words, weight), *others = told.leading
        second = [Cell(others[0][0]), share(others[0][1])] if others else [Cell("–"), Cell("–")]
        first = [Cell(f"seed {row.seed}", row.seed), Cell(words), share(weight)]
        rows.append((*first, *second, number(row.regret)))
    return Table(
        f"beliefs-{study.suite or 'other'}-{study.slug}-{group.name}",
        f"What {group.name} believed at the end",
        ("trial", "leading hypothesis", "weight", "next", "its weight", "final regret"),
        tuple(rows),
    )
