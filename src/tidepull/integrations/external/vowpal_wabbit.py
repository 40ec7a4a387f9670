"""Vowpal Wabbit's contextual bandits, `--cb_explore_adf`, one line of text for each arm.

    shared |s x0:0.5 x1:-1.2        the observation, where there is one
    |a arm0                         an arm without a vector of its own
    0:-1:0.25 |a v0:0.3 v1:0.7      an arm with one; where it was played: 0, its cost (minus the reward), its chance

The arm is drawn from the chances that Vowpal Wabbit says, as its tutorials do, by tidepull's
generator; `--random_seed` comes from it too. An event that was not decided here gets the chance
that its arm would have now.

Bietti, Agarwal and Langford (2021), "A contextual bandit bake-off"; Foster and Rakhlin (2020) for
SquareCB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tidepull._internal.extras import Package
from tidepull.integrations.external import ContextualParameters, add_external, open_arms, seed_for
from tidepull.parameters import parameter
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

PACKAGE = Package("vowpalwabbit", "integrations")


@dataclass(frozen=True, kw_only=True)
class VowpalWabbitParameters(ContextualParameters):
    """What all of Vowpal Wabbit's explorers have; the defaults are its own."""

    learning_rate: float = parameter(0.5, "initial learning rate of its regression", gt=0)
    interactions: bool = parameter(True, "observation times arm (-q sa), as its tutorials advise")

    def options(self) -> str:
        """What the explorer adds to the command line."""
        return ""


@dataclass(frozen=True, kw_only=True)
class EstimatingParameters(VowpalWabbitParameters):
    """Explorers that leave a choice of how costs are estimated."""

    cb_type: Literal["mtr", "ips", "dr"] = parameter(
        "mtr", "how the costs of arms not played are estimated"
    )


@dataclass(frozen=True, kw_only=True)
class SquareCbParameters(VowpalWabbitParameters):
    """Parameters of `vw-squarecb`."""

    gamma_scale: float = parameter(
        10.0, "greediness: gamma = scale x (rounds to the power of the exponent)", gt=0
    )
    gamma_exponent: float = parameter(0.5, "how fast it becomes greedy", ge=0)

    def options(self) -> str:
        """SquareCB."""
        return f"--squarecb --gamma_scale {self.gamma_scale} --gamma_exponent {self.gamma_exponent}"


@dataclass(frozen=True, kw_only=True)
class CoverParameters(EstimatingParameters):
    """Parameters of `vw-cover`."""

    policies: int = parameter(3, "policies in the cover", ge=1, le=1000)

    def options(self) -> str:
        """Online cover."""
        return f"--cover {self.policies} --cb_type {self.cb_type}"


@dataclass(frozen=True, kw_only=True)
class BagParameters(EstimatingParameters):
    """Parameters of `vw-bag`."""

    policies: int = parameter(
        5, "policies in the bag, each on its own bootstrap of the data", ge=1, le=1000
    )

    def options(self) -> str:
        """Bagging."""
        return f"--bag {self.policies} --cb_type {self.cb_type}"


@dataclass(frozen=True, kw_only=True)
class EpsilonParameters(EstimatingParameters):
    """Parameters of `vw-epsilon`."""

    epsilon: float = parameter(0.05, "share of rounds that explore evenly", ge=0, le=1)

    def options(self) -> str:
        """Epsilon-greedy."""
        return f"--epsilon {self.epsilon} --cb_type {self.cb_type}"


class VowpalWabbit:
    """One workspace; its chances are drawn from here."""

    def __init__(
        self, _id: str, parameters: VowpalWabbitParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        from vowpalwabbit import Workspace

        self._n_arms = shape.n_arms
        self._workspace: Any = Workspace(command(parameters, shape, seed=seed_for(streams)))
        self._rng = streams.generator("choice")

    def choose(self, context: Context) -> tuple[int, float]:
        """An arm drawn from Vowpal Wabbit's chances, and the chance that it had."""
        arms = open_arms(context, self._n_arms)
        chances = self._chances(context)
        at = int(self._rng.choice(len(arms), p=chances))
        return int(arms[at]), float(chances[at])

    def learn(self, event: Event, memo: float | None) -> None:
        """A labelled example."""
        arms = open_arms(event.context, self._n_arms)
        at = int(np.searchsorted(arms, event.arm))
        chance = float(self._chances(event.context)[at]) if memo is None else memo
        self._workspace.learn(lines(event.context, self._n_arms, label=(at, -event.reward, chance)))

    def _chances(self, context: Context) -> FloatArray:
        chances: FloatArray = np.array(self._workspace.predict(lines(context, self._n_arms)))
        chances /= chances.sum()
        return chances


def command(parameters: VowpalWabbitParameters, shape: ProblemShape, *, seed: int) -> str:
    """Vowpal Wabbit's command line."""
    parts = [
        "--cb_explore_adf --quiet",
        parameters.options(),
        f"--learning_rate {parameters.learning_rate} --random_seed {seed}",
        "-q sa" if parameters.interactions and shape.observation_dim else "",
    ]
    return " ".join(part for part in parts if part)


def lines(
    context: Context, n_arms: int, *, label: tuple[int, float, float] | None = None
) -> list[str]:
    """A context as text; `label` is the played one among the available arms, its cost and its
    chance."""
    seen = context.observation
    text = [] if seen is None else ["shared |s " + _numbers("x", seen)]
    for at, arm in enumerate(open_arms(context, n_arms)):
        played = "" if label is None or label[0] != at else f"0:{label[1]:.9g}:{label[2]:.9g} "
        vectors = context.arm_features
        own = f"arm{arm}" if vectors is None else _numbers("v", vectors[arm])
        text.append(f"{played}|a {own}")
    return text


def _numbers(name: str, values: FloatArray) -> str:
    return " ".join([f"{name}{i}:{value:.9g}" for i, value in enumerate(values.tolist())])


for _id, _description, _parameters in (
    ("squarecb", "SquareCB, chances by the gaps of predicted costs", SquareCbParameters),
    ("cover", "online cover, policies that differ on purpose", CoverParameters),
    ("bag", "policies on bootstraps of the data", BagParameters),
    ("epsilon", "greedy, but for a share of rounds", EpsilonParameters),
):
    add_external(PACKAGE, f"vw-{_id}", f"Vowpal Wabbit: {_description}", _parameters, VowpalWabbit)
