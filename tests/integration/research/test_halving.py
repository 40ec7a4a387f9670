from __future__ import annotations

from pathlib import Path

import pytest

from research.benchmarks import halving
from tidepull.experiments.archive import SHARED, read_archive

ROOT = Path(__file__).parents[3]
KEPT = sorted(path.parent for path in (ROOT / "research" / "results").rglob(SHARED))


def test_the_lab_shows_the_table_that_the_kept_trials_give() -> None:
    assert (
        f"<!-- halving: begin -->\n{halving.text()}\n<!-- halving: end -->"
        in halving.PAGE.read_text()
    )


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_kept_trials_are_whole(folder: Path) -> None:
    rows = read_archive(folder).loaded().rows
    assert rows
    assert len({(row.suite, row.hash, row.name, row.setting) for row in rows}) == len(rows)


def test_a_last_rung_that_differs_from_the_whole_search_is_refused() -> None:
    grid = halving.exhaustive()["flipping-gaussian"]
    halved = halving.rungs(read_archive(halving.HALVED / "one-seed"))["flipping-gaussian"]
    text, setting = next(iter(grid.items()))
    with pytest.raises(ValueError, match="in the whole search"):
        halving.check_last({text: halved[1][text] * setting.trials}, grid)
