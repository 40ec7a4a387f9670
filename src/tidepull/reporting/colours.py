"""A policy keeps its colour everywhere; all are safe for colour-blind readers (after Okabe and Ito).

Variants of one policy (best, default, other explorations) share its colour and differ by their line.
"""

from __future__ import annotations

from zlib import crc32

from tidepull.hypotheses.families import FAMILIES

_FIXED = {
    "random": "#8c8c8c",
    "fixed": "#b5b5b5",
    "oracle": "#000000",
    "ucb": "#997700",
    "d-ucb": "#e69f00",
    "d-lin-ucb": "#e69f00",
    "sw-ucb": "#56b4e9",
    "sw-lin-ucb": "#56b4e9",
    "bernoulli-ts": "#cc79a7",
    "lin-ts": "#cc79a7",
    "lin-ucb": "#997700",
    "nlps": "#009e73",
    "rnlps": "#d55e00",
    "tide": "#0072b2",
}
_FAMILIES = {family.name: family.colour for family in FAMILIES.values()}
"""Families of hypotheses of `tide`, in charts of their own."""
_SPARE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]

SOLID: tuple[float, ...] = ()
_DASHES = {
    "": SOLID,
    "best": SOLID,
    "tuned": SOLID,
    "default": (6, 2.5),
    "epsilon": (1.5, 2),
    "epsilon-greedy": (1.5, 2),
    "boltzmann": (7, 2, 1.5, 2),
}
_SPARE_DASHES: list[tuple[float, ...]] = [(3, 2), (9, 3), (7, 2, 1.5, 2, 1.5, 2), (1.5, 3.5)]


def colour(policy: str) -> str:
    """Colour of a policy id, or of a name that starts with one ("rnlps-best")."""
    id = _id(policy)
    if policy in _FAMILIES:
        return _FAMILIES[policy]
    return _FIXED[id] if id else _SPARE[crc32(policy.encode()) % len(_SPARE)]


def dashes(policy: str) -> tuple[float, ...]:
    """Lengths of the line's dashes and gaps; empty for a solid line."""
    if policy in _FAMILIES:
        return SOLID
    variant = policy.removeprefix(_id(policy) or policy).strip("- *").removesuffix("-best")
    if variant in _DASHES:
        return _DASHES[variant]
    return _SPARE_DASHES[crc32(variant.encode()) % len(_SPARE_DASHES)]


def _id(policy: str) -> str:
    matches = [id for id in _FIXED if policy == id or policy.startswith((f"{id}-", f"{id} ", f"{id}*"))]
    return max(matches, key=len, default="")
