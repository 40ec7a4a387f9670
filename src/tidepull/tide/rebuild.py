"""Rebuild all models after a change of the reward scale or the context map, by a replay of the
window.

The work is done on copies, in slices, while decisions continue; at the end the copies, which have
also replayed the rewards that arrived meanwhile, replace the models.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidepull.tide.context import ContextMap
from tidepull.tide.gated import GatedModel
from tidepull.tide.jobs import STEPS, Job, finish_counted, ranges
from tidepull.tide.mixture import Mixture
from tidepull.tide.models import pages
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import CovariateTracker, standardised
from tidepull.tide.models.family import Filter, Window
from tidepull.tide.scale import RewardScale, Units
from tidepull.tide.window import RecentRounds
from tidepull.types import FloatArray

TRUSTED = 16
"""Rewards from which on estimates of scale and noise are used."""
_STEPS_OF_REWEIGHING, _STEPS_OF_WEIGHING = 20, 1000

_MODELS_OF_A_PIECE = 128
"""Models that replay a few rewards in one piece: with two slices for each reward all of them must,
or a rebuild would never end."""
_FEW = 32
"""Batch size of catch-up rewards, so that a rebuild terminates even with few slices between
rewards."""


class Rebuilt(NamedTuple):
    """The result of a rebuild."""

    units: Units
    contexts: ContextMap
    trackers: dict[str, CovariateTracker]
    bank: ModelBank
    filters: list[Filter]
    gated: GatedModel | None
    mixture: Mixture
    covariates: FloatArray
    x: FloatArray
    evidence: FloatArray
    drop_network: bool  # the network's past scores are not comparable


def rebuilding(
    recent: RecentRounds,
    scale: RewardScale,
    contexts: ContextMap,
    trackers: dict[str, CovariateTracker],
    bank: ModelBank,
    mixture: Mixture,
    *,
    filters: Sequence[Filter] = (),
    gated: GatedModel | None = None,
    latest: FloatArray,
    network: bool,
) -> Job[Rebuilt | None]:
    """Rebuild all models. `latest` are the contexts of every arm in the latest round. None if more
    rewards arrived meanwhile than the window holds: then a new rebuild is due."""
    first, old = recent.start, scale.units
    units = scale.fitted(recent.seen())
    drop_network = old.binary != units.binary
    raw = recent.raw if recent.count <= recent.raw_capacity else None
    if raw is not None and contexts.raw_dim:
        # Vectors of arms that were not chosen tell as much about contexts as those of arms that
        # were.
        contexts = contexts.fitted(np.concatenate([raw, latest]) if contexts.shared else raw)
        yield raw.size * min(contexts.dim, 64)
    covariates, trackers = recent.covariates(), copy.deepcopy(trackers)
    past = recent.past(units.threshold)
    for tracker in trackers.values():
        yield from tracker.recompute(past, covariates)
    ratio = old.spread / units.spread if recent.count > TRUSTED else None
    new_bank, new_mixture = bank.reset_copy(ratio), mixture.copy()
    yield STEPS // 2
    new_filters = []
    for filter in filters:
        new_filters.append(filter.reset_copy(ratio))
        yield STEPS // 4
    new_gated = None if gated is None else gated.reset_copy(ratio)
    active = [int(m) for m in np.flatnonzero(bank.arrays.active)]
    present = [*active, *range(bank.size, len(mixture.prior))]
    new_mixture.reset()
    x, gains = np.empty((0, contexts.dim)), np.empty(0)
    while (done := first + len(gains)) < recent.count:
        if done < recent.start or (raw is not None and recent.raw is None):
            return None
        noted = first + len(covariates)
        if noted < recent.count:  # rewards that came in the meantime
            for t, arm, reward in recent.events(noted):
                for tracker in trackers.values():
                    tracker.observe(t, arm, reward, reward > units.threshold)
            covariates = np.concatenate([covariates, recent.covariates(noted)])
        window = recent.window(units, done)
        window = window._replace(
            covariates=standardised(covariates[done - first :], units.centre, units.spread)
        )
        if raw is not None and recent.raw is not None:
            window = window._replace(x=contexts(recent.raw[done:]))
        # A row for each present model, filled row by row; on small pages, as the bank is.
        scores = pages.zeros((len(present), len(window.t)))
        if network:
            network_scores = np.nan if drop_network else recent.network(done)
            scores[-1] = network_scores + (0.0 if units.binary else math.log(units.spread))
        if done > first and len(window.t) <= _FEW:
            yield from _follow(new_bank, active, window, units.binary, scores)
        else:
            for i, m in enumerate(active):
                if done == first:
                    yield from new_bank.resetting(m)
                scores[i] = yield from new_bank.replay(m, window, units.binary)
        for i, filter in enumerate(new_filters, len(active)):
            scores[i] = yield from filter.replay(window, units.binary)
        more, all_scores = np.empty(len(window.t)), np.full(len(mixture.prior), -np.inf)
        for start, stop, spent in ranges(len(more), _STEPS_OF_REWEIGHING * len(all_scores)):
            for i in range(start, stop):
                all_scores[present] = scores[:, i]
                more[i] = new_mixture.reweigh(all_scores, done + i)
            yield spent
        if new_gated is not None:
            gated_scores = yield from new_gated.filter.replay(window, units.binary)
            for start, stop, spent in ranges(len(more), _STEPS_OF_WEIGHING):
                for i in range(start, stop):
                    score = new_gated.recalibrate(
                        float(gated_scores[i]), float(window.y[i]), units.binary
                    )
                    new_gated.weigh(score, float(more[i]), done + i)
                yield spent
        x, gains = np.concatenate([x, window.x]), np.concatenate([gains, more])
    new_mixture.evidence = float(gains.sum())
    evidence = np.cumsum(gains) - gains
    return Rebuilt(
        units,
        contexts,
        trackers,
        new_bank,
        new_filters,
        new_gated,
        new_mixture,
        covariates,
        x,
        evidence,
        drop_network,
    )


def _follow(
    bank: ModelBank, active: list[int], window: Window, binary: bool, scores: FloatArray
) -> Job[None]:
    """Replay a few rounds in every active slot, many slots in a piece; `scores` has a row for
    each."""
    spent = 0
    for i, m in enumerate(active):
        scores[i], steps = finish_counted(bank.replay(m, window, binary))
        spent += steps
        if spent > STEPS // 4 or i % _MODELS_OF_A_PIECE == _MODELS_OF_A_PIECE - 1:
            yield spent
            spent = 0
