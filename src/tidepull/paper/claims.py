"""The paper's Analysis, sentence by sentence: each claim (`claims.toml`) with the rule it is put to.

Sentences that explain, and that these trials cannot measure, have no rule: that slow rotations are
easy for conventional policies because they know the variation budget, that prediction matters more
than reaction, that initialisation should be more careful, and that the flips of Criteo resemble the
faster rotation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from typing import Final

from tidepull.paper import exploration, rules
from tidepull.paper.robustness import MUCH, more_robust, mostly_above_random, search_misleads
from tidepull.paper.rules import LARGE, POOR, SLOW, VERY_SLOW, VERY_SMALL, beats, grows, keeps
from tidepull.paper.verdicts import (
    AS_PUBLISHED,
    BEST_NN,
    BEST_RNN,
    CONVENTIONAL,
    DEFAULT_NN,
    DEFAULT_RNN,
    DISCOUNTED,
    EVERY,
    FEEDFORWARD,
    NOT_JUDGED,
    RECURRENT,
    Claim,
    Evidence,
    concluded,
    gather,
)
from tidepull.reporting import published
from tidepull.reporting.frames import Study
from tidepull.reporting.traces import Examined

RIVALS = (*FEEDFORWARD, *CONVENTIONAL)
NEURAL = (*RECURRENT, *FEEDFORWARD)
SAYS: Final[dict[int, str]] = {
    int(number): says
    for number, says in tomllib.loads(
        files("tidepull.paper").joinpath("claims.toml").read_text(encoding="utf-8")
    ).items()
}
"""What the paper says, by the number of the claim."""


def check_claims(
    reports: Sequence[Examined],
    searches: Sequence[Study],
    explored: Sequence[Examined],
    finals: Sequence[Study] = (),
) -> list[Claim]:
    """All claims, in the order of the paper.

    `reports` are combined studies, `searches` those with grids, `explored` those that compare kinds
    of exploration, `finals` the trials from which searches chose.
    """
    evidence = gather(reports, searches, explored, finals)
    rows = (_flipping_gaussian, _flipping_bernoulli, _sinusoidal, _chain, _contextual)
    parts = (*rows, _criteo, _stationary, _exploration, _summary)
    return [_judged(claim) for part in parts for claim in part(evidence)]


def _judged(claim: Claim) -> Claim:
    """The claim, or that fewer or shorter trials than the paper's judge nothing."""
    short = any(line.outcome == NOT_JUDGED for line in claim.lines)
    return replace(claim, outcome=NOT_JUDGED) if short else claim


def _without(*kinds: str) -> list[str]:
    return [kind for kind in EVERY if kind not in kinds]


def _flipping_gaussian(e: Evidence) -> Iterator[Claim]:
    at = "flipping-gaussian"
    yield beats(e, SAYS[1], at, RECURRENT, RIVALS, least=LARGE)
    yield grows(e, SAYS[2], at, RECURRENT, VERY_SLOW)
    yield keeps(e, SAYS[3], at, CONVENTIONAL, POOR)
    yield more_robust(e, SAYS[4], [at], least=MUCH)


def _flipping_bernoulli(e: Evidence) -> Iterator[Claim]:
    at = "flipping-bernoulli"
    yield rules.leads_insignificantly(e, SAYS[5], at, DEFAULT_NN, _without(DEFAULT_NN))
    yield grows(e, SAYS[6], at, EVERY, SLOW, quickly=True)
    yield more_robust(e, SAYS[7], [at], feedforward=True)
    yield search_misleads(e, SAYS[8], at)


def _sinusoidal(e: Evidence) -> Iterator[Claim]:
    at = "sinusoidal-bernoulli"
    yield beats(e, SAYS[9], at, RECURRENT, RIVALS)
    yield grows(e, SAYS[10], at, RECURRENT, SLOW)
    yield rules.ordered(e, SAYS[11], at, [DISCOUNTED, DEFAULT_NN, BEST_NN])
    yield more_robust(e, SAYS[12], [at], least=MUCH)


def _chain(e: Evidence) -> Iterator[Claim]:
    at = "circular-markov-chain"
    yield beats(e, SAYS[13], at, [BEST_RNN], [*_without(BEST_RNN), "random"])
    yield grows(e, SAYS[14], at, [BEST_RNN], SLOW)
    yield rules.varies_most(e, SAYS[15], at, DEFAULT_RNN, _without(DEFAULT_RNN))
    yield mostly_above_random(e, SAYS[16], at)
    yield rules.fails_as_often(e, SAYS[17], at, DEFAULT_RNN, share=0.3)
    yield keeps(e, SAYS[18], at, CONVENTIONAL, POOR)


