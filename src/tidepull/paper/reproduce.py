"""The parts of the paper: suites that play each, their copies on other seeds, what they cost, and
the simulations of the proof."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tidepull
from tidepull._internal.files import write_whole
from tidepull.errors import ParameterError
from tidepull.experiments.grid import setting_text
from tidepull.experiments.selection import Default
from tidepull.experiments.suite import Suite, find_suite, load_suite, own_suites, parse_suite
from tidepull.paper.authors import AGAIN
from tidepull.paper.exploration import TRIALS as EXPLORED
from tidepull.paper.page import suite_costs
from tidepull.paper.theory.simulate import configurations, simulate
from tidepull.paper.theory.tables import simulation_report
from tidepull.reporting.frames import Frame
from tidepull.reporting.published import DEFAULTS, TRIALS


class PaperPart(StrEnum):
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
AUTHORS = "paper-authors"
BEST = ("rnlps-best", "nlps-best")
SELECTED = "-selected"
"""The ending of the suite that reports what a search chose."""
ONE_WORLD = 0
"""The seed of the one realisation of each problem, where all trials are played in one."""

_TABLE = ("paper-table", AUTHORS, AGAIN, *(f"{search}{SELECTED}" for search in _OF_TABLE))
_REPORTS: dict[PaperPart, tuple[str, ...]] = {
    PaperPart.table: _TABLE,
    PaperPart.curves: _TABLE,
    PaperPart.stationary: ("paper-stationary",),
    PaperPart.criteo: ("paper-criteo",),
    PaperPart.exploration: (
        "paper-exploration-report",
        *(f"{search}{SELECTED}" for search in _OF_EXPLORATION),
    ),
    PaperPart.sensitivity: (),
    PaperPart.theory: (),
}
_QUICK = {
    target: (f"quick-{target.value}",) for target in _REPORTS if target is not PaperPart.theory
} | {PaperPart.curves: ("quick-table",), PaperPart.theory: ()}
_SEARCHED = {
    PaperPart.sensitivity: _OF_TABLE,
    PaperPart.exploration: _OF_EXPLORATION,
    PaperPart.all: SEARCHES,
}


def suites_of_part(target: PaperPart, *, quick: bool) -> list[str]:
    """The suites that report a target, the shortest first; best settings are those that come
    along."""
    table = _QUICK if quick else _REPORTS
    targets = table if target is PaperPart.all else (target,)
    along = {path.stem for path in own_suites().glob(f"*{SELECTED}.toml")}
    names = dict.fromkeys(name for wanted in targets for name in table[wanted])
    return [name for name in names if not name.endswith(SELECTED) or name in along]


def searches_of_part(target: PaperPart) -> tuple[str, ...]:
    """The searches that belong to a target."""
    return _SEARCHED.get(target, ())


def report_seeds(search: str, trials: int | None) -> str:
    """On which seeds the choice of a search is reported: as many as claims need, or `trials`."""
    return f"0-{(trials or (TRIALS if search == _OF_TABLE[1] else EXPLORED)) - 1}"


@dataclass(frozen=True, slots=True)
class PaperSuite:
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


def paper_suite(
    name: str, *, trials: int | None, one_world: bool, chosen: Path | None = None
) -> PaperSuite:
    """The suite, or a copy of it on fewer or more seeds (searches and
    cells that are played again keep theirs), or in one world.

    The authors' world gets the best networks of the selections in `chosen`, or of those that come
    along.
    """
    text = original = find_suite(name).read_text()
    if name == AUTHORS:
        text += "".join(searched_there(text, [_selection(s, chosen) for s in _OF_TABLE]))
    if trials is not None and name not in (*SEARCHES, AGAIN, "quick-sensitivity"):
        text = _with_seeds(text, f'seeds = "0-{trials - 1}"', f"--trials: the suite {name}")
    if one_world and "\nproblem_seed = " not in text:
        text = text.replace("\nseeds = ", f"\nproblem_seed = {ONE_WORLD}\nseeds = ", 1)
    return PaperSuite(name, "" if text == original else text)


def _selection(search: str, chosen: Path | None) -> Path:
    own = chosen / f"{search}{SELECTED}.toml" if chosen else None
    return own if own and own.is_file() else find_suite(f"{search}{SELECTED}")


def searched_there(authors: str, selections: Iterable[Path]) -> Iterable[str]:
    """Policies of the suite in the authors' world, as TOML: the best networks that searches chose,
    where the paper and its repository do not say theirs."""
    present = {
        (p["name"], on) for p in tomllib.loads(authors)["policies"] for on in p.get("problems", ())
    }
    for file in selections:
        for policy in tomllib.loads(file.read_text())["policies"]:
            for problem in policy.get("problems", ()):
                where = f"{problem}-authors"
                if policy["name"] in BEST and (policy["name"], where) not in present:
                    setting = ", ".join(
                        f"{key} = {json.dumps(value)}"
                        for key, value in policy["parameters"].items()
                    )
                    yield (
                        f'\n[[policies]]\nname = "{policy["name"]}"\nid = "{policy["id"]}"\n'
                        f'problems = ["{where}"]\nparameters = {{ {setting} }}\n'
                        f'chosen = "our own search, in worlds of other seeds: {policy["chosen"]}"\n'
                    )


_SEEDS = r'(?m)^seeds = ".*"$'


def _with_seeds(text: str, line: str, subject: str) -> str:
    """The suite with another line of seeds; problems lose seeds of their own."""
    head, *parts = re.split(_SEEDS, text)
    if not parts:
        raise ParameterError(f"{subject} does not say its seeds in one line")
    return f"{head}{line}{''.join(parts)}"


HOURS_FILE = "hours.json"
"""CPU seconds of a trial of each suite, measured where the published page was made."""


def measured_hours(frame: Frame, unplayed: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Trials, CPU hours and trials not played of every suite, for the next estimate."""
    return {
        name: {
            "trials": trials,
            "cpu_hours": round(seconds / 3600, 3),
            "unplayed": unplayed.get(name, 0),
        }
        for name, (trials, seconds) in suite_costs(frame).items()
    }


