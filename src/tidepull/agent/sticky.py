"""Arms that subjects keep for a while after they were drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidepull.types import Snapshot


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
        self._kept: dict[bytes, KeptArm] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, subject: bytes | None, group: int, at: float) -> KeptArm | None:
        """The arm that a subject keeps at a moment."""
        kept = None if subject is None else self._kept.get(subject)
        return kept if kept is not None and kept.group == group and at < kept.until else None

    def keep(self, subject: bytes, kept: KeptArm, at: float) -> None:
        """A subject keeps an arm that was drawn at a moment; arms whose time is over leave."""
        self._kept.pop(subject, None)
        while self._kept and self._kept[first := next(iter(self._kept))].until <= at:
            del self._kept[first]
        self._kept[subject] = kept

    def forget(self, subject: bytes) -> None:
        """A subject keeps nothing any more."""
        self._kept.pop(subject, None)

    def drop_arm(self, arm: int) -> None:
        """No subject keeps an arm whose place is another's now."""
        self._kept = {subject: kept for subject, kept in self._kept.items() if kept.arm != arm}

    def plain(self) -> Snapshot:
        """As arrays."""
        kept = list(self._kept.values())
        columns: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in kept]) for name in KeptArm._fields
        }
        return {**columns, "subject": np.frombuffer(b"".join(self._kept), np.uint8)}

    @classmethod
    def restored(cls, plain: Snapshot) -> StickyArms:
        """From arrays."""
        made, subjects = cls(), plain["subject"].astype(np.uint8).tobytes()
        columns = [plain[name].tolist() for name in KeptArm._fields]
        for n, (arm, propensity, group, until) in enumerate(zip(*columns, strict=True)):
            kept = KeptArm(int(arm), float(propensity), int(group), float(until))
            made._kept[subjects[8 * n : 8 * n + 8]] = kept
        return made
