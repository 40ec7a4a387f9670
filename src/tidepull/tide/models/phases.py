"""Phases: a season of 3 to 24 equal cells, each with an expected reward of its own for every arm.

The structure search proposes it: periods of the strongest sines, all numbers of cells, and eight
offsets each; the two of most evidence are improved by small moves, as square waves are.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.tide.models import period_search
from tidepull.tide.models.family import (
    Candidate,
    Candidates,
    Family,
    Layout,
    Pool,
    Rounds,
    Search,
    too_large,
)
from tidepull.tide.models.scan import square_evidence
from tidepull.tide.models.spec import SQUARE, Spec
from tidepull.types import FloatArray

FEWEST, MOST = 3, 24
_OFFSETS = 8
"""Offsets of each length of a phase."""
_SPARE = 8
_TRIED = 2
_MOST_ARMS = 64
"""With more arms cells are not learnt in time."""
_PLACES = 8.0
"""Candidates that one round of the window can tell apart."""


def equal_phases(count: int, length: float, offset: float = 0.0) -> Spec:
    """`count` phases of `length` rounds each: the regime is floor((t + offset) / length) mod count."""
    return Spec("phases", (SQUARE, 0), (length, 1.0), (offset, 0.0), phases=count)


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """None at the start; without context only, where cells are learnt in time."""
    room = equal_phases(MOST, 1.0)
    if layout.context_dim > 1 or layout.n_arms > _MOST_ARMS or too_large(layout, room):
        return []
    return [Pool("phases", contextual, (), _SPARE, (room,))]


def _find(search: Search) -> Candidates:
    """The cells of most evidence at the periods of the strongest sines, each improved by small
    moves."""
    rounds, n_arms = search.rounds, search.layout.n_arms
    n, centre = len(rounds.y), rounds.t0 + len(rounds.y) / 2
    periods = [period for period in (yield from search.sines()) if period <= n / 2]
    found: list[tuple[float, int, float, float]] = []
    for period in periods:
        for count in range(FEWEST, min(MOST, int(period)) + 1):
            length = period / count
            offsets = length * np.arange(_OFFSETS) / _OFFSETS
            lengths = np.full(_OFFSETS, length)
            evidence = yield from _evidence(
                lengths, offsets, rounds=rounds, n_arms=n_arms, phases=count
            )
            best = int(np.argmax(evidence))
            found.append((float(evidence[best]), count, length, float(offsets[best])))
    found.sort(reverse=True)
    plain = period_search.plain_evidence(rounds)
    for evidence_found, count, length, offset in found[:_TRIED]:
        if not period_search.worth_climbing(evidence_found, plain):
            break
        score = partial(_evidence, rounds=rounds, n_arms=n_arms, phases=count)
        moved = yield from period_search.climb(length, offset, centre, score, phases=count)
        yield Candidate(equal_phases(count, *moved), _PLACES * n)


def _evidence(
    lengths: FloatArray, offsets: FloatArray, *, rounds: Rounds, n_arms: int, phases: int
) -> Job[FloatArray]:
    yield len(lengths) * (len(rounds.y) + 10 * phases * n_arms)
    return square_evidence(lengths, offsets, rounds, n_arms, phases)


def _describe(spec: Spec) -> str:
    return f"repeats every {spec.longest_period:.1f} rounds, in {spec.phases} phases"


FAMILY = Family(
    name="phases",
    words="repeats every P rounds, in B phases",
    prior=0.02,
    colour="#332288",
    pools=_pools,
    describe=_describe,
    candidates=_find,
)
