"""Parameters of `tide`: nothing to tune, only parts to leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.tide.models.families import FAMILIES

_LEFT = ("discounted",)
"""Families that do not pay (research/lab/tide.md), and take part only if asked for. `diagnose` asks
a log with them whether it drifts."""
_TURNS = 16
"""Most arms of `turns` where there are observations, unless asked for: the order of more arms is
not learnt in time, and arms that never succeeded are locked out (research/lab/tide.md)."""


_UNTIMED = ("fourier", "square", "seasons", "phases", "own periods", "regimes")
"""Families that do not pay where times are given (research/lab/tide.md): visitors follow the clock,
not the number of earlier visitors, and regimes fit the noise of real hours."""

_GONE = ("calendar", "clock")
"""Families of earlier releases, which structural models replaced; agents may name them."""

STRUCTURAL = "structural"
"""The family of `tide/structural.py`."""


@dataclass(frozen=True, kw_only=True)
class TideParameters(Parameters):
    """Parameters that leave out or add parts of `tide`; there is nothing to tune."""

    without: tuple[str, ...] = parameter((), "families of models to leave out")
    also: tuple[str, ...] = parameter(
        (),
        "families to take in where they do not pay: seasons in rounds and 'regimes' where times "
        "are given, 'discounted', and 'turns' of more than 16 arms",
    )
    births: bool = parameter(True, "whether the structure search adds models")
    share: float = parameter(
        1e-5, "alpha, the share of the weights that returns to the prior in every round", gt=0, lt=1
    )
    exploration: float = parameter(
        0.5, "c of the share min(0.05, c / (t + 1)) of families drawn uniformly", ge=0
    )
    outlier_share: float = parameter(
        0.01,
        "share of rewards that may be outliers, which are not learnt (0: learn all)",
        ge=0,
        le=0.2,
        earlier_name="wild",
    )
    window: int = parameter(2048, "past rounds kept for the structure search", ge=64, le=1_000_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, names in (("without", self.without), ("also", self.also)):
            for name in names:
                if name not in (*FAMILIES, STRUCTURAL, *_GONE):
                    known = ", ".join((*FAMILIES, STRUCTURAL))
                    raise ParameterError(f"{field}: there is no family '{name}'; families: {known}")

    @property
    def structural(self) -> bool:
        """Whether structural models take part where times are given."""
        return STRUCTURAL not in self.without

    def families(
        self, *, observed: bool = False, timed: bool = False, n_arms: int = 2
    ) -> list[str]:
        """Families that take part; `observed`: every arm has weights of its own on an observation,
        and there are `n_arms` of them; `timed`: times are given."""
        left = {*_LEFT, *(_UNTIMED if timed and self.structural else ())}
        left |= {"turns"} if observed and n_arms > _TURNS else set()
        return [name for name in FAMILIES if name not in {*self.without, *(left - set(self.also))}]

    @classmethod
    def from_earlier(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Translate parameters stored while `tide` had versions: 13 is the present one."""
        kept = dict(values)
        version = kept.pop("version", 4)  # the first default was left out
        if version != 13:
            raise ParameterError(
                f"made with tide version {version}, which is gone: export it with the release that "
                "made it, and learn "
                "from the export in a new agent"
            )
        for name, off in (("uniform_weights", False), ("earnings", False)):
            if kept.get(name) == off:
                del kept[name]
        if kept.get("boldest", 0.0) <= 2.0:
            kept.pop("boldest", None)
        if "wild" in kept:
            kept["wild"] = max(kept["wild"], 0.01)
        return kept
