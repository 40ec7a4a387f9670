"""A shop whose best banner follows the hour and the weekday, with traffic that varies.

The agent is put beside an A/B test, Thompson sampling and a sliding window; all see the same
visitors. At the end it says what it has learnt, and `shop_by_hour.png` shows which banner it chose
at which hour and what each rival earned.
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


def serve(agent: tidepull.Agent, times: list[float]) -> tuple[list[str], list[float]]:
    """Show every visitor a banner; a third of those who like it click, and the click comes five
    minutes later."""
    shown, clicks = [], []
    for n, at in enumerate(times):
        luck = np.random.default_rng([n, 7]).random()  # the same visitor for every rival
        decision = agent.choose({"device": "phone" if n % 3 else "desktop"}, at=at)
        shown.append(decision.arm)
        clicks.append(float(luck < (0.35 if decision.arm == best_banner(at) else 0.1)))
        agent.reward(decision.id, clicks[-1], at=at + 300)
    return shown, clicks


def main(days: int = 28, picture: str = "shop_by_hour.png") -> None:
    times = visitors(days, np.random.default_rng(0))
    shown: dict[str, list[str]] = {}
    earned: dict[str, Any] = {}
    for name, choices in RIVALS.items():
        context = {"device": ["phone", "desktop"]}
        agent = tidepull.Agent.memory(
            arms=BANNERS, context=context, seed=0, training="inline", **choices
        )
        shown[name], clicks = serve(agent, times)
        earned[name] = np.cumsum(clicks)
        print(f"{name:20} {earned[name][-1]:6.0f} clicks from {len(times):,} visitors")
        if name.startswith("the agent"):
            print(f"\n{agent.explain()}\n")
    draw(times, shown["the agent (tide)"], earned, picture)


def shares_by_hour(times: list[float], shown: list[str], since: float, until: float) -> Any:
    """How often each banner was shown at each hour of a weekday, from one day to another."""
    count = np.full((len(BANNERS), 24), 1e-9)
    for at, banner in zip(times, shown, strict=True):
        day = (at - MONDAY) / 86_400
        if since <= day < until and day % 7 < 5:
            count[BANNERS.index(banner), int(at % 86_400 // 3600)] += 1
    return count / count.sum(axis=0)


def draw(times: list[float], shown: list[str], earned: dict[str, Any], picture: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    days = (np.array(times) - MONDAY) / 86_400
    end = math.ceil(days[-1])
    figure, charts = plt.subplot_mosaic(
        [["first", "last"], ["gain", "gain"]], figsize=(7.2, 6), layout="constrained"
    )
    first, last, gain = charts["first"], charts["last"], charts["gain"]
    for axes, since, until in ((first, 0, 2), (last, max(2, end - 14), end)):
        below = np.zeros(24)
        for banner, share in zip(BANNERS, shares_by_hour(times, shown, since, until), strict=True):
            axes.bar(np.arange(24) + 0.5, share, 1.0, below, label=banner)
            below += share
        axes.set(title=f"what it shows, days {since + 1} to {until}", xlabel="hour of a weekday")
        axes.set(xlim=(0, 24), ylim=(0, 1), xticks=[0, 6, 12, 17, 23])
    first.set_ylabel("share of visitors")
    figure.legend(
        *first.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
    )
    for name, total in earned.items():
        gain.plot(
            days, total - earned["A/B test"], label=name, linewidth=2.5 if "tide" in name else 1.2
        )
    gain.set(title="clicks beyond the A/B test", xlabel="days", xlim=(0, end))
    gain.legend(frameon=False)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
    print(f"{picture} written")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 28)
