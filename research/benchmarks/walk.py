"""How far a reader walks who follows one call of `tide`: files of tidepull visited, and switches
between them.

python -m research.benchmarks.walk
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

ORDINARY, HEAVY = (
    60,
    64,
)  # rewards after which nothing is due, and after which training and births are


def walked(call: Callable[[], Any]) -> tuple[int, int]:
    """Distinct files and switches, over all Python frames of tidepull that the call enters or
    returns to."""
    visited: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        here = frame.f_code.co_filename
        if event in ("call", "return") and "tidepull" in here and "<" not in here:
            caller = frame.f_back.f_code.co_filename if event == "return" and frame.f_back else here
            if "tidepull" in caller and (not visited or visited[-1] != caller):
                visited.append(caller)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = [name for name in visited if "benchmarks" not in name]
    return len(set(files)), len(files) - 1


def main() -> None:
    policy = build_policy("tide", ProblemShape(4), seed=0)
    rng = np.random.default_rng(0)
    for t in range(1, HEAVY + 1):
        event = Event(Context(), policy.choose(Context()), float(rng.normal()))

        def upkeep() -> None:
            while policy.upkeep():
                pass

        if t in (ORDINARY, HEAVY):
            print(
                f"learn, reward {t}: %d files, %d switches" % walked(partial(policy.learn, event))
            )
            print(f"upkeep, reward {t}: %d files, %d switches" % walked(upkeep))
        else:
            policy.learn(event)
            upkeep()


if __name__ == "__main__":
    main()
