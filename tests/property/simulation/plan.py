"""What one history is about, all of it drawn from its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal

from tests.property.simulation.disk import Faults

Ledger = Literal["sqlite", "store", "remote"]
LEDGERS: tuple[Ledger, ...] = ("sqlite", "store", "remote")
"""The real file, a store that the loop waits for, a store that a thread waits for."""

FAULTS = ("none", "kill", "power", "write", "sync", "full", "clock", "all")
"""Of which kind the faults of a history are: none; the process dies; the power too; writes fail;
syncs fail, or a store does not say that it has kept something; the disk is full for a while; the
wall clock jumps; all of these."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One history. `dies` is for how many steps a process lives at most (0: it is not killed)."""

    seed: int
    ledger: Ledger
    fault: str
    policy: str
    again: str
    reward_within: float | None
    control: float
    callers: int
    calls: int
    snapshot_every: int
    checkpoint: int
    dies: int
    power: bool
    jumps: bool
    faults: Faults

    def rng(self, purpose: str) -> random.Random:
        """Chances of one kind, which do not hang on those of another."""
        return random.Random(f"{self.seed} {purpose}")

    @property
    def given(self) -> dict[str, Any]:
        """What the agent is made of, as a request says it."""
        given: dict[str, Any] = {
            "name": "shop",
            "arms": ["blue", "green", "red"],
            "context": {"visit": "number"},
            "policy": self.policy,
            "seed": self.seed % 2,
            "on_duplicate": self.again,
            "control": self.control,
            "propensity_draws": 8,
        }
        if self.reward_within is not None:
            given |= {"reward_within": self.reward_within, "default_reward": 0.0}
        return given


def plan(seed: int) -> Plan:
    """The plan of a seed: ledgers and kinds of faults come in turn, everything else by chance."""
    rng = random.Random(f"{seed} plan")
    fault = FAULTS[seed // len(LEDGERS) % len(FAULTS)]
    every = fault == "all"
    high = rng.choice((0.02, 0.1, 0.3))
    again = rng.choices(("refuse", "add", "replace"), (7, 2, 1))[0]
    policy = rng.choices(("bernoulli-ts", "lin-ts", "tide"), (95.0, 4.8, 0.2))[0]
    return Plan(
        seed=seed,
        ledger=LEDGERS[seed % len(LEDGERS)],
        fault=fault,
        policy=policy,
        again=again,
        reward_within=rng.choice(
            (40.0, 1000.0) if again != "refuse" else (None, None, 40.0, 1000.0)
        ),
        control=rng.choice((0.0, 0.2)),
        callers=rng.randrange(1, 6),
        calls=rng.randrange(20, 36) if policy != "tide" else 12,
        snapshot_every=rng.choice((5, 17, 60)),
        checkpoint=rng.choice((2, 10, 60)),
        dies=rng.choice((120, 400, 1500)) if fault in ("kill", "power") or every else 0,
        power=fault in ("power", "sync", "write", "full") or every,
        jumps=fault == "clock" or every,
        faults=Faults(
            write=high / 4 if fault == "write" or every else 0.0,
            sync=high if fault == "sync" or every else 0.0,
            read=high / 50 if fault == "write" or every else 0.0,
            full=high / 8 if fault == "full" or every else 0.0,
        ),
    )
