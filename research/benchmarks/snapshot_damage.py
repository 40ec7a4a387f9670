"""Thousands of damaged snapshots: whatever comes in, only `SnapshotError` comes out and nothing
changes.

python -m research.benchmarks.snapshot_damage [--cases N]    write research/results/snapshot_damage.csv

Damage is done to the bytes (as on a disk or a wire), to the dictionary (as by a hand that edits
it), and to both behind a checksum that was made to fit (as by a program with a fault). Behind a
checksum that fits, a snapshot may also be restored, but then exactly as it is.
"""

from __future__ import annotations

import argparse
import copy
import csv
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tidepull
from research.benchmarks import machine
from tidepull import state as snapshots
from tidepull.errors import SnapshotError
from tidepull.policies import build_policy, policies
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, ProblemShape, Snapshot

OUT = Path(__file__).parents[1] / "results" / "snapshot_damage.csv"
COLUMNS = ("policy", "damage", "cases", "refused", "restored_exactly", "faults")
SEALED = "behind a checksum that fits"
SHAPE = ProblemShape(3)
SMALL: dict[str, dict[str, Any]] = {
    id: {"units": [8, 8, 8], "epochs": 1} for id in ("rnlps", "nlps")
}
IDS = [id for id in policies.ids() if id not in ("oracle", "fixed")]

Rng = random.Random


def played(id: str, rounds: int = 40, seed: int = 0) -> Guarded:
    """A policy in the middle of its life, with rounds that wait for their reward."""
    policy = build_policy((id, SMALL.get(id, {})), SHAPE, seed=seed)
    for t in range(rounds):
        arm = policy.choose(Context())
        if t % 5:
            policy.learn(Event(Context(), arm, float(t % 2)))
            while policy.upkeep():
                pass
    return policy


