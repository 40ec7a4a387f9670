"""`tidepull diagnose LOG`: does time matter in this log, how, and what follows."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape
from rich.progress import Progress

from tidepull._internal.files import write_whole
from tidepull.cli import log_options as options
from tidepull.cli.console import print_json, print_table, progress, say
from tidepull.logs import Diagnosis, Log
from tidepull.logs import diagnose as examine
from tidepull.logs.diagnosis.events import MOST
from tidepull.logs.diagnosis.structure import KINDS

_TITLES = ("shuffling", "shuffling beside the contexts", "weighing hypotheses")


def diagnose(
    log: Path = options.LOG,
    out: Path = typer.Option(None, help="The page to write (LOG's name with .html, in this folder)."),
    most: int = typer.Option(
        MOST,
        min=100,
        help="Events that a longer log is made into: neighbouring decisions of an arm are averaged.",
    ),
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
    preview: bool = options.PREVIEW,
    seed: int = typer.Option(0, min=0, help="Seed of shuffles, hypotheses and intervals."),
    json: bool = typer.Option(
        False, "--json", help="Only JSON on stdout; a page is written only with --out."
    ),
) -> None:
    """Say whether rewards depend on time in a log, how, whether forgetting would help, with warnings."""
    known = options.read_log(
        log, format=format, arm=arm, reward=reward, time=time, propensity=propensity, paid_at=paid_at,
        context=context, arms=arms, uniform=uniform,
        zone=zone, most_bad=most_bad, last=last,
    )  # fmt: skip
    if preview:
        say(escape(known.preview()))
        return
    found = _examined(known, most, seed)
    page = out if out is not None or json else Path(log.name.split(".")[0] + ".html")
    if page is not None:
        from tidepull.reporting.log_page import render

        write_whole(page, render(found).encode())
        say(f"{page} written")
    if json:
        print_json(found.plain())
    else:
        _show(found)


def _examined(log: Log, most: int, seed: int) -> Diagnosis:
    with progress("shuffling", 1) as bar:

        def told(what: str, done: int, of: int) -> None:
            _move(bar, what, done, of)

        return examine(log, most=most, seed=seed, progress=told)


def _move(bar: Progress, what: str, done: int, of: int) -> None:
    task = bar.tasks[0]
    if task.description != what:
        bar.reset(task.id, total=of, description=what)
    bar.update(task.id, completed=done)


def _show(found: Diagnosis) -> None:
    say(f"[dim]{escape(found.log.preview(rows=0))}[/]")
    arms = sorted(found.overview.arms, key=lambda one: -one.decisions)
    rows = [
        [
            escape(one.arm),
            f"{one.decisions:,}",
            f"{one.share:.1%}",
            f"{one.mean:.4g}",
            f"{one.low:.4g} to {one.high:.4g}",
        ]
        for one in arms[:10]
    ]
    more = f" (10 of {len(arms):,})" if len(arms) > 10 else ""
    print_table(
        f"Arms{more}", ["arm", "decisions", "share", "mean reward", "95% interval"], rows, right=(1, 2, 3, 4)
    )
    if found.structure is not None:
        shares = sorted(found.structure.weights.items(), key=lambda item: -item[1])
        evidence = [[KINDS[kind], f"{weight:.1%}"] for kind, weight in shares]
        print_table("Evidence for each kind of time structure", ["kind", "share"], evidence, right=(1,))
    print_table("In short", ["what this log says"], [[escape(sentence)] for sentence in found.recommendation])
    for sentence in found.warnings:
        say(f"warning: {escape(sentence)}")
    say(f"[dim]{escape(found.used)}[/]")
