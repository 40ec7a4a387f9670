"""A frame with everything that tables, pictures and pages need of it, each trial's rounds read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tidepull.reporting.aggregate import Panel, panels
from tidepull.reporting.frame import Frame, Study
from tidepull.reporting.normalise import random_regret
from tidepull.reporting.sensitivity import Sensitivity, sensitivities
from tidepull.reporting.traces import MOST_POINTS, Band, Played, Trace, read_trace
from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """One study with its curves; `random` is the regret of random arms where it is known, and `traces` goes by
    the groups' names."""

    study: Study
    random: float | None
    traces: Mapping[str, Trace]
    sensitivities: tuple[Sensitivity, ...]

    def bands(self, kind: str) -> dict[str, Band]:
        """The named bands (`regret`, `regimes`, `phases`) of all groups that have them."""
        found = {name: getattr(trace, kind) for name, trace in self.traces.items()}
        return {name: band for name, band in found.items() if band is not None}


@dataclass(frozen=True, slots=True, eq=False)
class ExaminedSuite:
    """All studies of one suite, and their scores taken together."""

    name: str
    studies: tuple[Examined, ...]
    panels: tuple[Panel, ...]


def examine(frame: Frame, *, on_study: Callable[[Study], None] | None = None) -> list[ExaminedSuite]:
    """Read the rounds of all groups, study by study, and group the studies by suite."""
    by_suite: dict[str, list[Examined]] = {}
    for study in frame.studies:
        if on_study is not None:
            on_study(study)
        by_suite.setdefault(study.suite, []).append(examined(study))
    return [ExaminedSuite(name, tuple(studies), tuple(scored(studies))) for name, studies in by_suite.items()]


def examined(
    study: Study, *, points: int = MOST_POINTS, known: Mapping[str, Played] = MappingProxyType({})
) -> Examined:
    """Read the rounds of one study's groups, except of trials that are known (by hash, with as many points)."""
    random = random_regret(study)
    traces = {
        group.name: read_trace(study, group, random, points=points, known=known) for group in study.groups
    }
    return Examined(study, random, traces, tuple(sensitivities(study)))


def scored(studies: Sequence[Examined]) -> list[Panel]:
    """Scores over all the studies for which the regret of random arms is known."""
    normalised: dict[str, dict[str, FloatArray]] = {}
    for one in studies:
        if one.random:
            for group in one.study.contenders:
                share = group.regrets / one.random
                normalised.setdefault(group.name, {})[one.study.title] = share
    return panels(normalised)
