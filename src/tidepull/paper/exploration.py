"""Posterior sampling against epsilon-greedy and Boltzmann exploration: default and best settings,
six problems, paired.

What is compared comes from suites of exploration alone: with the default settings only the rule
differs, the best ones were searched for each rule by itself. A verdict needs forty trials of
everything; until then the claim is open, and the interval so far is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import rung_number
from tidepull.paper.verdicts import (
    OPEN,
    Claim,
    Evidence,
    Measurement,
    below,
    concluded,
    difference,
    missing,
    worst,
)
from tidepull.reporting.frames import Group, Study, random_regret
from tidepull.reporting.stats import Difference, mean_interval, paired
from tidepull.types import FloatArray

TRIALS = 40
PAPERS = ("flipping-gaussian", "sinusoidal-bernoulli")
PROBLEMS = (
    *("flipping-gaussian", "flipping-bernoulli", "sinusoidal-bernoulli", "circular-markov-chain"),
    *("rotating-vector-32", "rotating-vector-2048"),
)
SETTINGS = {"default": "", "best": "-best"}
SAMPLING = "rnlps"
RIVALS = ("rnlps-epsilon-greedy", "rnlps-boltzmann")
NAMES = tuple(f"{name}{ending}" for ending in SETTINGS.values() for name in (SAMPLING, *RIVALS))


def exploring(study: Study) -> bool:
    """Whether a study reports kinds of exploration."""
    searched = study.grids or rung_number(study.suite)
    return "exploration" in study.suite and not searched and study.delay == AT_ONCE


def explorations(studies: Sequence[Study]) -> list[Study]:
    """One study for each problem and length, with the policies of all suites."""
    merged: dict[tuple[str, int], Study] = {}
    for study in (one for one in studies if exploring(one)):
        known = merged.setdefault((study.problem, study.horizon), study)
        new = tuple(group for group in study.groups if known.group(group.name) is None)
        merged[study.problem, study.horizon] = replace(known, groups=(*known.groups, *new))
    order = {problem: number for number, problem in enumerate(PROBLEMS)}
    return sorted(merged.values(), key=lambda study: order.get(study.problem, len(order)))


def papers_claim(evidence: Evidence, says: str) -> Claim:
    """The paper's own comparison: its two problems, the best settings of each rule."""
    rule = (
        "on each of the two problems, posterior sampling with its best setting has clearly less "
        f"regret than each rival with its best setting, over {TRIALS} paired trials"
    )
    lines = [
        line
        for problem in PAPERS
        for rival in RIVALS
        for line in _pair(evidence, problem, "-best", rival)
    ]
    return concluded("exploration", says, rule, lines)


def wider_claim(evidence: Evidence, says: str) -> Claim:
    """Six problems, default and best settings; regrets as shares of random's, averaged over the
    problems."""
    rule = (
        "with default and with best settings, the regret of posterior sampling as a share of "
        "random's, averaged over the six problems, is clearly less than that of each rival, over "
        f"{TRIALS} paired trials of each problem"
    )
    pooled = [
        _pooled(evidence, words, ending, rival)
        for words, ending in SETTINGS.items()
        for rival in RIVALS
    ]
    lines = [
        line
        for ending in SETTINGS.values()
        for rival in RIVALS
        for problem in PROBLEMS
        for line in _pair(evidence, problem, ending, rival)
    ]
    outcome = worst(line.outcome for line in pooled)
    return Claim("exploration", says, rule, (*pooled, *lines), outcome)


def _pair(evidence: Evidence, problem: str, ending: str, rival: str) -> list[Measurement]:
    there = replace(evidence, at=evidence.explored)
    pairs, lost = there.pairs(problem, [f"{SAMPLING}{ending}"], [f"{rival}{ending}"])
    return [*(_line(problem, paired(ours.group, theirs.group)) for ours, theirs in pairs), *lost]


def _line(problem: str, d: Difference) -> Measurement:
    if d.pairs >= TRIALS:
        return difference(problem, d, below(d.low, d.high, 0.0), 0)
    line = difference(problem, d, OPEN, 0)
    return replace(line, what=f"{line.what}, so far")


def _pooled(evidence: Evidence, words: str, ending: str, rival: str) -> Measurement:
    """Seed by seed, the difference in shares of random's regret, averaged over the problems that
    have both."""
    by_problem = [_gaps(evidence, problem, ending, rival) for problem in PROBLEMS]
    there = [gaps for gaps in by_problem if gaps]
    seeds = sorted(set.intersection(*(set(gaps) for gaps in there))) if there else []
    what = (
        f"share of random's regret with {words} settings, {SAMPLING}{ending} minus {rival}{ending}"
    )
    if not seeds:
        return missing("six problems", f"{what}: no seed on which both were played")
    gaps: FloatArray = np.array([np.mean([one[seed] for one in there]) for seed in seeds])
    low, high = (float(end) for end in mean_interval(gaps))
    complete = len(there) == len(PROBLEMS) and len(seeds) >= TRIALS
    so_far = "" if complete else f", so far on {len(there)} of {len(PROBLEMS)} problems"
    outcome = below(low, high, 0.0) if complete else OPEN
    return Measurement(
        "six problems", what + so_far, outcome, float(gaps.mean()), low, high, len(seeds), 3
    )


def _gaps(evidence: Evidence, problem: str, ending: str, rival: str) -> dict[int, float]:
    ours, theirs = (_group(evidence, problem, f"{name}{ending}") for name in (SAMPLING, rival))
    where = evidence.explored.get(problem)
    random = random_regret(where.study) if where else None
    if ours is None or theirs is None or not random:
        return {}
    first, second = ({row.seed: row.regret for row in group.rows} for group in (ours, theirs))
    return {seed: (first[seed] - second[seed]) / random for seed in first if seed in second}


def _group(evidence: Evidence, problem: str, name: str) -> Group | None:
    where = evidence.explored.get(problem)
    return where.study.group(name) if where else None
