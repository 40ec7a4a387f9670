"""Keeping what the page of results needs as CSV beside the source, so that it can be rebuilt without any store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidepull.experiments.archive import gathered, read_archive, write_archive
from tidepull.experiments.rows import load_rows, read_plans
from tidepull.experiments.store import Store
from tidepull.paper.combine import combined
from tidepull.paper.exploration import explorations
from tidepull.reporting.frames import Study, load_frame, random_regret
from tidepull.reporting.tables import hardware
from tidepull.reporting.traces import POINTS, TrialSummary, read_curves, read_played, write_curves


def keep(store: Store, folder: Path) -> tuple[int, int]:
    """Write the totals of all the store's trials, and thinned curves of those that are reported; returns how many.

    What the folder has from earlier stores stays where a suite still asks for it.
    """
    archive = gathered(read_plans(store), load_rows(store), read_archive(folder), hardware())
    write_archive(archive, folder)
    asked = {row.hash for rows in archive.rows.values() for row in rows}
    before = {hash: played for hash, played in read_curves(folder).items() if hash in asked}
    curves = {**before, **_curves(load_frame([store]).studies)}
    write_curves(curves, folder)
    return len(asked), len(curves)


def _curves(studies: Sequence[Study]) -> dict[str, TrialSummary]:
    """Of every trial that the page shows; of searches only totals are shown."""
    found: dict[str, TrialSummary] = {}
    for study in (*combined(studies), *explorations(studies)):
        random = random_regret(study)
        for group in study.groups:
            if any(row.suite and row.hash not in found for row in group.rows):
                new = read_played(study, group, random, POINTS)
                found |= {hash: played for hash, played in new.items() if hash not in found}
    return found
