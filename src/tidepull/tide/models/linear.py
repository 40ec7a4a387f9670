"""Bayesian linear regression on a basis of time, with forgetting: five families of one form.

    family       basis                              regimes                discount g
    stationary   (1)                                one                    1
    discounted   (1)                                one                    0.5 to 0.998
    fourier      (1, cos wt, sin wt), w = 2 pi / P  one                    1
    square       (1)                                two phases of h rounds 1
    seasons      the product of two of these, or the sum of two sines      1

For rewards of 0 and 1 without context "nothing changes" is Beta-Bernoulli. Seasons are found by
their evidence on the window of past rounds (`period_search.py`).
"""

from __future__ import annotations

import math

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
    affordable,
    fixed,
    growing,
)
from tidepull.tide.models.moments import Moments
from tidepull.tide.models.pairs import climb_pair
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE, Spec
from tidepull.tide.models.spectrum import left_over
from tidepull.types import FloatArray

DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
_LONGEST_PERIOD = 2048
_PAIRS_TRIED = 2
_FAR_BEHIND = 12.0
"""Nats of evidence by which a pair may be worse than the best and still be tried."""


def stationary(contextual: bool = False) -> Spec:
    """Constant rewards."""
    return Spec("stationary", contextual=contextual)


def discounted(discount: float, contextual: bool = False) -> Spec:
    """A reward of n rounds ago counts g^n."""
    return Spec("discounted", discount=discount, contextual=contextual)


def fourier(period: float, discount: float = 1.0, contextual: bool = False) -> Spec:
    """A smooth season of real period."""
    return Spec("fourier", (SINE, 0), (period, 1.0), discount=discount, contextual=contextual)


def square(
    half_period: float, offset: float = 0.0, discount: float = 1.0, contextual: bool = False
) -> Spec:
    """Two phases that take turns: the regime is floor((t + offset) / half_period) mod 2."""
    return Spec(
        "square", (SQUARE, 0), (half_period, 1.0), (offset, 0.0), discount=discount, contextual=contextual
    )  # fmt: skip


def seasons(first: Spec, second: Spec, added: bool = False) -> Spec:
    """The product of two bases, and a regime for every pair of regimes; `added`: the second, a sine,
    only adds its cos and sin to the first basis, which takes fewer weights."""
    return Spec(
        "seasons",
        (first.shapes[0], ADDED_SINE if added else second.shapes[0]),
        (first.periods[0], second.periods[0]),
        (first.offsets[0], second.offsets[0]),
        contextual=first.contextual,
    )


def _describe_steady(spec: Spec) -> str:
    words = "nothing changes"
    if spec.discount < 1:
        words = f"drifts, the last {1 / (1 - spec.discount):.3g} rounds count"
    return words + (", the context decides" if spec.contextual else "")


def _describe_season(spec: Spec, clock: int = 0) -> str:
    period = spec.periods[clock]
    words = f"swings smoothly every {period:.1f} rounds"
    if spec.shapes[clock] == SQUARE:
        words = f"repeats every {2 * period:.1f} rounds, in two phases"
    return words + (", with the context" if spec.contextual else "")


def _describe_seasons(spec: Spec) -> str:
    together = "on top" if spec.shapes[1] == ADDED_SINE else "at once"
    return f"{_describe_season(spec)}; {together} {_describe_season(spec, 1)}"


