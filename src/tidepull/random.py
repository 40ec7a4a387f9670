"""One integer seed becomes any number of independent, named random streams."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from tidepull.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Streams:
    """A tree of random streams: equal seeds and paths give equal numbers on every machine.

    Parameters
    ----------
    seed : int
        A whole number that is not negative.
    path : tuple of str, default: ()
        The names from the root of the tree to this subtree.

    Raises
    ------
    ParameterError
        If the seed is negative, or not a whole number.

    Examples
    --------
    >>> Streams(7).child("problem").generator("noise").integers(100)
    np.int64(8)
    """

    seed: int
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (
            isinstance(self.seed, bool)
            or not isinstance(self.seed, int | np.integer)
            or self.seed < 0
        ):
            raise ParameterError(
                f"seed must be a whole number that is not negative, got {self.seed!r}"
            )

    def child(self, name: str) -> Streams:
        """Return the subtree of that name.

        Parameters
        ----------
        name : str
            Any text.

        Returns
        -------
        Streams
            Independent of all other subtrees.
        """
        return Streams(self.seed, (*self.path, name))

    def generator(self, name: str) -> np.random.Generator:
        """Return a fresh generator at the start of a stream.

        Parameters
        ----------
        name : str
            The stream's name in this subtree.

        Returns
        -------
        numpy.random.Generator
            Two calls with one name return generators that draw equal numbers.
        """
        key = tuple(crc32(part.encode()) for part in (*self.path, name))
        return np.random.default_rng(np.random.SeedSequence(int(self.seed), spawn_key=key))
