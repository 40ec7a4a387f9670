"""Candidates beside a living agent: what another policy would have chosen in each of its decisions,
and what that is worth.

A candidate lives through the ledger as an upgrade does: it sees every decision before its reward, and
learns from every reward in the order in which it came. Its value is estimated doubly robustly (Dudik,
Langford and Li, Doubly Robust Policy Evaluation and Learning, ICML 2011): by each arm's mean reward in
earlier decisions, put right by the rewards that came where the arm that was played could also have
been the candidate's choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.agent.insight import Insight
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.log import DecisionLog
from tidepull.agent.rebuild import Rebuild
from tidepull.agent.records import Choice, DecisionGroup, Record
from tidepull.agent.sequences import sequence_width
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

_BLOCK = 100


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What a candidate would do and earn. `shares` has each arm's share of the agent's decisions and
    of the candidate's, `disagreement` how often the candidate would choose another arm.

    `value` and `own` are rewards a decision of the candidate and of the agent's policy, `gain` their
    difference, with a confidence sequence (`low` to `high`). They are NaN where the choices in the
    log were not random enough; `needed` is then the number of further decisions with a tenth of
    random arms that would do.
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

    @property
    def known(self) -> bool:
        """Whether the value can be estimated."""
        return math.isfinite(self.low)

    @property
    def significant(self) -> bool:
        """Whether the gain is told from 0."""
        return self.low > 0 or self.high < 0

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
        if self.known:
            more = "more" if self.gain >= 0 else "less"
            lines.append(
                ("" if self.significant else "Not significant: ")
                + f"{self.value:.3g} reward a decision, {abs(self.gain):.3g} {more} than the agent's "
                f"own choices ({self.level:.0%} sure at every look: {self.low:.3g} to {self.high:.3g})."
            )
        else:
            lines.append(
                f"Its value cannot be estimated: {self.unsupported:.0%} of its choices had no chance in "
                f"these decisions, and the others are worth {self.effective:,.0f} decisions. Give a tenth "
                f"of the traffic to random arms (min_share={RANDOM:g}) for about {self.needed:,} "
                "decisions."
            )
        return " ".join(lines)


class Shadow(Rebuild):
    """A candidate that lives through the ledger, and what it would choose in every decision."""

    def __init__(self, state: AgentState, policy: Named) -> None:
        super().__init__(state.learning, state.settings.upgraded(policy), state.arms, state.erased)
        self.basis = basis(state)
        self.seqs: list[int] = []
        self.choices: list[FloatArray] = []
        self.own: list[FloatArray] = []
        self.open: list[FloatArray] = []

    def _repeat(self, record: Record) -> None:
        super()._repeat(record)
        choice = Choice.unpack(record.body)
        if choice.group is DecisionGroup.WARMUP or self._learning.shares is None:
            return
        self.seqs.append(record.seq)
        self.choices.append(self._learning.shares.astype(np.float32))
        for rows, values in ((self.own, choice.counts / 65535), (self.open, choice.available)):
            rows.append(np.pad(values, (0, self.arms.room - len(values))).astype(np.float32))


def basis(state: AgentState) -> tuple[object, ...]:
    """What a candidate is built on: when it is another, the candidate begins anew."""
    learning: Learning = state.learning
    replaced = tuple(state.arms.since(place) for place in range(len(state.arms)))
    return replaced, state.arms.room, tuple(state.erased), len(learning.schemas), learning.schema


def caught_up(shadow: Shadow, ledger: Ledger) -> Shadow:
    """The candidate after all records that are safe."""
    shadow.advance(ledger, ledger.safe)
    return shadow


def evaluate(shadow: Shadow, insight: Insight, level: float = 0.95) -> ShadowReport:
    """What a candidate would do and earn, by all decisions with a reward."""
    log = insight.log()
    name, state = shadow.settings.policy, insight.state
    place = np.searchsorted(shadow.seqs, log.seq) if shadow.seqs else np.zeros(len(log), np.int64)
    known = np.isin(log.seq, shadow.seqs) & ~np.isnan(log.reward)
    log, place = log.where(known), place[known]
    if not len(log):
        nan = math.nan
        return ShadowReport(name, 0, nan, {}, nan, nan, nan, nan, nan, nan, 0.0, None, level)
    theirs, own, available = (
        np.asarray(rows, float)[place] for rows in (shadow.choices, shadow.own, shadow.open)
    )
    own = np.where(log.group[:, None] == DecisionGroup.IMPORTED, 0.0, own)
    logged = _logged(log, own, available, state)
    rows, arm = np.arange(len(log)), log.arm
    shares = {
        label: (float((arm == n).mean()), float(theirs[:, n].mean()))
        for n, label in insight.labels.items()
    }
    disagreement = float(1 - theirs[rows, arm].mean())
    weight = theirs[rows, arm] / logged[rows, arm]
    unsupported = float(np.where(logged <= 0, theirs, 0.0).sum(axis=1).mean())
    effective = float(weight.sum() ** 2 / max((weight**2).sum(), 1e-12))
    common = (name, len(log), disagreement, shares)
    if unsupported > UNSUPPORTED or effective < EFFECTIVE:
        nan = math.nan
        needed = _needed(log.reward, int(available.sum(axis=1).max()))
        return ShadowReport(*common, nan, nan, nan, nan, nan, unsupported, effective, needed, level)
    present = np.where(log.group[:, None] == DecisionGroup.IMPORTED, logged, own)
    expected = _means_before(log, shadow.arms.room)
    value, mine = (_doubly_robust(log, pi, logged, expected) for pi in (theirs, present))
    half = _half_width(value - mine, log.subject, effective, level)
    gain = float((value - mine).mean())
    return ShadowReport(
        *common, float(value.mean()), float(mine.mean()), gain, gain - half, gain + half,
        unsupported, effective, None, level,
    )  # fmt: skip


def _logged(
    log: DecisionLog, own: FloatArray, available: FloatArray, state: AgentState
) -> FloatArray:
    """The chance that each arm had in each decision, whichever group it fell into."""
    even = available / available.sum(axis=1, keepdims=True)
    floor = state.settings.min_share or 0.0
    chances = (1 - floor) * own + floor * even
    rows = np.arange(len(log))
    policy = log.group == DecisionGroup.POLICY
    chances[rows[policy], log.arm[policy]] = log.propensity[policy]
    control = even.copy()
    rule = np.where(
        log.baseline >= 0, log.baseline, -1 if state.control_place is None else state.control_place
    )
    ruled = rule >= 0
    control[ruled] = np.eye(available.shape[1])[rule[ruled]]
    share = log.control_share[:, None]
    logged = (1 - share) * chances + share * control
    for row in np.flatnonzero(log.group == DecisionGroup.IMPORTED).tolist():
        chance = log.propensity[row]
        others = max(available[row].sum() - 1, 1)
        logged[row] = available[row] * (1 - chance) / others
        logged[row, log.arm[row]] = chance
    return np.asarray(logged)


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


def _half_width(gains: FloatArray, subject: IntArray, effective: float, level: float) -> float:
    """Half the width of the confidence sequence of a mean; decisions of one subject are one draw."""
    _, which = np.unique(subject, return_inverse=True)
    sums = np.bincount(which, weights=gains - gains.mean())
    error = math.sqrt(float((sums**2).sum())) / len(gains)
    return sequence_width(round(effective), max(1, len(sums) - 1), level) * error


def _needed(reward: FloatArray, n_arms: int) -> int:
    """Decisions with a tenth of random arms after which a value is known to a tenth, about."""
    mean = max(abs(float(reward.mean())), 1e-9)
    square = float((reward**2).mean())
    return math.ceil(4 * (n_arms / RANDOM) * square / mean**2 / PRECISION**2 / 100) * 100