def _fourier_pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Log-spaced periods, two to the octave; the search finds those between. Eight to the octave where
    arms are known by vectors, all of which learn from every reward before a search has a window."""
    q = layout.context_dim if contextual else 1
    count = max(min(76 if layout.shared else 19, affordable(layout, 3 * q)), 2)
    members = [
        fourier(p, contextual=contextual) for p in np.geomspace(3, _LONGEST_PERIOD, count).tolist()
    ]
    return growing(layout, contextual, members, [fourier(3.0, contextual=contextual)])


def _square_pools(layout: Layout, contextual: bool) -> list[Pool]:
    """All whole half periods up to 8 (16 without context) with all offsets, or fewer where they would
    be dear; with a context longer ones log-spaced with eight offsets, which no scan finds."""
    q = layout.context_dim if contextual else 1
    count, longest = (136, 16) if layout.context_dim == 1 else (84, 8)
    count = min(count, affordable(layout, q))
    short = [(float(h), float(o)) for h in range(1, longest + 1) for o in range(h)]
    longer = [round(17 * 2 ** (i / 8)) for i in range(25)]
    wide = [] if q == 1 else [(float(h), h * i / 8) for h in longer for i in range(8)]
    if count < len(short) + len(wide):
        short = [(float(h), float(o)) for h in range(1, 7) for o in range(h)]
        spare = max(count - len(short), 8)
        halves = np.geomspace(8, 128, max(spare // 8, 2)).round()
        wide = [(float(h), h * i / 8) for h in halves for i in range(8)]
    members = [square(h, o, contextual=contextual) for h, o in short + wide]
    return growing(layout, contextual, members, [square(2.0, contextual=contextual)])


def _seasons_pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Pairs are found, never there from the start, and only without context: they would be too
    large."""
    if contextual and layout.context_dim > 1:
        return []
    sine, wave = fourier(3.0, contextual=contextual), square(2.0, contextual=contextual)
    room = [seasons(sine, sine), seasons(sine, wave), seasons(wave, wave)]
    return growing(layout, contextual, [], room)


def _find_sines(search: Search) -> Candidates:
    """The highest peaks of the evidence over all frequencies."""
    if search.contextual:
        yield from _find_contextual_sines(search)
        return
    n = len(search.window.t)
    for period in (yield from search.sines()):
        yield Candidate(fourier(period), n / 3)


def _find_contextual_sines(search: Search) -> Candidates:
    """Spectral peaks and the heaviest models of the pool; the two of most evidence are improved by
    hill climbing, if they may be accepted."""
    widest = fourier(3.0, contextual=True)
    moments = Moments(search.window, search.layout, search.ridge(widest))
    n, proposed = moments.n, [period for period, _ in (yield from search.spectral_peaks(3))]
    proposed += [spec.periods[0] for spec in search.heaviest()]
    plain = yield from moments.plain()
    worth = period_search.worth_a_try(plain)
    evidence = yield from moments.sines(np.array(proposed))
    best = -math.inf
    for i in np.argsort(-evidence, kind="stable")[:2]:
        if not period_search.worth_climbing(evidence[i], plain):
            break
        period, reached = yield from period_search.climb_sine(
            proposed[i], float(evidence[i]), n, moments.sines
        )
        best = max(best, reached)
        if worth(reached, best):
            yield Candidate(fourier(period, contextual=True), float(n))


def _find_squares(search: Search) -> Candidates:
    """The best of about a thousand square waves, each improved by small moves."""
    if search.contextual:
        yield from _find_contextual_squares(search)
        return
    n_candidates = float(len(period_search.squares(len(search.rounds.y))[0]))
    for half, offset in (
        yield from period_search.best_squares(search.rounds, search.layout.n_arms, 3)
    ):
        yield Candidate(square(half, offset), n_candidates)


