"""tidepull: decisions under drift and seasonality.

>>> import tidepull
>>> trial = tidepull.run_trial("sinusoidal-bernoulli", ("d-ucb", {"discount": 0.995}), horizon=100, seed=0)
>>> trial.regret.shape
(100,)

`__all__` is the stable surface. Everything else is private by convention, whatever it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

if TYPE_CHECKING:
    from tidepull import errors as errors
    from tidepull import integrations as integrations
    from tidepull import logs as logs
    from tidepull._internal.warm_up import warm_up as warm_up
    from tidepull.agent import fields as fields
    from tidepull.agent.agent import Agent as Agent
    from tidepull.agent.client import AsyncClient as AsyncClient
    from tidepull.agent.client import Client as Client
    from tidepull.agent.decisions import Decision as Decision
    from tidepull.agent.served import AsyncAgent as AsyncAgent
    from tidepull.encoders.torch import TorchEncoder as TorchEncoder
    from tidepull.encoders.torch import input_width as input_width
    from tidepull.errors import TidepullError as TidepullError
    from tidepull.experiments.loop import Trial as Trial
    from tidepull.experiments.loop import play as play
    from tidepull.experiments.loop import run_trial as run_trial
    from tidepull.parameters import NoParameters as NoParameters
    from tidepull.parameters import Parameters as Parameters
    from tidepull.parameters import parameter as parameter
    from tidepull.policies import build_policy as build_policy
    from tidepull.policies.neural_linear import NeuralLinear as NeuralLinear
    from tidepull.posteriors.linear_gaussian import LinearGaussian as LinearGaussian
    from tidepull.problems import build_problem as build_problem
    from tidepull.problems import shape_of as shape_of
    from tidepull.protocols import Learner as Learner
    from tidepull.protocols import Policy as Policy
    from tidepull.protocols import Problem as Problem
    from tidepull.random import Streams as Streams
    from tidepull.registry import Entry as Entry
    from tidepull.registry import add_policy as add_policy
    from tidepull.registry import add_problem as add_problem
    from tidepull.state import generator_state as generator_state
    from tidepull.state import restore_generator as restore_generator
    from tidepull.types import Context as Context
    from tidepull.types import Event as Event
    from tidepull.types import ProblemShape as ProblemShape
    from tidepull.types import Snapshot as Snapshot
    from tidepull.types import Structure as Structure

_HOMES = {
    "_internal.warm_up": ("warm_up",),
    "agent.agent": ("Agent",),
    "agent.decisions": ("Decision",),
    "agent.client": ("AsyncClient", "Client"),
    "agent.served": ("AsyncAgent",),
    "encoders.torch": ("TorchEncoder", "input_width"),
    "errors": ("TidepullError",),
    "experiments.loop": ("Trial", "play", "run_trial"),
    "parameters": ("NoParameters", "Parameters", "parameter"),
    "policies": ("build_policy",),
    "policies.neural_linear": ("NeuralLinear",),
    "posteriors.linear_gaussian": ("LinearGaussian",),
    "problems": ("build_problem", "shape_of"),
    "protocols": ("Learner", "Policy", "Problem"),
    "random": ("Streams",),
    "registry": ("Entry", "add_policy", "add_problem"),
    "state": ("generator_state", "restore_generator"),
    "types": ("Context", "Event", "ProblemShape", "Snapshot", "Structure"),
}
"""The public names by their module; they are imported on first use, so that `import tidepull` is
quick."""
_MODULES = {
    "errors": "errors",
    "fields": "agent.fields",
    "integrations": "integrations",
    "logs": "logs",
}

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(["__version__", *_HOME_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f"tidepull.{_MODULES[name]}")
    elif name in _HOME_OF:
        value = getattr(import_module(f"tidepull.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'tidepull' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
