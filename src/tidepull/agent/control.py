"""How an arm is drawn: from shares within bounds, by numbers that follow from the agent's salt."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from tidepull.types import BoolArray, FloatArray, IntArray


def unit(salt: bytes, *parts: object) -> float:
    """A number in [0, 1) that follows from its arguments alone, evenly spread.

    >>> unit(b"salt", "arm", 7) == unit(b"salt", "arm", 7), 0 <= unit(b"salt", "arm", 8) < 1
    (True, True)
    """
    text = "\x1f".join(map(str, parts)).encode()
    return (
        int.from_bytes(blake2b(text, key=salt, digest_size=8).digest(), "little") >> 11
    ) * 2.0**-53


def quantise(shares: FloatArray) -> IntArray:
    """Shares in the coarse form in which a ledger has them."""
    return np.rint(shares * 65535).astype(np.int64)


def draw_arm(chances: FloatArray, u: float) -> int:
    """The arm that u in [0, 1) falls on."""
    total, latest = 0.0, 0
    for arm, chance in enumerate(chances.tolist()):
        if chance > 0.0:
            total, latest = total + chance, arm
            if u < total:
                return arm
    return latest


def control_chances(available: BoolArray, place: int | None) -> FloatArray:
    """Chances in the control group: one arm alone, else, or where it is not available, all evenly.

    >>> control_chances(np.array([True, True, False]), None).tolist()
    [0.5, 0.5, 0.0]
    """
    if place is None or not available[place]:
        return np.asarray(available / available.sum())
    return np.asarray(np.eye(len(available))[place])


LEAST_CHANCE, MOST_SPREAD = 0.001, 0.05
"""By default the least chance of every available arm, and the most that all of them take from the
policy's shares together."""


def floor_chances(shares: FloatArray, available: BoolArray) -> FloatArray:
    """Shares of which a little is spread over all available arms.

    >>> floor_chances(np.array([1.0, 0.0]), np.array([True, True])).tolist()
    [0.999, 0.001]
    """
    count = int(available.sum())
    each = min(LEAST_CHANCE, MOST_SPREAD / count)
    floored: FloatArray = (1 - count * each) * shares + each * available
    return floored


def bound_chances(
    shares: FloatArray, available: BoolArray, floor: float, least: FloatArray, most: FloatArray
) -> FloatArray:
    """Chances near the shares: a part `floor` spread evenly over the available arms, none of which
    falls below its least or rises above its most. Where bounds of the available arms cannot all be
    kept, they give way evenly.

    >>> bound_chances(np.array([1.0, 0.0]), np.array([True, True]), 0.1, np.zeros(2), np.ones(2))
    array([0.95, 0.05])
    """
    even = available / available.sum()
    chances: FloatArray = (1 - floor) * shares + floor * even
    low, high = np.where(available, least, 0.0), np.where(available, most, 0.0)
    if not low.any() and high.sum() == available.sum():
        return chances
    if low.sum() > 1:
        low = low / low.sum()
    if high.sum() < 1:
        high = high / high.sum() if high.any() else even
    high = np.maximum(high, low)
    return _between(np.maximum(chances, 1e-12 * available), low, high)


def _between(weights: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The point of the simplex of the form clip(c w, low, high)."""
    below, above = 0.0, 1e15
    for _ in range(100):
        middle = (below + above) / 2 if above < 4 else float(np.sqrt(max(below, 1e-3) * above))
        if np.clip(middle * weights, low, high).sum() < 1:
            below = middle
        else:
            above = middle
    made: FloatArray = np.clip(above * weights, low, high)
    free = (made > low) & (made < high)
    if free.any():
        made[free] *= (1 - made[~free].sum()) / made[free].sum()
    made /= made.sum()
    return made
