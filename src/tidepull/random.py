"""One integer seed becomes any number of independent, named random streams."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from tidepull.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Streams:
    """A tree of random streams: the same seed and path give the same numbers on every machine.

    >>> Streams(7).child("problem").generator("noise").integers(100)
    np.int64(8)
    """

    seed: int
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise ParameterError(f"seed must be a whole number that is not negative, got {self.seed!r}")

    def child(self, name: str) -> Streams:
        """The subtree of that name."""
        return Streams(self.seed, (*self.path, name))

    def generator(self, name: str) -> np.random.Generator:
        """A fresh generator at the start of the stream of that name."""
        key = tuple(crc32(part.encode()) for part in (*self.path, name))
        return np.random.default_rng(np.random.SeedSequence(int(self.seed), spawn_key=key))
