"""Opening text files, compressed or not, and looking at their first lines."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tidepull.errors import DataError

_LONG = 1 << 16


def opened(path: Path) -> TextIO:
    """The file as text; `.gz`, `.bz2` and `.xz` are unpacked."""
    import bz2
    import lzma

    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    opener: Any = openers.get(path.suffix, open)
    text: TextIO = opener(path, "rt", encoding="utf-8-sig", errors="strict", newline="")
    return text


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1."""
    number = 0
    try:
        with opened(path) as text:
            for number, line in enumerate(text, 1):
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: damaged after line {number} ({error})") from None
    except UnicodeDecodeError:
        where = f"after line {number}" if number else "from its first line on"
        raise DataError(f"{path}: is no text in UTF-8 ({where})") from None


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
    """Line number and object, or None and why it is none; empty lines are passed over."""
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield number, None, f"no JSON: {line[:60]!r}"
            continue
        if isinstance(value, dict):
            yield number, value, ""
        else:
            yield number, None, f"no JSON object: {line[:60]!r}"


def first_line(path: Path) -> str:
    """The first line that is not empty, cut where it is very long; empty where there is none."""
    return next((line[:_LONG] for _, line in lines(path) if line.strip()), "")


def delimiter_of(path: Path) -> str:
    """Comma, semicolon or tab: whichever the header has most of."""
    header = first_line(path)
    return max(",;\t", key=header.count)


def header_of(path: Path) -> list[str]:
    """The names in the header of a CSV file."""
    header = first_line(path)
    return next(csv.reader([header], delimiter=delimiter_of(path)), [])
