"""A shop whose best banner follows the hour and the weekday, with traffic that varies.

The agent is put beside an A/B test, Thompson sampling and a sliding window; all see the same visitors. At the end it
says what it has learnt, and `shop_by_hour.png` shows what each earned beyond the A/B test.
"""

import math
import sys
from datetime import UTC, datetime
from typing import Any

import numpy as np

import tidepull

BANNERS = ["coffee", "dinner", "brunch"]
MONDAY = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
RIVALS: dict[str, Any] = {
    "the agent (tide)": {"policy": "tide"},
    "A/B test": {"policy": "random", "control": 0.0},
    "Thompson sampling": {"policy": "bernoulli-ts"},
    "sliding window": {"policy": ("sw-ucb", {"window": 300, "xi": 0.1})},
}


def best_banner(at: float) -> str:
    """Coffee by day, dinner in the evening, brunch on weekends before 15:00."""
    hour, weekday = at % 86_400 / 3600, datetime.fromtimestamp(at, UTC).weekday()
    if weekday >= 5 and hour < 15:
        return "brunch"
    return "dinner" if 17 <= hour < 23 else "coffee"


def visitors(days: int, rng: np.random.Generator) -> list[float]:
    """When they come: few at night, most in the evening."""
    quarters = MONDAY + 900.0 * np.arange(days * 96)
    rate = 1.2 + np.cos(math.tau * (quarters % 86_400 / 86_400 - 0.75))
    return [float(at) for at, n in zip(quarters, rng.poisson(rate), strict=True) for _ in range(n)]


def serve(agent: tidepull.Agent, times: list[float]) -> list[float]:
    """Show every visitor a banner; a third of those who like it click, and the click comes five minutes later."""
    clicks = []
    for n, at in enumerate(times):
        luck = np.random.default_rng([n, 7]).random()  # the same visitor for every rival
        decision = agent.choose({"device": "phone" if n % 3 else "desktop"}, at=at)
        clicks.append(float(luck < (0.35 if decision.arm == best_banner(at) else 0.1)))
        agent.reward(decision.id, clicks[-1], at=at + 300)
    return clicks


def main(days: int = 28, picture: str = "shop_by_hour.png") -> None:
    times = visitors(days, np.random.default_rng(0))
    earned: dict[str, Any] = {}
    for name, choices in RIVALS.items():
        context = {"device": ["phone", "desktop"]}
        agent = tidepull.Agent.memory(arms=BANNERS, context=context, seed=0, upkeep="inline", **choices)
        earned[name] = np.cumsum(serve(agent, times))
        print(f"{name:20} {earned[name][-1]:6.0f} clicks from {len(times):,} visitors")
        if name.startswith("the agent"):
            print(f"\n{agent.explain()}\n")
    draw(times, earned, picture)


def draw(times: list[float], earned: dict[str, Any], picture: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    days = (np.array(times) - MONDAY) / 86_400
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for name, total in earned.items():
        axes.plot(days, total - earned["A/B test"], label=name)
    axes.set(title="clicks beyond the A/B test", xlabel="days", ylabel="clicks")
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
    print(f"{picture} written")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 28)
