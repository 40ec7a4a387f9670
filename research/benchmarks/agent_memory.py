"""Resident memory of one warm agent of `tide`: kernels loaded, none compiled, 300 decisions.

python -m research.benchmarks.agent_memory
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import tidepull
from research.benchmarks.agent_speed import CONTEXT


def resident_megabytes() -> float:
    """Memory of this process, as Linux counts it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    tidepull.warm_up()
    rng = random.Random(0)
    seen = {"device": "phone", "age": 30.0, "basket": 12.5, "member": True, "country": "de"}
    assert seen.keys() == CONTEXT.keys()
    with tidepull.Agent.memory(arms=list("abcde"), context=CONTEXT, seed=0) as agent:
        for _ in range(300):
            decision = agent.choose({**seen, "basket": rng.random()})
            agent.reward(decision.id, float(rng.random() < 0.3))
        print(f"{resident_megabytes():.0f} MB after 300 decisions and rewards")


if __name__ == "__main__":
    main()
