"""From an id to a parameter set to an object; one class, two instances.

Problems are built as `build(parameters, streams)`, policies as `build(parameters, shape, streams)`.

Guests are policies of other libraries. Their module is imported when an id with its prefix is asked for and nobody
here has that id, or when all guests are: so every process finds them, and nobody pays for those that are not used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from tidepull._internal.extras import Package
from tidepull.errors import ParameterError, UnknownIdError
from tidepull.parameters import Parameters
from tidepull.protocols import Policy, Problem

T = TypeVar("T")
Named: TypeAlias = str | tuple[str, Mapping[str, Any]]

_GUESTS = "tidepull.integrations.external."
GUESTS = {
    "bayesianbandits": _GUESTS + "bayesianbandits",
    "gittins": _GUESTS + "gittins",
    "mabwiser": _GUESTS + "mabwiser",
    "river": _GUESTS + "river",
    "smpy": _GUESTS + "smpybandits",
    "vw": _GUESTS + "vowpal_wabbit",
}
"""What ids of guests begin with, up to the first hyphen, and the module that welcomes them."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered problem or policy. `horizon` is the usual length of a trial (problems only).

    `data` finds the files that a problem reads: their content is part of a trial's identity, and they
    travel to the machines of a cluster. `version` is raised whenever this problem or policy comes to
    behave differently: stored trials of an earlier version are then run again, and only those. `guest` is the
    package that really plays, for the policy of another library: it has no snapshots.
    """

    id: str
    description: str
    parameters: type[Parameters]
    build: Callable[..., T]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    horizon: int = 4096
    data: Callable[[Any], Sequence[Path]] | None = None
    version: int = 1
    guest: Package | None = None

    def parse(self, values: Mapping[str, Any]) -> Parameters:
        """Validated parameters: the entry's own defaults, overridden by `values`."""
        return self.parameters.from_mapping({**self.defaults, **values}, owner=self.id)


class Registry(Generic[T]):
    """Entries under unique ids: the residents, whom `ids` and iteration show, and guests."""

    def __init__(self, noun: str, guests: Mapping[str, str] | None = None) -> None:
        self._noun = noun
        self._entries: dict[str, Entry[T]] = {}
        self._guests: dict[str, Entry[T]] = {}
        self._modules = dict(guests or {})

    def add(self, entry: Entry[T]) -> None:
        """Register; the same id twice is an error."""
        if entry.id in self._entries or entry.id in self._guests:
            raise ParameterError(f"there is already a {self._noun} with the id '{entry.id}'")
        (self._entries if entry.guest is None else self._guests)[entry.id] = entry

    def guests(self) -> list[Entry[T]]:
        """The entries of all guests, whether their packages are installed or not."""
        for module in self._modules.values():
            import_module(module)
        return [self._guests[id] for id in sorted(self._guests)]

    def __iter__(self) -> Iterator[Entry[T]]:
        return iter(self._entries.values())

    def ids(self) -> list[str]:
        """The ids of all residents, in the order of registration."""
        return list(self._entries)

    def entry(self, id: str) -> Entry[T]:
        """The entry of that id, or an error that suggests the nearest one."""
        if id in self._entries:
            return self._entries[id]
        prefix = str(id).partition("-")[0]
        if prefix in self._modules:
            import_module(self._modules[prefix])
        if id in self._guests:
            return self._guests[id]
        known = [*self._entries, *self._guests]
        near = difflib.get_close_matches(str(id), known, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else "one of: " + ", ".join(self._entries)
        raise UnknownIdError(f"there is no {self._noun} '{id}'; {hint}")

    def resolve(self, named: Named) -> tuple[Entry[T], Parameters]:
        """Entry and validated parameters of an id or an `(id, {parameters})` pair."""
        id, values = (named, {}) if isinstance(named, str) else named
        entry = self.entry(id)
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise ParameterError(f"{id}: parameters must be a dictionary of names and values, got {values!r}")
        return entry, entry.parse(values)


problems: Registry[Problem] = Registry("problem")
policies: Registry[Policy] = Registry("policy", GUESTS)


def add_problem(entry: Entry[Problem]) -> None:
    """Give a problem of your own an id, for suites, clusters and the command line."""
    problems.add(entry)


def add_policy(entry: Entry[Policy]) -> None:
    """Give a policy of your own an id and a guard, for suites, clusters, agents and the command line."""
    policies.add(entry)
