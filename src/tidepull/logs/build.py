"""From batches of cells to a log: bad rows are counted and named with their line, the rest is
sorted by time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.cells import Labels, Series, label_of, numbers, times_of, to_list
from tidepull.logs.log import LATEST, BadRows, ContextColumn, Log, ReadSummary, format_time, unit_of
from tidepull.types import BoolArray, FloatArray, IntArray

SHOWN = 10
"""Bad rows that are named one by one."""

FEWEST_PAID = 20
"""Rows with and without a reward, below which a column that goes with it may do so by chance."""

ROWS = 65_536
"""Rows of a batch."""

EXCEL_DAYS = (36_526, 73_050)
"""Days since 1900 of the years 2000 and 2100."""

MANY_ROWS = 50
"""Rows from which on arms that are played less than twice on average are taken for ids."""


Fault: TypeAlias = tuple[int, str]
"""A line that is no row, and the reason."""


@dataclass(slots=True)
class Batch:
    """Cells of some rows: `cells` has a column for every part (`arm`, `reward`, `time`,
    `propensity`, `paid_at`, `available`, `id`), `context` one for every feature. Columns are arrays
    of pyarrow's or numpy's, or lists."""

    lines: Sequence[int]
    cells: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    faults: Sequence[Fault] = ()


class Builder:
    """Takes batches, makes a log. `most_bad` is the share of bad rows beyond which a source is
    refused, `forms` are the forms of dates that are not in ISO 8601, by part, and `named` says that
    the caller named the columns of the context."""

    def __init__(
        self,
        source: str,
        *,
        most_bad: float,
        timezone: str,
        arms: Sequence[str] | None,
        forms: Mapping[str, str] = MappingProxyType({}),
        named: bool = False,
    ) -> None:
        self._forms, self._named = forms, named
        self._source = source
        self._most_bad = most_bad
        self._timezone = timezone
        self._labels = Labels("arm")
        for arm in arms or ():
            self._labels.code(str(arm))
        self._known_arms = None if arms is None else len(self._labels.known)
        self._parts: dict[str, list[Any]] = {
            name: [] for name in ("arm", "reward", "time", "propensity", "paid_at")
        }
        self._series: dict[str, Series] = {}
        self._available: list[tuple[int, list[int]]] = []
        self._ids: list[IntArray] = []
        self._rows = 0
        self._dates = False
        self._reasons: Counter[str] = Counter()
        self._first: list[tuple[int, str]] = []

    def add(self, batch: Batch) -> None:
        """One more batch."""
        for line, why in batch.faults:
            self._reasons["cannot be read"] += 1
            if len(self._first) < SHOWN:
                self._first.append((line, why))
        if not len(batch.lines):
            return
        cells, keep = batch.cells, np.ones(len(batch.lines), bool)

        def refuse(bad: BoolArray, reason: str, column: Any = None) -> None:
            self._refuse(keep, bad, batch.lines, reason, column)

        arm = self._labels.codes(cells["arm"])
        refuse(arm < 0, "arm is missing")
        if self._known_arms is not None:
            refuse(arm >= self._known_arms, "arm is not one of the given arms", cells["arm"])
        columns: dict[str, FloatArray | IntArray] = {"arm": arm}
        for name in ("reward", "propensity"):
            if name in cells:
                columns[name], bad = numbers(cells[name])
                refuse(bad, f"{name} is no number", cells[name])
        if "propensity" in columns:
            chance = columns["propensity"]
            outside = (chance <= 0) | (chance > 1 + 1e-9)
            refuse(outside, "propensity is not above 0 and at most 1", cells["propensity"])
        for name in ("time", "paid_at"):
            if name in cells:
                columns[name], bad, dates = times_of(
                    cells[name], self._forms.get(name, ""), self._timezone
                )
                self._dates |= dates and name == "time"
                refuse(bad, f"{name} is no time", cells[name])
                if name == "time":
                    refuse(np.isnan(columns[name]), "time is missing")
        for name, parts in self._parts.items():
            missing: FloatArray = np.full(len(keep), np.nan)
            parts.append(columns.get(name, missing)[keep])
        self._add_available(batch, keep)
        self._add_ids(batch, keep)
        for name, column in batch.context.items():
            self._series.setdefault(name, Series(name)).add(column, self._rows, keep)
        self._rows += int(keep.sum())

    def _add_available(self, batch: Batch, keep: BoolArray) -> None:
        if "available" not in batch.cells:
            return
        places = np.cumsum(keep) - 1 + self._rows
        for n in np.flatnonzero(keep).tolist():
            offered = batch.cells["available"][n]
            if offered is not None:
                codes = [self._labels.code(label_of(arm)) for arm in offered]
                if self._known_arms is not None and max(codes) >= self._known_arms:
                    raise DataError(
                        f"{self._source}: line {batch.lines[n]} offers an arm beside the given "
                        f"ones: {offered}"
                    )
                self._available.append((int(places[n]), codes))

    def _add_ids(self, batch: Batch, keep: BoolArray) -> None:
        """Numbers that are equal where ids are: with 64 bits two others meet once in a billion logs
        of 100,000."""
        cells = to_list(batch.cells["id"]) if "id" in batch.cells else [None] * len(keep)
        ids = [0 if cell is None or cell == "" else hash(str(cell)) or 1 for cell in cells]
        self._ids.append(np.array(ids, np.int64)[keep])

    def _refuse(
        self, keep: BoolArray, bad: BoolArray, lines: Sequence[int], reason: str, cells: Any
    ) -> None:
        """Rows that were fine until now and are not."""
        new = np.flatnonzero(keep & bad)
        if not len(new):
            return
        self._reasons[reason] += len(new)
        shown = [] if cells is None or len(self._first) >= SHOWN else to_list(cells)
        for n in new[: SHOWN - len(self._first)]:
            self._first.append((int(lines[n]), f"{reason}: {shown[n]!r}" if shown else reason))
        keep[new] = False

    def finish(self, format: str, roles: Mapping[str, str], notes: Iterable[str] = ()) -> Log:
        """The log, sorted by time."""
        bad = BadRows(sum(self._reasons.values()), dict(self._reasons), tuple(sorted(self._first)))
        self._require_sound(bad, format, roles)
        remarks = list(notes)
        arms, arm = self._arms(remarks)
        if self._known_arms is None and len(arm) >= MANY_ROWS and 2 * len(arms) > len(arm):
            raise DataError(
                f"{self._source}: the arm, column '{roles.get('arm', 'arm')}', has {len(arms):,} "
                f"values in {len(arm):,} rows, as an id has; name the column of the arm (--arm)"
            )
        columns = {name: self._column(name) for name in ("reward", "time", "propensity", "paid_at")}
        context = {
            name: series.finish(self._rows)
            for name, series in self._series.items()
            if not series.dropped
        }
        remarks += [
            f"column '{name}' has nearly as many texts as rows and is left out of the context"
            for name, series in self._series.items()
            if series.dropped
        ]
        dated = self._to_seconds(columns, remarks)
        reward = columns["reward"]
        late = [
            name
            for name, column in context.items()
            if reward is not None and follows_reward(column, reward)
        ]
        what = "leave it out of --context" if self._named else "it is not used as context"
        remarks += [
            f"column '{name}' goes with the reward, so it is known only after the decision: {what}"
            for name in late
        ]
        if not self._named:
            context = {name: column for name, column in context.items() if name not in late}
        log = Log(
            arms, arm, np.full(self._rows, np.nan) if reward is None else reward, columns["time"],
            columns["propensity"], columns["paid_at"], self._mask(arms), context, dated, self._timezone,
            ReadSummary(self._source, format, dict(roles), bad), self._id(),
        )  # fmt: skip
        return _add_notes(log, remarks)

    def _require_sound(self, bad: BadRows, format: str, roles: Mapping[str, str]) -> None:
        total = bad.count + self._rows
        if not total:
            raise DataError(f"{self._source} has no rows; give a log with at least one decision")
        if bad.count > self._most_bad * total or not self._rows:
            line, why = bad.first[0]
            part = why.split()[0]
            name = "name its columns or format"
            if part in roles:
                option = f"--{part.replace('_', '-')}"
                column = roles[part]
                name = f"the {part} is column '{column}': correct it or name another ({option})"
            if "at most 1" in why:
                name += "; 20 percent is 0.2 or '20%'"
            raise DataError(
                f"{self._source}: {bad.count:,} of {total:,} rows cannot be read as {format} (line "
                f"{line}: {why}); {name}, or allow more bad rows (--most-bad)"
            )

    def _arms(self, notes: list[str]) -> tuple[tuple[str, ...], IntArray]:
        """Labels in order (by number where all are numbers), and each row's place in them."""
        arm = np.concatenate(self._parts.pop("arm"))
        known = list(self._labels.known)
        if self._known_arms is not None:
            return tuple(known), arm
        spelling = _spellings(known, np.bincount(arm, minlength=len(known)), notes)
        ranks = {code: _rank(known[code]) for code in sorted(set(spelling))}
        numeric = all(rank[0] == 0 for rank in ranks.values())
        order = sorted(ranks, key=ranks.__getitem__ if numeric else known.__getitem__)
        places = np.empty(len(known), np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        self._places = places[spelling]
        return tuple(known[code] for code in order), self._places[arm]

    def _column(self, name: str) -> FloatArray | None:
        column: FloatArray = np.concatenate(self._parts.pop(name))
        missing = np.isnan(column)
        if name == "time" and missing.any() and not missing.all():
            raise DataError(
                f"{self._source}: {int(missing.sum()):,} rows have no time, others have; leave it "
                "out"
            )
        return None if missing.all() else column

    def _to_seconds(self, columns: dict[str, FloatArray | None], remarks: list[str]) -> bool:
        times = columns["time"]
        if times is None:
            return False
        unit = 1.0 if self._dates else unit_of(times)
        if unit is None:
            low, high = float(times.min()), float(times.max())
            if EXCEL_DAYS[0] <= low < high <= EXCEL_DAYS[1] and (times % 1 != 0).any():
                remarks.append(
                    "times look like the day numbers of a spreadsheet and are no dates here: give "
                    "their column the format of a date and save it again"
                )
            return False
        paid = columns["paid_at"]
        columns["time"] = times / unit
        columns["paid_at"] = None if paid is None else paid / unit
        if times.max() / unit >= LATEST:
            raise DataError(
                f"{self._source}: times run from {times.min():g} to {times.max():g}, beyond the "
                "calendar; use one unit"
            )
        return True

    def _id(self) -> IntArray | None:
        column: IntArray = np.concatenate(self._ids)
        self._ids.clear()
        return column if column.any() else None

    def _mask(self, arms: tuple[str, ...]) -> BoolArray | None:
        """Which arms were on offer; None where it was always all of them."""
        places = self._places if self._known_arms is None else np.arange(len(arms))
        if all(len(set(places[offered])) == len(arms) for _, offered in self._available):
            return None
        mask = np.ones((self._rows, len(arms)), bool)
        for row, offered in self._available:
            mask[row] = False
            mask[row, places[offered]] = True
        return mask


def follows_reward(column: ContextColumn, reward: FloatArray) -> bool:
    """Whether a column is filled (and not 0) where there was a reward and hardly ever elsewhere, or
    is a number that all but equals the reward up to its scale."""
    paid, unpaid = reward > 0, reward <= 0
    numeric = column.labels is None
    known = ~np.isnan(column.values) if numeric else column.values >= 0
    filled = known & (column.values != 0) if numeric else known
    if min(paid.sum(), unpaid.sum()) < FEWEST_PAID:
        return False
    if filled[paid].mean() >= 0.5 and filled[unpaid].mean() <= 0.01:
        return True
    both = known & ~np.isnan(reward)
    if not numeric or both.sum() < FEWEST_PAID or np.ptp(column.values[both]) == 0:
        return False
    if np.ptp(reward[both]) == 0:
        return False
    return abs(float(np.corrcoef(column.values[both], reward[both])[0, 1])) >= 0.95


def _spellings(known: Sequence[str], counts: IntArray, notes: list[str]) -> list[int]:
    """For each label the most frequent one that differs only by case or blanks; they are noted."""
    alike: dict[str, list[int]] = {}
    for code, label in enumerate(known):
        alike.setdefault("".join(label.casefold().split()), []).append(code)
    spelling = list(range(len(known)))
    for codes in alike.values():
        usual = max(codes, key=counts.__getitem__)
        others = [f"'{known[code]}' ({counts[code]:,})" for code in codes if code != usual]
        if others:
            notes.append(
                f"{', '.join(others)} count{'s' * (len(others) == 1)} as the arm '{known[usual]}', "
                "because only case or blanks differ (--arms keeps them apart)"
            )
        for code in codes:
            spelling[code] = usual
    return spelling


def _rank(label: str) -> tuple[int, float]:
    try:
        return 0, float(label)
    except ValueError:
        return 1, 0.0


def _add_notes(log: Log, notes: list[str]) -> Log:
    """The log in the order of time, with what its reader should know."""
    times = log.time
    if times is not None and (np.diff(times) < 0).any():
        late = int((np.diff(times) < 0).sum())
        notes.append(
            f"rows were not in the order of time ({late:,} are earlier than the one before); they "
            "are sorted"
        )
        log = log.where(np.argsort(times, kind="stable"))
    if log.time is not None and log.dated and log.time[-1] > time.time() + 86_400:
        ahead = int((log.time > time.time() + 86_400).sum())
        notes.append(
            f"{ahead:,} rows are dated in the future, up to "
            f"{format_time(float(log.time[-1]), log.timezone)}"
        )
    known = log.reward[~np.isnan(log.reward)]
    if not len(known):
        notes.append("no row has a reward: nothing can be said of what arms are worth")
    elif known.min() == known.max():
        notes.append(f"every reward is {known[0]:g}: nothing can be said of which arm is better")
    if len(known) and len(known) < len(log):
        hint = "; if an empty cell means 0, write 0" if known.min() > 0 else ""
        notes.append(f"{len(log) - len(known):,} decisions have no reward{hint}")
    if log.propensity is not None and np.isnan(log.propensity).any():
        notes.append(f"{int(np.isnan(log.propensity).sum()):,} decisions have no propensity")
    if log.n_arms == 1:
        notes.append(f"there is only one arm, '{log.arms[0]}': nothing can be compared")
    unplayed = log.n_arms - len(np.unique(log.arm))
    if unplayed:
        notes.append(f"{unplayed:,} of {log.n_arms:,} arms were never played")
    return replace(log, reading=replace(log.reading, notes=tuple(notes)))
