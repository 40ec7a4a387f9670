"""Where the microseconds of a decision and its reward go in `tide`, in the layout of an agent with
five fields.

    python -m research.benchmarks.tide_parts [--rounds 2500]

Plays the world `shop` of `research/benchmarks/tails.py` as an agent does: shares by 32 draws, then
the reward. Every part is timed in processor time, the median of the second half of the rounds is
told. Timing a part costs about half a microsecond, which is in its figure. Prints the table of
research/lab/performance_tide.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.tails import WORLDS
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.tide.patterns import Patterns
from tidepull.types import Event

DRAWS = 32
PARTS = (
    ("_mixture", "picks", "choose: hypotheses by weight"),
    ("_bank", "draws", "choose: draws of the bank"),
    ("", "_open", "choose: context, covariates"),
    ("_bank", "score", "learn: the bank's kernel"),
    ("_network", "observe", "learn: the network (paused: it only records)"),
    ("_mixture", "reweigh", "learn: weights"),
)


class Watch:
    """Seconds of each part in the round under way."""

    def __init__(self) -> None:
        self.now: dict[str, float] = {}
        self.rounds: list[dict[str, float]] = []

    def on(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, timed."""

        def timed(*given: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return call(*given, **named)
            finally:
                self.now[name] = self.now.get(name, 0.0) + time.thread_time() - started

        return timed


def played(rounds: int) -> list[dict[str, float]]:
    """Seconds of every part in every round."""
    shape, see = WORLDS["shop"]
    policy = build_policy("tide", shape, seed=0)
    tide, watch, rng = policy.inner, Watch(), np.random.default_rng(0)
    assert isinstance(tide, Patterns)
    for owner, name, words in PARTS:
        object_ = getattr(tide, owner) if owner else tide
        setattr(object_, name, watch.on(words, getattr(object_, name)))
    choose, learn = watch.on("choose", policy.choose_by), watch.on("learn", policy.learn)
    for t in range(rounds):
        context, rewards = see(t, rng)
        arm = choose(context, DRAWS, lambda shares: int(np.argmax(shares)))
        learn(Event(context, arm, float(rewards[arm])))
        watch.rounds.append(watch.now)
        watch.now = {}
        while policy.upkeep():
            pass
    return watch.rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2500)
    given = parser.parse_args()
    with one_blas_thread():
        rounds = played(given.rounds)[given.rounds // 2 :]
    print(f"`python -m research.benchmarks.tide_parts`: {describe()}.\n")
    print("| part | median, µs |\n|---|---:|")
    for name in ("choose", "learn", *(words for _, _, words in PARTS)):
        spent = [one.get(name, 0.0) for one in rounds]
        print(f"| {name} | {1e6 * float(np.median(spent)):.0f} |")


if __name__ == "__main__":
    main()
