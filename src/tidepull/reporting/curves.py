"""What is kept of trials' rounds as CSV: a line for each trial, its thinned regret in one field."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tidepull._internal.files import explained, write_whole
from tidepull.errors import WrongStoreError
from tidepull.reporting.traces import Played, Recovery

FILE = "curves.csv"
POINTS = 65
"""Of a curve, with the first and the last round."""
_COLUMNS = ("hash", "best_share", "late", "recovered", "recovery_early", "recovery_late", "points", "curve")


def write_curves(played: Mapping[str, Played], folder: Path) -> None:
    """Write the lines in the order of the hashes; curves keep six digits, the rest all of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for hash in sorted(played):
        one = played[hash]
        found = one.recovery
        recovery = ("", "", "") if found is None else (found.recovered, found.early, found.late)
        curve = " ".join(f"{value:.6g}" for value in one.curve)
        writer.writerow((hash, one.best_share, one.late, *recovery, len(one.curve), curve))
    write_whole(folder / FILE, text.getvalue().encode())


def read_curves(folder: Path) -> dict[str, Played]:
    """What `write_curves` wrote, by hash; nothing where it wrote nothing."""
    path = folder / FILE
    if not path.is_file():
        return {}
    with explained("read", path), path.open(newline="", encoding="utf-8") as text:
        lines = list(csv.DictReader(text))
    try:
        return {line["hash"]: _played(line) for line in lines}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise WrongStoreError(f"{path} was edited or cut off ({error!r})") from None


def _played(line: Mapping[str, str]) -> Played:
    recovery = None
    if line["recovered"]:
        recovery = Recovery(
            float(line["recovery_early"]), float(line["recovery_late"]), float(line["recovered"])
        )
    curve = np.array([float(value) for value in line["curve"].split()])
    if len(curve) != int(line["points"]):
        raise ValueError(f"{len(curve)} points instead of {line['points']}")
    return Played(curve, float(line["best_share"]), float(line["late"]), recovery)
