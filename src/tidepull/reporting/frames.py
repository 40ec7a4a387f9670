"""From stores to studies: the rows of each problem, grouped by policy and setting. Rounds are not
read here.

`random_regret` is 1 on the scale on which the oracle is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from tidepull.errors import TidepullError, WrongStoreError
from tidepull.experiments.archive import read_archive
from tidepull.experiments.delay import AT_ONCE, delay_slug, delay_words
from tidepull.experiments.loop import Trial
from tidepull.experiments.rows import Row, Rows, load_rows, read_plans
from tidepull.experiments.spec import canonical
from tidepull.experiments.store import Store
from tidepull.problems import build_problem
from tidepull.types import FloatArray

NOT_A_CONTENDER = ("oracle", "specialist")
"""Policies that know the truth; they are shown and never win."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The trials of one policy under one setting, by seed; `stores` says where each of them is
    (None: only its totals were kept).

    `chosen_from` tells how many settings of a grid it is the best of; such a choice, made on the
    very trials that are shown, flatters and is marked wherever it is shown.
    """

    name: str
    setting: str
    rows: tuple[Row, ...]
    stores: tuple[Store | None, ...]
    chosen_from: int = 1

    @property
    def shown_name(self) -> str:
        """The policy's name; a star marks a setting that was chosen on the trials shown."""
        return f"{self.name}*" if self.chosen_from > 1 else self.name

    @property
    def regrets(self) -> FloatArray:
        """Final regret of each trial."""
        return np.array([row.regret for row in self.rows])

    @property
    def rewards(self) -> FloatArray:
        """Cumulative reward of each trial."""
        return np.array([row.reward for row in self.rows])

    @property
    def hashes(self) -> frozenset[str]:
        """Which trials these are; two groups may be the same ones under two names."""
        return frozenset(row.hash for row in self.rows)

    @property
    def worlds(self) -> list[tuple[int, int]]:
        """What pairs a trial with another policy's: seed and problem seed."""
        return [_world(row) for row in self.rows]

    def trials(self) -> Iterator[Trial]:
        """Round by round, each read from its store when it is asked for."""
        return (self.read(number) for number in range(len(self.rows)))

    def read(self, number: int) -> Trial:
        """One of the trials, round by round."""
        store, row = self.stores[number], self.rows[number]
        if store is None:
            raise WrongStoreError(
                f"the rounds of {self.name} on {row.problem}, seed {row.seed}, were not kept"
            )
        return store.read(row.hash)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """One problem of one suite at one horizon, its rewards as late as `delay` says.

    `groups` has one group for each policy (the best setting where there is a grid), `grids` all
    settings of each policy that has several. `apart` is what tells it from another study of the
    same suite, problem and delay.
    """

    suite: str
    problem: str
    problem_id: str
    parameters: Mapping[str, Any]
    horizon: int
    remark: str
    groups: tuple[Group, ...]
    grids: Mapping[str, tuple[Group, ...]]
    apart: str = ""
    delay: str = AT_ONCE

    @property
    def remarks(self) -> str:
        """What stands behind the problem's name: its remark, how late rewards came, what tells it
        apart."""
        return ", ".join(filter(None, (self.remark, delay_words(self.delay), self.apart)))

    @property
    def title(self) -> str:
        """The problem's name with its remarks, such as `criteo-flipping (synthetic Criteo)`."""
        return f"{self.problem} ({self.remarks})" if self.remarks else self.problem

    @property
    def slug(self) -> str:
        """The problem's name for files; no other study of the suite has it."""
        parts = [self.problem, delay_slug(self.delay), *self.apart.replace(",", "").split()]
        return "-".join(part for part in parts if part)

    @property
    def contenders(self) -> list[Group]:
        """The groups that can win, lowest mean regret first."""
        able = [group for group in self.groups if group.rows[0].policy not in NOT_A_CONTENDER]
        return sorted(able, key=lambda group: float(group.regrets.mean()))

    def group(self, name: str) -> Group | None:
        """The group of that name."""
        return next((group for group in self.groups if group.name == name), None)


@dataclass(frozen=True, slots=True)
class Gaps:
    """What the suites asked for and the stores do not have: ids, with the reason where one is
    known."""

    missing: tuple[str, ...]
    damaged: Mapping[str, str]
    failed: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.damaged or self.failed)


@dataclass(frozen=True, slots=True)
class Frame:
    """All that analysis knows of one or more stores; `hardware` is said where only totals were
    kept."""

    studies: tuple[Study, ...]
    gaps: Gaps
    suites: Mapping[str, str]
    versions: tuple[Mapping[str, str], ...]
    machines: tuple[str, ...]
    trials: int
    cpu_seconds: float
    hardware: tuple[str, ...] = ()


_Key: TypeAlias = tuple[str, str, int, str, str]
_Kept: TypeAlias = tuple[Store | None, Row]


def load_frame(stores: Sequence[Store]) -> Frame:
    """Read summaries and plans of all stores; a trial that is in two of them counts once."""
    texts = {plan.suite: plan.text for store in stores for plan in read_plans(store)}
    loaded: list[tuple[Store | None, Rows]] = [(store, load_rows(store)) for store in stores]
    return _frame(loaded, texts, str(stores[0].directory))


def archived_frame(folder: Path) -> Frame:
    """What was kept of stores as CSV."""
    archive = read_archive(folder)
    frame = _frame([(None, archive.loaded())], archive.texts, str(folder))
    return replace(frame, hardware=archive.hardware)


