"""Is a ledger what it says? Everything is read, and repeated from the start without any snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidepull import state as snapshots
from tidepull.agent.ledger import Ledger
from tidepull.agent.mind import Mind
from tidepull.agent.records import Kind
from tidepull.errors import TidepullError


@dataclass(frozen=True, slots=True)
class Condition:
    """What was found in a ledger. `differences` are decisions that come out otherwise when repeated."""

    records: int
    decisions: int
    rewards: int
    doubled: int
    orphans: int
    differences: int | None
    damaged_snapshots: int
    faults: list[str]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.doubled or self.orphans or self.differences or self.damaged_snapshots or self.faults)

    def __str__(self) -> str:
        lines = [f"{self.records:,} records: {self.decisions:,} decisions, {self.rewards:,} rewards."]
        if self.differences is None:
            lines.append("It was not repeated: early records or contexts are not there any more.")
        elif not self.differences:
            lines.append("Repeated from the start, every decision comes out as it was.")
        else:
            lines.append(f"{self.differences:,} decisions come out otherwise when repeated.")
        lines += [f"{self.doubled:,} decisions have two rewards."] if self.doubled else []
        lines += [f"{self.orphans:,} rewards belong to no decision."] if self.orphans else []
        lines += [f"{self.damaged_snapshots:,} snapshots are damaged."] if self.damaged_snapshots else []
        return "\n".join([*lines, *self.faults])


def checked(fresh: Mind, ledger: Ledger, erased: list[tuple[int, int]]) -> Condition:
    """The condition of a ledger; `fresh` is a mind that knows nothing yet."""
    kinds: Counter[Kind] = Counter()
    rewards: Counter[int] = Counter()
    decisions: set[int] = set()
    whole, first, faults = True, True, ledger.faults()
    for record in ledger.tail(0):
        kinds[record.kind] += 1
        if record.kind is Kind.DECISION:
            decisions.add(record.seq)
            whole &= record.context is not None
        elif record.kind is Kind.REWARD and record.ref is not None:
            rewards[record.ref] += 1
        whole &= not first or record.seq == 1
        first = False
    differences = None
    if whole:
        fresh.erased = list(erased)
        try:
            for record in ledger.tail(0):
                fresh.apply(record, ledger)
            differences = fresh.differences
        except TidepullError as error:
            faults.append(f"Repeating it failed: {error}.")
    once = fresh.settings.on_duplicate == "refuse"
    return Condition(
        sum(kinds.values()),
        len(decisions),
        kinds[Kind.REWARD],
        sum(count > 1 for count in rewards.values()) if once else 0,
        sum(count for ref, count in rewards.items() if ref not in decisions) if whole else 0,
        differences,
        _damaged(ledger),
        faults,
    )


def _damaged(ledger: Ledger) -> int:
    damaged = 0
    for seq in ledger.snapshots():
        try:
            snapshots.load(ledger.snapshot(seq))
        except TidepullError:
            damaged += 1
    return damaged
