"""A process that can die between any two of its steps, and whose death drops all that it has in
memory."""

from __future__ import annotations


class Killed(BaseException):
    """The process is dead: nothing that it still tries has an effect."""


class Process:
    """Counts the steps of one life: callbacks of the loop, switches of threads, calls of the disk.
    After `lifetime` steps it is dead, wherever it is. None: it lives until somebody kills it."""

    def __init__(self, number: int, lifetime: int | None) -> None:
        self.number = number
        self.alive = True
        self.steps = 0
        self._lifetime = lifetime

    def step(self) -> bool:
        """One more step; False if it is dead, and the step must not be taken."""
        self.steps += 1
        if self._lifetime is not None and self.steps > self._lifetime:
            self.alive = False
        return self.alive

    def require(self) -> None:
        """One more step, or the end."""
        if not self.step():
            raise Killed

    def limit(self, steps: int) -> None:
        """So many more steps."""
        self._lifetime = self.steps + steps
