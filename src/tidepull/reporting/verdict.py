"""A sentence for each problem: who won, and by how much."""

from __future__ import annotations

import math

from tidepull.reporting.compare import Difference, compared
from tidepull.reporting.frame import Group, Study


def verdict(study: Study) -> str:
    """`rnlps won: regret 254.6, 388.7 less than nlps (95% interval 300.1 to 470.2; better on 10 of 10 seeds).`"""
    order = study.contenders
    if not order:
        return "No policy that could win was run."
    first = order[0]
    # One setting may stand under two names, such as the best and the default of a search.
    rivals = [group for group in order[1:] if group.hashes != first.hashes]
    regret = f"regret {first.regrets.mean():,.1f} over {_trials(first)}"
    star = ", its setting chosen on these very trials" if first.chosen_from > 1 else ""
    if not rivals:
        return f"{first.name} was the only contender: {regret}{star}."
    second = rivals[0]
    difference = compared(first, second)
    word = "more" if difference.mean > 0 else "less"  # on common seeds the order may be another
    less = f"{abs(difference.mean):,.1f} {word} than {second.name}"
    if not math.isfinite(difference.low):
        return f"{first.name} had the least regret: {regret}{star}, {less}; more trials would tell how sure that is."
    detail = _detail(difference)
    if difference.high < 0:
        return f"{first.name} won: {regret}{star}, {less} {detail}."
    return f"No clear winner: {first.name} had the least regret ({regret}{star}), {less} {detail}."


def _detail(d: Difference) -> str:
    won = d.wins * d.pairs  # a tie counts half
    share = f"{won:.0f}" if won == round(won) else f"{d.wins:.0%}"
    seeds = f"; better on {share} of {d.pairs} seeds" if d.pairs else ""
    low, high = (d.low, d.high) if d.mean > 0 else (-d.high, -d.low)
    return f"(95% interval {low:,.1f} to {high:,.1f}{seeds})"


def _trials(group: Group) -> str:
    return f"{len(group.rows)} trials" if len(group.rows) > 1 else "one trial"
