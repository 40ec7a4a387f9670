"""How an arm is drawn: from shares within bounds, by numbers that follow from the agent's salt; and
how long a subject keeps it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tidepull.policies.checks import count_true
from tidepull.types import BoolArray, FloatArray, IntArray, Snapshot


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
    count = count_true(available)
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
    chances: FloatArray = np.clip(above * weights, low, high)
    free = (chances > low) & (chances < high)
    if free.any():
        chances[free] *= (1 - chances[~free].sum()) / chances[free].sum()
    chances /= chances.sum()
    return chances


class KeptArm(NamedTuple):
    """The arm of a subject, the chance with which it was drawn, for which group, and until when it
    is kept."""

    arm: int
    propensity: float
    group: int
    until: float


class StickyArms:
    """The arms that subjects keep, by the hashes of subjects, in the order in which they were
    drawn."""

    def __init__(self) -> None:
        self._arms: dict[bytes, KeptArm] = {}

    def __len__(self) -> int:
        return len(self._arms)

    def find(self, subject: bytes | None, group: int, at: float) -> KeptArm | None:
        """The arm that a subject keeps at a moment."""
        own = None if subject is None else self._arms.get(subject)
        return own if own is not None and own.group == group and at < own.until else None

    def keep(self, subject: bytes, own: KeptArm, at: float) -> None:
        """A subject keeps an arm that was drawn at a moment; arms whose time is over leave."""
        self._arms.pop(subject, None)
        while self._arms and self._arms[first := next(iter(self._arms))].until <= at:
            del self._arms[first]
        self._arms[subject] = own

    def forget(self, subject: bytes) -> None:
        """A subject keeps nothing any more."""
        self._arms.pop(subject, None)

    def drop_arm(self, arm: int) -> None:
        """No subject keeps an arm whose place is another's now."""
        self._arms = {subject: own for subject, own in self._arms.items() if own.arm != arm}

    def plain(self) -> Snapshot:
        """As arrays."""
        arms = list(self._arms.values())
        columns: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in arms]) for name in KeptArm._fields
        }
        return {**columns, "subject": np.frombuffer(b"".join(self._arms), np.uint8)}

    @classmethod
    def restored(cls, plain: Snapshot) -> StickyArms:
        """From arrays."""
        restored, subjects = cls(), plain["subject"].astype(np.uint8).tobytes()
        columns = [plain[name].tolist() for name in KeptArm._fields]
        for n, (arm, propensity, group, until) in enumerate(zip(*columns, strict=True)):
            own = KeptArm(int(arm), float(propensity), int(group), float(until))
            restored._arms[subjects[8 * n : 8 * n + 8]] = own
        return restored
