"""Rules about several problems at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidepull.paper.evidence import Evidence
from tidepull.paper.rules import POOR, beats, keeps, share_of_random
from tidepull.paper.verdicts import FAILS, HOLDS, OPEN, Claim, Line, above, concluded, distinct, worst
from tidepull.reporting.stats import Difference, independent, summarise
from tidepull.types import FloatArray


def worse_where_faster(evidence: Evidence, says: str, slow: str, fast: str, kinds: Sequence[str]) -> Claim:
    """A policy keeps clearly more of random's regret on the fast problem than on the slow one."""
    rule = "each keeps clearly more of random's regret on the fast rotation than on the slow one"
    at_slow, lost = evidence.players(slow, kinds)
    at_fast, also_lost = evidence.players(fast, kinds)
    lines = []
    for player in at_fast:
        other = next((one for one in at_slow if one.name == player.name), None)
        shares = (share_of_random(player), share_of_random(other)) if other else (None, None)
        if shares[0] is None or shares[1] is None:
            continue
        d = _welch(player.name, shares[0], shares[1])
        what = f"share of random's regret of {player.name}, fast minus slow"
        lines.append(
            Line(f"{fast}, {slow}", what, above(d.low, d.high, 0.0), d.mean, d.low, d.high, len(shares[0]), 2)
        )
    return concluded(fast, says, rule, [*lines, *lost, *also_lost])


def _welch(name: str, first: FloatArray, second: FloatArray) -> Difference:
    a, b = summarise(first), summarise(second)
    return independent(name, name, (a.mean, a.std, a.trials), (b.mean, b.std, b.trials))


def consistently(
    evidence: Evidence, says: str, pairs: Sequence[tuple[str, str]], problems: Sequence[str]
) -> Claim:
    """The first of each pair is clearly worse nowhere and clearly better on most problems."""
    rule = "on no problem has it clearly more regret, and on more than half of the comparisons clearly less"
    lines: list[Line] = []
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
    who: str,
    others: Sequence[str],
    *,
    by_others: bool,
) -> Claim:
    """Problems that one of the others solves (keeps clearly less than half of random's regret), or that none does.

    On the former `who` must solve every one, on the latter at least one.
    """
    there: list[Line] = []
    lines: list[Line] = []
    for problem in problems:
        theirs = keeps(evidence, says, problem, others, POOR, more=False)
        if not any(line.trials for line in theirs.lines):
            lines += [line for line in theirs.lines if evidence.at.get(problem) is None]
            continue
        if (HOLDS in [line.outcome for line in theirs.lines]) == by_others:
            there += keeps(evidence, says, problem, [who], POOR, more=False).lines
    outcomes = [line.outcome for line in there]
    every = worst([*outcomes, *(line.outcome for line in lines)])
    one = HOLDS if HOLDS in outcomes else OPEN if OPEN in outcomes or lines else FAILS
    rule = (
        f"on every problem where a conventional policy keeps less than {POOR:.0%} of random's regret, it does too"
        if by_others
        else f"it keeps less than {POOR:.0%} of random's regret on some problem where no conventional policy does"
    )
    return Claim("all problems", says, rule, (*there, *lines), every if by_others else one)
