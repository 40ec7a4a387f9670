"""`tidepull diagnose`, `backtest` and `model`: commands that read a log, with common options for
reading it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from typer import Argument, Option

from tidepull._internal.files import write_whole
from tidepull._internal.warm_up import warm_up
from tidepull.cli.console import print_json, print_table, progress, replace_first, say
from tidepull.cli.options import JSON, policy_of
from tidepull.errors import ParameterError
from tidepull.logs import Backtest, Diagnosis, Estimate, Log, read, simulator
from tidepull.logs import backtest as run_backtest
from tidepull.logs import diagnose as run_diagnosis
from tidepull.logs.backtesting import CLIP
from tidepull.logs.diagnosis.events import MOST
from tidepull.logs.diagnosis.structure import KINDS
from tidepull.logs.estimators import ESTIMATORS
from tidepull.logs.reading import FORMATS
from tidepull.logs.world import MOST_ROWS
from tidepull.registry import Named

_READING: dict[str, tuple[type, Any, str]] = {
    "format": (str, None, f"Format of the log: {', '.join(FORMATS)}. Default: guessed."),
    "arm": (str, None, "Column of the arm."),
    "reward": (str, None, "Column of the reward."),
    "time": (str, None, "Column of the time."),
    "propensity": (str, None, "Column of the probability with which the arm was chosen."),
    "paid_at": (str, None, "Column of the time at which the reward came; learners see it then."),
    "context": (str, None, "Columns of the context, separated by commas; none: no context."),
    "arms": (str, None, "All arms, separated by commas, if some were never played."),
    "timezone": (
        str,
        "UTC",
        "Time zone of hours, weekdays and dates without a zone, such as Europe/Berlin.",
    ),
    "most_bad": (float, 0.1, "Largest share of bad rows; a log with more is refused."),
    "uniform": (bool, False, "All arms had the same probability in the log, which is checked."),
    "last": (int, None, "Use only the latest N decisions."),
}
"""Options of every command that reads a log: type, default and help."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """The file of a log and the options for reading it."""

    path: Path
    options: dict[str, Any]

    def read(self) -> Log:
        """Read the log."""
        options = dict(self.options)
        uniform, last = options.pop("uniform", False), options.pop("last", None)
        arms, context = options.pop("arms"), options.pop("context")
        log = read(
            self.path,
            arms=None if arms is None else _names(arms),
            context=None if context is None else [] if context == "none" else _names(context),
            **options,
        )
        log = log.with_uniform_propensities() if uniform else log
        return log if last is None else log.where(slice(max(0, len(log) - last), None))


def _reads_log(
    *, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `log` of a command by the file of the log and the options for reading
    it."""
    reading = {name: option for name, option in _READING.items() if name not in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapper(**values: Any) -> None:
            source = LogSource(values.pop("log"), {name: values.pop(name) for name in reading})
            command(source, **values)

        argument = Argument(metavar="LOG", help="A file of decisions; its format is guessed.")
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter("log", keyword, default=argument, annotation=Path)]
        for name, (kind, default, words) in reading.items():
            flag = f"--{name.replace('_', '-')}"
            option = Option(default, flag, help=words, min=1 if kind is int else None)
            parameters.append(inspect.Parameter(name, keyword, default=option, annotation=kind))
        return replace_first(command, parameters, wrapper)

    return decorate


