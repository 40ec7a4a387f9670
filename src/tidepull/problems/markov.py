"""Worlds whose state depends on the arms that were played.

- `CircularMarkovChain`: one arm pays well until it is chosen, then the next one does.
- `RottingArms`: arms wear out while they are played and recover while they rest.
- `ParityMachine`, `TwoStepChain`: hidden state machines that no model of `tide` describes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.parameters import parameter
from tidepull.problems.arms import OneBestArm
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import GaussianReward, Reward, SimulatedProblem, levels, noise_of
from tidepull.random import Streams
from tidepull.types import FloatArray, Structure


@dataclass(frozen=True, kw_only=True)
class CircularMarkovChainParameters(OneBestArm):
    """Parameters of `circular-markov-chain`."""

    n_arms: int = parameter(8, "number of arms", ge=1, le=10**6)


class CircularMarkovChain(SimulatedProblem):
    """When the best arm is chosen it trades places with the next arm; the start is drawn from the
    seed.

    The noise and the start depend on the seed alone. Where the chain stands depends on what was
    played.
    """

    def __init__(self, parameters: CircularMarkovChainParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._rows = parameters.rows(parameters.n_arms)
        self._gap = parameters.best_mean - parameters.mean
        self._best = int(streams.generator("start").choice(parameters.n_arms))
        self.reward: Reward = GaussianReward(parameters.noise_std, streams.generator("noise"))

    def means(self) -> FloatArray:
        """`best_mean` for one arm, `mean` for all others."""
        return self._rows[self._best]

    def _advance(self, arm: int) -> None:
        if arm == self._best:
            self._best = (self._best + 1) % self.n_arms

    def structure(self) -> Structure:
        """Whose turn it is; what an arm pays in its turn and out of turn is to be learnt."""
        turn = np.arange(self.n_arms) == self._best
        return levels(turn.astype(np.int64), noise_of(self.reward))

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: all but one in K miss, wherever the chain
        stands."""
        return horizon * self._gap * (1 - 1 / self.n_arms)


class RottingArms(SimulatedProblem):
    """mean_k = fresh_k (1 - depth_k load_k). The load of an arm that is played moves towards 1,
    that of all others towards 0, by 1 / patience of the way in every round."""

    def __init__(
        self, fresh: FloatArray, depth: FloatArray, patience: float, reward: Reward
    ) -> None:
        self.n_arms = len(fresh)
        self._fresh, self._depth, self._patience, self.reward = fresh, depth, patience, reward
        self._load = np.zeros(self.n_arms)

    def means(self) -> FloatArray:
        """What the arms are worth as worn as they are."""
        return read_only(self._fresh * (1 - self._depth * self._load))

    def _advance(self, arm: int) -> None:
        self._load += (np.eye(self.n_arms)[arm] - self._load) / self._patience

    def structure(self) -> Structure:
        """How worn every arm is; what it is worth when fresh is to be learnt."""
        vectors = (1 - self._depth * self._load)[:, None]
        noise, mean, std = noise_of(self.reward), np.array([0.5]), np.array([0.3])
        return Structure(np.arange(self.n_arms), vectors, noise, mean, std)


class ParityMachine(SimulatedProblem):
    """Two hidden states; the state switches after every second success.

    A success is a play of the arm that is best in the present state.
    """

    def __init__(self, regimes: FloatArray, reward: Reward) -> None:
        self.n_arms = regimes.shape[1]
        self._regimes = [read_only(row) for row in regimes]
        self.reward = reward
        self._successes = 0

    def means(self) -> FloatArray:
        """The expected rewards of the present state."""
        return self._regimes[self._successes // 2 % 2]

    def _advance(self, arm: int) -> None:
        self._successes += int(arm == int(np.argmax(self.means())))

    def structure(self) -> Structure:
        """Which state it is in; every arm has a level in each."""
        groups = np.arange(self.n_arms) + self.n_arms * (self._successes // 2 % 2)
        return levels(groups, noise_of(self.reward))


class TwoStepChain(SimulatedProblem):
    """One arm pays; when it is played, the next one to pay depends on the last two that did.

    Inside: next = successor[two ago][one ago], a table of random permutations.
    """

    def __init__(
        self, successor: np.ndarray[tuple[int, int], np.dtype[np.int64]], reward: Reward
    ) -> None:
        self.n_arms = len(successor)
        self._successor = successor
        self._rows = [read_only(row) for row in np.eye(self.n_arms)]
        self.reward = reward
        self._before, self._now = 0, int(successor[0, 0])

    def means(self) -> FloatArray:
        """1 for the arm whose turn it is, 0 for all others."""
        return self._rows[self._now]

    def _advance(self, arm: int) -> None:
        if arm == self._now:
            self._before, self._now = self._now, int(self._successor[self._before, self._now])

    def structure(self) -> Structure:
        """Whose turn it is; what an arm pays in its turn and out of turn is to be learnt."""
        return levels((np.arange(self.n_arms) == self._now).astype(np.int64), noise_of(self.reward))
