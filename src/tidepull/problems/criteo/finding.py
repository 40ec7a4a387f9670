"""Which prepared file a problem plays on: the one it names, the real one, or a synthetic one made once."""

from __future__ import annotations

from pathlib import Path

from tidepull.errors import DataError, StoreError
from tidepull.problems.criteo.prepared import Prepared, load, save
from tidepull.problems.datasets import cache_directory, find

SYNTHETIC_VERSION = 1
"""Goes up whenever the made-up impressions or their preparation change, so that no old file is used."""

SYNTHETIC_ROWS = 60_000
SYNTHETIC_SEED = 0


def prepared_name(dim: int) -> str:
    """How the prepared real file is called in TIDEPULL_DATA and in the cache."""
    return f"criteo-{dim}.npz"


def find_prepared(path: str | None, dim: int) -> Prepared:
    """The file at `path`; else the real one in TIDEPULL_DATA or the cache; else the synthetic one."""
    place = prepared_file(path, dim)
    prepared = load(place)
    if prepared.dim != dim:
        raise DataError(
            f"{place} was prepared with {prepared.dim} dimensions, not {dim}; "
            f"set dim={prepared.dim}, or prepare it again with --dim {dim}"
        )
    return prepared


def prepared_file(path: str | None, dim: int) -> Path:
    """Where that file is; the synthetic one is made when it is needed and missing."""
    place = find(prepared_name(dim)) if path is None else Path(path).expanduser()
    return synthetic_file(dim) if place is None else place


def synthetic_file(dim: int) -> Path:
    """The synthetic file in the cache, made there when missing.

    Processes that start at once may each make it: their bytes are equal, and each renames a whole file
    into place, so all of them read the same.
    """
    path = cache_directory() / f"criteo-synthetic-{SYNTHETIC_VERSION}-{dim}.npz"
    if not path.is_file():
        # Imported here because scipy's solvers take longer to import than a problem takes to load.
        from tidepull.problems.criteo.prepare import prepare_blocks
        from tidepull.problems.criteo.synthetic import feature_rows

        rows = feature_rows(SYNTHETIC_ROWS, seed=SYNTHETIC_SEED)
        try:
            save(prepare_blocks(rows, dim=dim, seed=SYNTHETIC_SEED), path)
        except StoreError as error:
            raise StoreError(f"{error}; name another cache with XDG_CACHE_HOME") from None
    return path
