"""What a round costs each hypothesis with a hidden state: processor time of `observe` and `draw`.

    python -m research.benchmarks.filter_cost

Least mean of five repeats of 500 rounds after 1,000 others, one thread. A round touches, with R
runs, H hazards, P stories, I regimes and blocks of d numbers: R (H + 3 d^2) numbers of one chain,
or P (I + 1) (4 + d^2) of the stories and a copy of every story that has two heirs. Nothing grows
with the rounds.
"""

from __future__ import annotations

import time

import numpy as np

from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Filter, Layout
from tidepull.tide.models.noise import NoisePrior

LAYOUTS = {
    "3 arms": Layout(3, 1, False),
    "8 arms": Layout(8, 1, False),
    "1,000 arms": Layout(1000, 1, False),
    "10 arms, 10 numbers": Layout(10, 11, False),
    "10 arms, 32 numbers": Layout(10, 33, False),
    "25 vectors of 20 numbers": Layout(25, 21, True),
}


def cost(one: Filter, layout: Layout) -> tuple[float, float]:
    """Microseconds of `observe` and of `draw`."""
    rng = np.random.default_rng(0)
    least, t = [np.inf, np.inf], 0
    for repeat in range(7):
        spent = [0.0, 0.0]
        for _ in range(500):
            X = np.concatenate(
                [
                    np.ones((layout.n_arms, 1)),
                    rng.normal(size=(layout.n_arms, layout.context_dim - 1)),
                ],
                axis=1,
            )
            arm = int(rng.integers(layout.n_arms))
            y = 1.0 if rng.random() < 0.2 + 0.6 * ((t // 300) % 2 == arm % 2) else -1.0
            started = time.thread_time()
            one.draw(t, X, True, rng)
            drawn = time.thread_time()
            one.observe(t, arm, X[arm], y, True)
            spent = [spent[0] + time.thread_time() - drawn, spent[1] + drawn - started]
            t += 1
        if repeat >= 2:
            least = [min(a, b / 500 * 1e6) for a, b in zip(least, spent, strict=True)]
    return least[0], least[1]


def main() -> None:
    print("| layout | hypothesis | observe, us | draw, us |\n|---|---|---:|---:|")
    for name, layout in LAYOUTS.items():
        for family in FAMILIES.values():
            if family.filters is not None:
                for one in family.filters(layout, NoisePrior(), 0):
                    words = one.words
                    learnt, drawn = cost(one, layout)
                    print(f"| {name} | {words} | {learnt:.0f} | {drawn:.0f} |", flush=True)


if __name__ == "__main__":
    main()