def _contextual(e: Evidence) -> Iterator[Claim]:
    digits, robot, vector = "flipping-digits", "wall-following", "flipping-vector"
    slow, fast = "rotating-vector-2048", "rotating-vector-32"
    rest = (DEFAULT_RNN, BEST_NN, DEFAULT_NN)
    yield beats(e, SAYS[19], digits, [BEST_RNN], rest)
    yield rules.within(e, SAYS[20], digits, list(combinations(rest, 2)), both_ways=True)
    yield grows(e, SAYS[21], digits, NEURAL, SLOW, quickly=True)
    yield beats(e, SAYS[22], robot, RECURRENT, FEEDFORWARD, most=VERY_SMALL)
    yield grows(e, SAYS[23], robot, RECURRENT, SLOW)
    yield keeps(e, SAYS[24], vector, EVERY, POOR)
    yield _slow_rotation(e, slow)
    yield beats(e, SAYS[26], fast, RECURRENT, RIVALS)
    yield rules.worse_where_faster(e, SAYS[27], slow, fast, CONVENTIONAL)
    yield more_robust(e, SAYS[28], list(published.CONTEXTUAL))


def _slow_rotation(e: Evidence, slow: str) -> Claim:
    """Judged with D-LinUCB as it is, and with the slip of the published code where the paper had
    it."""
    claim = beats(e, SAYS[25], slow, CONVENTIONAL, NEURAL)
    there = e.at.get(f"{slow}{AS_PUBLISHED}")
    if there is None:
        return claim
    played = [kind for kind in NEURAL if there.study.group(kind)]
    slip = beats(e, SAYS[25], f"{slow}{AS_PUBLISHED}", CONVENTIONAL, played)
    aside = f"{slip.outcome} in the authors' world with the slip of their code"
    return replace(claim, lines=(*claim.lines, *slip.lines), aside=aside)


def _criteo(e: Evidence) -> Iterator[Claim]:
    once, often = "criteo-partial-flip", "criteo-flipping"
    yield beats(e, SAYS[29], once, CONVENTIONAL, (DEFAULT_RNN, DEFAULT_NN))
    yield keeps(e, SAYS[30], once, [DEFAULT_RNN], POOR, more=False)
    yield beats(e, SAYS[31], often, [DEFAULT_RNN], [DEFAULT_NN, *CONVENTIONAL])


def _stationary(e: Evidence) -> Iterator[Claim]:
    at, vector = "stationary-bernoulli", "stationary-vector"
    pairs = [(kind, "bernoulli-ts") for kind in (DEFAULT_RNN, DEFAULT_NN)]
    yield rules.within(e, SAYS[32], at, pairs)
    yield beats(e, SAYS[33], vector, [DEFAULT_RNN], [DEFAULT_NN])
    yield rules.within(e, SAYS[34], vector, [(DEFAULT_RNN, "lin-ucb")])
    both = [keeps(e, SAYS[35], p, [DEFAULT_RNN], VERY_SLOW, more=False) for p in (at, vector)]
    lines = [line for claim in both for line in claim.lines]
    shown = rules.shares_shown(lines, "regret", VERY_SLOW)
    yield concluded("stationary problems", SAYS[35], both[0].rule, lines, shown)


def _exploration(e: Evidence) -> Iterator[Claim]:
    yield exploration.papers_claim(e, SAYS[36])
    wider = exploration.wider_claim(e, SAYS[37])
    yield replace(wider, topic="exploration, beyond the paper", beyond_paper=True)


def _summary(e: Evidence) -> Iterator[Claim]:
    """Of the abstract and the conclusion; the last is at the end so that others keep their
    numbers."""
    rows = published.REGRET
    yield rules.consistently(e, SAYS[38], [(BEST_RNN, BEST_NN)], list(rows))
    yield rules.consistently(e, SAYS[39], [(DEFAULT_RNN, DEFAULT_NN)], list(rows))
    played = [problem for problem, row in rows.items() if DISCOUNTED in row]
    for number, by_others in ((40, True), (41, False)):
        says = SAYS[number]
        yield rules.solved(e, says, played, DEFAULT_RNN, CONVENTIONAL, by_others=by_others)
    yield rules.much_harder(e, SAYS[42], "flipping-gaussian", "flipping-bernoulli", RECURRENT)
