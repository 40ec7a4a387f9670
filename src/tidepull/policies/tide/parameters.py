"""What can be set of `tide`: nothing to tune, only what takes it apart."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.errors import ParameterError
from tidepull.hypotheses.families import FAMILIES
from tidepull.parameters import Parameters, parameter

_OF_FIVE = ("changes", "regimes", "calendar", "clock")
"""Optional families that version 5 has in any case; those of the clock wait for a time."""
_OF_THIRTEEN = ("classes",)
"""Those that version 13 has where there are observations."""
_LEFT = ("discounted",)
"""Families that do not pay where there are observations (docs/lab/tide.md): not from version 10 on unless asked for."""
_TURNS = 16
"""Most arms that take turns where there are observations, from version 13 on unless asked for: who follows whom among
more is not learnt in time, and arms that were never seen right are locked out (docs/lab/tide.md)."""


@dataclass(frozen=True, kw_only=True)
class TideParameters(Parameters):
    """There is nothing to tune; these exist to take `tide` apart."""

    without: tuple[str, ...] = parameter((), "families of hypotheses to leave out")
    also: tuple[str, ...] = parameter((), "optional families of hypotheses to take in")
    uniform_weights: bool = parameter(False, "all hypotheses alike, instead of by likelihood")
    births: bool = parameter(True, "whether new hypotheses are born near good ones")
    share: float = parameter(1e-5, "alpha, the weight given back to the prior in every round", gt=0, lt=1)
    exploration: float = parameter(
        0.5, "c of the share min(0.05, c / (t + 1)) of families drawn uniformly", ge=0
    )
    boldest: float = parameter(
        0.5,
        "with contexts: most of the factor on the width of draws, for arms known less than others (0.5: none)",
        ge=0.5,
        le=10,
    )
    earnings: bool = parameter(
        False, "observations, rewards 0 and 1: let what choices earn decide between camps of hypotheses"
    )
    wild: float = parameter(
        0.0,
        "share of rewards that may be wild: unlike all others, to be set aside (0: learn all)",
        ge=0,
        le=0.2,
    )
    version: int = parameter(
        13,
        "4 and 5: as frozen; 5: with changes, regimes, the clock, boldest 2 and wild 0.01, and several times as quick; "
        "8: also narrow draws of known arms where there is no context, and other priors; 9: also pairs of sines "
        "climbed together, and with observations predictions put right and regimes on trial; 10: also narrower draws "
        "of known arms with contexts, with observations draws around the average of hypotheses and nothing discounted; "
        "11: with observations arms count as known later, and mistakes are not taken for wild rewards; 12: with "
        "observations chances of 0 and 1, and of rewards of two kinds, come from the densities of both, and long arm "
        "vectors (65 to 256 numbers) are seen whole by who believes that nothing changes; 13: with observations "
        "classes (one arm is right at a time, what is seen tells which) and turns of 16 arms at most; without contexts "
        "wild rewards are told by what was expected, too",
        ge=4,
        le=13,
        added=True,
        before=4,
    )
    window: int = parameter(2048, "past rounds kept for newborn hypotheses", ge=64, le=1_000_000)

    def __post_init__(self) -> None:
        """6 and 7 were played once and dropped (docs/lab/tide.md)."""
        super().__post_init__()
        if self.version in (6, 7):
            raise ParameterError(f"version must be 4, 5 or 8 to 13, got {self.version}")

    def families(self, *, observed: bool = False, n_arms: int = 2) -> list[str]:
        """The families that take part; `observed`: where every arm has weights of its own on an observation, and there
        are `n_arms` of them."""
        for field, names in (("without", self.without), ("also", self.also)):
            for name in names:
                if name not in FAMILIES:
                    raise ParameterError(
                        f"{field}: there is no family '{name}'; families: {', '.join(FAMILIES)}"
                    )
        also = (*self.also, *(_OF_FIVE if self.version >= 5 else ()))
        also += _OF_THIRTEEN if observed and self.version >= 13 else ()
        kept = [f.name for f in FAMILIES.values() if not f.optional or f.name in also]
        left = set(_LEFT) if observed and self.version >= 10 else set()
        if observed and self.version >= 13 and n_arms > _TURNS:
            left.add("turns")
        return [name for name in kept if name not in {*self.without, *(left - set(self.also))}]

    def width(self) -> float:
        """`boldest`; in version 5 at least 2."""
        return max(self.boldest, 2.0) if self.version >= 5 else self.boldest

    def wildness(self) -> float:
        """`wild`; in version 5 at least 0.01."""
        return max(self.wild, 0.01) if self.version >= 5 else self.wild

    def plays(self, *, observed: bool = False) -> float:
        """c of `hypotheses.boldness` where there is a context; `observed` as in `families`."""
        return 0.5 if self.version >= 8 and not (observed and self.version >= 11) else 1.0

    def wild_beyond(self, *, observed: bool = False) -> float:
        """How many times as far out as nearly all rewards a wild one lies. Where an observation decides whether an arm
        is right, who chooses well sees few rewards of wrong arms: they are rare, and what there is to learn from."""
        return 30.0 if observed and self.version >= 11 else 3.0

    def boldness(self) -> float:
        """The least factor on the width of draws where there is a context."""
        return 0.25 if self.version >= 10 else 0.5

    def narrowest(self) -> float:
        """The least factor on the width of draws where there is no context."""
        return 0.5 if self.version >= 8 else 1.0