def _frame(
    loaded: Sequence[tuple[Store | None, Rows]], texts: Mapping[str, str], where: str
) -> Frame:
    gaps = _gaps([part for _, part in loaded])
    pairs = [(store, row) for store, part in loaded for row in part.rows]
    planned = {row.hash for _, row in pairs if row.suite}
    rows: dict[tuple[str, ...], _Kept] = {}
    for store, row in pairs:
        if row.suite or row.hash not in planned:
            rows.setdefault((row.suite, row.problem, row.name, row.setting, row.hash), (store, row))
    if not rows and not gaps:
        raise WrongStoreError(
            f"the store {where} holds no trials yet; `tidepull sweep` puts some there"
        )
    distinct = [row for _, row in rows.values()]
    return Frame(
        studies=tuple(sorted(_distinguished(list(_studies(rows.values()))), key=_rank)),
        gaps=gaps,
        suites=texts,
        versions=tuple(_distinct(row.versions for row in distinct)),
        machines=tuple(sorted({row.machine for row in distinct} - {""})),
        trials=len({row.hash for row in distinct}),
        cpu_seconds=sum({row.hash: row.cpu_seconds for row in distinct}.values()),
    )


def _gaps(parts: Sequence[Rows]) -> Gaps:
    """What none of the stores has."""
    stored = {row.hash for part in parts for row in part.rows}
    lost = {id for part in parts for id, hash in part.lost if hash not in stored}
    failed = {id: why for part in parts for id, why in part.failed.items() if id in lost}
    damaged = {
        id: why for part in parts for id, why in part.damaged.items() if id in lost - set(failed)
    }
    missing = dict.fromkeys(id for part in parts for id in part.missing if id in lost)
    others = tuple(id for id in missing if id not in failed and id not in damaged)
    return Gaps(others, damaged, failed)


def _studies(rows: Iterable[_Kept]) -> Iterable[Study]:
    tree: dict[_Key, dict[str, dict[str, list[_Kept]]]] = {}
    for store, row in rows:
        # Two stores may have run two versions of one suite; outside any suite anything may share a
        # name.
        world = canonical(row.problem_parameters)
        setting = row.setting if row.suite else row.setting or canonical(row.policy_parameters)
        key = (row.suite, row.problem, row.horizon, world, row.delay)
        settings = tree.setdefault(key, {}).setdefault(row.name, {})
        settings.setdefault(setting, []).append((store, row))
    for (suite, problem, horizon, _, delay), named in tree.items():
        policies = _told_apart(named)
        first = next(iter(next(iter(policies.values())).values()))[0][1]
        grids = {
            name: tuple(_group(name, setting, pairs) for setting, pairs in settings.items())
            for name, settings in policies.items()
        }
        yield Study(
            suite=suite,
            problem=problem,
            problem_id=first.problem_id,
            parameters=first.problem_parameters,
            horizon=horizon,
            remark=first.remark,
            groups=tuple(_best(groups) for groups in grids.values()),
            grids={name: groups for name, groups in grids.items() if len(groups) > 1},
            delay=delay,
        )


def _distinguished(studies: Sequence[Study]) -> Iterator[Study]:
    """Studies that share suite, problem and delay say their rounds, and their number where those
    are the same too."""
    alike = Counter((study.suite, study.problem, study.delay) for study in studies)
    seen: Counter[tuple[str, str, str, int]] = Counter()
    for study in studies:
        key = (study.suite, study.problem, study.delay, study.horizon)
        seen[key] += 1
        rounds = f"{study.horizon:,} rounds"
        apart = rounds if seen[key] == 1 else f"{rounds}, version {seen[key]}"
        several = alike[study.suite, study.problem, study.delay] > 1
        yield replace(study, apart=apart) if several else study


def _rank(study: Study) -> tuple[bool, bool]:
    """Tables first, searches last; otherwise as they come."""
    return bool(study.grids), "table" not in study.suite


def _told_apart(
    policies: Mapping[str, dict[str, list[_Kept]]],
) -> dict[str, dict[str, list[_Kept]]]:
    """Trials that share every name and are not the same (an edited suite or module) get names of
    their own."""
    apart: dict[str, dict[str, list[_Kept]]] = {}
    for name, settings in policies.items():
        for setting, pairs in settings.items():
            versions = [pairs]
            if len({_world(row) for _, row in pairs}) < len(pairs):
                by_version: dict[str, list[_Kept]] = {}
                for store, row in pairs:
                    key = f"{row.code} {canonical(row.policy_parameters)}"
                    by_version.setdefault(key, []).append((store, row))
                versions = list(by_version.values())
            for number, version in enumerate(versions, 1):
                shown = name if number == 1 else f"{name} ({number})"
                apart.setdefault(shown, {})[setting] = version
    return apart


def _group(name: str, setting: str, pairs: list[_Kept]) -> Group:
    stores, rows = zip(*sorted(pairs, key=lambda pair: _world(pair[1])), strict=True)
    return Group(name, setting, rows, stores)


def _world(row: Row) -> tuple[int, int]:
    return row.seed, row.problem_seed


def _best(settings: Sequence[Group]) -> Group:
    best = max(settings, key=lambda group: float(group.rewards.mean()))
    return replace(best, chosen_from=len(settings))


def _distinct(values: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    return list({canonical(dict(value)): value for value in values}.values())


@runtime_checkable
class _HasRandomRegret(Protocol):
    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms."""


def random_regret(study: Study) -> float | None:
    """From the trials of `random` when there are any, else the problem's own formula on its first
    seed; None where neither is at hand."""
    for group in study.groups:
        if group.rows[0].policy == "random":
            return float(group.regrets.mean())
    try:
        seed = study.groups[0].rows[0].problem_seed
        problem = build_problem((study.problem_id, study.parameters), seed=seed)
    except TidepullError:  # its data, or the module that registers it, is not at hand
        return None
    if not isinstance(problem, _HasRandomRegret):
        return None
    return float(problem.random_regret(study.horizon))
