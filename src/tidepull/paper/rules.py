"""The rules that claims are put to. Each is one sentence of words and one of arithmetic, and looks
at intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tidepull.paper.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Evidence,
    Measurement,
    PolicyTrials,
    above,
    below,
    concluded,
    difference,
    distinct,
    missing,
    span,
    worst,
)
from tidepull.reporting.stats import (
    Difference,
    compared,
    independent,
    mean_interval,
    summarise,
    wilson,
)
from tidepull.reporting.traces import LATE, late_rounds
from tidepull.types import FloatArray

LARGE, VERY_SMALL = 0.2, 0.1
"""A margin is large from the first share of the rival's regret on, and very small below the
second."""
MUCH_HARDER = 0.2
"""A problem is much harder when policies keep that much more of random's regret on it."""
COMPARABLE = 0.05
"""Policies are comparable when their regrets differ by less than this share of random's."""
SLOW, VERY_SLOW = 0.25, 0.1
"""Regret grows slowly when it grows at less than this share of random's pace."""
POOR = 0.5
"""A policy does poorly when it keeps more than this share of random's regret."""
RESAMPLES = 2000


def beats(
    evidence: Evidence,
    says: str,
    problem: str,
    winners: Sequence[str],
    losers: Sequence[str],
    *,
    least: float = 0.0,
    most: float = float("inf"),
) -> Claim:
    """Every winner has clearly less regret than every loser, by `least` to `most` of the
    loser's."""
    rule = "each has clearly less regret than each of the others (the 95% interval of the difference leaves out zero)"
    rule += f", by at least {least:.0%} of theirs" if least else ""
    rule += f", by less than {most:.0%} of theirs" if np.isfinite(most) else ""
    pairs, lost = evidence.pairs(problem, winners, losers)
    lines = [*(_less(a, b, least, most) for a, b in pairs), *lost]
    margins = [1 - float(a.group.regrets.mean() / b.group.regrets.mean()) for a, b in pairs]
    limited = bool(pairs) and (least > 0 or np.isfinite(most))
    shown = f"by {span(margins, '.0%')} of their regret" if limited else ""
    return concluded(problem, says, rule, lines, shown)


def _less(a: PolicyTrials, b: PolicyTrials, least: float, most: float) -> Measurement:
    if a.group.hashes == b.group.hashes:
        return missing(a.problem, f"{a.name} and {b.name} are one setting")
    d = compared(a.group, b.group)
    outcome = below(d.low, d.high, 0.0)
    scale = float(b.group.regrets.mean())
    line = difference(a.problem, d, outcome, len(a.group.rows))
    if outcome != HOLDS or least * scale <= -d.mean < most * scale:
        return line
    clearly = -d.low < least * scale or -d.high >= most * scale
    share = f"{line.what} ({-d.mean / scale:.0%} of its regret)"
    return replace(line, what=share, outcome=FAILS if clearly else OPEN)


def leads_insignificantly(
    evidence: Evidence, says: str, problem: str, leader: str, others: Sequence[str]
) -> Claim:
    """The leader has the least mean regret, and not clearly less than the next."""
    rule = "it has the least mean regret of all, and the interval of its difference to the next contains zero"
    pairs, lost = evidence.pairs(problem, [leader], others)
    differences = [(compared(one.group, other.group), other) for one, other in pairs]
    lines = []
    for d, other in differences:
        outcome = HOLDS if d.mean < 0 else FAILS if d.low > 0 else OPEN
        lines.append(difference(other.problem, d, outcome, len(other.group.rows)))
    if differences and all(d.mean < 0 for d, _ in differences):
        d, other = max(differences, key=lambda pair: pair[0].mean)
        if d.high < 0:
            lines.append(difference(other.problem, d, FAILS, len(other.group.rows)))
    return concluded(problem, says, rule, [*lines, *lost])


def ordered(evidence: Evidence, says: str, problem: str, kinds: Sequence[str]) -> Claim:
    """Each has clearly less regret than the next."""
    rule = "each has clearly less regret than the next"
    lines: list[Measurement] = []
    for better, worse in pairwise(kinds):
        lines += beats(evidence, says, problem, [better], [worse]).lines
    return concluded(problem, says, rule, distinct(lines))


