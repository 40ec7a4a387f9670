"""Preprocessing of the Criteo dataset, and synthetic impressions of the same kind.

Preprocessing is a sample, one-hot codes, a truncated SVD, least squares, and two pools of vectors.
Only `fit_parameter` is given the clicks, so the label cannot enter the vectors.

Synthetic impressions have the columns, cardinalities and click rate of the dataset. Popularity of
every category falls like 1 / (rank + 2). Campaigns belong to segments, and a segment prefers other
values of the remaining categories, so that columns are correlated and few directions matter. A
click follows a logistic model: an effect for each value of each of `FEATURES`, summed.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import svds
from scipy.special import expit
from threadpoolctl import threadpool_limits

from tidepull import __version__
from tidepull._internal.extras import needs
from tidepull._internal.files import replacing
from tidepull.errors import DataError, ParameterError
from tidepull.problems.criteo.banners import FORMAT, Prepared
from tidepull.problems.criteo.dataset import (
    COLUMNS,
    DIM,
    FEATURES,
    FIRST_SYNTHETIC_CAMPAIGN,
    POOL,
    SAMPLE,
    TARGET,
    Impressions,
    UniformSample,
    open_published,
    read_rows,
)
from tidepull.random import Streams


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The linear parameter theta, and the share of the label's variance that it explains."""

    theta: NDArray[np.float64]
    r_squared: float


def one_hot(categories: NDArray[np.int64]) -> sparse.csr_array:
    """A sparse indicator matrix: one column for each distinct value of each categorical column."""
    n_rows, n_columns = categories.shape
    positions = np.empty((n_rows, n_columns), np.int64)
    width = 0
    for column in range(n_columns):
        values, inverse = np.unique(categories[:, column], return_inverse=True)
        positions[:, column] = inverse + width
        width += len(values)
    row_starts = np.arange(0, n_rows * n_columns + 1, n_columns)
    entries = np.ones(positions.size), positions.ravel(), row_starts
    return sparse.csr_array(entries, shape=(n_rows, width))


def truncated_svd(matrix: sparse.csr_array, dim: int, rng: Generator) -> NDArray[np.float64]:
    """The rows of `matrix` in the basis of its `dim` leading right singular vectors: X V = U S.

    Not normalised. The starting vector comes from `rng`; signs are fixed by making the largest
    entry of each singular vector positive. Both make the result repeatable.
    """
    if dim >= min(matrix.shape):
        raise DataError(
            f"the sample has {matrix.shape[0]} rows and {matrix.shape[1]} distinct categories, "
            f"too few for {dim} features; give a larger file or a smaller --dim"
        )
    start = rng.standard_normal(min(matrix.shape))
    _, singular, right = svds(matrix, k=dim, v0=start)
    order = np.argsort(-singular, kind="stable")
    if singular[order[-1]] < 1e-6 * singular[order[0]]:
        raise DataError(
            f"the sample's categories span fewer than {dim} dimensions; give a smaller --dim"
        )
    basis = right[order].T
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(dim)])
    return np.asarray(matrix @ basis)


def fit_parameter(features: NDArray[np.float64], clicked: NDArray[np.bool_]) -> Fit:
    """Least squares of the features on 2 * click - 1, with an intercept that is dropped."""
    target = np.where(clicked, 1.0, -1.0)
    centred, residual = features - features.mean(axis=0), target - target.mean()
    theta = np.linalg.lstsq(centred, residual, rcond=None)[0]
    unexplained = float(np.sum((residual - centred @ theta) ** 2))
    return Fit(theta, 1.0 - unexplained / float(np.sum(residual**2)))


LEAST_POOL = 100


