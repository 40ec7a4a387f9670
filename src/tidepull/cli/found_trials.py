"""Where the trials of a search are found: in a store, or in what was kept of one as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidepull.errors import InputError, WrongStoreError
from tidepull.experiments.archive import is_archive, read_archive
from tidepull.experiments.grid import is_last_rung, searched_suite
from tidepull.experiments.rows import Row, Rows, load_rows, read_plans
from tidepull.experiments.store import Store


@dataclass(frozen=True, slots=True)
class Source:
    """Plans by name with the user's modules that they need, and how to read their rows."""

    where: Path
    plans: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]

    def searched(self, wanted: str | None) -> str:
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


def open_source(directory: Path) -> Source:
    """A store, or a folder of CSV that `tidepull store archive` wrote."""
    if is_archive(directory):
        archive = read_archive(directory)
        return Source(directory, dict.fromkeys(archive.rows, ()), archive.loaded)
    store = Store.open(directory)
    plans = {plan.suite: plan.modules for plan in read_plans(store)}
    return Source(directory, plans, lambda suite: load_rows(store, suite))


def _pair(row: Row) -> tuple[str, str]:
    return row.played, row.name