def within(
    evidence: Evidence,
    says: str,
    problem: str,
    pairs: Sequence[tuple[str, str]],
    *,
    both_ways: bool = False,
) -> Claim:
    """The first of each pair exceeds the second by less than a twentieth of random's regret."""
    rule = f"the interval of the difference lies below {COMPARABLE:.0%} of random's regret"
    rule += " on both sides of zero" if both_ways else ""
    lines: list[Measurement] = []
    ratios: list[float] = []
    for a, b in pairs:
        played, lost = evidence.pairs(problem, [a], [b])
        lines += lost
        for one, other in played:
            limit = COMPARABLE * (one.where.random or float("nan"))
            d = compared(one.group, other.group)
            outcome = below(d.low, d.high, limit)
            if both_ways and outcome != FAILS:
                other_way = above(d.low, d.high, -limit)
                outcome = other_way if other_way != HOLDS else outcome
            line = difference(one.problem, d, outcome, len(one.group.rows))
            ratios.append(float(one.group.regrets.mean() / other.group.regrets.mean()))
            lines.append(replace(line, what=f"{line.what} ({ratios[-1]:.1f} times as much)"))
    far = f"{span(ratios, '.1f')} times its regret; limit {COMPARABLE:.0%} of random's apart"
    shown = far if ratios and not both_ways else ""
    return concluded(problem, says, rule, distinct(lines), shown)


def grows(
    evidence: Evidence,
    says: str,
    problem: str,
    kinds: Sequence[str],
    limit: float,
    *,
    quickly: bool = False,
) -> Claim:
    """How fast regret grows in the last eighth of the rounds, as a share of random's pace."""
    words = "more" if quickly else "less"
    rule = f"over the last 1/{LATE} of the rounds regret grows at {words} than {limit:.0%} of random's pace"
    players, lines = evidence.players(problem, kinds)
    lines += [_share(one, _pace, "growth at the end", limit, quickly) for one in players]
    return concluded(problem, says, rule, lines, shares_shown(lines, "pace", limit))


def keeps(
    evidence: Evidence,
    says: str,
    problem: str,
    kinds: Sequence[str],
    limit: float,
    *,
    more: bool = True,
) -> Claim:
    """How much of random's regret a policy keeps."""
    rule = f"its regret is {'more' if more else 'less'} than {limit:.0%} of random's"
    players, lines = evidence.players(problem, kinds)
    lines += [_share(one, share_of_random, "regret", limit, more) for one in players]
    return concluded(problem, says, rule, lines, shares_shown(lines, "regret", limit))


def shares_shown(lines: Sequence[Measurement], of: str, limit: float) -> str:
    """The shares of random's that policies have, and the limit that they are put to."""
    shares = span([line.value for line in lines if not np.isnan(line.value)], ".0%")
    return f"{shares} of random's {of}; limit {limit:.0%}" if shares else ""


def _share(
    player: PolicyTrials,
    measure: Callable[[PolicyTrials], FloatArray | None],
    what: str,
    limit: float,
    more: bool,
) -> Measurement:
    """A share of random's of one policy, beside a limit."""
    shares = measure(player)
    if shares is None:
        return missing(player.problem, f"the regret of random arms beside {player.name}")
    low, high = (float(end) for end in mean_interval(shares))
    outcome = above(low, high, limit) if more else below(low, high, limit)
    figures = (float(shares.mean()), low, high, len(shares), 2)
    return Measurement(player.problem, f"{what}, of random's, of {player.name}", outcome, *figures)


def _pace(player: PolicyTrials) -> FloatArray | None:
    where = player.where
    trace = where.traces.get(player.name)
    if not where.random or trace is None:
        return None
    horizon = where.study.horizon
    return trace.late / (where.random * late_rounds(horizon) / horizon)


def share_of_random(player: PolicyTrials) -> FloatArray | None:
    """The regret of each trial over that of random arms."""
    return player.group.regrets / player.where.random if player.where.random else None


def varies_most(
    evidence: Evidence, says: str, problem: str, kind: str, others: Sequence[str]
) -> Claim:
    """The standard deviation of regret over trials is clearly the largest."""
    rule = "its standard deviation over that of each other policy is clearly above one (bootstrap over trials)"
    pairs, lost = evidence.pairs(problem, [kind], others)
    lines = []
    for one, other in pairs:
        value, low, high = _ratio_of_spreads(one.group.regrets, other.group.regrets)
        what = f"spread of {one.name} over that of {other.name}"
        figures = (value, low, high, len(other.group.rows), 2)
        lines.append(Measurement(other.problem, what, above(low, high, 1.0), *figures))
    return concluded(problem, says, rule, [*lines, *lost])


def _ratio_of_spreads(a: FloatArray, b: FloatArray) -> tuple[float, float, float]:
    if min(len(a), len(b)) < 2 or b.std() == 0:
        return (float("nan"),) * 3
    rng = np.random.default_rng(0)
    first = a[rng.integers(len(a), size=(RESAMPLES, len(a)))].std(axis=1, ddof=1)
    second = b[rng.integers(len(b), size=(RESAMPLES, len(b)))].std(axis=1, ddof=1)
    ratios = first / np.where(second > 0, second, np.nan)
    low, high = np.nanquantile(ratios, [0.025, 0.975])
    return float(a.std(ddof=1) / b.std(ddof=1)), float(low), float(high)


