"""`read`: any log; format and columns are guessed where they are not named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tidepull.errors import DataError, MissingExtraError, ParameterError
from tidepull.logs import formats
from tidepull.logs.build import Batch, Builder
from tidepull.logs.formats import LoggedDecision, decisions, read_lines, tables
from tidepull.logs.formats.guesses import guess_columns
from tidepull.logs.formats.tables import Roles, find_roles
from tidepull.logs.log import Log, zone_of

_TABLES: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, Roles], Iterator[Batch]]]] = {
    "csv": (formats.header_of, tables.csv_batches),
    "parquet": (tables.parquet_columns, tables.parquet_batches),
    "jsonl": (tables.jsonl_columns, tables.jsonl_batches),
    "open-bandit": (formats.header_of, tables.csv_batches),
}
_DECISIONS: dict[str, Callable[[Path], Iterator[tuple[int, LoggedDecision | str]]]] = {
    "dsjson": lambda path: read_lines(path, decisions.dsjson_row),
    "vw-json": lambda path: read_lines(path, decisions.vw_json_row),
    "vw-text": decisions.vw_text_rows,
    "gittins": decisions.gittins_rows,
}
FORMATS = (*_TABLES, "obp", *_DECISIONS)
"""Every format by its name."""


def read(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    format: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    paid_at: str | None = None,
    context: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    zone: str = "UTC",
    most_bad: float = 0.1,
) -> Log:
    """Read a log: a file, or a dictionary of the Open Bandit Pipeline.

    The format and the columns are guessed if they are not named. `Log.preview()` describes what
    was understood.

    Parameters
    ----------
    source : str, os.PathLike or mapping of str to array
        A file (CSV, Parquet, JSON lines and others; `.gz`, `.bz2` and `.xz` are unpacked), or a
        dictionary of arrays.
    format : str, optional
        One of `FORMATS`. By default it is guessed from the file's first bytes.
    arm, reward, time, propensity : str, optional
        Names of columns. By default they are guessed from usual names; a column of dates is taken
        for the time whatever its name, and one that differs in nearly every row for the id.
    paid_at : str, optional
        Name of the column with the time of the reward. By default it is guessed.
    context : sequence of str, optional
        Names of the context's columns. By default these are all other columns, but for those that
        are known only after the decision.
    arms : sequence of str, optional
        All arms, if some were never played.
    zone : str, default: "UTC"
        The time zone of hours and weekdays.
    most_bad : float, default: 0.1
        The largest share of rows that may be unreadable. They are counted in `Log.reading.bad`.

    Returns
    -------
    Log
        The decisions in the order of time.

    Raises
    ------
    DataError
        If the file is missing, empty or not readable, or has too many bad rows.
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> arms, rewards, chances = np.array([0, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    >>> log = read({"action": arms, "reward": rewards, "pscore": chances})
    >>> len(log), log.arms
    (2, ('0', '1'))
    """
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("reading logs", "tables") from None
    zone_of(zone)
    if not 0 <= most_bad <= 1:
        raise ParameterError(f"most_bad must be a share from 0 to 1, got {most_bad!r}")

    def build(
        batches: Iterator[Batch],
        roles: Mapping[str, str],
        notes: Sequence[str] = (),
        forms: Mapping[str, str] = MappingProxyType({}),
    ) -> Log:
        builder = Builder(
            name, most_bad=most_bad, zone=zone, arms=arms, forms=forms, named=context is not None
        )
        for batch in batches:
            builder.add(batch)
        return builder.finish(kind, roles, notes)

    if isinstance(source, Mapping):
        kind, name = "obp", "the dictionary"
        batch, arms = tables.obp_batch(source, name)
        return build(iter([batch]), {})
    path, name = Path(source), str(Path(source))
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    kind = guess_format(path) if format is None else format
    if kind not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
    if kind == "obp":
        batch, arms = tables.obp_batch(tables.load_obp(path), name)
        return build(iter([batch]), {})
    named = {"arm": arm, "reward": reward, "time": time, "propensity": propensity}
    named["paid_at"] = paid_at
    names = {part: column for part, column in named.items() if column is not None}
    if kind in _DECISIONS:
        if names or context is not None:
            raise ParameterError(
                f"a log of format {kind} has fixed names: leave arm, reward, time and the others "
                "out"
            )
        return build(formats.to_batches(_DECISIONS[kind](path)), {})
    list_columns, read_batches = _TABLES[kind]
    there = list_columns(path)
    twice = next((column for column in there if there.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: there are several columns '{twice}'; rename all but one")
    notes = []
    if kind == "open-bandit":
        if not names and context is None:
            names, context = tables.open_bandit_names(there)
        arms = tables.open_bandit_items(path) if arms is None else arms
        left = [column for column in there if column.startswith("user-item_affinity_")]
        if left:
            notes.append(
                f"{len(left)} columns '{left[0]}' and so on belong to arms and are left out of the "
                "context"
            )
    roles = find_roles(there, names, context, name)
    if kind == "open-bandit":
        return build(read_batches(path, roles), roles.parts, notes)
    every = roles if context is None else find_roles(there, names, None, name)
    guess = guess_columns(next(read_batches(path, every), Batch([], {})), every)
    if context is None:
        roles, notes = guess.roles, [*guess.notes]
    elif "time" not in roles.parts and (column := guess.roles.parts.get("time")) not in context:
        roles = replace(roles, parts={**roles.parts, **({"time": column} if column else {})})
    return build(read_batches(path, roles), roles.parts, notes, guess.forms)


def guess_format(path: Path) -> str:
    """The format of a file, by its first bytes."""
    with path.open("rb") as handle:
        start = handle.read(4)
    if start == b"PAR1":
        return "parquet"
    if start[:2] == b"PK" and path.suffix == ".npz":
        return "obp"
    first = formats.first_line(path)
    if not first:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    if first.lstrip().startswith("{"):
        record: Mapping[str, Any] = next(
            (row for _, row in formats.json_lines(path) if not isinstance(row, str)), {}
        )
        kinds = {
            "gittins": decisions.is_gittins, "dsjson": decisions.is_dsjson, "vw-json": decisions.is_vw_json,
        }  # fmt: skip
        return next((kind for kind, fits in kinds.items() if fits(record)), "jsonl")
    if decisions.is_vw_text(first):
        return "vw-text"
    return "open-bandit" if tables.is_open_bandit(formats.header_of(path)) else "csv"
