"""From an id to a parameter set to an object; one class, two instances.

Problems are built as `build(parameters, streams)`, policies as `build(parameters, shape, streams)`.

tidepull's own entries are declared by the name of their module, which is imported when an id is
asked for. External policies are those of other libraries; their module is imported when an id with
its prefix is asked for, or when all of them are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar

from tidepull._internal.extras import Package
from tidepull.errors import ParameterError, ProblemError, UnknownIdError
from tidepull.parameters import Parameters
from tidepull.protocols import Policy, Problem

T = TypeVar("T")
Named: TypeAlias = str | tuple[str, Mapping[str, Any]]

Declared: TypeAlias = tuple[str, str, str, str, Mapping[str, Any], str]
"""Id, module, parameters and builder in it, what differs from the usual entry, and a
description."""

_EXTERNAL = "tidepull.integrations.external."
EXTERNAL = {name: _EXTERNAL + name for name in ("bayesianbandits", "gittins", "mabwiser", "river")}
EXTERNAL |= {"smpy": _EXTERNAL + "smpybandits", "vw": _EXTERNAL + "vowpal_wabbit"}
"""What ids of external policies begin with, up to the first hyphen, and the module that registers them."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered problem or policy.

    Parameters
    ----------
    id : str
        The id, in kebab-case.
    description : str
        One line for lists.
    parameters : type of Parameters
        The class of its parameters.
    build : callable
        `build(parameters, streams)` for a problem, `build(parameters, shape, streams)` for a
        policy.
    defaults : mapping, optional
        Values that replace the parameters' own defaults.
    horizon : int, default: 4096
        The usual length of a trial (problems only).
    data : callable, optional
        Function from parameters to the files that a problem reads. Their content is part of a
        trial's identity, and they are copied to the machines of a cluster.
    version : int, default: 1
        Number that is raised whenever this problem or policy comes to behave differently. Stored
        trials of an earlier version are then run again.
    library : Package, optional
        The package that implements the policy of another library, which has no snapshots.

    Examples
    --------
    >>> from tidepull.problems import problems
    >>> problems.entry("rotating-vector-32").parse({}).period
    32.0
    """

    id: str
    description: str
    parameters: type[Parameters]
    build: Callable[..., T]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    horizon: int = 4096
    data: Callable[[Any], Sequence[Path]] | None = None
    version: int = 1
    library: Package | None = None

    def parse(self, values: Mapping[str, Any]) -> Parameters:
        """Return validated parameters: the entry's own defaults, overridden by `values`.

        Parameters
        ----------
        values : mapping
            Names and values of parameters.

        Returns
        -------
        Parameters
            An instance of the entry's class.

        Raises
        ------
        ParameterError
            If a name does not exist, or a value is out of range.
        """
        return self.parameters.from_mapping({**self.defaults, **values}, owner=self.id)


class Registry(Generic[T]):
    """Entries under unique ids: tidepull's own and the user's, which `ids` and iteration show, and
    external policies."""

    def __init__(self, noun: str, external: Mapping[str, str] | None = None) -> None:
        self._noun = noun
        self._entries: dict[str, Entry[T] | Callable[[], Entry[Any]]] = {}
        self._external: dict[str, Entry[T]] = {}
        self._modules = dict(external or {})

    def add(self, entry: Entry[T]) -> None:
        """Register an entry; an id that exists already is an error."""
        if entry.id in self._entries or entry.id in self._external:
            raise ParameterError(f"there is already a {self._noun} with the id '{entry.id}'")
        if entry.library is None:
            self._entries[entry.id] = entry
        else:
            self._external[entry.id] = entry

    def declare(self, rows: Iterable[Declared], package: str) -> None:
        """Register entries whose modules, in a package, are imported when they are asked for."""
        for id, module, parameters, build, others, description in rows:
            names = (f"{package}.{module}", parameters, build)
            self._entries[id] = partial(_load, id, description, *names, **others)

    def external(self) -> list[Entry[T]]:
        """The entries of all external policies, whether their packages are installed or not."""
        for module in self._modules.values():
            import_module(module)
        return [self._external[id] for id in sorted(self._external)]

    def __iter__(self) -> Iterator[Entry[T]]:
        return iter([self.entry(id) for id in self._entries])

    def ids(self) -> list[str]:
        """The ids of all entries but external ones, in the order of registration."""
        return list(self._entries)

    def entry(self, id: str) -> Entry[T]:
        """The entry of that id, or an error that suggests the nearest one."""
        if id in self._entries:
            entry = self._entries[id]
            if not isinstance(entry, Entry):
                entry = self._entries[id] = entry()
            return entry
        prefix = str(id).partition("-")[0]
        if prefix in self._modules:
            import_module(self._modules[prefix])
        if id in self._external:
            return self._external[id]
        known = [*self._entries, *self._external]
        near = difflib.get_close_matches(str(id), known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else "one of: " + ", ".join(self._entries)
        raise UnknownIdError(f"there is no {self._noun} '{id}'; {hint}")

    def resolve(self, named: Named) -> tuple[Entry[T], Parameters]:
        """Entry and validated parameters of an id or an `(id, {parameters})` pair."""
        pair = (named, {}) if isinstance(named, str) else named
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ParameterError(
                f"a {self._noun} is an id or an (id, {{parameters}}) pair, got {named!r}"
            )
        id, values = pair
        entry = self.entry(id)
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise ParameterError(
                f"{id}: parameters must be a dictionary of names and values, got {values!r}"
            )
        return entry, entry.parse(values)


def _load(
    id: str,
    description: str,
    place: str,
    parameters: str,
    build: str,
    data: str | None = None,
    **others: Any,
) -> Entry[Any]:
    """Import a module and make an entry whose parameters, builder and data it names."""
    module = import_module(place)
    if data is not None:
        others["data"] = getattr(module, data)
    return Entry(id, description, getattr(module, parameters), getattr(module, build), **others)


def is_named(value: Any) -> TypeGuard[Named]:
    """Whether it is an id or an `(id, {parameters})` pair."""
    return isinstance(value, str) or (
        isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)
    )


def require_members(value: Any, noun: str, members: tuple[str, ...]) -> None:
    """Refuse an object without these members."""
    missing = [name for name in members if not hasattr(value, name)]
    if missing:
        raise ProblemError(
            f"a {noun} is an id, an (id, {{parameters}}) pair, or an object with "
            f"{', '.join(members)}; {type(value).__name__} has no {missing[0]}"
        )


problems: Registry[Problem] = Registry("problem")
policies: Registry[Policy] = Registry("policy", EXTERNAL)


def add_problem(entry: Entry[Problem]) -> None:
    """Register a problem under an id, for suites, clusters and the command line.

    Parameters
    ----------
    entry : Entry
        The id and how the problem is built.

    Raises
    ------
    ParameterError
        If there is already a problem of that id.

    Examples
    --------
    >>> import numpy as np
    >>> import tidepull
    >>> class Coin:
    ...     n_arms = 1
    ...     def __init__(self, parameters, streams): self.noise = streams.generator("noise")
    ...     def context(self): return tidepull.Context()
    ...     def means(self): return np.array([0.5])
    ...     def step(self, arm): return float(self.noise.random() < 0.5)
    >>> entry = tidepull.Entry("example-coin", "a fair coin", tidepull.NoParameters, Coin)
    >>> tidepull.add_problem(entry)
    >>> tidepull.run_trial("example-coin", "random", horizon=8).arms.sum()
    np.int64(0)
    """
    problems.add(entry)


def add_policy(entry: Entry[Policy]) -> None:
    """Register a policy under an id, for suites, clusters, agents and the command line.

    A policy that is built from an id checks its input.

    Parameters
    ----------
    entry : Entry
        The id and how the policy is built.

    Raises
    ------
    ParameterError
        If there is already a policy of that id.

    Examples
    --------
    >>> import tidepull
    >>> class First:
    ...     def __init__(self, parameters, shape, streams): pass
    ...     def choose(self, context): return 0
    ...     def learn(self, event): pass
    ...     def snapshot(self): return {}
    ...     def restore(self, snapshot): pass
    >>> entry = tidepull.Entry("example-first", "the first arm", tidepull.NoParameters, First)
    >>> tidepull.add_policy(entry)
    >>> tidepull.run_trial("stationary-bernoulli", "example-first", horizon=8).arms.sum()
    np.int64(0)
    """
    policies.add(entry)