def fails_as_often(evidence: Evidence, says: str, problem: str, kind: str, share: float) -> Claim:
    """The share of trials worse than random is compatible with the paper's."""
    rule = (
        "Wilson's 95% interval of the share of trials with more regret than random arms have on "
        "average "
        f"contains {share:.0%}"
    )
    players, lines = evidence.players(problem, [kind])
    for player in players:
        shares = share_of_random(player)
        if shares is None:
            lines.append(missing(player.problem, "the regret of random arms"))
            continue
        value = float(np.mean(shares > 1))
        low, high = wilson(value, len(shares))
        outcome = HOLDS if low <= share <= high else FAILS
        what = f"share of trials of {player.name} worse than random"
        lines.append(Measurement(player.problem, what, outcome, value, low, high, len(shares), 2))
    return concluded(problem, says, rule, lines)


def worse_where_faster(
    evidence: Evidence, says: str, slow: str, fast: str, kinds: Sequence[str]
) -> Claim:
    """A policy keeps clearly more of random's regret on the fast problem than on the slow one."""
    rule = "each keeps clearly more of random's regret on the fast rotation than on the slow one"
    return _harder(evidence, says, rule, (slow, fast), ("slow", "fast"), kinds, 0.0)


def much_harder(evidence: Evidence, says: str, easy: str, hard: str, kinds: Sequence[str]) -> Claim:
    """A policy keeps clearly much more of random's regret on one problem than on another."""
    rule = (
        f"each keeps clearly at least {MUCH_HARDER:.0%} of random's regret more on {hard} than on "
        f"{easy}"
    )
    return _harder(evidence, says, rule, (easy, hard), (easy, hard), kinds, MUCH_HARDER)


def _harder(
    evidence: Evidence,
    says: str,
    rule: str,
    problems: tuple[str, str],
    words: tuple[str, str],
    kinds: Sequence[str],
    least: float,
) -> Claim:
    slow, fast = problems
    at_slow, lost = evidence.players(slow, kinds)
    at_fast, also_lost = evidence.players(fast, kinds)
    lines = []
    for player in at_fast:
        other = next((one for one in at_slow if one.name == player.name), None)
        shares = (share_of_random(player), share_of_random(other)) if other else (None, None)
        if shares[0] is None or shares[1] is None:
            continue
        d = _welch(player.name, shares[0], shares[1])
        what = f"share of random's regret of {player.name}, {words[1]} minus {words[0]}"
        figures = (d.mean, d.low, d.high, len(shares[0]), 2)
        outcome = above(d.low, d.high, least)
        lines.append(Measurement(f"{fast}, {slow}", what, outcome, *figures))
    return concluded(fast, says, rule, [*lines, *lost, *also_lost])


def _welch(name: str, first: FloatArray, second: FloatArray) -> Difference:
    a, b = summarise(first), summarise(second)
    return independent(name, name, (a.mean, a.std, a.trials), (b.mean, b.std, b.trials))


def consistently(
    evidence: Evidence, says: str, pairs: Sequence[tuple[str, str]], problems: Sequence[str]
) -> Claim:
    """The first of each pair is clearly worse nowhere and clearly better on most problems."""
    rule = "on no problem has it clearly more regret, and on more than half of the comparisons clearly less"
    lines: list[Measurement] = []
    for problem in problems:
        for a, b in pairs:
            lines += beats(evidence, says, problem, [a], [b]).lines
    lines = distinct(lines)
    outcomes = [line.outcome for line in lines]
    all_there = not any(np.isnan(line.value) for line in lines)
    most = outcomes.count(HOLDS) > len(outcomes) / 2
    outcome = FAILS if FAILS in outcomes else HOLDS if all_there and most else OPEN
    return Claim("all problems", says, rule, tuple(lines), outcome)


def solved(
    evidence: Evidence,
    says: str,
    problems: Sequence[str],
    policy: str,
    others: Sequence[str],
    *,
    by_others: bool,
) -> Claim:
    """Problems that one of the others solves (keeps clearly less than half of random's regret), or
    that none does.

    On the former `policy` must solve every one, on the latter at least one.
    """
    there: list[Measurement] = []
    lines: list[Measurement] = []
    for problem in problems:
        theirs = keeps(evidence, says, problem, others, POOR, more=False)
        if not any(line.trials for line in theirs.lines):
            lines += [line for line in theirs.lines if evidence.at.get(problem) is None]
            continue
        if (HOLDS in [line.outcome for line in theirs.lines]) == by_others:
            there += keeps(evidence, says, problem, [policy], POOR, more=False).lines
    outcomes = [line.outcome for line in there]
    every = worst([*outcomes, *(line.outcome for line in lines)])
    one = HOLDS if HOLDS in outcomes else OPEN if OPEN in outcomes or lines else FAILS
    rule = (
        f"on every problem where a conventional policy keeps less than {POOR:.0%} of random's "
        "regret, it does too"
        if by_others
        else f"it keeps less than {POOR:.0%} of random's regret on some problem where no conventional policy does"
    )
    return Claim("all problems", says, rule, (*there, *lines), every if by_others else one)
