"""How a command is told to read a log: the same options everywhere."""

from __future__ import annotations

from pathlib import Path

import typer

from tidepull.errors import ParameterError
from tidepull.logs import Log, read
from tidepull.logs.reading import FORMATS

LOG = typer.Argument(metavar="LOG", help="A file of decisions; its format is guessed.")
FORMAT = typer.Option(None, help=f"One of {', '.join(FORMATS)}.")
ARM = typer.Option(None, help="Column of the arm.")
REWARD = typer.Option(None, help="Column of the reward.")
TIME = typer.Option(None, help="Column of the time.")
PROPENSITY = typer.Option(None, help="Column of the chance that the arm had.")
PAID_AT = typer.Option(None, help="Column of when the reward came: learners hear of it then.")
CONTEXT = typer.Option(None, help="Columns of the context, with commas; none for no context.")
ARMS = typer.Option(None, help="All arms there were, with commas, if some were never played.")
UNIFORM = typer.Option(False, "--uniform", help="Every arm was equally likely when it was logged.")
ZONE = typer.Option("UTC", help="Time zone of hours and weekdays, as Europe/Berlin.")
MOST_BAD = typer.Option(0.1, help="Share of bad rows beyond which the log is refused.")
PREVIEW = typer.Option(False, "--preview", help="Only show how the log is understood, with its first rows.")
LAST = typer.Option(None, min=1, help="Only so many of the latest decisions.")


def read_log(
    path: Path,
    *,
    format: str | None,
    arm: str | None,
    reward: str | None,
    time: str | None,
    propensity: str | None,
    paid_at: str | None,
    context: str | None,
    arms: str | None,
    uniform: bool,
    zone: str,
    most_bad: float,
    last: int | None,
) -> Log:
    """The log as the options have it."""
    log = read(
        path, format=format, arm=arm, reward=reward, time=time, propensity=propensity,
        paid_at=paid_at, arms=None if arms is None else names(arms),
        context=None if context is None else [] if context == "none" else names(context),
        zone=zone, most_bad=most_bad,
    )  # fmt: skip
    log = log.with_uniform_propensities() if uniform else log
    return log if last is None else log.where(slice(max(0, len(log) - last), None))


def names(text: str) -> list[str]:
    """Names with commas between them."""
    made = [name.strip() for name in text.split(",") if name.strip()]
    if text and not made:
        raise ParameterError(f"give names with commas between them, got {text!r}")
    return made
