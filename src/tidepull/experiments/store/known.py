"""Results that are known from files: the rewards of trials by their hashes, from CSV that a store exported."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from tidepull._internal.files import explained
from tidepull.errors import InputError


def known_rewards(paths: Iterable[Path]) -> dict[str, float]:
    """From hash to cumulative reward; a folder stands for all its CSV files that have both columns.

    Lines without a reward (trials that a suite asked for and that were not played) are left out.
    """
    found: dict[str, float] = {}
    for path in paths:
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        for file in files:
            found.update(_rewards(file, required=not path.is_dir()))
    return found


def _rewards(file: Path, *, required: bool) -> dict[str, float]:
    with explained("read", file), file.open(newline="", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        columns = reader.fieldnames or []
        if "hash" not in columns or "reward" not in columns:
            if required:
                raise InputError(
                    f"{file} has no columns 'hash' and 'reward'; `tidepull store export` writes them"
                )
            return {}
        found = {line["hash"]: line["reward"] for line in reader if line["reward"]}
    try:
        rewards = {hash: float(reward) for hash, reward in found.items()}
    except (TypeError, ValueError) as error:
        raise InputError(f"{file}: a reward is no number ({error})") from None
    if wrong := [hash for hash, reward in rewards.items() if not math.isfinite(reward)]:
        raise InputError(f"{file}: the reward of {wrong[0]} is not finite")
    return rewards
