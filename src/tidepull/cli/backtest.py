"""`tidepull backtest LOG`: what other policies would have earned on a log."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from tidepull.cli import log_options as options
from tidepull.cli.console import print_json, print_table, say
from tidepull.cli.settings import policy_of
from tidepull.logs import Backtest, Estimate, Log
from tidepull.logs import backtest as judge
from tidepull.logs.backtesting import CLIP
from tidepull.logs.estimators import ESTIMATORS
from tidepull.registry import Named


def backtest(
    log: Path = options.LOG,
    policies: str = typer.Option(
        "random",
        help="Ids as tide,ucb (see: tidepull list policies), with parameters as d-ucb:discount=0.99:xi=0.1; random, or "
        "arm:LABEL for one arm.",
    ),
    estimators: str = typer.Option(
        "snips,dm,dr", help=f"For policies that do not learn: {', '.join(ESTIMATORS)}."
    ),
    by: str = typer.Option("", help="Also by day, hour or weekday; several with commas."),
    format: str = options.FORMAT,
    arm: str = options.ARM,
    reward: str = options.REWARD,
    time: str = options.TIME,
    propensity: str = options.PROPENSITY,
    paid_at: str = options.PAID_AT,
    context: str = options.CONTEXT,
    arms: str = options.ARMS,
    uniform: bool = options.UNIFORM,
    zone: str = options.ZONE,
    most_bad: float = options.MOST_BAD,
    last: int = options.LAST,
    clip: float = typer.Option(
        CLIP, help="Weights beyond it are clipped (clipped), or left to the model (switch-dr)."
    ),
    block: int = typer.Option(
        None, help="Neighbouring rows that are resampled together (cube root of the rows)."
    ),
    seed: int = typer.Option(0, min=0, help="Seed of policies and intervals."),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Say what other policies would have earned on a log, with 95% intervals and when not to believe them."""
    known = options.read_log(
        log, format=format, arm=arm, reward=reward, time=time, propensity=propensity, paid_at=paid_at,
        context=context, arms=arms, uniform=uniform,
        zone=zone, most_bad=most_bad, last=last,
    )  # fmt: skip
    found = judge(
        known,
        [_policy(name) for name in options.names(policies)],
        estimators=options.names(estimators),
        by=options.names(by),
        clip=clip,
        block=block,
        seed=seed,
    )
    if json:
        print_json(_plain(known, found))
    else:
        _show(known, found)


def _policy(text: str) -> Named:
    return text if text == "random" or text.startswith("arm:") else policy_of(text)


def _plain(log: Log, found: Backtest) -> dict[str, Any]:
    reading = log.reading
    return {
        "log": {"format": reading.format, "rows": len(log), "arms": log.n_arms, "bad": asdict(reading.bad)},
        "notes": [*reading.notes, *found.left_out],
        "estimates": [{name: _number(value) for name, value in row.items()} for row in found.rows()],
        "weights": {policy: asdict(weights) for policy, weights in found.weights.items()},
        "warnings": {policy: list(said) for policy, said in found.warnings.items()},
    }


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(log: Log, found: Backtest) -> None:
    say(f"[dim]{escape(log.preview(rows=0))}[/]")
    whole = [estimate for estimate in found.estimates if not estimate.by]
    columns = ["policy", "estimator", "mean reward", "95% interval", "decisions", "warning"]
    print_table("What policies would have earned", columns, [_cells(one) for one in whole], right=(2, 3, 4))
    for by in dict.fromkeys(one.by for one in found.estimates if one.by):
        some = [[one.slice, *_cells(one)] for one in found.estimates if one.by == by]
        print_table(f"By {by}", [by, *columns], some, right=(3, 4, 5))
    for sentence in found.left_out:
        say(escape(sentence))
    for policy, sentences in found.warnings.items():
        for sentence in sentences:
            say(f"{escape(policy)}: {escape(sentence)}")


def _cells(one: Estimate) -> list[str]:
    known = math.isfinite(one.low) and math.isfinite(one.high)
    return [
        escape(one.policy),
        one.estimator,
        f"{one.value:.4g}",
        f"{one.low:.4g} to {one.high:.4g}" if known else "not known",
        f"{one.rows:,}",
        one.warning,
    ]
