"""Names under which a store keeps what the rungs of a search asked for."""

from __future__ import annotations

import re

_RUNG = re.compile(r"-rung-(\d+)-of-(\d+)$")


def plan_name(suite: str, number: int, rungs: int) -> str:
    """Under which name a store keeps what a rung (from 0) asked for."""
    return f"{suite}-rung-{number + 1}-of-{rungs}"


def searched_suite(plan: str) -> str:
    """The suite that a plan belongs to: its own name, without the rung."""
    return _RUNG.sub("", plan)


def rung_number(plan: str) -> int:
    """The number of the rung, from 1; 0 for a plan that is no rung's."""
    return int(found[1]) if (found := _RUNG.search(plan)) else 0


def is_last_rung(plan: str) -> bool:
    """Whether a plan is that of a search's last rung: full length, all the seeds that the rule gives it."""
    found = _RUNG.search(plan)
    return found is not None and found[1] == found[2]
