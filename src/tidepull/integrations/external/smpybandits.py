"""SMPyBandits' policies for rewards that change: GLR-klUCB, CUSUM-UCB, M-UCB, discounted Thompson
sampling, SW-UCB.

SMPyBandits 0.9.7 draws from the global generators of Python and numpy: both are lent to it while it
is at work, in a state of its own, and given back after. Importing the package imports all of it,
which prints, restyles matplotlib and silences numpy's warnings for the whole process. So only
single modules are imported (`smpy_module`): the packages are stood in for by empty ones meanwhile,
`scipy.special.btdtri` by the function that took its place, and everything is put back as it was;
the modules stay known here alone.

Rewards must lie between `lower` and `lower + amplitude`. Contexts reach none of them.

Besson, Kaufmann, Maillard and Seznec (2022) for GLR-klUCB; Liu, Lee and Shroff (2018) for
CUSUM-UCB; Cao, Wen, Kveton and Xie (2019) for M-UCB; Raj and Kalyani (2017); Garivier and Moulines
(2011); Wei and Srivastava (2018) for SW-UCB#.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np
import scipy.special

from tidepull._internal.extras import Package
from tidepull.errors import ParameterError, RewardError
from tidepull.integrations.external import add_external, open_arms, own_values, seed_for
from tidepull.parameters import Parameters, parameter
from tidepull.random import Streams
from tidepull.types import Context, Event, ProblemShape

PACKAGE = Package("SMPyBandits", "integrations")
_known: dict[str, ModuleType] = {}


@lru_cache
def smpy_module(name: str) -> Any:
    """One module of `SMPyBandits.Policies`."""
    with _alone(), _quiet(), _with_btdtri():
        return import_module(f"{PACKAGE.name}.Policies.{name}")


@contextmanager
def _alone() -> Iterator[None]:
    before = _taken()
    if not _known:
        spec = find_spec(PACKAGE.name)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for name, folder in ((PACKAGE.name, root), (f"{PACKAGE.name}.Policies", root / "Policies")):
            _known[name] = ModuleType(name)
            _known[name].__path__ = [str(folder)]
    sys.modules.update(_known)
    try:
        yield
    finally:
        _known.update(_taken())
        sys.modules.update(before)


def _taken() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE.name]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _with_btdtri() -> Iterator[None]:
    special: Any = scipy.special
    if hasattr(special, "btdtri"):
        yield
        return
    special.btdtri = special.betaincinv
    try:
        yield
    finally:
        del special.btdtri


@dataclass(frozen=True, kw_only=True)
class SmpyParameters(Parameters):
    """What all of SMPyBandits' policies have: where SMPyBandits has its class."""

    place: ClassVar[tuple[str, str]]
    lower: float = parameter(0.0, "the smallest reward")
    amplitude: float = parameter(1.0, "the largest reward minus the smallest", gt=0)

    def make(self, n_arms: int) -> Any:
        """The policy for so many arms."""
        module, name = self.place
        return getattr(smpy_module(module), name)(n_arms, **self.arguments())

    def arguments(self) -> dict[str, Any]:
        """What the class takes beside the number of arms."""
        return {n: v for n, v in own_values(self).items() if n not in ("lower", "amplitude")}


@dataclass(frozen=True, kw_only=True)
class TimedParameters(SmpyParameters):
    """Policies that want to know how long a trial is."""

    horizon: int | None = parameter(None, "rounds of the trial; none: as many as it has", ge=1)

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the parameters that are left to the trial."""
        return ("horizon",) if self.horizon is None else ()

    def settled(self, problem: object, *, horizon: int, dim: int) -> Self:
        """The same with the trial's own length."""
        return self if self.horizon is not None else replace(self, horizon=horizon)


@dataclass(frozen=True, kw_only=True)
class ChangesParameters(TimedParameters):
    """Policies that want to know how often the world changes as well."""

    changes: int = parameter(
        1,
        "how often the world changes; 1 is what its authors take when the number is unknown",
        ge=1,
    )

    def arguments(self) -> dict[str, Any]:
        """Horizon and changes, by SMPyBandits' names."""
        return {"horizon": self.horizon, "max_nb_random_events": self.changes}


@dataclass(frozen=True, kw_only=True)
class GlrParameters(ChangesParameters):
    """Parameters of `smpy-glr-klucb`."""

    place: ClassVar = ("GLR_UCB", "BernoulliGLR_IndexPolicy_WithDeterministicExploration")

    def arguments(self) -> dict[str, Any]:
        """Per-arm restarts and deterministic exploration, as in the paper's experiments."""
        return {**super().arguments(), "policy": smpy_module("klUCB_forGLR").klUCB_forGLR}


