"""Names under which a store keeps what the rungs of a search asked for."""

from __future__ import annotations

import re


def plan_name(suite: str, number: int, rungs: int) -> str:
    """Under which name a store keeps what a rung (from 0) asked for."""
    return f"{suite}-rung-{number + 1}-of-{rungs}"


def searched_suite(plan: str) -> str:
    """The suite that a plan belongs to: its own name, without the rung."""
    return re.sub(r"-rung-\d+-of-\d+$", "", plan)


def is_last_rung(plan: str) -> bool:
    """Whether a plan is that of a search's last rung: full length, all the seeds that the rule gives it."""
    found = re.search(r"-rung-(\d+)-of-(\d+)$", plan)
    return found is not None and found[1] == found[2]
