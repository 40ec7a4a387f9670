"""Options that mean the same in every command, and what became of those with an older name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from tidepull.cli.console import say
from tidepull.errors import ParameterError
from tidepull.experiments.grid import MOST_SEEDS, parse_seeds

SEEDS = "a list such as 0-9 or 0,3,5; a number alone counts: 10 is 0-9, and only seed 7 is 7-7."
"""How every `--seeds` is written; the end of its help."""

DELAY = "How many rounds late rewards come: N, or geometric:MEAN[:LOST] (LOST is the share that never comes)."
"""How every `--delay` is written."""


KNOWN = "CSV files of trials, or folders of them, that need not be played again; may be given again."
"""How every `--known` is meant."""


def seeds_of(text: str, option: str = "--seeds") -> tuple[int, ...]:
    """The seeds that an option names, in rising order."""
    try:
        if not text.strip().isdecimal():
            return parse_seeds(text)
        count = int(text)
        if not 1 <= count <= MOST_SEEDS:
            raise ValueError(f"there must be 1 to {MOST_SEEDS:,} of them, got {count:,}")
        return tuple(range(count))
    except ValueError as error:
        raise ParameterError(f"{option}: {error}") from None


def renamed(old: str, new: str) -> Any:
    """An option that is gone: whoever uses it is told the new one."""
    return typer.Option(None, old, hidden=True, callback=_refuse(old, new))


def _refuse(old: str, new: str) -> Callable[[str | None], None]:
    def refuse(value: str | None) -> None:
        if value is not None:
            raise ParameterError(f"{old} is now {new}")

    return refuse


def former(old: str) -> Any:
    """An option that has another name now and still works, for one version; `given` reads both."""
    return typer.Option(None, old, hidden=True)


def given(new: str, value: Path | None, old: str, former_value: Path | None, *, since: str) -> Path:
    """What an option says under its new name or, with a word of warning, under its old one."""
    if former_value is not None:
        say(f"{old} is called {new} since version {since}, and goes with the next one")
    found = value or former_value
    if found is None:
        raise ParameterError(f"{new} is missing: say which file to write")
    return found