@dataclass(frozen=True, kw_only=True)
class CusumParameters(ChangesParameters):
    """Parameters of `smpy-cusum-ucb`: a CUSUM test for each arm."""

    place: ClassVar = ("CUSUM_UCB", "CUSUM_IndexPolicy")


@dataclass(frozen=True, kw_only=True)
class MonitoredParameters(ChangesParameters):
    """Parameters of `smpy-m-ucb`: a test on two halves of a window for each arm."""

    place: ClassVar = ("Monitored_UCB", "Monitored_IndexPolicy")


@dataclass(frozen=True, kw_only=True)
class DiscountedThompsonParameters(SmpyParameters):
    """Parameters of `smpy-discounted-ts`: Beta beliefs that fade."""

    place: ClassVar = ("DiscountedThompson", "DiscountedThompson")
    gamma: float = parameter(0.95, "weight of a round for each round that it lies back", gt=0, lt=1)


@dataclass(frozen=True, kw_only=True)
class SlidingPlusParameters(TimedParameters):
    """Parameters of `smpy-sw-ucb-plus`: a window of 4 sqrt(T log T) rounds."""

    place: ClassVar = ("SlidingWindowUCB", "SWUCBPlus")
    alpha: float = parameter(1.0, "exploration", gt=0)


@dataclass(frozen=True, kw_only=True)
class SlidingHashParameters(SmpyParameters):
    """Parameters of `smpy-sw-ucb-hash`: a window that grows."""

    place: ClassVar = ("SWHash_UCB", "SWHash_IndexPolicy")
    alpha: float = parameter(
        0.5, "the window is lmbda t^(1 + alpha): at 0 and above, the whole past", ge=-1
    )
    lmbda: float = parameter(1.0, "factor on the window", gt=0)


class GlobalGenerators:
    """The global generators, in a state of the library's own for as long as it is at work."""

    def __init__(self, seed: int) -> None:
        self._python = random.Random(seed).getstate()
        self._numpy: Any = np.random.RandomState(seed).get_state()

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Lend them, without numpy's warnings and what is printed meanwhile; take them back."""
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.setstate(self._python)
        np.random.set_state(self._numpy)  # noqa: NPY002
        try:
            with np.errstate(divide="ignore", invalid="ignore"), redirect_stdout(StringIO()):
                yield
        finally:
            self._python, self._numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


class Smpy:
    """One of SMPyBandits' policies."""

    def __init__(
        self, id: str, values: SmpyParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        if isinstance(values, TimedParameters) and values.asks:
            raise ParameterError(
                f"{id}: horizon is filled in where a trial is known (run, run_trial, suites); give "
                "one"
            )
        self._id = id
        self._values = values
        self._n_arms = shape.n_arms
        self._generators = GlobalGenerators(seed_for(streams))
        with self._generators.lend():
            try:
                self._policy = values.make(shape.n_arms)
                self._policy.startGame()
            except AssertionError as error:
                raise ParameterError(
                    f"{id}: SMPyBandits refuses these settings ({error})"
                ) from None

    def choose(self, context: Context) -> tuple[int, None]:
        """Its choice, or the best of those that are available."""
        arms = open_arms(context, self._n_arms)
        if len(arms) == 1:
            return int(arms[0]), None
        with self._generators.lend():
            if context.available is None:
                return int(self._policy.choice()), None
            ranked = getattr(self._policy, "policy", self._policy)
            ranked.computeAllIndex()
            scores = ranked.index[arms]
            return int(np.random.choice(arms[scores == scores.max()])), None  # noqa: NPY002

    def learn(self, event: Event, memo: None) -> None:
        """Its reward, brought to the range from 0 to 1."""
        scaled = (event.reward - self._values.lower) / self._values.amplitude
        if not 0.0 <= scaled <= 1.0:
            top = self._values.lower + self._values.amplitude
            raise RewardError(
                f"reward must be from {self._values.lower:g} to {top:g} for {self._id}, got "
                f"{event.reward:g}; set lower and amplitude"
            )
        with self._generators.lend():
            self._policy.getReward(event.arm, scaled)


for _id, _description, _parameters in (
    ("glr-klucb", "kl-UCB, each arm restarted by a likelihood ratio", GlrParameters),
    ("cusum-ucb", "UCB, each arm restarted by a CUSUM test", CusumParameters),
    ("m-ucb", "monitored UCB, all arms restarted by a test on a window", MonitoredParameters),
    ("discounted-ts", "Thompson sampling with beliefs that fade", DiscountedThompsonParameters),
    ("sw-ucb-plus", "UCB on a window fit for the horizon", SlidingPlusParameters),
    ("sw-ucb-hash", "SW-UCB#, a window that grows", SlidingHashParameters),
):
    add_external(PACKAGE, f"smpy-{_id}", f"SMPyBandits: {_description}", _parameters, Smpy)
