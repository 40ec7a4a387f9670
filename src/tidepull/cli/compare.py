"""`tidepull compare A B`: two stores, or a store and the paper, side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from tidepull.cli.console import print_json, print_table, say
from tidepull.errors import WrongStoreError
from tidepull.experiments.store import Store
from tidepull.reporting.comparison import ComparisonRow, versus_paper, versus_store
from tidepull.reporting.frames import load_frame
from tidepull.reporting.tables import interval, number, spread

PAPER = "paper"


def compare(
    a: Path = typer.Argument(help="A store."),
    b: str = typer.Argument(help=f"Another store, or '{PAPER}' for the paper's table."),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Show the final regrets of A beside those of B, with intervals of the differences."""
    ours = load_frame([Store.open(a)])
    with_paper = b == PAPER and not Path(b).is_dir()
    lines = list(versus_paper(ours) if with_paper else versus_store(ours, load_frame([Store.open(b)])))
    if not lines:
        raise WrongStoreError(
            f"nothing in {a} has its like in {b}: the same problem, horizon and name of the policy are needed"
        )
    if json:
        print_json([_as_json(line) for line in lines])
        return
    columns = ["problem", "policy", "rounds", "A", "B", "A - B", "95% interval", "common seeds"]
    print_table(
        f"Final regret: A is {a}, B is {b}", columns, [_cells(line) for line in lines], right=range(2, 8)
    )
    clear = sum(line.difference.clear for line in lines)
    say(f"{clear} of {len(lines)} differences are clear (their 95% interval leaves out zero)")
    if any(0 < line.difference.pairs < max(line.a.trials, line.b.trials) for line in lines):
        say("A - B is taken over the common seeds alone, A and B over all of theirs")
    if any(line.policy.endswith("*") for line in lines):
        say("* the best setting of a grid, chosen on these very trials; it may be another one in A than in B")


def _cells(line: ComparisonRow) -> list[str]:
    d = line.difference
    return [
        line.problem,
        line.policy,
        f"{line.horizon:,}",
        spread(line.a.mean, line.a.std).text,
        spread(line.b.mean, line.b.std).text,
        f"[bold]{number(d.mean).text}[/]" if d.clear else number(d.mean).text,
        interval(d.low, d.high).text,
        str(d.pairs) if d.pairs else "–",
    ]


def _as_json(line: ComparisonRow) -> dict[str, Any]:
    d = line.difference
    return {
        "problem": line.problem,
        "policy": line.policy.removesuffix("*"),
        "chosen_on_these_trials": line.policy.endswith("*"),
        "horizon": line.horizon,
        "a": {"mean": line.a.mean, "std": _known(line.a.std), "trials": line.a.trials},
        "b": {"mean": line.b.mean, "std": _known(line.b.std), "trials": line.b.trials},
        "difference": {"mean": d.mean, "low": _known(d.low), "high": _known(d.high), "clear": d.clear},
        "common_seeds": d.pairs,
        "seeds_won": _known(d.wins),
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
