"""Claims about how much hyperparameters matter, from searches over both networks.

Networks are compared alike: on the seeds that every setting of both has played, and with as many
settings. One has 576 settings in the paper's grid and the other 96, and the best of more settings
is luckier; so the smaller number is drawn of each, again and again, and the median setting of each
draw is measured against the best of the same draw:

    score of a setting = (m - m_random) / (m_best - m_random)

The interval is over draws of settings and of seeds, so that the noise of worlds and policies is in
it. Searches with fewer or shorter trials than the paper's judge nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.paper.rules import RESAMPLES, beats
from tidepull.paper.verdicts import (
    BEST_NN,
    BEST_RNN,
    FAILS,
    HOLDS,
    NOT_JUDGED,
    OPEN,
    Claim,
    Evidence,
    Measurement,
    above,
    concluded,
    missing,
)
from tidepull.reporting import published
from tidepull.reporting.frames import Study
from tidepull.reporting.published import SEARCH_HORIZON, SEARCH_TRIALS
from tidepull.reporting.stats import paired_values
from tidepull.types import FloatArray

MUCH = 0.2
"""One network is much more robust when its median score is that much higher."""
_SCALE = "(m - m_random) / (m_best - m_random)"


@dataclass(frozen=True, slots=True)
class SearchPair:
    """Mean rewards of the settings of both networks on common seeds, by setting, and random's on
    the same."""

    study: Study
    seeds: tuple[int, ...]
    recurrent: Mapping[str, FloatArray]
    feedforward: Mapping[str, FloatArray]
    floors: FloatArray


def more_robust(
    evidence: Evidence,
    says: str,
    problems: Sequence[str],
    *,
    least: float = 0.0,
    feedforward: bool = False,
) -> Claim:
    """The median recurrent setting (or the feedforward one) keeps clearly more of its best
    setting's gain."""
    network, other = ("feedforward", "recurrent") if feedforward else ("recurrent", "feedforward")
    rule = (
        f"of as many settings drawn of each network, the median {network} one keeps more of the "
        f"best one's gain over random, {_SCALE}, than the median {other} one, on the same seeds "
        "(95% interval over draws of settings and of seeds)"
    )
    rule += f", by at least {least:.1f}" if least else ""
    lines = [
        line for problem in problems for line in _robust(evidence, problem, least, feedforward)
    ]
    topic = problems[0] if len(problems) == 1 else "contextual problems"
    return concluded(topic, says, rule, lines)


def _robust(evidence: Evidence, problem: str, least: float, feedforward: bool) -> list[Measurement]:
    pair = search_pair(evidence.searches, problem)
    if pair is None:
        what = "no search has played all settings of both networks on a common seed"
        return [missing(problem, what)]
    first, second = (np.array(list(g.values())) for g in (pair.recurrent, pair.feedforward))
    if feedforward:
        first, second = second, first
    value, low, high = median_scores(first, second, pair.floors)
    outcome = above(low, high, 0.0)
    if outcome == HOLDS and value < least:
        outcome = FAILS if high < least else OPEN
    sizes = (
        f"{len(pair.recurrent)} and {len(pair.feedforward)} settings, {pair.study.horizon:,} rounds"
    )
    words = "feedforward minus recurrent" if feedforward else "recurrent minus feedforward"
    what = f"median score, {words} ({sizes})"
    line = Measurement(problem, what, outcome, value, low, high, len(pair.seeds), 2)
    return [line, *_too_short(pair)]


def _too_short(pair: SearchPair) -> list[Measurement]:
    """A line where settings have fewer or shorter trials than in the paper's search."""
    problem = pair.study.problem
    rounds = published.HORIZONS.get(problem, 0)
    rounds = SEARCH_HORIZON if problem in published.NON_CONTEXTUAL else rounds
    if len(pair.seeds) >= SEARCH_TRIALS and pair.study.horizon >= rounds:
        return []
    what = f"settings have fewer or shorter trials than the paper's {SEARCH_TRIALS}"
    return [Measurement(problem, what, NOT_JUDGED)]


