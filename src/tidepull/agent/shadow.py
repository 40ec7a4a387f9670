"""Candidates beside a living agent: what another policy would have chosen in each of its decisions,
and what that is worth.

A candidate lives through the ledger as an upgrade does: it sees every decision before its reward, and
learns from every reward in the order in which it came. The agent's own policy is a candidate too, in
the shadow of the control group. A value is estimated doubly robustly (Dudik, Langford and Li, Doubly
Robust Policy Evaluation and Learning, ICML 2011): by each arm's mean reward in earlier decisions, put
right by the rewards that came where the arm that was played could also have been the candidate's
choice.

While a candidate has a share s of the decisions, only these count. Each has the weight s (1 - s),
about the inverse of the variance of what it tells of the difference, times the decisions that the
candidate has had before it: a policy that learns is judged by what it does late more than by what it
did at first. Weights are known before the decision, so that the confidence sequence holds for the
weighted mean of the gains.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tidepull.agent.control import LEAST_CHANCE, MOST_SPREAD
from tidepull.agent.insight import Insight
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.lift import HasSequence, sequence_width
from tidepull.agent.log import DecisionLog
from tidepull.agent.rebuild import Rebuild
from tidepull.agent.records import Choice, DecisionGroup, Kind, Record, unpack_json
from tidepull.agent.state import AgentState
from tidepull.registry import Named
from tidepull.types import FloatArray, IntArray

UNSUPPORTED = 0.05
"""Part of a candidate's choices that may have had no chance in the log."""

EFFECTIVE = 100
"""Decisions that the weighted ones must be worth."""

PRECISION, RANDOM = 0.1, 0.1
"""The relative precision, and the share of random traffic, for which the traffic that is needed is
said."""

OWN = "the agent's own choices"

_BLOCK = 100