def _find_contextual_squares(search: Search) -> Candidates:
    """Spectral peaks and the heaviest models of the pool; those of most evidence are improved by
    hill climbing."""
    window, layout = search.window, search.layout
    n, centre = len(window.t), float(window.t[len(window.t) // 2])
    moments = Moments(window, layout, search.ridge(square(2.0, contextual=True)))
    plain = yield from moments.plain()
    worth = period_search.worth_a_try(plain)
    spectral_peaks = yield from search.spectral_peaks(period_search.MOST_PEAKS)
    proposed = [(0.5 * period, offset) for period, offset in spectral_peaks]
    proposed += [(spec.periods[0], spec.offsets[0]) for spec in search.heaviest()]
    halves, offsets = (np.array([wave[i] for wave in proposed]) for i in range(2))
    evidence = yield from moments.squares(halves, offsets)
    top = -math.inf
    for best in np.argsort(-evidence, kind="stable")[:2]:
        start, shift = proposed[best]
        if not period_search.worth_climbing(evidence[best], plain):
            break
        step = 1.0 if best >= len(spectral_peaks) else None  # one of the pool was climbed before
        half, offset = yield from period_search.climb(start, shift, centre, moments.squares, step)
        reached = float((yield from moments.squares(np.array([half]), np.array([offset])))[0])
        top = max(top, reached)
        if not worth(reached, top):
            continue
        yield Candidate(square(half, offset, contextual=True), 8.0 * n)
        # Whole half periods are likelier than others; the boundary at the centre stays.
        whole = max(1, round(half))
        moved = round((centre + offset) * whole / half - centre) % (2 * whole)
        yield Candidate(square(float(whole), float(moved), contextual=True), 8.0 * n)


def _find_seasons(search: Search) -> Candidates:
    """The heaviest season, and a second one in what it leaves unexplained; then pairs of sines
    climbed together."""
    yield from _find_second_season(search)
    yield from _find_pairs_of_sines(search)


def _find_second_season(search: Search) -> Candidates:
    heaviest = search.heaviest_of(("fourier", "square"))
    if heaviest is None:
        return
    first = heaviest._replace(discount=1.0)
    n, n_arms = len(search.window.t), search.layout.n_arms
    left = yield from _residuals(first, search.rounds, n_arms)
    others = [fourier(period) for period in (yield from period_search.best_sines(left, n_arms, 2))]
    others += [square(*wave) for wave in (yield from period_search.best_squares(left, n_arms, 2))]
    for second in others:
        if first.family == second.family == "fourier":
            yield Candidate(seasons(first, second, added=True), 0.25 * n**2)
        yield Candidate(seasons(first, second), 0.25 * n**2)  # both were looked for


def _find_pairs_of_sines(search: Search) -> Candidates:
    """The strongest sines with what they leave, and the heaviest pair of the pool."""
    rounds, n_arms = search.rounds, search.layout.n_arms
    pairs = [spec.periods for spec in search.heaviest() if SQUARE not in spec.shapes]
    for period in (yield from search.sines()):
        left = yield from _residuals(fourier(period), rounds, n_arms)
        others = yield from period_search.best_sines(left, n_arms, 1)
        pairs += [(period, other) for other in others]
    climbed: list[tuple[float, float, float]] = []
    for pair in pairs:
        climbed += [(yield from climb_pair(pair, rounds, n_arms))]
    climbed.sort(key=lambda found: -found[2])
    n = len(search.window.t)
    for one, two, evidence in climbed[:_PAIRS_TRIED]:
        if evidence > climbed[0][2] - _FAR_BEHIND:
            yield Candidate(seasons(fourier(one), fourier(two), added=True), 0.25 * n**2)


def _residuals(season: Spec, rounds: Rounds, n_arms: int) -> Job[Rounds]:
    """What a season leaves of the rewards, by least squares with a little ridge."""
    t, (period, _) = rounds.t0 + np.arange(len(rounds.y)), season.periods
    basis, block, blocks = np.ones((len(t), 1)), rounds.arm, n_arms
    if season.family == "square":
        regime = np.floor((t + season.offsets[0]) / period).astype(np.int64) % 2
        block, blocks = regime * n_arms + rounds.arm, 2 * n_arms
    else:
        angle = 2 * np.pi * (t / period % 1.0)
        basis = np.stack([np.ones(len(t)), np.cos(angle), np.sin(angle)], axis=1)
    rest: FloatArray = left_over(basis, block, rounds.arm, rounds.y, blocks)
    yield 100 * len(t)
    return rounds._replace(y=rest)


STATIONARY = Family(
    name="stationary",
    words="nothing changes",
    prior=0.80,
    colour="#8c8c8c",
    pools=lambda layout, contextual: fixed(layout, stationary(contextual)),
    describe=_describe_steady,
)
DISCOUNTED = Family(
    name="discounted",
    words="drifts, the last n rounds count",
    # Where models predict alike, those that forget must not win by default: they never stop
    # exploring.
    prior=0.006,
    colour="#e69f00",
    pools=lambda layout, contextual: fixed(layout, *(discounted(g, contextual) for g in DISCOUNTS)),
    describe=_describe_steady,
)
FOURIER = Family(
    name="fourier",
    words="swings smoothly every P rounds",
    prior=0.04,
    colour="#56b4e9",
    pools=_fourier_pools,
    describe=_describe_season,
    candidates=_find_sines,
)
SQUARES = Family(
    name="square",
    words="repeats every 2h rounds, in two phases",
    prior=0.04,
    colour="#0072b2",
    pools=_square_pools,
    describe=_describe_season,
    candidates=_find_squares,
)
SEASONS = Family(
    name="seasons",
    words="two at once",
    prior=0.01,
    colour="#009e73",
    pools=_seasons_pools,
    describe=_describe_seasons,
    candidates=_find_seasons,
)
