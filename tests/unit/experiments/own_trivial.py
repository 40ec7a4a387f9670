"""A world and policies that cost nothing, registered the way a user's own module would."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.random import Streams
from tidepull.registry import Entry, policies, problems
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot


@dataclass(frozen=True, kw_only=True)
class CoinsParameters(Parameters):
    n_arms: int = parameter(3, "arms", ge=1)


@dataclass(frozen=True, kw_only=True)
class FileCoinsParameters(CoinsParameters):
    path: str = parameter("", "a file")


class Coins:
    def __init__(self, parameters: CoinsParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._rng = streams.generator("noise")
        self._means = np.linspace(0.1, 0.9, self.n_arms)

    def context(self) -> Context:
        return Context()

    def means(self) -> FloatArray:
        return self._means

    def step(self, arm: int) -> float:
        return float((self._rng.random(self.n_arms) < self._means)[arm])


@dataclass(frozen=True, kw_only=True)
class LeverParameters(Parameters):
    arm: int | None = parameter(None, "always this arm; by chance when absent", ge=0)
    sleep: float = parameter(0.0, "seconds to sleep before the trial", ge=0)
    fail_on_seed: int = parameter(-1, "raise on this seed")
    meet: str = parameter("", "wait in this directory until a second trial is there too")
    crash: bool = parameter(False, "die by SIGKILL at the first choice")


class Lever:
    def __init__(self, parameters: LeverParameters, shape: ProblemShape, streams: Streams) -> None:
        self._parameters = parameters
        self._n_arms = shape.n_arms
        self._rng = streams.generator("choice")
        self._learnt = 0
        if streams.seed == parameters.fail_on_seed:
            raise RuntimeError("this policy was told to fail")
        time.sleep(parameters.sleep)
        if parameters.meet:
            self._meet(Path(parameters.meet), streams.seed)

    @staticmethod
    def _meet(directory: Path, seed: int) -> None:
        (directory / str(seed)).touch()
        deadline = time.monotonic() + 100
        while len(list(directory.iterdir())) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("nobody came")
            time.sleep(0.01)

    def choose(self, context: Context) -> int:
        if self._parameters.crash:
            os.kill(os.getpid(), signal.SIGKILL)
        arm = self._parameters.arm
        return int(self._rng.integers(self._n_arms)) if arm is None else arm

    def learn(self, event: Event) -> None:
        self._learnt += 1

    def snapshot(self) -> Snapshot:
        return {}

    def restore(self, snapshot: Snapshot) -> None:
        pass

    def diagnostics(self) -> dict[str, int]:
        return {"learnt": self._learnt}


problems.add(Entry("coins", "Bernoulli arms that never change", CoinsParameters, Coins))
problems.add(
    Entry(
        "file-coins", "named by a file", FileCoinsParameters, Coins, data=lambda p: [Path(p.path)]
    )
)
problems.add(Entry("few-coins", "two of them", CoinsParameters, Coins, defaults={"n_arms": 2}))
policies.add(Entry("lever", "pulls one arm, or any", LeverParameters, Lever))
policies.add(
    Entry(
        "any-lever",
        "pulls any arm",
        NoParameters,
        lambda _, shape, streams: Lever(LeverParameters(), shape, streams),
    )
)