def prepare_file(
    path: Path,
    *,
    dim: int = DIM,
    sample: int = SAMPLE,
    seed: int = 0,
    on_bytes: Callable[[int], None] | None = None,
) -> Prepared:
    """Prepare the published file; `on_bytes` hears how much of it has been read."""
    _check(dim, sample)
    drawn = UniformSample(sample, _streams(seed).generator("sample"))
    with open_published(path) as file:
        for rows in read_rows(file, path):
            drawn.add(rows)
            if on_bytes is not None:
                on_bytes(file.tell())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = path.stat().st_size
    source = {"source": path.name, "source_bytes": size, "source_sha256": digest}
    try:
        prepared = prepare_sample(drawn, dim=dim, seed=seed)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return replace(prepared, about=prepared.about | source)


def prepare_blocks(
    blocks: Iterable[Impressions], *, dim: int = DIM, sample: int = SAMPLE, seed: int = 0
) -> Prepared:
    """Prepare rows that do not come from a file."""
    _check(dim, sample)
    drawn = UniformSample(sample, _streams(seed).generator("sample"))
    for rows in blocks:
        drawn.add(rows)
    return prepare_sample(drawn, dim=dim, seed=seed)


def prepare_sample(drawn: UniformSample, *, dim: int, seed: int) -> Prepared:
    """Everything after the sample has been taken."""
    rows, streams = drawn.rows(), _streams(seed)
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
        about=_about(rows, fit, drawn.seen, dim=dim, seed=seed, categories=matrix.shape[1]),
    )


def _pool(features: NDArray[np.float64], rng: Generator) -> NDArray[np.float32]:
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


def _about(
    rows: Impressions, fit: Fit, seen: int, *, dim: int, seed: int, categories: int
) -> dict[str, Any]:
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


CARDINALITIES = {
    "campaign": 675, "cat1": 9, "cat2": 70, "cat3": 1800, "cat4": 21,
    "cat5": 51, "cat6": 30, "cat7": 57_000, "cat8": 11, "cat9": 30,
}  # fmt: skip
CLICK_RATE = 0.36
BLOCK = 65_536

_SEGMENTS = 24
_COHERENCE = 0.6
_EFFECT_STD = 0.5
_SECONDS = 30 * 24 * 3600
_ROWS_PER_USER = 2.7
_HIGHEST_ID = 2**25

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """What one seed fixes for good: ids, popularity, preferences of segments, effects on clicks."""

    ids: dict[str, NDArray[np.int64]]
    cumulative: dict[str, NDArray[np.float64]]
    segment_of_campaign: NDArray[np.int64]
    preference: dict[str, NDArray[np.int64]]
    effects: dict[str, NDArray[np.float64]]
    intercept: float


@lru_cache(maxsize=4)
def make_world(streams: Streams) -> World:
    """Draw a world; its intercept is set so that `CLICK_RATE` of its impressions are clicked."""
    rng = streams.generator("world")
    ids, cumulative, preference, effects = {}, {}, {}, {}
    for name, count in CARDINALITIES.items():
        first = FIRST_SYNTHETIC_CAMPAIGN if name == "campaign" else 0
        ids[name] = first + rng.choice(_HIGHEST_ID, count, replace=False)
        weights = 1.0 / (np.arange(count) + 2.0)
        cumulative[name] = np.cumsum(weights / weights.sum())[:-1]
        preference[name] = rng.integers(count, size=_SEGMENTS)
        effects[name] = _EFFECT_STD * rng.standard_normal(count)
    segments = rng.integers(_SEGMENTS, size=CARDINALITIES["campaign"])
    world = World(ids, cumulative, segments, preference, effects, intercept=0.0)
    logits = _logits(world, _draw_categories(world, 4 * BLOCK, streams.generator("calibration")))
    intercept = float(brentq(lambda shift: expit(logits + shift).mean() - CLICK_RATE, -20.0, 20.0))
    return World(ids, cumulative, segments, preference, effects, intercept)