def _names(text: str) -> list[str]:
    """Split names that are separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text and not names:
        raise ParameterError(f"give names with commas between them, got {text!r}")
    return names


@_reads_log()
def diagnose(
    log: LogSource,
    out: Path = Option(
        None, help="HTML page to write. Default: LOG's name with .html, in this folder."
    ),
    most: int = Option(
        MOST,
        min=100,
        help="Most events; in a longer log, neighbouring decisions of an arm are averaged.",
    ),
    preview: bool = Option(
        False, "--preview", help="Only show how the log is read, with its first rows."
    ),
    seed: int = Option(0, min=0, help="Seed of shuffles, models and intervals."),
    json: bool = Option(False, "--json", help="Print only JSON; write a page only with --out."),
) -> None:
    """Report whether rewards depend on time in a log, how, whether forgetting would help, and
    warnings."""
    known = log.read()
    if preview:
        say(escape(known.preview()))
        return
    warm_up(lambda: say("compiling kernels (once, about a minute)"))
    with progress("shuffling", 1) as bar:

        def update(what: str, done: int, of: int) -> None:
            task = bar.tasks[0]
            if task.description != what:
                bar.reset(task.id, total=of, description=what)
            bar.update(task.id, completed=done)

        diagnosis = run_diagnosis(known, most=most, seed=seed, progress=update)
    page = out if out is not None or json else Path(log.path.name.split(".")[0] + ".html")
    if page is not None:
        from tidepull.reporting.log_page import render

        write_whole(page, render(diagnosis).encode())
        say(f"{page} written")
    if json:
        print_json(diagnosis.plain())
    else:
        _show_diagnosis(diagnosis)


def _show_diagnosis(diagnosis: Diagnosis) -> None:
    say(f"[dim]{escape(diagnosis.log.preview(rows=0))}[/]")
    arms = sorted(diagnosis.overview.arms, key=lambda one: -one.decisions)
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
    columns = ["arm", "decisions", "share", "mean reward", "95% interval"]
    print_table(f"Arms{more}", columns, rows, right=(1, 2, 3, 4))
    if diagnosis.structure is not None:
        shares = sorted(diagnosis.structure.weights.items(), key=lambda item: -item[1])
        evidence = [[KINDS[kind], f"{weight:.1%}"] for kind, weight in shares]
        print_table(
            "Evidence for each kind of time structure", ["kind", "share"], evidence, right=(1,)
        )
    sentences = [[escape(sentence)] for sentence in diagnosis.recommendation]
    print_table("In short", ["what this log says"], sentences)
    for sentence in diagnosis.warnings[len(diagnosis.log.reading.notes) :]:  # shown above
        say(f"caveat: {escape(sentence)}")
    say(f"[dim]{escape(diagnosis.used)}[/]")


@_reads_log()
def backtest(
    log: LogSource,
    policies: str = Option(
        "random",
        help="Ids as tide,ucb (see: tidepull list policies), with parameters as d-ucb:discount=0.99:xi=0.1; random, or "
        "arm:LABEL for one arm.",
    ),
    estimators: str = Option(
        "snips,dm,dr", help=f"Estimators for policies that do not learn: {', '.join(ESTIMATORS)}."
    ),
    by: str = Option("", help="Also estimate by day, hour or weekday; several with commas."),
    clip: float = Option(
        CLIP,
        help="Largest weight; larger ones are clipped (clipped) or left to the model (switch-dr).",
    ),
    block: int = Option(
        None,
        help="Neighbouring rows resampled together. Default: the cube root of the number of rows.",
    ),
    seed: int = Option(0, min=0, help="Seed of policies and intervals."),
    json: bool = JSON,
) -> None:
    """Estimate what other policies would have earned on a log, with 95% intervals and warnings."""
    known = log.read()
    result = run_backtest(
        known,
        [_policy(name) for name in _names(policies)],
        estimators=_names(estimators),
        by=_names(by),
        clip=clip,
        block=block,
        seed=seed,
    )
    if json:
        print_json(_plain_backtest(known, result))
    else:
        _show_backtest(known, result)


def _policy(text: str) -> Named:
    return text if text == "random" or text.startswith("arm:") else policy_of(text)


def _plain_backtest(log: Log, result: Backtest) -> dict[str, Any]:
    reading = log.reading
    size = {"format": reading.format, "rows": len(log), "arms": log.n_arms}
    return {
        "log": {**size, "bad": asdict(reading.bad)},
        "notes": [*reading.notes, *result.left_out],
        "estimates": result.rows(),
        "weights": {policy: asdict(weights) for policy, weights in result.weights.items()},
        "warnings": {policy: list(sentences) for policy, sentences in result.warnings.items()},
    }


def _show_backtest(log: Log, result: Backtest) -> None:
    say(f"[dim]{escape(log.preview(rows=0))}[/]")
    whole = [_cells(one) for one in result.estimates if not one.by]
    columns = ["policy", "estimator", "mean reward", "95% interval", "decisions", "caveats"]
    print_table("What policies would have earned", columns, whole, right=(2, 3, 4))
    for by in dict.fromkeys(one.by for one in result.estimates if one.by):
        slices = [[one.slice, *_cells(one)] for one in result.estimates if one.by == by]
        print_table(f"By {by}", [by, *columns], slices, right=(3, 4, 5))
    for sentence in result.left_out:
        say(escape(sentence))
    for policy, sentences in result.warnings.items():
        for sentence in sentences:
            say(f"{escape(policy)}: {escape(sentence)}")


def _cells(one: Estimate) -> list[str]:
    known = math.isfinite(one.low) and math.isfinite(one.high)
    interval = f"{one.low:.4g} to {one.high:.4g}" if known else "not known"
    value, rows = f"{one.value:.4g}", f"{one.rows:,}"
    return [escape(one.policy), one.estimator, value, interval, rows, one.warning]


@_reads_log(without=("uniform", "last"))
def model(
    log: LogSource,
    out: Path = Option(..., help="File to write, for --set path=FILE."),
    most: int = Option(MOST_ROWS, min=20, help="Use at most the latest N decisions."),
    json: bool = JSON,
) -> None:
    """Fit a simulated problem to a log (means by arm, context and time), to play policies in it."""
    known = log.read()
    world = simulator(known, most=most)
    world.save(out)
    if json:
        print_json({"to": str(out), **world.about})
        return
    say(f"[dim]{escape(known.preview(rows=0))}[/]")
    widths = dict(zip(world.about["parts"], world.about["widths"], strict=True))
    absent = {"context": not known.context, "clock": not known.dated}
    rows = [[part, f"{width:g}"] for part, width in widths.items() if not absent.get(part)]
    title = "How far arms differ by each part (standard deviations of rewards)"
    print_table(title, ["part", "width"], rows, right=(1,))
    rounds = len(world.features)
    say(
        f"{out} written: {rounds:,} rounds, {len(world.arms)} arms; a model of the log, not the log"
    )
    say(f"play it: tidepull run from-log tide --set path={escape(str(out))} --horizon {rounds}")