def flip(data: bytes, rng: Rng) -> bytes:
    """One to eight bits."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def flip_head(data: bytes, rng: Rng) -> bytes:
    """A byte of the first 64, where magic, format and checksum are."""
    damaged = bytearray(data)
    damaged[rng.randrange(min(64, len(data)))] ^= rng.randint(1, 255)
    return bytes(damaged)


def overwrite(data: bytes, rng: Rng) -> bytes:
    """A run of random bytes."""
    start = rng.randrange(len(data))
    return data[:start] + rng.randbytes(rng.randint(1, 64)) + data[start + rng.randint(1, 64) :]


def erase(data: bytes, rng: Rng) -> bytes:
    """A run of zeros, as after a crash."""
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice((1, 8, 512, 4096)))
    return data[:start] + bytes(end - start) + data[end:]


def truncate(data: bytes, rng: Rng) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def extend(data: bytes, rng: Rng) -> bytes:
    """Something follows, or precedes."""
    more = rng.randbytes(rng.randint(1, 100))
    return data + more if rng.random() < 0.5 else more + data


def duplicate(data: bytes, rng: Rng) -> bytes:
    """A part comes twice."""
    start, end = sorted((rng.randrange(len(data)), rng.randrange(1, len(data) + 1)))
    return data[:end] + data[start:]


def cut(data: bytes, rng: Rng) -> bytes:
    """A part is left out."""
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 4096) :]


def swap(data: bytes, rng: Rng) -> bytes:
    """Two halves in the wrong order."""
    middle = rng.randrange(1, len(data))
    return data[middle:] + data[:middle]


def noise(_: bytes, rng: Rng) -> bytes:
    """Nothing of it is left."""
    return rng.randbytes(rng.choice((0, 1, 8, 60, 1000)))


BYTES: dict[str, Callable[[bytes, Rng], bytes]] = {
    f.__name__: f
    for f in (flip, flip_head, overwrite, erase, truncate, extend, duplicate, cut, swap, noise)
}


def splice(data: bytes, other: bytes, rng: Rng) -> bytes:
    """The head of one snapshot and the tail of another."""
    where = rng.randrange(1, min(len(data), len(other)))
    return data[:where] + other[where:]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a snapshot."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def alter(snapshot: Snapshot, rng: Rng) -> Snapshot:
    """Another value, kind or shape somewhere, or a part too many or too few."""
    altered: Snapshot = copy.deepcopy(snapshot)
    *way, last = rng.choice([place for place in places(altered) if place])
    parent: Any = altered
    for key in way:
        parent = parent[key]
    if isinstance(parent, dict) and rng.random() < 0.2:
        if rng.random() < 0.5:
            del parent[last]
        else:
            parent["more"] = 1
        return altered
    parent[last] = _other(parent[last], rng)
    return altered


def _other(value: Any, rng: Rng) -> Any:
    if isinstance(value, np.ndarray) and rng.random() < 0.8:
        return _other_array(value, rng)
    choices: list[Any] = [
        None,
        True,
        -1,
        0,
        10**30,
        1.5,
        float("nan"),
        float("-inf"),
        "red",
        "",
        [],
        {},
        [value],
    ]
    choices += [
        np.zeros(0),
        np.ones(3),
        np.array(1.0),
        np.array(["red"]),
        np.array([None]),
        object(),
        {1, 2},
        b"x",
    ]
    return rng.choice(choices)


def _other_array(array: np.ndarray[Any, Any], rng: Rng) -> Any:
    kind = rng.randrange(9)
    if kind == 0:
        return array.astype(rng.choice(("float32", "int32", "float64", "bool", "complex128", "U5")))
    if kind == 1:
        return array[None]
    if kind == 2:
        return array[..., :-1] if array.ndim else array
    if kind == 3:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 4:
        return array.T
    if kind == 5:
        return array.tolist()
    damaged = array.copy()
    if damaged.size:
        place = rng.randrange(damaged.size)
        values = {"f": (np.nan, np.inf, -np.inf, 1e30, -1.0), "i": (-1, 100, 2**31 - 1)}
        damaged.flat[place] = rng.choice(values.get(damaged.dtype.kind, (0, 1)))
    return damaged


def resealed(snapshot: Snapshot) -> Snapshot:
    """The same with a checksum that fits."""
    content = {name: value for name, value in snapshot.items() if name != "checksum"}
    return {**content, "checksum": snapshots.checksum(content)}


def rewrapped(data: bytes, rng: Rng) -> bytes:
    """Damage to the text that describes the arrays, behind a checksum that fits."""
    head, text = snapshots.HEAD, int.from_bytes(data[snapshots.HEAD : snapshots.HEAD + 8], "little")
    damaged = bytearray(data[head:])
    for _ in range(rng.randint(1, 3)):
        damaged[rng.randrange(8 + text)] = rng.choice(b'0123456789[]{}",:ftn-e. \x00\xff')
    return snapshots.wrap(bytes(damaged))


def outcome(policy: Guarded, before: bytes, make: Callable[[], Any]) -> str:
    """What becomes of one damaged snapshot, given as bytes or as a dictionary."""
    try:
        damaged = make()
    except SnapshotError:
        return "refused"  # it could not even be sealed
    try:
        loaded = snapshots.load(damaged) if isinstance(damaged, bytes) else damaged
    except SnapshotError:
        return "refused"
    except BaseException as error:
        return f"fault in load: {error!r}"
    try:
        policy.restore(loaded)
    except SnapshotError:
        return (
            "refused"
            if snapshots.dump(policy.snapshot()) == before
            else "fault: the policy changed"
        )
    except BaseException as error:
        return f"fault in restore: {error!r}"
    exact = snapshots.difference(loaded, policy.snapshot()) is None
    policy.restore(snapshots.load(before))
    return "restored exactly" if exact else "fault: restored something else"


Case = Callable[[], Any]


def cases(data: bytes, other: bytes, rng: Rng) -> dict[str, Case]:
    """One case of every kind of damage."""

    def anew(damage: Callable[[bytes, Rng], bytes]) -> Case:
        def make() -> bytes:
            while (damaged := damage(data, rng)) in (data, other):  # no damage at all, by chance
                pass
            return damaged

        return make

    def altered() -> Snapshot:
        whole = snapshots.load(data)
        while snapshots.difference(whole, found := alter(whole, rng)) is None:
            pass
        return found

    made = {f"bytes: {name}": anew(damage) for name, damage in BYTES.items()}
    made["bytes: splice"] = anew(lambda data, rng: splice(data, other, rng))
    made[f"bytes, {SEALED}"] = lambda: rewrapped(data, rng)
    made["dictionary"] = altered
    made[f"dictionary, {SEALED}"] = lambda: resealed(altered())
    return made


def is_fault(kind: str, found: str) -> bool:
    """Whether that must not become of a snapshot with that damage."""
    return found != "refused" and not (SEALED in kind and found == "restored exactly")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=80, help="of each kind, for each policy")
    each = parser.parse_args().cases
    rows, faults, started = [], Counter[str](), time.perf_counter()
    for id in IDS:
        policy, rng = played(id), random.Random(id)
        before, other = (
            snapshots.dump(policy.snapshot()),
            snapshots.dump(played(id, 60, 1).snapshot()),
        )
        counts: dict[str, Counter[str]] = {}
        for _ in range(each):
            for kind, make in cases(before, other, rng).items():
                found = outcome(policy, before, make)
                fault = is_fault(kind, found)
                counts.setdefault(kind, Counter())["fault" if fault else found] += 1
                faults.update([f"{id}, {kind}: {found}"] if fault else [])
        rows += [
            [id, kind, each, n["refused"], n["restored exactly"], n["fault"]]
            for kind, n in counts.items()
        ]
        print(f"{id:14} {sum(n['refused'] for n in counts.values())} refused", flush=True)
    for sentence, n in faults.most_common():
        print(n, sentence)
    versions = [
        tidepull.__version__,
        np.__version__,
        platform.python_version(),
        machine.processor(),
        os.cpu_count(),
    ]
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*COLUMNS, "tidepull", "numpy", "python", "processor", "cores"])
        writer.writerows([*row, *versions] for row in rows)
    total, seconds = sum(row[2] for row in rows), time.perf_counter() - started
    print(f"{total:,} cases, {sum(faults.values())} faults, {seconds:.0f} s; written to {OUT.name}")


if __name__ == "__main__":
    main()
