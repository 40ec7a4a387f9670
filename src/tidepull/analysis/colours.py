"""A policy keeps its colour everywhere; all are safe for colour-blind readers (after Okabe and Ito)."""

from __future__ import annotations

from zlib import crc32

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
_SPARE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def colour(policy: str) -> str:
    """Colour of a policy id, or of a label that starts with one ("rnlps-best")."""
    matches = [id for id in _FIXED if policy == id or policy.startswith((f"{id}-", f"{id} "))]
    if matches:
        return _FIXED[max(matches, key=len)]
    return _SPARE[crc32(policy.encode()) % len(_SPARE)]
