"""The measurement error that a neural-linear policy really has: a bridge from the theory to a
trial.

In the theory the observed context x of an arm differs from the true one x* by at most epsilon, so
that
|w . x - w . x*| <= epsilon. In a trial x are the network's features u, and the truth is known: the expected
reward of every arm. Between two trainings the network is fixed; on every other of those rounds the
best linear map v is fitted (u . v to the expected rewards of all arms), and the root mean square of
u . v minus the truth on the held-out rounds estimates the effective error, from below, in units of
reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.errors import ParameterError
from tidepull.experiments.loop import play
from tidepull.policies import build_policy
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.problems import build_problem, shape_of
from tidepull.registry import Named
from tidepull.types import Context, Event, FloatArray, Snapshot

_ROWS_PER_FEATURE = 2


@dataclass(frozen=True, slots=True, eq=False)
class EffectiveError:
    """Error of each stretch of rounds between two trainings, and the trial's cumulative regret.

    `first` and `length` say which rounds a stretch covers. `features` is the error of the learned
    features under the best linear map, `vectors` that of the arms' own vectors under theirs,
    `last_layer` that of the features under the mean of the policy's posterior (learned from its
    past choices alone), `nothing` that of predicting 0.
    """

    first: FloatArray
    length: FloatArray
    features: FloatArray
    vectors: FloatArray
    last_layer: FloatArray
    nothing: FloatArray
    regret: FloatArray

    @property
    def regret_per_round(self) -> FloatArray:
        """Mean regret of a round in each stretch."""
        last = (self.first + self.length - 1).astype(int)
        before = np.append(0.0, self.regret)[self.first.astype(int)]
        return np.asarray((self.regret[last] - before) / self.length)

    def as_plain(self) -> dict[str, Any]:
        """JSON values; `correlation` is that of the features' error and the regret a round, over
        stretches."""
        names = ("features", "vectors", "last_layer", "nothing", "regret_per_round")
        columns = [getattr(self, name).tolist() for name in names]
        correlation = None
        if len(self.first) > 2:
            correlation = float(np.corrcoef(self.features, self.regret_per_round)[0, 1])
        stretches = [
            {"first": int(first), "length": int(length), **dict(zip(names, values, strict=True))}
            for first, length, *values in zip(self.first, self.length, *columns, strict=True)
        ]
        regret = float(self.regret[-1])
        return {"regret": regret, "correlation": correlation, "stretches": stretches}


class FeatureProbe:
    """A neural-linear policy under observation: it plays as it would, while features and truth are
    written down."""

    def __init__(self, policy: NeuralLinear) -> None:
        self._policy = policy
        self.features: list[FloatArray] = []
        self.vectors: list[FloatArray] = []
        self.predictions: list[FloatArray] = []
        self.means: list[FloatArray] = []
        self.versions: list[int] = []

    def choose_knowing(self, context: Context, means: FloatArray) -> int:
        """The policy's own choice; the truth is only recorded."""
        arm = self._policy.choose(context)
        encoder = self._policy.encoder
        features = np.asarray(encoder.features(context), dtype=np.float64)
        self.features.append(features)
        self.predictions.append(features @ self._policy.posterior.mean)
        self.vectors.append(np.asarray(context.arm_features, dtype=np.float64))
        self.means.append(means.copy())
        self.versions.append(encoder.version)
        return arm

    def choose(self, context: Context) -> int:
        """The policy's own choice, unrecorded."""
        return self._policy.choose(context)

    def learn(self, event: Event) -> None:
        """Pass on to the policy."""
        self._policy.learn(event)

    def upkeep(self) -> bool:
        """The policy's own."""
        return self._policy.upkeep()

    def snapshot(self) -> Snapshot:
        """The policy's own."""
        return self._policy.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """The policy's own."""
        self._policy.restore(snapshot)


def effective_error(
    problem: Named,
    policy: Named,
    *,
    horizon: int,
    seed: int,
    on_round: Callable[[int], None] | None = None,
) -> EffectiveError:
    """Play the same trial as `run_trial` would, and measure the features' error between
    trainings."""
    world = build_problem(problem, seed=seed)
    shape = shape_of(world)
    if not shape.arm_dim:
        raise ParameterError(
            f"problem must be a linear one, whose arms have vectors; {_id(problem)} has none"
        )
    learner = build_policy(policy, shape, seed=seed).inner
    if not isinstance(learner, NeuralLinear):
        raise ParameterError(f"policy must have an encoder, as rnlps does; {_id(policy)} has none")
    probe = FeatureProbe(learner)
    with one_blas_thread():
        regret = play(world, probe, horizon, on_round=on_round).regret
    return _measure(probe, regret)


def _measure(probe: FeatureProbe, regret: FloatArray) -> EffectiveError:
    features, vectors, means = map(np.array, (probe.features, probe.vectors, probe.means))
    versions, predictions = np.array(probe.versions), np.array(probe.predictions)
    rows = []
    for version in np.unique(versions):
        stretch = np.flatnonzero(versions == version)
        fitted, held = stretch[::2], stretch[1::2]
        if len(held) and means[fitted].size >= _ROWS_PER_FEATURE * features.shape[-1]:
            truth = means[held]
            learned = held_out_error(features[fitted], means[fitted], features[held], truth)
            raw = held_out_error(vectors[fitted], means[fitted], vectors[held], truth)
            last_layer = _rms(predictions[held] - truth)
            rows.append((stretch[0], len(stretch), learned, raw, last_layer, _rms(truth)))
    if not rows:
        raise ParameterError(
            "horizon or train_every is too short: between two trainings the arms shown must be at "
            f"least {2 * _ROWS_PER_FEATURE * features.shape[-1]}, over all rounds"
        )
    first, length, learned, raw, last_layer, nothing = np.array(rows, dtype=np.float64).T
    return EffectiveError(first, length, learned, raw, last_layer, nothing, regret)


def held_out_error(
    features: FloatArray, means: FloatArray, held_features: FloatArray, held_means: FloatArray
) -> float:
    """Fit means (rounds x arms) by one linear map of features (rounds x arms x dim); the error on
    held-out ones."""
    flat = features.reshape(-1, features.shape[-1])
    v, *_ = np.linalg.lstsq(flat, means.ravel(), rcond=1e-6)
    return _rms(held_features @ v - held_means)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _id(named: Named) -> str:
    return named if isinstance(named, str) else named[0]