def published_hours(suite: str, trials: int | None = None) -> tuple[float, bool]:
    """CPU hours of so many trials of a suite (all: None) as measured for the published page, nan
    where it has none; and whether the page lacks trials of the whole suite, which costs more."""
    known = json.loads(files("tidepull.paper").joinpath(HOURS_FILE).read_text())
    if suite not in known:
        return float("nan"), False
    hours, count = known[suite]["cpu_hours"], known[suite]["trials"]
    if trials is None:
        return float(hours), bool(known[suite]["unplayed"])
    return float(hours * trials / count), False


THEORY_FILE = "theory.json"
FULL = {"horizon": 2048, "seeds": 100, "seed": 0}
QUICK = {"horizon": 256, "seeds": 20, "seed": 0}


def simulate_theory(
    directory: Path, size: dict[str, int], *, on_round: Callable[[int], None] | None = None
) -> list[dict[str, Any]]:
    """Simulate every configuration, unless the file in `directory` has it already with this size
    and version."""
    wanted = {**size, "version": tidepull.__version__}
    stored = _stored(directory)
    if stored is not None and stored["size"] == wanted:
        return list(stored["reports"])
    cases = configurations(**size)
    reports = [simulation_report(simulate(s, scenario, on_round=on_round)) for s, scenario in cases]
    write_whole(directory / THEORY_FILE, json.dumps({"size": wanted, "reports": reports}).encode())
    return reports


def stored_reports(directory: Path) -> list[dict[str, Any]]:
    """The simulations that `directory` holds; empty where there are none."""
    stored = _stored(directory)
    return [] if stored is None else list(stored["reports"])


def _stored(directory: Path) -> dict[str, Any] | None:
    path = directory / THEORY_FILE
    return json.loads(path.read_text()) if path.is_file() else None


def papers_place(default: Default) -> str:
    """How the paper's own default fares in this search; empty where it was not among the
    settings."""
    paper: Mapping[str, Any] = DEFAULTS.get((default.policy, default.kind), MappingProxyType({}))
    varied = [part.partition("=")[0] for part in default.setting.split(",")]
    text = setting_text({name: paper[name] for name in varied if name in paper})
    if text not in default.ranking:
        return ""
    place = list(default.ranking).index(text) + 1
    score = default.ranking[text]
    return (
        f"the paper's default scores {score:.3f}, place {place} of {len(default.ranking)} ({text})"
    )
