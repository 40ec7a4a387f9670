"""Formats of logs: what all of them share. Text files are read line by line, and decisions become
batches."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from tidepull.errors import DataError
from tidepull.logs.build import ROWS, Batch, Fault

T = TypeVar("T")

TO_UTF_8 = (
    "save it as UTF-8 (in a spreadsheet: 'CSV UTF-8'; at the shell: iconv -f WINDOWS-1252 -t UTF-8)"
)

_LONGEST_LINE = 1 << 16
"""Characters of a first line that are looked at."""


_PREAMBLE = re.compile(r'#.*|"?sep=.?"?', re.IGNORECASE)
"""Lines above a header that say nothing of it."""


class NotARowError(ValueError):
    """A line that is no decision; the message says why."""


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One decision: `cells` has its parts by name (`arm`, `reward`, `time`, ...), None where
    unknown."""

    cells: Mapping[str, Any]
    context: Mapping[str, Any]


_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def start_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    with _OPENERS.get(path.suffix, open)(path, "rb") as handle:
        return bytes(handle.read(8))


def encoding_of(path: Path) -> str:
    """UTF-8, or UTF-16 where the file begins with its byte order mark."""
    is_utf_16 = start_of(path)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "utf-16" if is_utf_16 else "utf-8-sig"


def open_text(path: Path) -> TextIO:
    """Open a file as text; `.gz`, `.bz2` and `.xz` are unpacked."""
    opener = _OPENERS.get(path.suffix, open)
    text: TextIO = opener(path, "rt", encoding=encoding_of(path), errors="strict", newline="")
    return text


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1."""
    number = 0
    try:
        with open_text(path) as text:
            for number, line in enumerate(text, 1):
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise DataError(f"{path} is damaged after line {number} ({error})") from None
    except UnicodeDecodeError:
        where = f" (after line {number})" if number else ""
        raise DataError(f"{path} is not UTF-8 text{where}; {TO_UTF_8}") from None


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Line number and object, or the reason why it is none; empty lines are passed over."""
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield number, f"no JSON: {line[:60]!r}"
            continue
        yield number, value if isinstance(value, dict) else f"no JSON object: {line[:60]!r}"


def header_line(path: Path) -> tuple[int, str]:
    """The number and text of the first line that is neither empty, nor a comment (`#`), nor a
    spreadsheet's `sep=;`; the text is cut where it is very long, and empty where there is none."""
    return next(
        (
            (number, line[:_LONGEST_LINE])
            for number, line in lines(path)
            if line.strip() and not _PREAMBLE.fullmatch(line.strip())
        ),
        (1, ""),
    )


def first_line(path: Path) -> str:
    """The text of `header_line`."""
    return header_line(path)[1]


def delimiter_of(path: Path) -> str:
    """Comma, semicolon, tab or bar: whichever the header has most of."""
    return max(",;\t|", key=first_line(path).count)


def header_of(path: Path) -> list[str]:
    """The names in the header of a CSV file."""
    return next(csv.reader([first_line(path)], delimiter=delimiter_of(path)), [])


def in_batches(
    items: Iterable[tuple[int, T | str]],
) -> Iterator[tuple[list[int], list[T], list[Fault]]]:
    """Lines, rows and faults of up to `ROWS` items; an item is a row, or the reason why a line is
    none."""
    numbers: list[int] = []
    rows: list[T] = []
    faults: list[Fault] = []
    for line, row in items:
        if isinstance(row, str):
            faults.append((line, row))
        else:
            numbers.append(line)
            rows.append(row)
        if len(rows) + len(faults) >= ROWS:
            yield numbers, rows, faults
            numbers, rows, faults = [], [], []
    if rows or faults:
        yield numbers, rows, faults


def to_batches(items: Iterable[tuple[int, LoggedDecision | str]]) -> Iterator[Batch]:
    """Decisions, or the reasons why lines are none, as batches."""
    for numbers, rows, faults in in_batches(items):
        columns = rows_as_columns([row.cells for row in rows])
        cells = {
            part: cells
            for part, cells in columns.items()
            if any(cell is not None for cell in cells)
        }
        yield Batch(numbers, cells, rows_as_columns([row.context for row in rows]), faults)


def read_lines(
    path: Path, read: Callable[[Mapping[str, Any]], LoggedDecision]
) -> Iterator[tuple[int, LoggedDecision | str]]:
    """The decisions of a file of JSON lines; whatever cannot be read is a fault of its line."""
    for line, record in json_lines(path):
        if isinstance(record, str):
            yield line, record
            continue
        try:
            yield line, read(record)
        except NotARowError as error:
            yield line, str(error)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            yield line, f"not as expected ({type(error).__name__}: {error})"


def label_at(actions: Sequence[Any], place: int) -> str:
    """The label of an action: its tag or id, else its place, counted from 0."""
    if not 0 <= place < len(actions):
        raise NotARowError(f"action {place} of {len(actions)}")
    action = actions[place]
    if isinstance(action, Mapping):
        for name in ("_tag", "id", "Id"):
            if action.get(name) not in (None, ""):
                return str(action[name])
        return str(place)
    plain = isinstance(action, str | int) and not isinstance(action, bool)
    return str(action if plain else place)


def labels_of(actions: Sequence[Any]) -> list[str]:
    """The labels of all actions."""
    return [label_at(actions, place) for place in range(len(actions))]


def rows_as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Dictionaries as columns; None where one has no such key."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dots; lists of texts become flags, other lists numbered
    columns.

    >>> flatten({"user": {"age": 31, "tags": ["new"]}})
    {'user.age': 31, 'user.tags=new': 1}
    """
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        whole = f"{prefix}{name}"
        if isinstance(inner, Mapping):
            flat.update(flatten(inner, f"{whole}."))
        elif isinstance(inner, list):
            for n, item in enumerate(inner):
                if isinstance(item, str):
                    flat[f"{whole}={item}"] = 1
                elif isinstance(item, Mapping):
                    flat.update(flatten(item, f"{whole}."))
                else:
                    flat[f"{whole}.{n}"] = item
        else:
            flat[whole] = inner
    return flat
