"""What of the paper is played by which suites, and copies of suites on other seeds or in one world."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tidepull._internal.files import write_whole
from tidepull.errors import ParameterError
from tidepull.experiments.suite import Suite, find_suite, load_suite, own_suites, parse_suite
from tidepull.paper.exploration import TRIALS as EXPLORED
from tidepull.reporting.published import TRIALS


class Target(StrEnum):
    """What of the paper."""

    table = "table"
    curves = "curves"
    sensitivity = "sensitivity"
    criteo = "criteo"
    stationary = "stationary"
    exploration = "exploration"
    theory = "theory"
    all = "all"


_OF_TABLE = ("paper-grid-noncontextual", "paper-grid-contextual")
_OF_EXPLORATION = ("paper-exploration", "paper-exploration-more")
SEARCHES = (*_OF_TABLE, *_OF_EXPLORATION)
"""Suites whose best settings are reported on other seeds afterwards."""
SELECTED = "-selected"
"""The ending of the suite that reports what a search chose."""
ONE_WORLD = 0
"""The seed of the one realisation of each problem, where all trials are played in one."""

_TABLE = ("paper-table", *(f"{search}{SELECTED}" for search in _OF_TABLE))
_REPORTS: dict[Target, tuple[str, ...]] = {
    Target.table: _TABLE,
    Target.curves: _TABLE,
    Target.stationary: ("paper-stationary",),
    Target.criteo: ("paper-criteo",),
    Target.exploration: ("paper-exploration-report", *(f"{search}{SELECTED}" for search in _OF_EXPLORATION)),
    Target.sensitivity: (),
    Target.theory: (),
}
_QUICK = {target: (f"quick-{target.value}",) for target in _REPORTS if target is not Target.theory} | {
    Target.curves: ("quick-table",),
    Target.theory: (),
}
_SEARCHED = {Target.sensitivity: _OF_TABLE, Target.exploration: _OF_EXPLORATION, Target.all: SEARCHES}


def suites_of(target: Target, *, quick: bool) -> list[str]:
    """The suites that report a target, the shortest first; best settings are those that come along."""
    table = _QUICK if quick else _REPORTS
    targets = table if target is Target.all else (target,)
    along = {path.stem for path in own_suites().glob(f"*{SELECTED}.toml")}
    names = dict.fromkeys(name for wanted in targets for name in table[wanted])
    return [name for name in names if not name.endswith(SELECTED) or name in along]


def searches_of(target: Target) -> tuple[str, ...]:
    """The searches that belong to a target."""
    return _SEARCHED.get(target, ())


def report_seeds(search: str, trials: int | None) -> str:
    """On which seeds the choice of a search is reported: as many as claims need, or `trials`."""
    return f"0-{(trials or (EXPLORED if search in _OF_EXPLORATION else TRIALS)) - 1}"


@dataclass(frozen=True, slots=True)
class Part:
    """A suite of the paper; `text` is there when it is not played as it comes along."""

    name: str
    text: str = ""

    def load(self) -> Suite:
        """The suite itself."""
        if not self.text:
            return load_suite(self.name)
        return parse_suite(self.text, where=self.name, folder=find_suite(self.name).parent)

    def written(self, directory: Path) -> str:
        """What can be swept: the name, or the file of the copy."""
        if not self.text:
            return self.name
        path = directory / "suites" / f"{self.name}.toml"
        write_whole(path, self.text.encode())
        return str(path)


def part(name: str, *, trials: int | None, one_world: bool) -> Part:
    """The suite, or a copy of it on fewer or more seeds (searches keep theirs), or in one world."""
    text = original = find_suite(name).read_text()
    if trials is not None and name not in SEARCHES and name != "quick-sensitivity":
        text = _changed(text, f'seeds = "0-{trials - 1}"', f"--trials: the suite {name}")
    if one_world:
        seeds = re.search(_SEEDS, text)
        line = f"{seeds[0] if seeds else ''}\nproblem_seed = {ONE_WORLD}"
        text = _changed(text, line, f"--one-world: the suite {name}")
    return Part(name, "" if text == original else text)


_SEEDS = r'(?m)^seeds = ".*"$'


def _changed(text: str, line: str, who: str) -> str:
    changed, count = re.subn(_SEEDS, lambda _: line, text, count=1)
    if not count:
        raise ParameterError(f"{who} does not say its seeds in one line")
    return changed
