"""`rnlps` and `nlps`: the paper's two policies as compositions encoder x posterior x exploration
rule.

A parameter left out takes the paper's default for the kind of problem at hand (its table
"Hyperparameter grid and default hyperparameters"); a problem is contextual when it shows
observations or arm features. The table calls `noise_std` and `prior_std` variances; as standard
deviations they reproduce its results.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from tidepull.encoders.feedforward import FeedforwardEncoder
from tidepull.encoders.layers import STORED_AS, Init
from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.encoders.wrappers import RawFeatures
from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.policies.exploration import (
    Boltzmann,
    EpsilonGreedy,
    ExplorationRule,
    PosteriorSampling,
)
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.posteriors.normal_inverse_gamma import NormalInverseGamma
from tidepull.protocols import PatientEncoder, Posterior
from tidepull.random import Streams
from tidepull.types import ProblemShape

NoiseStd: TypeAlias = float | Literal["infer"]
Units: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class NeuralParameters(Parameters):
    """What both networks share; a parameter left out is the paper's default for the kind of
    problem."""

    learning_rate: float | None = parameter(None, "step size of Adam", gt=0)
    epochs: int | None = parameter(None, "passes over what is remembered per training", ge=1)
    train_every: int | None = parameter(None, "rounds between trainings", ge=1)
    noise_std: float | Literal["infer"] | None = parameter(
        None, "standard deviation of the reward, as assumed by the posterior, or 'infer'", gt=0
    )
    prior_std: float | None = parameter(
        None, "prior standard deviation of the last layer's weights", gt=0
    )
    units: tuple[int, int, int] | None = parameter(
        None, "units of the three hidden layers", ge=1, le=1024
    )
    exploration: Literal["posterior-sampling", "epsilon-greedy", "boltzmann"] = parameter(
        "posterior-sampling", "how the posterior becomes a choice"
    )
    epsilon: float = parameter(0.05, "share of random arms under epsilon-greedy", ge=0, le=1)
    temperature: float = parameter(0.01, "temperature of Boltzmann exploration", gt=0)
    init: Init = parameter(
        "authors-code",
        "initial weights: as in the authors' code (LSTM: Glorot, forget gate + 1), as in the "
        "paper's text (all from a normal distribution cut at 2), or the former with dense ones "
        "divided by the root of the fan-in",
        stored_as=STORED_AS,
    )
    raw_features: bool = parameter(
        False, "show the last layer the arm itself beside the network's features"
    )
    l2: float = parameter(0.001, "weight of half the sum of squared weights in the loss", ge=0)
    memory: int | None = parameter(
        None, "rounds that are remembered for training, the last ones; left out: all", ge=64
    )
    prior_mean: tuple[float, ...] | None = parameter(
        None, "w_0, prior mean of the last layer's weights (left out: 0)", added=True
    )
    prior_covariance: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = parameter(
        None,
        "V_0, variances or covariance matrix of those weights (left out: prior_std^2 I)",
        added=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_std is not None and self.prior_covariance is not None:
            raise ParameterError(
                "prior_std and prior_covariance say the same thing; give one of them"
            )


@dataclass(frozen=True, kw_only=True)
class RnlpsParameters(NeuralParameters):
    """Hyperparameters of `rnlps`."""

    bptt_window: int | None = parameter(
        None, "rounds through which errors are propagated back; left out: all", ge=1
    )


@dataclass(frozen=True, kw_only=True)
class NlpsParameters(NeuralParameters):
    """Hyperparameters of `nlps`."""

    order: int | None = parameter(None, "past rounds in the network's input", ge=0, le=10_000)
    sinusoids: int | None = parameter(None, "units sin(a t + b) of the raw time", ge=0, le=10_000)


@dataclass(frozen=True, kw_only=True)
class PaperDefaults:
    """One column of the paper's table of defaults."""

    learning_rate: float
    epochs: int
    train_every: int = 32
    noise_std: NoiseStd = 0.1
    prior_std: float
    units: Units = (32, 32, 32)
    order: int = 1
    sinusoids: int = 1


