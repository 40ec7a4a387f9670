"""Garivier and Moulines (ALT 2011): two problems of three Bernoulli arms and 10,000 rounds.

`abrupt`: .5 and .3 throughout, the third arm .9 from round 3,000 to 5,000 and .4 else. `cycle`: arm
i pays .5 + 3/8 cos(6 pi t / T + 2 pi i / 3), three turns of the arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from research.papers.tables import TableDrift, clicks, segments
from tidepull import Entry, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams
from tidepull.types import FloatArray

ROUNDS = 10_000


@dataclass(frozen=True, kw_only=True)
class GarivierParameters(Parameters):
    """Parameters of `garivier`."""

    kind: Literal["abrupt", "cycle"] = parameter("abrupt", "the problem")


class Cycle(TableDrift):
    """One cosine, a third of a turn between the arms."""

    def __init__(self) -> None:
        angle = 6 * np.pi * np.arange(ROUNDS)[:, None] / ROUNDS
        super().__init__(0.5 + 3 / 8 * np.cos(angle + 2 * np.pi * np.arange(1, 4) / 3))

    def waves(self, t: int) -> FloatArray:
        """A level and the cosine of each arm."""
        return np.stack([np.ones(3), (self(t) - 0.5) * 8 / 3], axis=1)


def problem(parameters: GarivierParameters, streams: Streams) -> DriftingArms:
    """Bernoulli arms."""
    if parameters.kind == "cycle":
        return DriftingArms(Cycle(), BernoulliReward(streams.generator("noise")))
    rows = [[0.5, 0.3, 0.4], [0.5, 0.3, 0.9], [0.5, 0.3, 0.4]]
    return clicks(segments(rows, [0, 3000, 5000], ROUNDS), streams)


add_problem(
    Entry(
        "garivier", "problems of Garivier and Moulines", GarivierParameters, problem, horizon=ROUNDS
    )
)
