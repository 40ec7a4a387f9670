"""Where rules find the trials of a policy on a problem, by the names that the paper uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidepull.paper.verdicts import Line, missing
from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.traces import Examined

BEST_RNN, DEFAULT_RNN, BEST_NN, DEFAULT_NN = "rnlps-best", "rnlps-default", "nlps-best", "nlps-default"
DISCOUNTED, WINDOWED = "discounted", "windowed"
RECURRENT = (BEST_RNN, DEFAULT_RNN)
FEEDFORWARD = (BEST_NN, DEFAULT_NN)
CONVENTIONAL = (DISCOUNTED, WINDOWED)
EVERY = (*RECURRENT, *FEEDFORWARD, *CONVENTIONAL)

_NAMES: Mapping[str, tuple[str, ...]] = {
    DISCOUNTED: ("d-ucb", "d-lin-ucb"),
    WINDOWED: ("sw-ucb", "sw-lin-ucb"),
}
"""A conventional policy stands there with the setting that reproduces the paper and with all that were searched."""
_SHOWN = {DISCOUNTED: "D-(Lin)UCB", WINDOWED: "SW-(Lin)UCB"}


@dataclass(frozen=True, slots=True)
class Player:
    """The trials of one policy on one problem."""

    where: Examined
    group: Group

    @property
    def problem(self) -> str:
        """How the problem is called."""
        return self.where.study.title

    @property
    def name(self) -> str:
        """How the policy is called."""
        return self.group.name


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reports by problem (the longest trials of each), searches, and the studies that compare kinds of exploration."""

    at: Mapping[str, Examined]
    searches: Sequence[Study]
    explored: Mapping[str, Examined]

    def players(self, problem: str, kinds: Iterable[str]) -> tuple[list[Player], list[Line]]:
        """Who is there of the kinds that are asked for, and a line for each that is missing or played too short."""
        where = self.at.get(problem)
        found, lost = [], []
        for kind in kinds:
            if kind in CONVENTIONAL and problem in published.REGRET and kind not in published.REGRET[problem]:
                continue  # the paper has no such policy there
            groups = _groups(where, kind) if where else []
            found += [Player(where, group) for group in groups if where]
            if not groups:
                lost.append(missing(problem, f"{_SHOWN.get(kind, kind)} was not played"))
        rounds = published.HORIZONS.get(problem)
        if where and rounds and where.study.horizon < rounds:
            text = f"trials of {where.study.horizon:,} rounds, where the paper has {rounds:,}"
            lost.append(missing(problem, text))
        return found, lost


def gather(reports: Sequence[Examined], searches: Sequence[Study], explored: Sequence[Examined]) -> Evidence:
    """All that rules look at; of a problem that was played at several lengths, the longest."""
    return Evidence(_longest(reports), searches, _longest(explored))


def _longest(examined: Sequence[Examined]) -> dict[str, Examined]:
    return {one.study.problem: one for one in sorted(examined, key=lambda one: one.study.horizon)}


def _groups(where: Examined, kind: str) -> list[Group]:
    if kind not in _NAMES:
        return [group for group in where.study.groups if group.name == kind]
    found = [group for group in where.study.groups if _plain(group.name) in _NAMES[kind]]
    return list({group.hashes: group for group in reversed(found)}.values())[::-1]


def _plain(name: str) -> str:
    """The policy behind the name of a setting that was searched."""
    return name.removesuffix("-selected").removesuffix("-best")
