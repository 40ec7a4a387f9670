"""The paper's Analysis, sentence by sentence: each claim with the rule it is put to.

Sentences that explain, and that these trials cannot measure, have no rule: that slow rotations are
easy for conventional policies because they know the variation budget, that prediction matters more
than reaction, that initialisation should be more careful, and that the flips of Criteo resemble the
faster rotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidepull.paper import exploration, robustness, rules
from tidepull.paper.robustness import MUCH
from tidepull.paper.rules import LARGE, POOR, SLOW, VERY_SLOW, VERY_SMALL
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


def check_claims(
    reports: Sequence[Examined], searches: Sequence[Study], explored: Sequence[Examined]
) -> list[Claim]:
    """All claims, in the order of the paper.

    `reports` are combined studies, `searches` those with grids, `explored` those that compare kinds
    of exploration.
    """
    evidence = gather(reports, searches, explored)
    claims = [
        *_flipping_gaussian(evidence),
        *_flipping_bernoulli(evidence),
        *_sinusoidal(evidence),
        *_chain(evidence),
        *_contextual(evidence),
        *_criteo(evidence),
        *_stationary(evidence),
        *_exploration(evidence),
        *_summary(evidence),
        *_later(evidence),
    ]
    return [_judged(claim) for claim in claims]


def _judged(claim: Claim) -> Claim:
    """The claim, or that fewer or shorter trials than the paper's judge nothing."""
    short = any(line.outcome == NOT_JUDGED for line in claim.lines)
    return replace(claim, outcome=NOT_JUDGED) if short else claim


def _later(e: Evidence) -> Iterator[Claim]:
    """Claims at the end, so that the others keep their numbers."""
    yield rules.much_harder(
        e,
        "Flipping Bernoulli is much more difficult than flipping Gaussian.",
        "flipping-gaussian",
        "flipping-bernoulli",
        RECURRENT,
    )


def _flipping_gaussian(e: Evidence) -> Iterator[Claim]:
    at = "flipping-gaussian"
    yield rules.beats(
        e,
        "The recurrent policies outperform the other policies by a large margin.",
        at,
        RECURRENT,
        RIVALS,
        least=LARGE,
    )
    yield rules.grows(
        e,
        "The regret of the recurrent policies grows very slowly by the end.",
        at,
        RECURRENT,
        VERY_SLOW,
    )
    yield rules.keeps(
        e, "The conventional non-stationary policies perform very poorly.", at, CONVENTIONAL, POOR
    )
    yield robustness.more_robust(
        e, "The recurrent approach is much more robust to hyperparameter choices.", [at], least=MUCH
    )


def _flipping_bernoulli(e: Evidence) -> Iterator[Claim]:
    at = "flipping-bernoulli"
    others = [kind for kind in EVERY if kind != DEFAULT_NN]
    yield rules.leads_insignificantly(
        e,
        "The default NN outperforms the other non-random policies by an insignificant margin.",
        at,
        DEFAULT_NN,
        others,
    )
    yield rules.grows(
        e, "Regret grows quickly for every policy by the end.", at, EVERY, SLOW, quickly=True
    )
    yield robustness.more_robust(
        e,
        "The feedforward approach is arguably more robust to hyperparameter choices.",
        [at],
        feedforward=True,
    )
    yield robustness.search_misleads(
        e,
        "The best RNN is ahead of the best NN in the search, and the definitive trials lead to the "
        "opposite conclusion "
        "(the paper's own table has the best RNN ahead there too, 1,251.9 against 1,267.9).",
        at,
    )


def _sinusoidal(e: Evidence) -> Iterator[Claim]:
    at = "sinusoidal-bernoulli"
    yield rules.beats(
        e,
        "The recurrent policies outperform every other policy by a significant margin.",
        at,
        RECURRENT,
        RIVALS,
    )
    yield rules.grows(
        e, "The regret of the recurrent policies grows slowly by the end.", at, RECURRENT, SLOW
    )
    yield rules.ordered(
        e,
        "D-UCB outperforms the default NN, which in turn outperforms the best NN.",
        at,
        [DISCOUNTED, DEFAULT_NN, BEST_NN],
    )
    yield robustness.more_robust(
        e, "Sensitivity heavily favors the recurrent approach.", [at], least=MUCH
    )


def _chain(e: Evidence) -> Iterator[Claim]:
    at = "circular-markov-chain"
    others = [kind for kind in EVERY if kind != BEST_RNN]
    yield rules.beats(
        e,
        "The best RNN outperforms the remaining policies by a significant margin.",
        at,
        [BEST_RNN],
        [*others, "random"],
    )
    yield rules.grows(
        e, "The regret of the best RNN grows slowly by the end.", at, [BEST_RNN], SLOW
    )
    yield rules.varies_most(
        e,
        "The default RNN exhibits an atypical large variance in regret.",
        at,
        DEFAULT_RNN,
        [kind for kind in EVERY if kind != DEFAULT_RNN],
    )
    yield robustness.mostly_above_random(
        e, "Sensitivity does not suggest a lack of robustness for the recurrent approach.", at
    )
    yield rules.fails_as_often(
        e,
        "The default RNN is worse than random in three of ten trials.",
        at,
        DEFAULT_RNN,
        share=0.3,
    )
    yield rules.keeps(
        e,
        "The conventional policies are not able to exploit the structure of this problem.",
        at,
        CONVENTIONAL,
        POOR,
    )


