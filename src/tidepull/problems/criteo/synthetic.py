"""Made-up impressions with the columns, cardinalities and click rate of the Criteo attribution dataset.

Popularity of every category falls like 1 / (rank + 2). Campaigns belong to segments, and a segment prefers
other values of the remaining categories, so that columns are correlated and few directions matter.
A click follows a logistic model: an effect for each value of each of `FEATURES`, summed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from tidepull.problems.criteo.schema import FEATURES, FIRST_SYNTHETIC_CAMPAIGN, TARGET, Impressions
from tidepull.random import Streams

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


def _draw_categories(world: World, size: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
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
    timestamp: NDArray[np.int64], clicked: NDArray[np.bool_], users: int, rng: np.random.Generator
) -> Columns:
    """The columns that the problems ignore; -1 where there is no conversion or no earlier click."""
    size = len(timestamp)
    converted = rng.random(size) < np.where(clicked, 0.08, 0.03)
    led = converted & clicked
    clicks = rng.geometric(0.4, size)
    return {
        "uid": rng.integers(users, size=size),
        "conversion": converted.astype(np.int64),
        "conversion_timestamp": np.where(converted, timestamp + rng.integers(1, _SECONDS, size), -1),
        "conversion_id": np.where(converted, rng.integers(_HIGHEST_ID, size=size), -1),
        "attribution": (led & (rng.random(size) < 0.5)).astype(np.int64),
        "click_pos": np.where(led, rng.integers(clicks), -1),
        "click_nb": np.where(led, clicks, -1),
        "cost": np.round(1e-4 * rng.lognormal(0.0, 1.0, size), 6),
        "cpo": np.round(0.2 * rng.lognormal(0.0, 0.7, size), 6),
        "time_since_last_click": np.where(rng.random(size) < 0.6, rng.integers(1, _SECONDS, size), -1),
    }
