"""tidepull: decisions under drift and seasonality.

>>> import tidepull
>>> trial = tidepull.run_trial("sinusoidal-bernoulli", ("d-ucb", {"discount": 0.995}), horizon=100, seed=0)
>>> trial.regret.shape
(100,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tidepull.bench.trial import Trial, run_trial
    from tidepull.errors import TidepullError
    from tidepull.online.agent import Agent
    from tidepull.online.answers import Decision
    from tidepull.online.client import AsyncClient, Client
    from tidepull.seeds import Streams
    from tidepull.types import Context, Event, ProblemShape
    from tidepull.warming import warm_up

__all__ = [
    "Agent",
    "AsyncClient",
    "Client",
    "Context",
    "Decision",
    "Event",
    "ProblemShape",
    "Streams",
    "TidepullError",
    "Trial",
    "__version__",
    "run_trial",
    "warm_up",
]

_HOMES = {
    "Agent": "tidepull.online.agent",
    "AsyncClient": "tidepull.online.client",
    "Client": "tidepull.online.client",
    "Context": "tidepull.types",
    "Decision": "tidepull.online.answers",
    "Event": "tidepull.types",
    "ProblemShape": "tidepull.types",
    "Streams": "tidepull.seeds",
    "TidepullError": "tidepull.errors",
    "Trial": "tidepull.bench.trial",
    "run_trial": "tidepull.bench.trial",
    "warm_up": "tidepull.warming",
}


def __getattr__(name: str) -> Any:
    # Resolved on first use, so that `import tidepull` does not pay for scipy and numba.
    if name not in _HOMES:
        raise AttributeError(f"module 'tidepull' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