def median_scores(
    first: FloatArray, second: FloatArray, floors: FloatArray
) -> tuple[float, float, float]:
    """Median score of the first minus that of the second, with its interval over draws of settings
    and of seeds.

    A row for each setting and a column for each seed; `floors` are random's rewards on the seeds.
    """
    size, n_seeds = min(len(first), len(second)), first.shape[1]
    rng = np.random.default_rng(0)
    seeds = rng.integers(n_seeds, size=(RESAMPLES, n_seeds))
    medians = []
    for rewards in (first, second):
        means = (rewards - floors)[:, seeds].mean(axis=2)
        settings = rng.integers(len(rewards), size=(RESAMPLES, size))
        drawn = means[settings, np.arange(RESAMPLES)[:, None]]
        best = drawn.max(axis=1)
        medians.append(np.median(drawn, axis=1) / np.where(best > 0, best, np.nan))
    gaps = medians[0] - medians[1]
    if np.isnan(gaps).all():
        return (float("nan"),) * 3
    low, high = np.nanquantile(gaps, [0.025, 0.975])
    return float(np.nanmean(gaps)), float(low), float(high)


def mostly_above_random(evidence: Evidence, says: str, problem: str) -> Claim:
    """Clearly more than half of the recurrent settings earn more than random arms."""
    rule = (
        "clearly more than half of the recurrent settings, which are the whole grid, earn more than "
        "random arms (bootstrap over seeds, which every setting and random have played)"
    )
    pair = search_pair(evidence.searches, problem, both=False)
    if pair is None:
        return concluded(
            problem, says, rule, [missing(problem, "no search over recurrent settings")]
        )
    gains = np.array(list(pair.recurrent.values())) - pair.floors
    share, (low, high) = float(np.mean(gains.mean(axis=1) > 0)), _share_interval(gains)
    what = f"share of {len(pair.recurrent)} recurrent settings that earn more than random arms"
    line = Measurement(problem, what, above(low, high, 0.5), share, low, high, len(pair.seeds), 2)
    return concluded(problem, says, rule, [line, *_too_short(pair)])


def _share_interval(gains: FloatArray) -> tuple[float, float]:
    """The 95% interval of the share of settings above random, over draws of the seeds."""
    n_seeds = gains.shape[1]
    if n_seeds < 2:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(0).integers(n_seeds, size=(RESAMPLES, n_seeds))
    shares = (gains[:, drawn].mean(axis=2) > 0).mean(axis=0)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def search_misleads(evidence: Evidence, says: str, problem: str) -> Claim:
    """The best recurrent setting earns more in the search, the best feedforward one has less regret
    in the report."""
    rule = (
        "in the trials from which the searches chose, the best recurrent setting earns clearly more "
        "than the best feedforward one on the same seeds; in the report the best NN has clearly less "
        "regret than the best RNN"
    )
    report = beats(evidence, says, problem, [BEST_NN], [BEST_RNN]).lines
    pair = search_pair(evidence.finals, problem)
    if pair is None:
        return concluded(
            problem, says, rule, [missing(problem, "no search over both networks"), *report]
        )
    ours, theirs = (max(grid.values(), key=np.mean) for grid in (pair.recurrent, pair.feedforward))
    d = paired_values("rnlps", "nlps", ours, theirs)
    outcome = above(d.low, d.high, 0.0)
    what = "reward in the search, best recurrent setting minus best feedforward one"
    line = Measurement(problem, what, outcome, d.mean, d.low, d.high, d.pairs)
    return concluded(problem, says, rule, [line, *_too_short(pair), *report])


def search_pair(searches: Sequence[Study], problem: str, *, both: bool = True) -> SearchPair | None:
    """The search with most settings (then the longest) whose settings, and random, have common
    seeds."""
    able = [_common(study, both) for study in searches if study.problem == problem]
    pairs = [one for one in able if one is not None]
    return max(
        pairs,
        key=lambda one: (len(one.recurrent) + len(one.feedforward), one.study.horizon),
        default=None,
    )


def _common(study: Study, both: bool) -> SearchPair | None:
    wanted = ("rnlps", "nlps") if both else ("rnlps",)
    if any(name not in study.grids for name in wanted):
        return None
    rewards = {
        name: {
            group.setting: {row.seed: row.reward for row in group.rows}
            for group in study.grids[name]
        }
        for name in wanted
    }
    random = study.group("random")
    floor = {row.seed: row.reward for row in random.rows} if random else {}
    seeds = set(floor).intersection(
        *(trials for grid in rewards.values() for trials in grid.values())
    )
    if not seeds:
        return None
    order = tuple(sorted(seeds))
    grids = {
        name: {
            setting: np.array([trials[seed] for seed in order]) for setting, trials in grid.items()
        }
        for name, grid in rewards.items()
    }
    floors = np.array([floor[seed] for seed in order])
    return SearchPair(study, order, grids["rnlps"], grids.get("nlps", {}), floors)
