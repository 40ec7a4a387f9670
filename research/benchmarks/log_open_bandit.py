"""The Open Bandit sample: each policy's clicks, and what the log of the other policy says of them.

    TIDEPULL_DATA=... python -m research.benchmarks.log_open_bandit

The sample has a log of 10,000 decisions by lot and one by Bernoulli Thompson sampling, of the same
week, for two campaigns. Prints the table of `research/lab/logs.md`, and whether every interval contains
what the other log shows.
"""

from __future__ import annotations

from tidepull import logs
from tidepull.logs.backtesting import Backtest
from tidepull.problems.datasets import find

SHOWN = ("snips", "dm", "dr", "switch-dr")


def read(policy: str, campaign: str) -> logs.Log:
    """One of the four logs."""
    path = find(f"open_bandit/{policy}/{campaign}/{campaign}.csv.gz")
    if path is None:
        raise SystemExit("the Open Bandit sample is not in TIDEPULL_DATA")
    return logs.read(path)


def line(found: Backtest, name: str, campaign: str, own: logs.Log) -> tuple[str, bool]:
    """A line of the table, and whether all intervals contain what the policy's own log shows."""
    rate = float(own.reward.mean())
    cells, inside = [], True
    for estimator in SHOWN:
        one = found.of(name, estimator)
        inside = inside and one.low <= rate <= one.high
        cells.append(f"{1000 * one.value:.1f} ({1000 * one.low:.1f} to {1000 * one.high:.1f})")
    title = "random" if name == "random" else "Bernoulli TS"
    clicks = f"{1000 * rate:.1f} ({own.reward.sum():.0f} clicks)"
    return f"| {campaign}, {title} | {clicks} | " + " | ".join(cells) + " |", inside


def main() -> None:
    """Print everything."""
    print(
        "| clicks per 1,000 | shown by its own log | "
        + " | ".join(f"`{name}`" for name in SHOWN)
        + " |"
    )
    print("|---|---|" + "---|" * len(SHOWN))
    contained, weights = [], []
    for campaign in ("men", "all"):
        even, bts = read("random", campaign), read("bts", campaign)
        of_bts = logs.backtest(even, [logs.as_logged(bts, "bts", by=["position"])])
        of_even = logs.backtest(bts, ["random"])
        for found, name, own in ((of_bts, "bts", bts), (of_even, "random", even)):
            text, inside = line(found, name, campaign, own)
            contained.append(inside)
            print(text)
        heavy = of_even.weights["random"]
        weights.append(
            f"{campaign}: weights up to {heavy.largest:.0f}, {heavy.effective:.0f} effective rows "
            f"of {heavy.rows:,}; "
            f"warnings: {[of_even.of('random', one).warning for one in SHOWN]}"
        )
    print(
        f"\nintervals that contain what the other log shows: {sum(contained)} of {len(contained)} "
        "rows"
    )
    print("\n".join(weights))
    learner = logs.backtest(read("random", "men"), ["bernoulli-ts"])
    one = learner.of("bernoulli-ts", "replay")
    print(
        f"bernoulli-ts on the even log of men: {one.rows} decisions taken, "
        f"{one.rows * one.value:.0f} clicks"
    )


if __name__ == "__main__":
    main()
