"""Fixed policies to be judged on a log: each arm's share of the choices in every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.log import Log
from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True)
class Target:
    """A fixed policy: `shares(log, rows)` are each arm's share in these rows (rows x arms)."""

    name: str
    shares: Callable[[Log, slice], FloatArray]


def uniform() -> Target:
    """Every available arm is equally likely."""

    def shares(log: Log, rows: slice) -> FloatArray:
        if log.available is None:
            return np.full((rows.stop - rows.start, log.n_arms), 1 / log.n_arms)
        mask = log.available[rows]
        made: FloatArray = mask / mask.sum(axis=1, keepdims=True)
        return made

    return Target("random", shares)


def always(label: str) -> Target:
    """One arm for ever."""

    def shares(log: Log, rows: slice) -> FloatArray:
        place = log.place(label)
        if log.available is not None and not log.available[rows, place].all():
            raise DataError(
                f"arm '{label}' is not on offer in every row of {log.reading.source}; leave the others out"
            )
        made: FloatArray = np.zeros((rows.stop - rows.start, log.n_arms))
        made[:, place] = 1.0
        return made

    return Target(f"arm:{label}", shares)


def as_logged(other: Log, name: str, *, by: Sequence[str] = ()) -> Target:
    """The policy that wrote another log, as far as its propensities say: each arm's mean logged chance, within equal
    values of the context columns `by`, so that shares add up to 1. For logging policies that hang on nothing else."""
    if other.propensity is None:
        raise DataError(f"{other.reading.source} has no propensities: what its policy would do is not known")
    tables: dict[tuple[object, ...], FloatArray] = {}
    keys = _keys(other, by)
    for key in dict.fromkeys(keys):
        rows = np.array([one == key for one in keys])
        tables[key] = _mean_chances(other, rows)

    def shares(log: Log, rows: slice) -> FloatArray:
        here = _keys(log.where(rows), by)
        unknown = next((key for key in here if key not in tables), None)
        if unknown is not None:
            raise DataError(f"{other.reading.source} has no rows with {', '.join(by)} = {unknown}")
        rename = _renamed(other, log)
        return np.array([tables[key] for key in here])[:, rename]

    return Target(name, shares)


def _keys(log: Log, by: Sequence[str]) -> list[tuple[object, ...]]:
    missing = [name for name in by if name not in log.context]
    if missing:
        raise DataError(f"{log.reading.source} has no context column '{missing[0]}'")
    columns = []
    for name in by:
        column = log.context[name]
        values = column.values.tolist()
        columns.append(values if column.labels is None else [column.labels[code] for code in values])
    return list(zip(*columns, strict=True)) if columns else [()] * len(log)


def _mean_chances(log: Log, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
    assert log.propensity is not None
    count = np.bincount(log.arm[rows], minlength=log.n_arms)
    total = np.bincount(log.arm[rows], weights=log.propensity[rows], minlength=log.n_arms)
    made: FloatArray = np.divide(total, count, out=np.zeros(log.n_arms), where=count > 0)
    chances: FloatArray = made / made.sum()
    return chances


def _renamed(other: Log, log: Log) -> list[int]:
    """For every arm of a log its place in another."""
    places: Mapping[str, int] = {label: n for n, label in enumerate(other.arms)}
    missing = [label for label in log.arms if label not in places]
    if missing:
        raise DataError(f"{other.reading.source} has no arm '{missing[0]}'")
    return [places[label] for label in log.arms]
