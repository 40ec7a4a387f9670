"""The trials of a search, in a store or kept as CSV, and the suite that reports the settings chosen from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidepull.errors import InputError, WrongStoreError
from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.search.selection import BASELINE, Best, Default, Selection
from tidepull.experiments.store.archive import is_archive, read_archive
from tidepull.experiments.store.plan import read_plans
from tidepull.experiments.store.rows import Row, Rows, load_rows
from tidepull.experiments.store.store import Store
from tidepull.experiments.suites.rungs import is_last_rung, searched_suite
from tidepull.experiments.suites.seeds_text import seeds_text
from tidepull.experiments.suites.suite_text import suite_text
from tidepull.problems import problems


@dataclass(frozen=True, slots=True)
class SearchTrials:
    """Plans by name with the user's modules that they need, and how to read their rows."""

    where: Path
    plans: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]

    def suite_name(self, wanted: str | None) -> str:
        """The suite that is meant: the one that is there, or the one that is named."""
        if not self.plans:
            raise WrongStoreError(
                f"the store {self.where} holds no suite yet; `tidepull sweep` runs one there"
            )
        suites = list(dict.fromkeys(searched_suite(plan) for plan in self.plans))
        if wanted is None and len(suites) != 1:
            raise InputError(f"say which suite searched: --suite with one of {', '.join(suites)}")
        name = wanted or suites[0]
        if name not in (*suites, *self.plans):
            raise WrongStoreError(
                f"the store {self.where} has no suite '{name}'; it has: {', '.join(self.plans)}"
            )
        return name

    def rows(self, suite: str) -> Rows:
        """Trials to choose from: those of grids that were played in full, and last rungs of searches by halving.

        Short trials are never among them.
        """
        whole = self.read(suite) if suite in self.plans else None
        last = self._last_rung(suite)
        if last is None:
            if whole is None:
                raise WrongStoreError(
                    f"the search of {suite} has not reached its last rung (it has {', '.join(self._rungs(suite))}); "
                    f"`tidepull search {suite}` goes on"
                )
            return whole
        halved = self.read(last)
        if whole is None:
            return halved
        in_full = {_pair(row) for row in whole.rows}
        return Rows(
            rows=(*whole.rows, *(row for row in halved.rows if _pair(row) not in in_full)),
            missing=(*whole.missing, *halved.missing),
            damaged={**halved.damaged, **whole.damaged},
            failed={**halved.failed, **whole.failed},
        )

    def settings(self, suite: str) -> dict[tuple[str, str], int]:
        """How many settings halving began with, by problem and policy."""
        first = next(iter(self._rungs(suite)), None)
        settings: dict[tuple[str, str], set[str]] = {}
        for row in self.read(first).rows if first else ():
            settings.setdefault(_pair(row), set()).add(row.setting)
        return {pair: len(texts) for pair, texts in settings.items()}

    def unfinished(self, suite: str) -> list[tuple[str, str]]:
        """Problems and policies whose search by halving has begun and has not reached its last rung."""
        last = self._last_rung(suite)
        if last is None:
            return []
        arrived = {_pair(row) for row in (*self.read(last).rows, *self.rows(suite).rows)}
        return [pair for pair in self.settings(suite) if pair not in arrived]

    def modules(self, suite: str) -> tuple[str, ...]:
        """The user's own modules that the trials need."""
        plans = [suite] if suite in self.plans else self._rungs(suite)
        return self.plans[plans[0]]

    def _rungs(self, suite: str) -> list[str]:
        return sorted(plan for plan in self.plans if plan != suite and searched_suite(plan) == suite)

    def _last_rung(self, suite: str) -> str | None:
        return next((plan for plan in self._rungs(suite) if is_last_rung(plan)), None)


def open_search(directory: Path) -> SearchTrials:
    """A store, or a folder of CSV that `tidepull store archive` wrote."""
    if is_archive(directory):
        archive = read_archive(directory)
        return SearchTrials(directory, dict.fromkeys(archive.rows, ()), archive.loaded)
    store = Store.open(directory)
    plans = {plan.suite: plan.modules for plan in read_plans(store)}
    return SearchTrials(directory, plans, lambda suite: load_rows(store, suite))


def _pair(row: Row) -> tuple[str, str]:
    return row.played, row.name


def selected_suite(
    name: str,
    selection: Selection,
    rows: tuple[Row, ...],
    seeds: tuple[int, ...],
    horizon: int | None,
    modules: tuple[str, ...],
    searched: Mapping[tuple[str, str], int],
) -> str:
    """Write the suite that reports the chosen settings; `searched` counts the settings that halving began with."""
    worlds = [
        {
            "id": row.problem_id,
            "name": problem if problem != row.problem_id else None,
            "delay": row.delay if row.delay != AT_ONCE else None,
            "horizon": horizon or problems.entry(row.problem_id).horizon,
            "parameters": row.problem_parameters,
        }
        for problem, row in {row.played: row for row in rows}.items()
    ]
    policies: list[dict[str, Any]] = []
    if any(row.name == BASELINE for row in rows):
        policies.append({"name": BASELINE})
    rounds = {row.played: row.horizon for row in rows}
    policies += [
        _policy(
            f"{b.name}-best", b.policy, [b.problem], b.parameters, _best_of(b, rounds[b.problem], searched)
        )
        for b in selection.best
    ]
    policies += [
        _policy(f"{d.name}-default", d.policy, list(d.scores), d.parameters, _default_of(d))
        for d in selection.default
    ]
    return suite_text(
        f"{name}-selected",
        f"The settings that {name} selected, on seeds that it never saw.",
        seeds=seeds,
        problems=worlds,
        policies=policies,
        modules=modules,
        problem_seed=_fixed_world(rows),
    )


def _fixed_world(rows: tuple[Row, ...]) -> int | None:
    """The `problem_seed` of the search, if it had one: its worlds are then the report's too."""
    return next((row.problem_seed for row in rows if row.problem_seed != row.seed), None)


def _policy(name: str, id: str, on: list[str], parameters: Mapping[str, Any], chosen: str) -> dict[str, Any]:
    return {"name": name, "id": id, "problems": on, "parameters": parameters, "chosen": chosen}


def _best_of(best: Best, rounds: int, searched: Mapping[tuple[str, str], int]) -> str:
    """How a best setting was chosen, for the suite that reports it; `searched` are the settings that halving had."""
    grid = searched.get((best.problem, best.name), best.settings)
    left = f" that successive halving left of {grid}" if grid > best.settings else ""
    few = len(best.seeds) == 1
    trials = (
        f"one trial of each (seed {best.seeds[0]}" if few else f"{len(best.seeds)} trials of each (seeds "
    )
    seeds = "" if few else seeds_text(best.seeds)
    return f"highest mean reward of {best.settings} settings{left}, {trials}{seeds}, {rounds:,} rounds)"


def _default_of(default: Default) -> str:
    return f"highest mean score of {len(default.ranking)} settings over {', '.join(default.scores)}"
