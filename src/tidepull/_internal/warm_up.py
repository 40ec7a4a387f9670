"""Compile every kernel ahead of time: what is on disk then is found by every later process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal import compiler
from tidepull._internal.files import write_whole
from tidepull.types import Context, Event, ProblemShape

_ROUNDS = 40
"""Rounds of `tide` after which it has trained, searched and begun anew."""
_DRAWS = 64
"""Draws of a decision by shares: enough for each family of models to be drawn in these rounds."""
_POLICIES = ("lin-ts", "lin-ucb", "d-lin-ucb", ("sw-lin-ucb", {"window": 10}))
"""Policies beside `tide` that use kernels of linear models."""
_MODULES = ("tide.policy", "tide.models.boxed_native", "policies.linear", "encoders.simd")
"""With their imports, all that have kernels."""
_SHAPES = (ProblemShape(2), ProblemShape(2, observation_dim=2), ProblemShape(2, arm_dim=2))


def warm_up(announce: Callable[[], None] = lambda: None) -> bool:
    """Load the compiled kernels, and have them compiled if they are not on disk.

    The compilation takes about a minute, once for a machine: kernels are kept in `TIDEPULL_CACHE`
    or `NUMBA_CACHE_DIR`, else beside the package, else in the user's cache directory, for all
    processes. Without it kernels run in Python until another process has compiled them. Networks
    have kernels for each number of units; those of 32 units are compiled here.

    Parameters
    ----------
    announce : callable, optional
        Function that is called once, without arguments, before the compilation.

    Returns
    -------
    bool
        Whether anything was compiled.

    Examples
    --------
    >>> import tidepull
    >>> tidepull.warm_up(lambda: print("compiling"))  # doctest: +SKIP
    compiling
    True
    """
    return compiler.wait(announce)


def missing_kernels() -> list[str]:
    """Names of kernels of which no compiled one is on disk.

    Returns
    -------
    list of str
        Module and name of each.
    """
    from tidepull._internal.kernels import KERNELS

    for module in _MODULES:
        import_module(f"tidepull.{module}")
    return [kernel.name for kernel in KERNELS if not kernel.is_on_disk]


def compile_all() -> None:
    """Compile all kernels, unless another process has done it, and say so on disk; a line of
    output for each."""
    folder = compiler.folder()
    if folder is None:
        return
    with suppress(OSError, AttributeError):
        os.nice(max(0, 5 - os.nice(0)))
    with _locked(folder / "lock"):
        if compiler.is_warm():
            return
        from numba.core import event

        class Line(event.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:
                with suppress(OSError):  # the process that asked is gone
                    print(flush=True)

            def on_end(self, event: Any) -> None:
                pass

        with event.install_listener("numba:compile", Line()):
            compiler.compile_here(play_all)
        write_whole(folder / compiler.mark(compiler.target()), b"")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process; where there are none (Windows), go on without."""
    with path.open("w") as file:
        with suppress(ModuleNotFoundError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def play_all() -> None:
    """Call every kernel with every type of arguments that policies give it."""
    from tidepull.policies import build_policy

    for shape in _SHAPES:
        for binary in (True, False):
            # Exploration draws a family uniformly, whatever its weight.
            tide = build_policy(("tide", {"exploration": _ROUNDS}), shape, seed=0)
            _play(tide, shape, binary)
        if shape.arm_dim:
            for policy in _POLICIES:
                _play(build_policy(policy, shape, seed=0), shape, False)
    _train()


def _play(learner: Any, shape: ProblemShape, binary: bool) -> None:
    rng = np.random.default_rng(0)
    for t in range(_ROUNDS):
        observation = rng.normal(size=shape.observation_dim) if shape.observation_dim else None
        features = rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None
        # Agents give a time and decide by shares; in trials both may be missing.
        time = 1.7e9 + 3000.0 * t if t // 2 % 2 else None
        context = Context(observation, features, time=time)
        arm = (
            learner.choose_by(context, _DRAWS, lambda shares: int(np.argmax(shares)))
            if t % 2
            else learner.choose(context)
        )
        swing = np.sin(t / 2 + arm) + 0.3 * rng.normal()
        learner.learn(Event(context, arm, float(swing > 0) if binary else float(swing)))
        while learner.upkeep():
            pass


def _train() -> None:
    """Both networks, for one epoch."""
    from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder

    shape, rng = ProblemShape(2), np.random.default_rng(0)
    network: dict[str, Any] = {"units": (32, 32, 32), "learning_rate": 0.01, "rng": rng}
    for encoder in (
        RecurrentEncoder(shape, **network),
        FeedforwardEncoder(shape, order=1, sinusoids=1, **network),
    ):
        encoder.features(Context())
        encoder.append(Event(Context(), 0, 0.0))
        encoder.refit(1)
