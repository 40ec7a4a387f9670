"""The paper's claims, each put to the test on the stored trials by a rule that is said beside its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidepull.analysis.compare import Difference, compared
from tidepull.analysis.frame import Group, Study
from tidepull.analysis.normalise import random_regret
from tidepull.analysis.sensitivity import sensitivities

HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "not decided", "not run"
RECURRENT = ("rnlps-best", "rnlps-default", "rnlps")
FEEDFORWARD = ("nlps-best", "nlps-default", "nlps")
CONVENTIONAL = ("d-ucb", "sw-ucb", "d-lin-ucb", "sw-lin-ucb")
ALTERNATIVES = (
    "rnlps-epsilon-greedy-best",
    "rnlps-boltzmann-best",
    "rnlps-epsilon-greedy",
    "rnlps-boltzmann",
)
"""Recurrent policies that do not sample from the posterior."""
COMPARABLE = 0.05
"""Policies are comparable when their regrets differ by less than this share of random's."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, whether it holds here, by which rule, and the figures; `studies` have pictures
    of that kind."""

    says: str
    rule: str
    outcome: str
    evidence: str
    studies: tuple[Study, ...]
    picture: str = "regret"


def check_claims(reports: Sequence[Study], searches: Sequence[Study]) -> list[Claim]:
    """All claims, in the order of the paper; `reports` are combined studies, `searches` those with grids."""
    at = {study.problem: study for study in sorted(reports, key=lambda study: study.horizon)}
    explored = {
        s.problem: s for s in (*searches, *reports) if _first(s, ("rnlps-boltzmann", "rnlps-boltzmann-best"))
    }
    rivals = (*FEEDFORWARD, *CONVENTIONAL)
    return [
        _beats(
            "Recurrent policies beat the feedforward and the conventional ones by a large margin on flipping-gaussian.",
            [(at.get("flipping-gaussian"), rivals)],
            least=0.2,
        ),
        _beats(
            "Recurrent policies are the best on sinusoidal-bernoulli.",
            [(at.get("sinusoidal-bernoulli"), rivals)],
        ),
        _beats(
            "The recurrent policy exploits the structure of circular-markov-chain; conventional ones cannot.",
            [(at.get("circular-markov-chain"), (*CONVENTIONAL, "random"))],
        ),
        _rotation(at.get("rotating-vector-2048"), at.get("rotating-vector-32")),
        replace(
            _beats(
                "Posterior sampling beats epsilon-greedy and Boltzmann exploration.",
                [(explored.get(p), ALTERNATIVES) for p in ("flipping-gaussian", "sinusoidal-bernoulli")],
                who="posterior sampling",
            ),
            picture="exploration",
        ),
        _comparable(at.get("stationary-bernoulli"), at.get("stationary-vector")),
        _sensitivity(searches),
    ]


def _beats(
    says: str,
    where: Sequence[tuple[Study | None, Sequence[str]]],
    who: str = "the better of the recurrent policies",
    least: float = 0.0,
) -> Claim:
    """Clearly less: the 95% interval of the difference leaves out zero."""
    margin = f", and at least {least:.0%} less than theirs" if least else ""
    rule = f"{who} has clearly less regret than every rival (the 95% interval leaves out zero){margin}"
    compare = [_against(study, rivals) for study, rivals in where]
    return _claim(says, rule, compare, lambda d, rival: d.high < 0 and -d.mean >= least * rival)


def _rotation(slow: Study | None, fast: Study | None) -> Claim:
    says = "Conventional policies win on the slow rotation and lose to the recurrent ones on the fast one."
    rule = (
        "the better of each kind has clearly less regret, on the slow and on the fast rotation respectively"
    )
    pairs = []
    for study, winners, losers in ((slow, CONVENTIONAL, RECURRENT), (fast, RECURRENT, CONVENTIONAL)):
        first, second = (_lowest(study, winners), _lowest(study, losers)) if study else (None, None)
        pairs.append([(study, first, second)] if study and first and second else [])
    return _claim(says, rule, pairs, lambda d, _rival: d.high < 0)


def _comparable(bernoulli: Study | None, vector: Study | None) -> Claim:
    says = "On stationary problems the recurrent policy is comparable to Thompson sampling and LinUCB."
    rule = f"its regret exceeds theirs by less than {COMPARABLE:.0%} of random's"
    pairs, limits = [], {}
    for study, reference in ((bernoulli, "bernoulli-ts"), (vector, "lin-ucb")):
        ours, theirs = (_lowest(study, RECURRENT), study.group(reference)) if study else (None, None)
        pairs.append([(study, ours, theirs)] if study and ours and theirs else [])
        random = random_regret(study) if study else None
        limits[reference] = COMPARABLE * random if random else float("nan")
    return _claim(says, rule, pairs, lambda d, _rival: d.mean < limits[d.b])


_Pairs = list[tuple[Study, Group, Group]]


def _against(study: Study | None, rivals: Sequence[str]) -> _Pairs:
    ours = _lowest(study, RECURRENT) if study else None
    if study is None or ours is None:
        return []
    return [(study, ours, group) for name in rivals if (group := study.group(name))]


def _claim(
    says: str, rule: str, where: Sequence[_Pairs], holds: Callable[[Difference, float], bool]
) -> Claim:
    if not all(where):
        return Claim(says, rule, NOT_RUN, "The trials that it needs are not all there.", ())
    outcomes, sentences = [], []
    for pairs in where:
        study, ours, _ = pairs[0]
        parts = []
        for _, _, theirs in pairs:
            d = compared(ours, theirs)
            outcomes.append(HOLDS if holds(d, float(theirs.regrets.mean())) else FAILS if d.low > 0 else OPEN)
            parts.append(_part(theirs, d))
        sentences.append(f"{study.title}: {ours.name} {ours.regrets.mean():,.1f}; {', '.join(parts)}.")
    worst = next((outcome for outcome in (FAILS, OPEN) if outcome in outcomes), HOLDS)
    return Claim(says, rule, worst, " ".join(sentences), tuple(pairs[0][0] for pairs in where))


def _part(theirs: Group, d: Difference) -> str:
    text = f"{theirs.name} {theirs.regrets.mean():,.1f}, that is {abs(d.mean):,.1f} {'less' if d.mean > 0 else 'more'}"
    if not math.isfinite(d.low):
        return text
    low, high = (-d.high, -d.low) if d.mean < 0 else (d.low, d.high)
    return f"{text} ({low:,.1f} to {high:,.1f})"


def _sensitivity(searches: Sequence[Study]) -> Claim:
    says = "The recurrent policy is less sensitive to hyperparameters than the feedforward one."
    rule = (
        "on most problems its median setting keeps more of its best setting's gain over random "
        "than the feedforward median setting does"
    )
    sentences, better = [], []
    for study in searches:
        found = {s.name: s.median_score for s in sensitivities(study)}
        if "rnlps" in found and "nlps" in found:
            better.append(found["rnlps"] > found["nlps"])
            sentences.append(
                f"{study.title}: median score {found['rnlps']:.2f} of rnlps, {found['nlps']:.2f} of nlps."
            )
    if not better:
        return Claim(says, rule, NOT_RUN, "No search over both networks is there.", ())
    share = float(np.mean(better))
    outcome = HOLDS if share > 0.5 else FAILS if share < 0.5 else OPEN
    return Claim(says, rule, outcome, " ".join(sentences), ())


def _first(study: Study, names: Sequence[str]) -> Group | None:
    return next((group for name in names if (group := study.group(name))), None)


def _lowest(study: Study, names: Sequence[str]) -> Group | None:
    """Of the named groups the one with the least regret; both variants were run, the better one speaks."""
    able = [group for name in names if (group := study.group(name))]
    return min(able, key=lambda group: float(group.regrets.mean()), default=None)
