"""The settings of the networks, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.encoders.initial import STORED_AS, Init
from tidepull.parameters import Parameters, parameter


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Parameters):
    """What both networks have in common."""

    units: tuple[int, int, int] = parameter(description="units of the three hidden layers", ge=1, le=1024)
    learning_rate: float = parameter(description="step size of Adam", gt=0)
    l2: float = parameter(0.001, "weight of half the sum of squared weights in the loss", ge=0)
    init: Init = parameter("authors-code", "how weights begin", stored_as=STORED_AS)
    memory: int | None = parameter(None, "rounds that training knows, the last ones (None: all)", ge=64)


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(NetworkSettings):
    """The recurrent network."""

    bptt_window: int | None = parameter(None, "rounds through which gradients flow back (None: all)", ge=1)


@dataclass(frozen=True, kw_only=True)
class FeedforwardSettings(NetworkSettings):
    """The feedforward network."""

    order: int = parameter(1, "past rounds that are part of the input", ge=0, le=10_000)
    sinusoids: int = parameter(1, "units sin(a t + b) that read the time", ge=0, le=10_000)
