"""`from-log`: a world fitted to a log (`tidepull model LOG --out FILE`), played as a problem.

The world itself belongs to `tidepull.logs.world`, which is above this package and loaded when the
problem is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tidepull.errors import DataError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.datasets import find
from tidepull.protocols import Problem
from tidepull.random import Streams


@dataclass(frozen=True, kw_only=True)
class FromLogParameters(Parameters):
    """Parameters of `from-log`."""

    path: str | None = parameter(
        None, "the fitted world, made by `tidepull model LOG --out FILE`; it must be given"
    )
    drawn: bool = parameter(
        True,
        "the seed draws arms' means from what the log leaves open, instead of the model's best "
        "guess",
    )


def from_log(parameters: FromLogParameters, streams: Streams) -> Problem:
    """The world of a file."""
    world = import_module("tidepull.logs.world")
    problem: Problem = world.FromLog(world.load(_place(parameters)), parameters.drawn, streams)
    return problem


def files(parameters: FromLogParameters) -> list[Path]:
    """The file that the problem reads; nothing where none is named, as building the problem says
    so."""
    return [] if parameters.path is None else [_place(parameters)]


def _place(parameters: FromLogParameters) -> Path:
    if parameters.path is None:
        raise DataError(
            "from-log needs a fitted world: --set path=FILE, made by 'tidepull model LOG --out "
            "FILE'"
        )
    place = Path(parameters.path).expanduser()
    if place.is_file():
        return place
    return find(place.name) or place
