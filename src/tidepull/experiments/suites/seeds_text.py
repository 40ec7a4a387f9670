"""Seeds as people write them: "0-9", "0-4 7", or a list of numbers; and back.

A number alone is not read here: it could be one seed or a count. The command line counts with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MOST_SEEDS = 1_000_000


def parse_seeds(value: Any) -> tuple[int, ...]:
    """Seeds in rising order, each once; anything else is a `ValueError` that says what is allowed."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not parts:
        raise ValueError(_FORM)
    if isinstance(value, str) and value.strip().isdecimal():
        raise ValueError(
            f'"{value}" could be one seed or a count: write "{value}-{value}" or "0-{int(value) - 1}"'
        )
    seeds: set[int] = set()
    for part in parts:
        match = re.fullmatch(_PART, str(part)) if not isinstance(part, bool) else None
        if match is None:
            raise ValueError(_FORM)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the seeds '{part}' run backwards")
        if last - first + len(seeds) >= MOST_SEEDS:
            raise ValueError(f"more than {MOST_SEEDS:,} seeds")
        seeds.update(range(first, last + 1))
    return tuple(sorted(seeds))


def seeds_text(seeds: Iterable[int]) -> str:
    """`0-4 7` for 0, 1, 2, 3, 4, 7."""
    spans: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if spans and seed == spans[-1][1] + 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


_PART = r"(\d{1,18})(?:-(\d{1,18}))?"
_FORM = 'write seeds as "0-9", "0-4 7" or a list of whole numbers'