def _contextual(e: Evidence) -> Iterator[Claim]:
    digits, robot, vector = "flipping-digits", "wall-following", "flipping-vector"
    slow, fast = "rotating-vector-2048", "rotating-vector-32"
    neural = (*RECURRENT, *FEEDFORWARD)
    rest = (DEFAULT_RNN, BEST_NN, DEFAULT_NN)
    yield rules.beats(
        e, "The best RNN outperforms the other non-random policies.", digits, [BEST_RNN], rest
    )
    yield rules.within(
        e,
        "The other non-random policies achieve equivalent performance.",
        digits,
        [(DEFAULT_RNN, BEST_NN), (DEFAULT_RNN, DEFAULT_NN), (BEST_NN, DEFAULT_NN)],
        both_ways=True,
    )
    yield rules.grows(
        e, "Regret grows quickly for every policy by the end.", digits, neural, SLOW, quickly=True
    )
    yield rules.beats(
        e,
        "The recurrent policies outperform the feedforward ones by a very small margin.",
        robot,
        RECURRENT,
        FEEDFORWARD,
        most=VERY_SMALL,
    )
    yield rules.grows(
        e, "The regret of the recurrent policies grows slowly by the end.", robot, RECURRENT, SLOW
    )
    yield rules.keeps(
        e, "The problem proves too challenging for all policies.", vector, EVERY, POOR
    )
    yield _slow_rotation(e, slow, neural)
    yield rules.beats(
        e,
        "On the fast rotation the recurrent policies significantly outperform every other policy.",
        fast,
        RECURRENT,
        RIVALS,
    )
    yield rules.worse_where_faster(
        e,
        "The success of conventional policies depends on the variation budget: they do poorly "
        "where change is quick.",
        slow,
        fast,
        CONVENTIONAL,
    )
    yield robustness.more_robust(
        e,
        "On contextual problems the recurrent approach is consistently more robust to "
        "hyperparameter choices.",
        list(published.CONTEXTUAL),
    )


def _slow_rotation(e: Evidence, slow: str, neural: Sequence[str]) -> Claim:
    """Judged with D-LinUCB as it is, and with the slip of the published code where the paper had
    it."""
    says = "On the slow rotation the conventional policies outperform every other policy."
    claim = rules.beats(e, says, slow, CONVENTIONAL, neural)
    there = e.at.get(f"{slow}{AS_PUBLISHED}")
    if there is None:
        return claim
    played = [kind for kind in neural if there.study.group(kind)]
    slip = rules.beats(e, says, f"{slow}{AS_PUBLISHED}", CONVENTIONAL, played)
    aside = f"{slip.outcome} in the authors' world with the slip of their code"
    return replace(claim, lines=(*claim.lines, *slip.lines), aside=aside)


def _criteo(e: Evidence) -> Iterator[Claim]:
    once, often = "criteo-partial-flip", "criteo-flipping"
    both = (DEFAULT_RNN, DEFAULT_NN)
    yield rules.beats(
        e,
        "After a single partial flip the conventional algorithms perform best.",
        once,
        CONVENTIONAL,
        both,
    )
    yield rules.keeps(
        e,
        "There, the default recurrent policy performs admirably well.",
        once,
        [DEFAULT_RNN],
        POOR,
        more=False,
    )
    yield rules.beats(
        e,
        "With periodic flips the recurrent policy outperforms the other approaches.",
        often,
        [DEFAULT_RNN],
        [DEFAULT_NN, *CONVENTIONAL],
    )


def _stationary(e: Evidence) -> Iterator[Claim]:
    bernoulli, vector = "stationary-bernoulli", "stationary-vector"
    yield rules.within(
        e,
        "The default RNN and NN are comparable to posterior sampling for Bernoulli bandits.",
        bernoulli,
        [(DEFAULT_RNN, "bernoulli-ts"), (DEFAULT_NN, "bernoulli-ts")],
    )
    yield rules.beats(
        e, "The default NN is outperformed by the default RNN.", vector, [DEFAULT_RNN], [DEFAULT_NN]
    )
    yield rules.within(
        e, "The default RNN is comparable to LinUCB.", vector, [(DEFAULT_RNN, "lin-ucb")]
    )
    says = "The recurrent approach is also capable of performing well in stationary problems."
    both = [
        rules.keeps(e, says, at, [DEFAULT_RNN], VERY_SLOW, more=False) for at in (bernoulli, vector)
    ]
    yield concluded(
        "stationary problems", says, both[0].rule, [line for claim in both for line in claim.lines]
    )


def _exploration(e: Evidence) -> Iterator[Claim]:
    says = "Posterior sampling outperforms epsilon-greedy and Boltzmann exploration"
    yield exploration.papers_claim(e, f"{says} on both problems.")
    wider = exploration.wider_claim(e, f"{says}: with default settings too, and on six problems.")
    yield replace(wider, topic="exploration, beyond the paper", beyond_paper=True)


def _summary(e: Evidence) -> Iterator[Claim]:
    yield rules.consistently(
        e,
        "Abstract: the recurrent approach consistently outperforms its feedforward counterpart.",
        [(BEST_RNN, BEST_NN)],
        list(published.REGRET),
    )
    yield rules.consistently(
        e,
        "Conclusion: it does so even when its hyperparameters are fixed across very dissimilar "
        "environments.",
        [(DEFAULT_RNN, DEFAULT_NN)],
        list(published.REGRET),
    )
    linear = [problem for problem, row in published.REGRET.items() if DISCOUNTED in row]
    yield rules.solved(
        e,
        "Conclusion: it performs satisfactorily on problems that conventional algorithms can "
        "solve.",
        linear,
        DEFAULT_RNN,
        CONVENTIONAL,
        by_others=True,
    )
    yield rules.solved(
        e,
        "Conclusion: it is also applicable where such algorithms fail completely.",
        linear,
        DEFAULT_RNN,
        CONVENTIONAL,
        by_others=False,
    )
