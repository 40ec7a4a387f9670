"""`read`: any log, guessed where nothing is said."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tidepull.errors import DataError, MissingExtraError, ParameterError
from tidepull.logs.build import Batch, Builder
from tidepull.logs.formats import dsjson, gittins, obp, open_bandit, vw
from tidepull.logs.formats.rows import collected, read_lines
from tidepull.logs.log import Log
from tidepull.logs.moments import zone_of
from tidepull.logs.opening import first_line, header_of, json_lines
from tidepull.logs.roles import Asked, find_roles

FLAT = ("csv", "parquet", "jsonl", "open-bandit")
FORMATS = (*FLAT, "obp", "dsjson", "vw-json", "vw-text", "gittins")
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

    The format and the columns are guessed where they are not named; `Log.preview()` says what was understood. `arms`
    are all the arms there are, if some were never played. Rows that cannot be understood are counted and named in
    `Log.reading.bad`; more of them than the share `most_bad` is an error. `zone` is for hours and weekdays.
    """
    _require_arrow()
    zone_of(zone)
    if not 0 <= most_bad <= 1:
        raise ParameterError(f"most_bad must be a share from 0 to 1, got {most_bad!r}")
    if isinstance(source, Mapping):
        return _read_dictionary(source, "the dictionary", most_bad, zone)
    path = Path(source)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    kind = guess_format(path) if format is None else format
    if kind not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
    if kind == "obp":
        return _read_dictionary(obp.from_file(path), str(path), most_bad, zone)
    asked = Asked(arm, reward, time, propensity, paid_at, context=context)
    if kind not in FLAT:
        _refuse_columns(asked, kind)
        builder = Builder(str(path), most_bad=most_bad, zone=zone, arms=arms)
        return _built(builder, _rows_of(kind)(path), kind, {})
    return _read_flat(path, kind, asked, arms, zone, most_bad)


def _read_flat(
    path: Path, kind: str, asked: Asked, arms: Sequence[str] | None, zone: str, most_bad: float
) -> Log:
    reader: Any = open_bandit if kind == "open-bandit" else import_module(f"tidepull.logs.formats.{kind}")
    columns = reader.columns_of(path)
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: there are several columns '{twice}'; rename all but one")
    notes = []
    if kind == "open-bandit":
        if asked == Asked():
            asked = open_bandit.asked_of(columns)
        arms = open_bandit.items_of(path) if arms is None else arms
        left = [name for name in columns if name.startswith("user-item_affinity_")]
        if left:
            notes.append(
                f"{len(left)} columns '{left[0]}' and so on belong to arms and are left out of the context"
            )
    roles = find_roles(columns, asked, str(path))
    builder = Builder(str(path), most_bad=most_bad, zone=zone, arms=arms)
    return _built(builder, reader.batches(path, roles), kind, roles.said(), notes)


def _built(
    builder: Builder, batches: Iterator[Batch], kind: str, roles: Mapping[str, str], notes: Sequence[str] = ()
) -> Log:
    for batch in batches:
        builder.add(batch)
    return builder.finish(kind, roles, notes)


def _read_dictionary(given: Mapping[str, Any], source: str, most_bad: float, zone: str) -> Log:
    batch, arms = obp.batch(given, source)
    builder = Builder(source, most_bad=most_bad, zone=zone, arms=arms)
    return _built(builder, iter([batch]), "obp", {})


def _rows_of(kind: str) -> Callable[[Path], Iterator[Batch]]:
    return {
        "dsjson": lambda path: collected(read_lines(path, dsjson.row)),
        "vw-json": lambda path: collected(read_lines(path, vw.json_row)),
        "vw-text": lambda path: collected(vw.text_rows(path)),
        "gittins": lambda path: collected(gittins.rows(path)),
    }[kind]


def guess_format(path: Path) -> str:
    """The format of a file, by its first bytes."""
    with path.open("rb") as handle:
        start = handle.read(4)
    if start == b"PAR1":
        return "parquet"
    if start[:2] == b"PK" and path.suffix == ".npz":
        return "obp"
    first = first_line(path)
    if not first:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    if first.lstrip().startswith("{"):
        return _guess_json(path)
    if vw.fits_text(first):
        return "vw-text"
    return "open-bandit" if open_bandit.fits(header_of(path)) else "csv"


def _guess_json(path: Path) -> str:
    first = next((row for _, row, _ in json_lines(path) if row is not None), {})
    for name, fits in (("gittins", gittins.fits), ("dsjson", dsjson.fits), ("vw-json", vw.fits_json)):
        if fits(first):
            return name
    return "jsonl"


def _refuse_columns(asked: Asked, kind: str) -> None:
    if asked != Asked():
        raise ParameterError(
            f"a log of format {kind} has fixed names: leave arm, reward, time and the others out"
        )


def _require_arrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("reading logs", "bench") from None
