"""What is chosen when an agent is made, and stays with its ledger."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tidepull.agent.clock import Clock
from tidepull.errors import ParameterError
from tidepull.policies import policies

DRAWS = 32
"""Draws of the policy from which an arm's chance follows."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything about an agent that is not learnt; JSON values only."""

    arms: list[Any]
    context: dict[str, Any] | None
    policy: str
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    zone: str = "UTC"
    calendar: bool = True
    room: int | None = None
    draws: int = DRAWS
    control: float = 0.05
    control_arm: str | None = None
    floor: float = 0.0
    shares: dict[str, list[float]] = field(default_factory=dict)
    reward_within: float | None = None
    default_reward: float | None = None
    again: Literal["refuse", "add", "replace"] = "refuse"
    retain: float | None = None

    def __post_init__(self) -> None:
        entry, _ = policies.resolve((self.policy, self.parameters))
        if entry.guest is not None:
            raise ParameterError(
                f"policy: {self.policy} has no snapshots, because its state lies inside {entry.guest.name}, so an "
                "agent could not restore it; choose one of tidepull's own (tidepull list policies)"
            )
        if self.policy == "oracle":
            raise ParameterError("policy: the oracle needs the truth, which an agent has not got")
        Clock(self.zone)
        _between("control", self.control, 0.0, 1.0)
        _between("floor", self.floor, 0.0, 1.0)
        _whole("draws", self.draws, 1, 10_000)
        _whole("seed", self.seed, 0, 2**63)
        for name in ("reward_within", "retain"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, float) and 0 < value < 1e12):
                raise ParameterError(
                    f"{name} must be a positive number of seconds or a timedelta, got {value!r}"
                )
        if self.default_reward is not None and self.reward_within is None:
            raise ParameterError("default_reward needs reward_within: after which time does it count?")
        if self.again not in ("refuse", "add", "replace"):
            raise ParameterError(f"again must be 'refuse', 'add' or 'replace', got {self.again!r}")
        if self.again != "refuse" and self.reward_within is None:
            raise ParameterError(
                f"again='{self.again}' needs reward_within: a reward is learnt when nothing can change it any more"
            )
        if self.room is not None:
            _whole("room", self.room, len(self.arms), 1 << 13)
        self._check_shares()

    @property
    def learns_when_due(self) -> bool:
        """Whether rewards are learnt when their time is over, not when they come."""
        return self.again != "refuse"

    @property
    def counts_missing(self) -> bool:
        """Whether somebody has to look for decisions whose time is over."""
        return self.learns_when_due or self.default_reward is not None

    def text(self) -> str:
        """As JSON; the order of fields is that of the vector that a policy sees."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str, *, earlier: bool = False) -> Settings:
        """From JSON; `earlier`: as a release wrote it that left no note of itself."""
        values = json.loads(text)
        if earlier:
            known = policies.entry(values["policy"]).parameters
            values["parameters"] = known.from_earlier(values.get("parameters", {}))
        return cls(**values)

    def _check_shares(self) -> None:
        labels = [arm[0] for arm in self.arms]
        if self.control_arm is not None and self.control_arm not in labels:
            raise ParameterError(f"control_arm: there is no arm '{self.control_arm}'")
        least = most = 0.0
        for label, pair in self.shares.items():
            if label not in labels:
                raise ParameterError(f"shares: there is no arm '{label}'")
            if not isinstance(pair, list) or len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= 1:
                raise ParameterError(
                    f"shares: '{label}' must have a pair (least, most) between 0 and 1, got {pair!r}"
                )
        for label in labels:
            low, high = self.shares.get(label, (0.0, 1.0))
            least, most = least + low, most + high
        if least > 1 or most < 1:
            raise ParameterError(
                f"shares: the least shares add up to {least:g} and the most to {most:g}; they must leave room for 1"
            )


def shares_of(given: Mapping[str, Any] | None) -> dict[str, list[float]]:
    """Pairs as lists of floats; what is no pair is left for the check."""
    pairs = {}
    for label, pair in (given or {}).items():
        numbers = list(pair) if isinstance(pair, list | tuple) else pair
        whole = isinstance(numbers, list) and all(isinstance(number, int | float) for number in numbers)
        pairs[label] = [float(number) for number in numbers] if whole else numbers
    return pairs


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ParameterError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")
    if math.isnan(value):
        raise ParameterError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
