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
from operator import attrgetter
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.tails import WORLDS
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.types import Event

DRAWS = 32
PARTS = (
    ("_structural", "shares", "choose: structural models"),
    ("_structural", "_features", "of which features of the context and the time"),
    ("_patterns", "shares", "choose: patterns"),
    ("_patterns", "_open", "of which the context and covariates"),
    ("_patterns", "_draws", "of which models by weight, and their draws"),
    ("_structural", "learn", "learn: structural models"),
    ("_patterns", "learn", "learn: patterns"),
    ("_patterns._bank", "score", "of which the bank's kernel"),
    ("_patterns._network", "observe", "of which the network (paused: it only records)"),
    ("_patterns._mixture", "reweigh", "of which weights"),
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
    choose, learn = watch.on("choose", policy.choose_by), watch.on("learn", policy.learn)
    for t in range(rounds):
        if t == rounds // 2:  # parts that jobs replace are in their places
            for owner, name, words in PARTS:
                object_ = attrgetter(owner)(tide)
                setattr(object_, name, watch.on(words, getattr(object_, name)))
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
