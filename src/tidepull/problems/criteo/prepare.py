"""The whole preprocessing: sample, one-hot, truncated SVD, least squares, two pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tidepull import __version__
from tidepull.errors import DataError, ParameterError
from tidepull.problems.criteo.features import Fit, fit_parameter, one_hot, truncated_svd
from tidepull.problems.criteo.prepared import FORMAT, Prepared
from tidepull.problems.criteo.reading import open_published, read_rows
from tidepull.problems.criteo.sampling import UniformSample
from tidepull.problems.criteo.schema import DIM, FIRST_SYNTHETIC_CAMPAIGN, POOL, SAMPLE, Impressions
from tidepull.random import Streams

LEAST_POOL = 100


def prepare_file(
    path: Path,
    *,
    dim: int = DIM,
    sample: int = SAMPLE,
    seed: int = 0,
    on_bytes: Callable[[int], None] | None = None,
) -> Prepared:
    """Prepare the published file in one pass; `on_bytes` hears how much of it has been read."""
    _check(dim, sample)
    kept = UniformSample(sample, _streams(seed).generator("sample"))
    with open_published(path) as file:
        for rows in read_rows(file, path):
            kept.add(rows)
            if on_bytes is not None:
                on_bytes(file.count)
        source = {"source": path.name, "source_bytes": file.count, "source_sha256": file.sha256()}
    try:
        prepared = prepare_sample(kept, dim=dim, seed=seed)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return replace(prepared, about=prepared.about | source)


def prepare_blocks(
    blocks: Iterable[Impressions], *, dim: int = DIM, sample: int = SAMPLE, seed: int = 0
) -> Prepared:
    """Prepare rows that do not come from a file."""
    _check(dim, sample)
    kept = UniformSample(sample, _streams(seed).generator("sample"))
    for rows in blocks:
        kept.add(rows)
    return prepare_sample(kept, dim=dim, seed=seed)


def prepare_sample(kept: UniformSample, *, dim: int, seed: int) -> Prepared:
    """Everything after the sample has been taken."""
    rows, streams = kept.rows(), _streams(seed)
    _check_pools(rows)
    with threadpool_limits(1):  # the last bits of a product depend on the number of threads
        matrix = one_hot(rows.categories)
        features = truncated_svd(matrix, dim, streams.generator("svd"))
        fit = fit_parameter(features, rows.clicked)
    rng = streams.generator("pools")
    return Prepared(
        clicked=_pool(features[rows.clicked], rng),
        not_clicked=_pool(features[~rows.clicked], rng),
        theta=fit.theta,
        about=_about(rows, fit, kept.seen, dim=dim, seed=seed, categories=matrix.shape[1]),
    )


def _pool(features: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float32]:
    chosen = rng.choice(len(features), min(POOL, len(features)), replace=False, shuffle=False)
    return features[np.sort(chosen)].astype(np.float32)


def _check_pools(rows: Impressions) -> None:
    clicked = int(rows.clicked.sum())
    for name, count in (("clicked", clicked), ("not clicked", len(rows) - clicked)):
        if count < LEAST_POOL:
            raise DataError(
                f"only {count} of the {len(rows)} sampled rows are {name}, "
                f"at least {LEAST_POOL} are needed; give a larger file or a larger --sample"
            )


def _about(rows: Impressions, fit: Fit, seen: int, *, dim: int, seed: int, categories: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "synthetic": bool((rows.categories[:, 0] >= FIRST_SYNTHETIC_CAMPAIGN).any()),
        "rows_seen": seen,
        "rows_sampled": len(rows),
        "seed": seed,
        "dim": dim,
        "categories": categories,
        "click_rate": float(rows.clicked.mean()),
        "r_squared": fit.r_squared,
        "versions": {"tidepull": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
    }


def _streams(seed: int) -> Streams:
    return Streams(seed).child("prepare-criteo")


def _check(dim: int, sample: int) -> None:
    if dim < 1:
        raise ParameterError(f"dim must be at least 1, got {dim}")
    if sample <= dim:
        raise ParameterError(f"sample must be more than dim ({dim}), got {sample}")