@dataclass(frozen=True, slots=True)
class ShadowReport(HasSequence):
    """What a candidate would do and earn. `shares` has each arm's share of the agent's decisions and
    of the candidate's, `disagreement` how often the candidate would choose another arm. `share` is
    the candidate's present share of the decisions.

    `value` and `own` are rewards a decision of the candidate and of what it is compared with
    (`against`), `gain` their difference, with a confidence sequence (`low` to `high`). They are NaN
    where the choices in the log were not random enough; `needed` is then the number of further
    decisions with a tenth of random arms that would do.
    """

    policy: str
    decisions: int
    disagreement: float
    shares: dict[str, tuple[float, float]]
    value: float
    own: float
    gain: float
    low: float
    high: float
    unsupported: float
    effective: float
    needed: int | None
    level: float = 0.95
    share: float = 0.0
    against: str = OWN

    def __str__(self) -> str:
        if not self.decisions:
            return f"{self.policy}: no decisions with a reward yet."
        ranked = sorted(self.shares.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
        shares = ", ".join(
            f"{arm} {after:.0%} instead of {now:.0%}" for arm, (now, after) in ranked[:3]
        )
        lines = [
            f"{self.policy} would choose another arm in {self.disagreement:.0%} of {self.decisions:,} "
            f"decisions ({shares})."
        ]
        lines += [f"It has {self.share:.0%} of decisions."] if self.share else []
        if self.known:
            more = "more" if self.gain >= 0 else "less"
            lines.append(
                ("" if self.significant else "Not significant: ")
                + f"{self.value:.3g} reward a decision, {abs(self.gain):.3g} {more} than "
                f"{self.against} ({self.level:.0%} sure at every look: {self.low:.3g} to "
                f"{self.high:.3g})."
            )
        else:
            lines.append(
                f"Its value cannot be estimated: {self.unsupported:.0%} of its choices had no chance in "
                f"these decisions, and the others are worth {self.effective:,.0f} decisions. Give it a "
                f"tenth of the decisions (promote, share={RANDOM:g}), or as many to random arms "
                f"(min_share={RANDOM:g}), for about {self.needed:,} decisions."
            )
        return " ".join(lines)


@dataclass
class ChancesSeen:
    """What policies found in decisions: the candidate's shares, those of the agent's own policy, and
    of both together, which arms could be chosen, and the candidate's share of the decision."""

    room: int
    seqs: list[int] = field(default_factory=list)
    theirs: list[FloatArray] = field(default_factory=list)
    own: list[FloatArray] = field(default_factory=list)
    both: list[FloatArray] = field(default_factory=list)
    open: list[FloatArray] = field(default_factory=list)
    share: list[float] = field(default_factory=list)

    def add(self, seq: int, choice: Choice, theirs: FloatArray | None) -> None:
        """A decision; `theirs` None: the candidate's shares are in its record."""
        both, share = choice.counts / 65535, 0.0
        own = both
        if choice.candidate is not None:
            of_candidate = choice.candidate / 65535
            own = np.maximum(both - choice.share * of_candidate, 0.0) / (1 - choice.share)
            if theirs is None:
                theirs, share = of_candidate, choice.share
        self.seqs.append(seq)
        self.share.append(share)
        columns = {"theirs": both if theirs is None else theirs, "own": own, "both": both}
        for name, values in {**columns, "open": choice.available}.items():
            padded = np.pad(values, (0, self.room - len(values))).astype(np.float32)
            getattr(self, name).append(padded)


class Shadow(Rebuild):
    """A candidate that lives through the ledger, and what it would choose in every decision."""

    def __init__(self, state: AgentState, policy: Named) -> None:
        settings = replace(state.settings.upgraded(policy), promotion=None)
        super().__init__(state.learning, settings, state.arms, state.erased)
        self.basis = basis_of(state, own=False)
        self.seen = ChancesSeen(state.arms.room)
        self._promoted = False

    def share_of(self, state: AgentState) -> float:
        """The candidate's present share of the decisions."""
        return state.learning.share if self._is_promoted(state.settings.promotion) else 0.0

    def compared(self, insight: Insight) -> tuple[DecisionLog, str]:
        """The decisions to compare in, and with what."""
        return insight.log(), OWN

    def _is_promoted(self, promotion: list[object] | None) -> bool:
        wanted = [self.settings.policy, dict(self.settings.parameters)]
        return promotion is not None and json.dumps(promotion[:2]) == json.dumps(wanted)

    def _apply(self, record: Record, ledger: Ledger) -> None:
        super()._apply(record, ledger)
        if record.kind is Kind.SETTINGS and "promotion" in (change := unpack_json(record.body)):
            self._promoted = self._is_promoted(change["promotion"][1])

    def _repeat(self, record: Record) -> None:
        super()._repeat(record)
        choice = Choice.unpack(record.body)
        if choice.group is DecisionGroup.WARMUP or self._learning.shares is None:
            return
        logged = self._promoted and choice.candidate is not None
        self.seen.add(record.seq, choice, None if logged else self._learning.shares)


class OwnPolicy:
    """The agent's own policy in the shadow of the control group: its shares are in the ledger."""

    def __init__(self, state: AgentState) -> None:
        self.settings, self.basis = state.settings, basis_of(state, own=True)
        self.seen = ChancesSeen(state.arms.room)
        self._position = state.rebuild_at  # before it another policy decided

    def share_of(self, state: AgentState) -> float:
        """Its present share of the decisions."""
        return round(1 - state.settings.control, 9)

    def compared(self, insight: Insight) -> tuple[DecisionLog, str]:
        """The decisions to compare in, and with what."""
        log, against = insight.compared()
        return log.where(log.group <= DecisionGroup.CONTROL), against or OWN

    def advance(self, ledger: Ledger, upto: int) -> None:
        """Read decisions up to a number."""
        for record in ledger.tail(self._position, upto):
            if record.kind is Kind.DECISION:
                choice = Choice.unpack(record.body)
                if choice.group is not DecisionGroup.WARMUP:
                    self.seen.add(record.seq, choice, choice.counts / 65535)
        self._position = max(self._position, upto)


def basis_of(state: AgentState, *, own: bool) -> tuple[object, ...]:
    """What a candidate is built on: when it is another, the candidate begins anew; `own`: it is the
    agent's own policy."""
    learning: Learning = state.learning
    replaced = tuple(state.arms.since(place) for place in range(len(state.arms)))
    same = (own, state.rebuild_at if own else 0)
    return (
        *same,
        replaced,
        state.arms.room,
        tuple(state.erased),
        len(learning.schemas),
        learning.schema,
    )


def evaluate(candidate: Shadow | OwnPolicy, insight: Insight, level: float = 0.95) -> ShadowReport:
    """What a candidate would do and earn, by all decisions with a reward."""
    log, against = candidate.compared(insight)
    seen, name, state = candidate.seen, candidate.settings.policy, insight.state
    log = log.where(np.isin(log.seq, seen.seqs) & ~np.isnan(log.reward))
    end: dict[str, Any] = {"level": level, "share": candidate.share_of(state), "against": against}
    if not len(log):
        return ShadowReport(name, 0, math.nan, {}, *(math.nan,) * 6, 0.0, None, **end)
    place = np.searchsorted(seen.seqs, log.seq)
    chances = _Chances(*(np.asarray(getattr(seen, part), float)[place] for part in _Chances.parts))
    chances.complete(log, state, of_rule=isinstance(candidate, OwnPolicy))
    rows = np.arange(len(log))
    shares = {
        label: (float((log.arm == n).mean()), float(chances.theirs[:, n].mean()))
        for n, label in insight.labels.items()
    }
    common = (name, len(log), float(1 - chances.theirs[rows, log.arm].mean()), shares)
    shared = (chances.share > 0) & (chances.share < 1)
    if shared.any():  # other decisions tell less of the difference
        log, chances = log.where(shared), chances.where(shared)
    elif isinstance(candidate, OwnPolicy):  # the control decided alone
        nothing = (math.nan,) * 5
        needed = _needed(log.reward, chances)
        return ShadowReport(*common, *nothing, common[2], 0.0, needed, **end)
    return ShadowReport(*common, *_estimates(log, chances, level), **end)


def _estimates(log: DecisionLog, chances: _Chances, level: float) -> tuple[Any, ...]:
    """Values, gain, its sequence, and the rest that a report says of how well they are known."""
    rows, nan = np.arange(len(log)), math.nan
    shared = bool(((chances.share > 0) & (chances.share < 1)).all())
    weight = np.ones(len(log))
    if shared:
        weight = chances.share * (1 - chances.share) * chances.share.cumsum()
        weight /= weight.max()
    ratio = weight * chances.theirs[rows, log.arm] / chances.logged[rows, log.arm]
    none = np.where(chances.logged <= 0, chances.theirs, 0.0).sum(axis=1)
    unsupported = float(weight @ none / weight.sum())
    effective = float(ratio.sum() ** 2 / max((ratio**2).sum(), 1e-12))
    if unsupported > UNSUPPORTED or effective < EFFECTIVE:
        return *(nan,) * 5, unsupported, effective, _needed(log.reward, chances)
    expected = _means_before(log, chances.open.shape[1])
    pairs = [
        _doubly_robust(log, pi, chances.logged, expected) for pi in (chances.theirs, chances.own)
    ]
    gains = pairs[0] - pairs[1]
    units = _progress(weight * gains, ratio) if shared else effective
    half = _half_width(gains, weight, log.subject, units, level)
    value, mine = (float(weight @ part / weight.sum()) for part in pairs)
    gain = value - mine
    return value, mine, gain, gain - half, gain + half, unsupported, effective, None


@dataclass
class _Chances:
    """Rows of `ChancesSeen`; `logged` has the chance of each arm in each decision, whichever group
    it fell into."""

    theirs: FloatArray
    own: FloatArray
    both: FloatArray
    open: FloatArray
    share: FloatArray
    logged: FloatArray = field(init=False)
    parts = ("theirs", "own", "both", "open", "share")

    def where(self, rows: Any) -> _Chances:
        some = _Chances(*(getattr(self, part)[rows] for part in self.parts))
        some.logged = self.logged[rows]
        return some

    def complete(self, log: DecisionLog, state: AgentState, *, of_rule: bool) -> None:
        """Fill in what the log and the settings say; `of_rule`: the comparison is with the control."""
        count = self.open.sum(axis=1, keepdims=True)
        even = self.open / count
        least = state.settings.min_share
        spread = np.minimum(LEAST_CHANCE, MOST_SPREAD / count) * count if least is None else least
        rule = np.where(
            log.baseline >= 0,
            log.baseline,
            -1 if state.control_place is None else state.control_place,
        )
        control = np.where((rule >= 0)[:, None], np.eye(self.open.shape[1])[rule], even)
        chances = (1 - spread) * self.both + spread * even
        imported = log.group == DecisionGroup.IMPORTED
        rows, policy = np.arange(len(log)), log.group == DecisionGroup.POLICY
        chances[rows[policy], log.arm[policy]] = log.propensity[policy]
        share = log.control_share[:, None]
        self.logged = (1 - share) * chances + share * control
        if of_rule:
            self.theirs, self.own, self.share = chances, control, 1 - log.control_share
        others = np.maximum(count[imported] - 1, 1)
        self.logged[imported] = self.open[imported] * (1 - log.propensity[imported, None]) / others
        self.logged[rows[imported], log.arm[imported]] = log.propensity[imported]
        self.own[imported] = self.logged[imported]


def _means_before(log: DecisionLog, room: int) -> FloatArray:
    """Each arm's mean reward in earlier blocks of decisions, with ten decisions of the mean of all."""
    block = np.arange(len(log)) // _BLOCK
    sums, counts = np.zeros((int(block[-1]) + 2, room)), np.zeros((int(block[-1]) + 2, room))
    np.add.at(sums, (block + 1, log.arm), log.reward)
    np.add.at(counts, (block + 1, log.arm), 1.0)
    sums, counts = sums.cumsum(axis=0), counts.cumsum(axis=0)
    overall = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
    return np.asarray(((sums + 10 * overall[:, None]) / (counts + 10))[block])


def _doubly_robust(
    log: DecisionLog, choices: FloatArray, logged: FloatArray, expected: FloatArray
) -> FloatArray:
    rows, arm = np.arange(len(log)), log.arm
    weight = choices[rows, arm] / logged[rows, arm]
    return np.asarray(
        (choices * expected).sum(axis=1) + weight * (log.reward - expected[rows, arm])
    )


def _progress(parts: FloatArray, ratio: FloatArray) -> float:
    """How far the variance of a weighted sum has come, in units of what it was when the decisions
    were worth `EFFECTIVE`, times that: the clock of its confidence sequence."""
    worth = ratio.cumsum() ** 2 / np.maximum((ratio**2).cumsum(), 1e-12)
    squares = (parts**2).cumsum()
    return float(EFFECTIVE * squares[-1] / max(squares[np.argmax(worth >= EFFECTIVE)], 1e-12))


def _half_width(
    gains: FloatArray, weight: FloatArray, subject: IntArray, units: float, level: float
) -> float:
    """Half the width of the confidence sequence of a weighted mean; decisions of one subject are one
    draw."""
    _, which = np.unique(subject, return_inverse=True)
    mean = weight @ gains / weight.sum()
    sums = np.bincount(which, weights=weight * (gains - mean))
    error = math.sqrt(float((sums**2).sum())) / weight.sum()
    wide = sequence_width(round(min(units, 1e12)), max(1, len(sums) - 1), level)
    return float(wide * error)


def _needed(reward: FloatArray, chances: _Chances) -> int:
    """Decisions with a tenth of random arms after which a value is known to a tenth, about."""
    n_arms = int(chances.open.sum(axis=1).max())
    mean = max(abs(float(reward.mean())), 1e-9)
    square = float((reward**2).mean())
    return math.ceil(4 * (n_arms / RANDOM) * square / mean**2 / PRECISION**2 / 100) * 100
