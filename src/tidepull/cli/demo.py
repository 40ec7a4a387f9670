"""`tidepull demo`: what the library is about, in one table and one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer import Option

from tidepull._internal.warm_up import warm_up
from tidepull.cli.console import print_table, say
from tidepull.cli.options import SEEDS, seeds_of
from tidepull.cli.run import make_spec, run_specs, share_of_oracle, with_spread
from tidepull.registry import Named
from tidepull.reporting.figures import pyplot, regret_curves
from tidepull.reporting.stats import summarise

PROBLEM = "sinusoidal-bernoulli"
POLICIES: list[tuple[str, Named]] = [
    ("random", "random"),
    ("ucb", "ucb"),
    ("bernoulli-ts", "bernoulli-ts"),
    ("sw-ucb", ("sw-ucb", {"window": 75})),
    ("d-ucb", ("d-ucb", {"discount": 0.995})),
    ("rnlps", "rnlps"),
    ("tide", "tide"),
]


def demo(
    out: Path = Option(Path("demo-regret.png"), help="Picture to write."),
    seeds: str = Option("5", help=f"Seeds, one trial of each policy on each: {SEEDS}"),
    horizon: int = Option(4096, min=1, help="Rounds in each trial."),
) -> None:
    """Compare seven policies on five arms whose success rates are seasonal, as a table and a
    picture."""
    played = seeds_of(seeds)
    pyplot()  # a missing library is reported before trials are played
    say(
        f"[bold]{PROBLEM}[/]: five arms, each arm's success rate swings with a period of 32 rounds."
    )
    # Here, so that the workers find the kernels on disk.
    warm_up(lambda: say("compiling kernels (once)"))
    specs = {
        name: [make_spec(PROBLEM, policy, horizon=horizon, seed=seed) for seed in played]
        for name, policy in POLICIES
    }
    longest_first = [spec for row in reversed(specs.values()) for spec in row]
    trials = iter(run_specs(longest_first, description="playing"))
    done = {name: [next(trials) for _ in row] for name, row in reversed(specs.items())}
    regrets = {name: summarise(np.array([t.regret[-1] for t in row])) for name, row in done.items()}
    best = min(regrets, key=lambda name: regrets[name].mean)
    rows = [
        [
            f"[bold green]{name}[/]" if name == best else name,
            with_spread(regrets[name]),
            f"{np.mean([share_of_oracle(t) for t in done[name]]):.1%}",
            f"{np.mean([t.seconds for t in done[name]]):.2f}",
        ]
        for name in sorted(regrets, key=lambda name: -regrets[name].mean)
    ]
    columns = ["policy", "regret ± standard deviation", "of the oracle's reward", "seconds a trial"]
    print_table(
        f"{PROBLEM}: {len(played)} trials of {horizon:,} rounds", columns, rows, right=(1, 2, 3)
    )
    curves = {name: np.stack([t.regret for t in row]) for name, row in done.items()}
    regret_curves(curves, title=f"{PROBLEM}: mean of {len(played)} trials, 95% band", path=out)
    say(f"picture: [bold]{out}[/]")
