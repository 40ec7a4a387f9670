"""tidepull: decisions under drift and seasonality.

>>> import tidepull
>>> trial = tidepull.run_trial("sinusoidal-bernoulli", ("d-ucb", {"discount": 0.995}), horizon=100, seed=0)
>>> trial.regret.shape
(100,)

`__all__` is the stable surface: names that keep their meaning, and when they must go warn for one version. Everything
else is private by convention, whatever it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from tidepull import errors, integrations, logs
    from tidepull._internal.warm_up import warm_up
    from tidepull.agent import fields
    from tidepull.agent.agent import Agent
    from tidepull.agent.answers import Decision
    from tidepull.agent.client import AsyncClient, Client
    from tidepull.building import build_policy, build_problem, shape_of
    from tidepull.encoders.torch import TorchEncoder, input_width
    from tidepull.errors import TidepullError
    from tidepull.experiments.loop import Trial, play, run_trial
    from tidepull.parameters import NoParameters, Parameters, parameter
    from tidepull.policies.neural_linear import NeuralLinear
    from tidepull.posteriors.linear_gaussian import LinearGaussian
    from tidepull.protocols import Learner, Policy, Problem
    from tidepull.random import Streams
    from tidepull.registry import Entry, add_policy, add_problem
    from tidepull.state import generator_state, restore_generator
    from tidepull.types import Context, Event, ProblemShape, Snapshot, Structure

__all__ = [
    "Agent",
    "AsyncClient",
    "Client",
    "Context",
    "Decision",
    "Entry",
    "Event",
    "Learner",
    "LinearGaussian",
    "NeuralLinear",
    "NoParameters",
    "Parameters",
    "Policy",
    "Problem",
    "ProblemShape",
    "Snapshot",
    "Streams",
    "Structure",
    "TidepullError",
    "TorchEncoder",
    "Trial",
    "__version__",
    "add_policy",
    "add_problem",
    "build_policy",
    "build_problem",
    "errors",
    "fields",
    "generator_state",
    "input_width",
    "integrations",
    "logs",
    "parameter",
    "play",
    "restore_generator",
    "run_trial",
    "shape_of",
    "warm_up",
]

_HOMES = {
    "Agent": "agent.agent",
    "AsyncClient": "agent.client",
    "Client": "agent.client",
    "Context": "types",
    "Decision": "agent.answers",
    "Entry": "registry",
    "Event": "types",
    "Learner": "protocols",
    "LinearGaussian": "posteriors.linear_gaussian",
    "NeuralLinear": "policies.neural_linear",
    "NoParameters": "parameters",
    "Parameters": "parameters",
    "Policy": "protocols",
    "Problem": "protocols",
    "ProblemShape": "types",
    "Snapshot": "types",
    "Streams": "random",
    "Structure": "types",
    "TidepullError": "errors",
    "TorchEncoder": "encoders.torch",
    "Trial": "experiments.loop",
    "add_policy": "registry",
    "add_problem": "registry",
    "build_policy": "building",
    "build_problem": "building",
    "generator_state": "state",
    "input_width": "encoders.torch",
    "parameter": "parameters",
    "play": "experiments.loop",
    "restore_generator": "state",
    "run_trial": "experiments.loop",
    "shape_of": "building",
    "warm_up": "_internal.warm_up",
}
_MODULES = {"errors": "errors", "fields": "agent.fields", "logs": "logs", "integrations": "integrations"}
_FORMER: dict[str, tuple[str, str]] = {}
"""Names that went: each with its present name, and the version that renamed it and is the last to know it."""


def __getattr__(name: str) -> Any:
    # Resolved on first use, so that `import tidepull` does not pay for scipy and numba.
    if name in _MODULES:
        value: Any = import_module(f"tidepull.{_MODULES[name]}")
    elif name in _HOMES:
        value = getattr(import_module(f"tidepull.{_HOMES[name]}"), name)
    elif name in _FORMER:
        from tidepull._internal.deprecation import warn_renamed

        now, since = _FORMER[name]
        warn_renamed(f"tidepull.{name}", f"tidepull.{now}", since=since)
        return __getattr__(now)
    else:
        raise AttributeError(f"module 'tidepull' has no attribute '{name}'")
    globals()[name] = value
    return value
