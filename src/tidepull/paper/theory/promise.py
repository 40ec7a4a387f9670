"""One promise of the analysis beside what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """`measured` must be at most `allowed` (at least, where `at_least`), give or take `margin` of chance.

    `promised` is False where the lemma's premise does not hold: then it is measured, and nothing hangs on it.
    `nearest` says how near the worst trial came to the limit inside a promise of probability, as a share of it.
    """

    lemma: str
    what: str
    measured: float
    allowed: float
    at_least: bool = False
    margin: float = 0.0
    promised: bool = True
    nearest: float | None = None

    @property
    def kept(self) -> bool:
        """Whether it was kept, or was not promised."""
        if not self.promised:
            return True
        if self.at_least:
            return self.measured >= self.allowed - self.margin
        return self.measured <= self.allowed + self.margin
