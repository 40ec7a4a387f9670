"""Tideline 2 for other languages: worlds as files of plain numbers, and a score for chosen arms.

A world is one CSV file: `round`, `time` and `seen_*` are known before the choice; `reward_K` is what
arm K pays, known `wait_K` choices later. A player reads the reward of its own arm alone. The
manifest has a checksum for every file. A submission has the columns world, seed, round and arm.

    score = regret / expected regret of random arms, 0 the oracle, 1 random
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from tidepull.errors import InputError
from tidepull.experiments.suite import load_suite
from tidepull.problems import build_problem
from tidepull.problems.tables import TableWorld, WorldTable
from tidepull.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ExportedWorld:
    """A world of a suite under a seed, as long as the suite plays it."""

    name: str
    seed: int
    horizon: int
    table: WorldTable


@dataclass(frozen=True, slots=True)
class ScoredWorld:
    """What a submission reached in one world."""

    world: str
    seed: int
    rounds: int
    reward: float
    regret: float
    score: float


def exportable_worlds(suite: str) -> Iterator[ExportedWorld]:
    """The worlds of a suite that are tables, one for each seed."""
    seen = set()
    for spec in load_suite(suite).specs:
        key = (spec.problem_name or spec.problem, spec.seed)
        if key in seen:
            continue
        seen.add(key)
        built = build_problem((spec.problem, spec.problem_parameters), seed=spec.seed)
        if isinstance(built, TableWorld):
            yield ExportedWorld(*key, min(spec.horizon, len(built.table)), built.table)


def export_worlds(suite: str, folder: Path) -> Path:
    """Write every world and the manifest; returns the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for world in exportable_worlds(suite):
        path = folder / f"{world.name}-{world.seed}.csv"
        path.write_text(_text(world))
        files.append(
            {
                "world": world.name,
                "seed": world.seed,
                "file": path.name,
                "rounds": world.horizon,
                "arms": world.table.means.shape[1],
                "sha256": sha256(path.read_bytes()).hexdigest(),
            }
        )
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"suite": suite, "worlds": files}, indent=1) + "\n")
    return manifest


def _text(world: ExportedWorld) -> str:
    table, rows, n_arms = world.table, world.horizon, world.table.means.shape[1]
    columns: dict[str, FloatArray | IntArray] = {"round": np.arange(rows)}
    if table.time is not None:
        columns["time"] = table.time
    if table.observation is not None:
        columns |= {f"seen_{i}": column for i, column in enumerate(table.observation.T)}
    columns |= {f"reward_{k}": table.rewards[:, k] for k in range(n_arms)}
    waits = np.zeros_like(table.rewards, dtype=int) if table.waits is None else table.waits
    columns |= {f"wait_{k}": waits[:, k] for k in range(n_arms)}
    lines = zip(*(column[:rows].tolist() for column in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, line)) for line in lines)]) + "\n"


def score_arms(suite: str, file: Path) -> list[ScoredWorld]:
    """Score the arms that another program chose.

    Raises
    ------
    InputError
        If the file lacks a column or a round, or names a world or an arm that does not exist.
    """
    chosen = _read_arms(file)
    known = {(world.name, world.seed): world for world in exportable_worlds(suite)}
    if strange := sorted(set(chosen) - set(known)):
        raise InputError(f"{file}: {suite} has no world {strange[0][0]} with seed {strange[0][1]}")
    return [_scored(known[key], chosen[key], file) for key in sorted(chosen)]


def _scored(world: ExportedWorld, arms: dict[int, int], file: Path) -> ScoredWorld:
    where = f"{file}: {world.name}, seed {world.seed}"
    means, n_arms = world.table.means[: world.horizon], world.table.means.shape[1]
    missing = sorted(set(range(world.horizon)) - set(arms))
    if missing or len(arms) != world.horizon:
        what = f"round {missing[0]} is missing" if missing else "there are too many rounds"
        raise InputError(f"{where}: {what}; rounds are 0 to {world.horizon - 1}")
    order = np.array([arms[t] for t in range(world.horizon)])
    if order.min() < 0 or order.max() >= n_arms:
        raise InputError(f"{where}: arms are whole numbers from 0 to {n_arms - 1}")
    rows = np.arange(world.horizon)
    best = means.max(axis=1)
    regret = float((best - means[rows, order]).sum())
    return ScoredWorld(
        world=world.name,
        seed=world.seed,
        rounds=world.horizon,
        reward=float(world.table.rewards[rows, order].sum()),
        regret=regret,
        score=regret / float((best - means.mean(axis=1)).sum()),
    )


def _read_arms(file: Path) -> dict[tuple[str, int], dict[int, int]]:
    try:
        with file.open(newline="") as lines:
            return _grouped(csv.DictReader(lines), file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({error})") from None


def _grouped(rows: Iterable[dict[str, str]], file: Path) -> dict[tuple[str, int], dict[int, int]]:
    arms: dict[tuple[str, int], dict[int, int]] = {}
    for number, row in enumerate(rows, 2):
        try:
            key = row["world"], int(row["seed"])
            t, arm = int(row["round"]), int(row["arm"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{file}, line {number}: world, seed, round and arm must be given, the last three "
                "as whole numbers"
            ) from None
        if t in arms.setdefault(key, {}):
            raise InputError(f"{file}, line {number}: round {t} of {key[0]} comes twice")
        arms[key][t] = arm
    if not arms:
        raise InputError(f"{file} has no rows; its columns are world, seed, round and arm")
    return arms
