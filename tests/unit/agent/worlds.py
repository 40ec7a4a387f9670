"""A small shop to run agents in, the same in every process."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.agent.agent import Agent

START = 1_782_900_000.0
SHOP: dict[str, Any] = {
    "arms": ["blue", "green", "red"],
    "context": {"device": ["phone", "desktop"], "age": float},
    "policy": "lin-ts",
    "seed": 7,
}


def visit(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {
        "device": str(rng.choice(["phone", "desktop"])),
        "age": None if n % 9 == 0 else float(rng.normal(40, 9)),
    }


def worth(n: int, arm: str) -> float:
    rng = np.random.default_rng([n, 1])
    return float(rng.random() < {"blue": 0.2, "green": 0.35, "red": 0.5}.get(arm, 0.4))


def serve(agent: Agent, first: int, last: int, late: int = 3) -> list[tuple[str, float, str]]:
    """Visits `first` to `last`; every reward comes `late` visits later, every seventh never. Visits
    are named, so that whoever repeats one changes nothing."""
    made = []
    for n in range(first, last):
        decision = agent.choose(visit(n), at=START + 300.0 * n, id=f"visit {n}")
        made.append((decision.arm, decision.propensity, decision.group))
        paid = n - late
        if paid >= 0 and paid % 7:
            moment = START + 300.0 * paid
            earlier = agent.choose(visit(paid), at=moment, id=f"visit {paid}")
            agent.reward(f"visit {paid}", worth(paid, earlier.arm), at=START + 300.0 * n + 10)
    return made