def impressions(rows: int, *, seed: int) -> Iterator[Columns]:
    """Blocks of impressions with every column of the published file, `rows` in total."""
    streams = Streams(seed).child("criteo-synthetic")
    world = make_world(streams)
    for number, start in enumerate(range(0, rows, BLOCK)):
        size = min(BLOCK, rows - start)
        rng = streams.generator(f"block-{number}")
        picks = _draw_categories(world, size, rng)
        clicked = rng.random(size) < expit(_logits(world, picks) + world.intercept)
        block = {name: world.ids[name][pick] for name, pick in picks.items()}
        block[TARGET] = clicked.astype(np.int64)
        block["timestamp"] = (np.arange(start, start + size) * _SECONDS) // rows
        yield block | _journey(block["timestamp"], clicked, max(1, int(rows / _ROWS_PER_USER)), rng)


def feature_rows(rows: int, *, seed: int) -> Iterator[Impressions]:
    """The same impressions as `impressions`, only what the problems use of them."""
    for block in impressions(rows, seed=seed):
        yield Impressions(np.column_stack([block[name] for name in FEATURES]), block[TARGET] == 1)


def _draw_categories(world: World, size: int, rng: Generator) -> dict[str, NDArray[np.int64]]:
    """The place of each impression's value among the values of every categorical column."""
    picks = {"campaign": np.searchsorted(world.cumulative["campaign"], rng.random(size))}
    segment = world.segment_of_campaign[picks["campaign"]]
    for name, count in CARDINALITIES.items():
        if name != "campaign":
            rank = np.searchsorted(world.cumulative[name], rng.random(size))
            shift = np.where(rng.random(size) < _COHERENCE, world.preference[name][segment], 0)
            picks[name] = (rank + shift) % count
    return picks


def _logits(world: World, picks: dict[str, NDArray[np.int64]]) -> NDArray[np.float64]:
    effects = [world.effects[name][picks[name]] for name in FEATURES]
    return np.asarray(np.sum(effects, axis=0))


def _journey(
    timestamp: NDArray[np.int64], clicked: NDArray[np.bool_], users: int, rng: Generator
) -> Columns:
    """The columns that the problems ignore; -1 where there is no conversion or no earlier click."""
    size = len(timestamp)
    converted = rng.random(size) < np.where(clicked, 0.08, 0.03)
    led = converted & clicked
    clicks = rng.geometric(0.4, size)
    return {
        "uid": rng.integers(users, size=size),
        "conversion": converted.astype(np.int64),
        "conversion_timestamp": np.where(
            converted, timestamp + rng.integers(1, _SECONDS, size), -1
        ),
        "conversion_id": np.where(converted, rng.integers(_HIGHEST_ID, size=size), -1),
        "attribution": (led & (rng.random(size) < 0.5)).astype(np.int64),
        "click_pos": np.where(led, rng.integers(clicks), -1),
        "click_nb": np.where(led, clicks, -1),
        "cost": np.round(1e-4 * rng.lognormal(0.0, 1.0, size), 6),
        "cpo": np.round(0.2 * rng.lognormal(0.0, 0.7, size), 6),
        "time_since_last_click": np.where(
            rng.random(size) < 0.6, rng.integers(1, _SECONDS, size), -1
        ),
    }


def write_synthetic(
    path: Path, *, rows: int, seed: int, on_rows: Callable[[int], None] | None = None
) -> None:
    """Write `rows` impressions to a tab-separated, gzip-compressed file; the same bytes for the
    same seed."""
    with needs("writing a synthetic Criteo file", "data"):
        import pyarrow as pa
        from pyarrow import csv
    if rows < 1:
        raise ParameterError(f"rows must be at least 1, got {rows}")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    written = 0
    with (
        replacing(path) as handle,
        gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=handle, mtime=0) as packed,
    ):
        packed.write(("\t".join(COLUMNS) + "\n").encode())
        for block in impressions(rows, seed=seed):
            table = pa.table([block[name] for name in COLUMNS], names=COLUMNS)
            csv.write_csv(table, packed, options)
            written += len(block["timestamp"])
            if on_rows is not None:
                on_rows(written)
