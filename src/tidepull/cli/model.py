"""`tidepull model LOG --out FILE`: a world like that of a log, for `tidepull run from-log` and suites."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape

from tidepull.cli import log_options as options
from tidepull.cli.console import print_json, print_table, say
from tidepull.cli.options import former, given
from tidepull.logs import simulator
from tidepull.logs.world import MOST_ROWS


def model(
    log: Path = options.LOG,
    out: Path = typer.Option(None, help="The file to write, for --set path=FILE."),
    to: Path = former("--to"),
    most: int = typer.Option(MOST_ROWS, min=20, help="The latest decisions that are taken."),
    format: str = options.FORMAT,
    arm: str = options.ARM,
    reward: str = options.REWARD,
    time: str = options.TIME,
    propensity: str = options.PROPENSITY,
    paid_at: str = options.PAID_AT,
    context: str = options.CONTEXT,
    arms: str = options.ARMS,
    zone: str = options.ZONE,
    most_bad: float = options.MOST_BAD,
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Fit a world to a log: arms' means by context and time with what the log leaves open, to play policies in."""
    path = given("--out", out, "--to", to, since="0.2")
    known = options.read_log(
        log, format=format, arm=arm, reward=reward, time=time, propensity=propensity, paid_at=paid_at,
        context=context, arms=arms, uniform=False,
        zone=zone, most_bad=most_bad, last=None,
    )  # fmt: skip
    world = simulator(known, most=most)
    world.save(path)
    here = dict(zip(world.about["parts"], world.about["widths"], strict=True))
    if not known.context:
        here.pop("context")
    if not known.dated:
        here.pop("clock")
    if json:
        print_json({"to": str(path), **world.about})
        return
    say(f"[dim]{escape(known.preview(rows=0))}[/]")
    rows = [[part, f"{width:g}"] for part, width in here.items()]
    print_table(
        "How far arms differ by each part (standard deviations of rewards)",
        ["part", "width"],
        rows,
        right=(1,),
    )
    say(
        f"{path} written: {len(world.features):,} rounds, {len(world.arms)} arms; a model of the log, not the log"
    )
    say(f"play it: tidepull run from-log tide --set path={escape(str(path))} --horizon {len(world.features)}")
