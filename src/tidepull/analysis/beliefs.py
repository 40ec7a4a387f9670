"""What policies that explain themselves (`tide`) believed about time: in words, and as weights over the rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidepull.analysis.bootstrap import mean_interval
from tidepull.analysis.frame import Group, Study
from tidepull.analysis.traces import Band


def believers(study: Study) -> Iterator[Group]:
    """The groups whose trials came with beliefs."""
    return (group for group in study.groups if all(_told(row.diagnostics) for row in group.rows))


def belief_bands(group: Group) -> dict[str, Band]:
    """Weight of each family of hypotheses over the rounds, mean over trials, without families that never matter."""
    told = [row.diagnostics["beliefs"] for row in group.rows]
    rounds = sorted(set.intersection(*(set(one["rounds"]) for one in told)))
    at = [[one["rounds"].index(t) for t in rounds] for one in told]
    families = {name: None for one in told for name in one["families"]}
    bands = {}
    for name in families:
        table = np.array(
            [np.asarray(one["families"].get(name, np.zeros(len(one["rounds"]))))[kept]
             for one, kept in zip(told, at, strict=True)]
        )  # fmt: skip
        if table.size and table.mean(axis=0).max() >= 0.01:
            low, high = mean_interval(table)
            mean = table.mean(axis=0)
            bands[name] = Band(np.array(rounds, float), mean, np.clip(low, 0, 1), np.clip(high, 0, 1))
    return bands


def _told(diagnostics: object) -> bool:
    return isinstance(diagnostics, dict) and bool(diagnostics.get("beliefs", {}).get("leading"))