RECURRENT_PLAIN = PaperDefaults(learning_rate=0.01, epochs=16, prior_std=0.5)
RECURRENT_CONTEXTUAL = PaperDefaults(learning_rate=0.001, epochs=64, noise_std=0.3, prior_std=0.5)
FEEDFORWARD_PLAIN = PaperDefaults(learning_rate=0.1, epochs=16, prior_std=1.0)
FEEDFORWARD_CONTEXTUAL = PaperDefaults(learning_rate=0.01, epochs=64, prior_std=1.0, sinusoids=2)


def rnlps(parameters: RnlpsParameters, shape: ProblemShape, streams: Streams) -> NeuralLinear:
    """Recurrent neural-linear posterior sampling."""
    defaults = RECURRENT_CONTEXTUAL if is_contextual(shape) else RECURRENT_PLAIN
    settings = effective(parameters, defaults)
    network = _network(parameters, settings, streams)
    encoder = RecurrentEncoder(shape, **network, bptt_window=parameters.bptt_window)
    # One pull of every arm, in order; linear problems are not about the arm's number: one pull of
    # arm 0.
    forced_rounds = shape.n_arms if shape.arm_dim == 0 else 1
    return _compose(encoder, parameters, settings, shape, forced_rounds, streams)


def nlps(parameters: NlpsParameters, shape: ProblemShape, streams: Streams) -> NeuralLinear:
    """Feedforward neural-linear posterior sampling with sinusoidal time units."""
    defaults = FEEDFORWARD_CONTEXTUAL if is_contextual(shape) else FEEDFORWARD_PLAIN
    settings = effective(parameters, defaults)
    network = _network(parameters, settings, streams)
    network |= {"order": settings.order, "sinusoids": settings.sinusoids}
    encoder = FeedforwardEncoder(shape, **network)
    # At least order + 1 rounds, so that the input's past is complete before the network decides.
    forced_rounds = max(settings.order + 1, shape.n_arms if shape.arm_dim == 0 else 1)
    return _compose(encoder, parameters, settings, shape, forced_rounds, streams)


def _network(
    parameters: NeuralParameters, settings: PaperDefaults, streams: Streams
) -> dict[str, Any]:
    chosen = {"units": settings.units, "learning_rate": settings.learning_rate}
    others = {name: getattr(parameters, name) for name in ("l2", "init", "memory")}
    return {**chosen, **others, "rng": streams.generator("network")}


def is_contextual(shape: ProblemShape) -> bool:
    """Whether the paper's contextual defaults apply."""
    return shape.observation_dim > 0 or shape.arm_dim > 0


def effective(parameters: NeuralParameters, defaults: PaperDefaults) -> PaperDefaults:
    """The given parameters, the defaults where none was given."""
    values = {f.name: getattr(parameters, f.name, None) for f in fields(defaults)}
    return replace(defaults, **{name: value for name, value in values.items() if value is not None})


def _compose(
    encoder: PatientEncoder,
    parameters: NeuralParameters,
    settings: PaperDefaults,
    shape: ProblemShape,
    forced_rounds: int,
    streams: Streams,
) -> NeuralLinear:
    if parameters.raw_features:
        encoder = RawFeatures(encoder, shape)
    return NeuralLinear(
        encoder,
        _posterior(encoder.dim, settings, parameters),
        n_arms=shape.n_arms,
        epochs=settings.epochs,
        train_every=settings.train_every,
        forced_rounds=forced_rounds,
        explore=exploration_rule(parameters),
        rng=streams.generator("exploration"),
    )


def _posterior(dim: int, settings: PaperDefaults, parameters: NeuralParameters) -> Posterior:
    prior: dict[str, Any] = {
        "prior_std": settings.prior_std,
        "prior_mean": parameters.prior_mean,
        "prior_covariance": parameters.prior_covariance,
    }
    if settings.noise_std == "infer":
        return NormalInverseGamma(dim, **prior)
    return LinearGaussian(dim, noise_std=settings.noise_std, **prior)


def exploration_rule(parameters: NeuralParameters) -> ExplorationRule:
    """The rule of that name."""
    rules: dict[str, ExplorationRule] = {
        "posterior-sampling": PosteriorSampling(),
        "epsilon-greedy": EpsilonGreedy(parameters.epsilon),
        "boltzmann": Boltzmann(parameters.temperature),
    }
    return rules[parameters.exploration]
