"""Heavy work that is due after certain numbers of rewards, and is paid for in slices."""

from __future__ import annotations

from collections.abc import Callable

from tidepull.errors import SnapshotError
from tidepull.tide.models.slices import STEPS, Pieces

_KINDS = {"rebuild", "train", "births", "record"}


class Agenda:
    """Jobs by name and the number of rewards after which they became due; `begun` starts one.
    `piece` are steps that every piece of work costs beyond those that it says."""

    def __init__(self, begun: Callable[[str, int], Pieces[None]], piece: int = 0) -> None:
        self._begun, self._piece = begun, piece
        self._jobs: list[tuple[str, int]] = []
        self._work: Pieces[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._jobs)

    @property
    def under_way(self) -> bool:
        """Whether a job has begun."""
        return self._work is not None

    def put(self, name: str, count: int) -> None:
        """Once is enough, unless the one on the list is under way."""
        waiting = self._jobs[1:] if self._work is not None else self._jobs
        if name not in (other for other, _ in waiting):
            self._jobs.append((name, count))

    def slice(self) -> bool:
        """Do a slice of the first job; whether anything is left."""
        if not self._jobs:
            return False
        if self._work is None:
            self._work = self._begun(*self._jobs[0])
        left = STEPS
        try:
            while left > 0:
                left -= next(self._work) + self._piece
        except StopIteration:
            self._work = None
            del self._jobs[0]
        return bool(self._jobs)

    def snapshot(self) -> list[list[str | int]]:
        """What is due; work under way starts anew."""
        if self._work is not None:
            self._work.close()
            self._work = None
        return [list(job) for job in self._jobs]

    def restore(self, jobs: list[list[str | int]]) -> None:
        """Continue from a snapshot."""
        self._jobs = [(str(name), int(count)) for name, count in jobs]
        if not {name for name, _ in self._jobs} <= _KINDS:
            raise SnapshotError("the snapshot has work on its agenda that tide does not know")
        self._work = None


def birth_is_due(count: int) -> bool:
    """At 24 and 32, then every 32 rewards to 512, every 128 to 1024, every 256 to 4096, every 512
    for ever after."""
    interval = 32 if count <= 512 else 128 if count <= 1024 else 256 if count <= 4096 else 512
    return count == 24 or (count >= 32 and count % interval == 0)


def is_power_of_two(count: int) -> bool:
    """1, 2, 4, 8, ..."""
    return count & (count - 1) == 0
