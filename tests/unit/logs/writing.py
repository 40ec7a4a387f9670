"""Small logs in every format, all saying the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
ARMS = ("blue", "green", "red")


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Decisions every half hour: three arms, of which each is as likely, and two fields of
    contexts."""
    rng = np.random.default_rng(5)
    return [
        {
            "id": f"d{n}",
            "at": datetime.fromtimestamp(START + 1800 * n, UTC).isoformat(),
            "arm": ARMS[int(rng.integers(3))],
            "reward": float(rng.integers(2)),
            "propensity": 1 / 3,
            "age": int(rng.integers(20, 60)),
            "device": ["phone", "tv"][int(rng.integers(2))],
        }
        for n in range(count)
    ]


def csv(path: Path, table: list[dict[str, Any]]) -> None:
    names = list(table[0])
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in table)]
    path.write_text("\n".join(lines) + "\n")


def parquet(path: Path, table: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet as pq

    pq.write_table(pa.Table.from_pylist(table), path)


def jsonl(path: Path, table: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table))


def nested(path: Path, table: list[dict[str, Any]]) -> None:
    jsonl(
        path,
        [
            {**{k: row[k] for k in ("at", "arm", "reward", "propensity")}, "context": _context(row)}
            for row in table
        ],
    )


def dsjson(path: Path, table: list[dict[str, Any]]) -> None:
    jsonl(
        path,
        [
            {
                "_label_cost": -row["reward"],
                "_label_probability": row["propensity"],
                "_label_Action": ARMS.index(row["arm"]) + 1,
                "_labelIndex": ARMS.index(row["arm"]),
                "Timestamp": row["at"],
                "EventId": row["id"],
                "a": [ARMS.index(row["arm"]) + 1],
                "p": [row["propensity"]],
                "c": {**_context(row), "_multi": [{"_tag": arm} for arm in ARMS]},
            }
            for row in table
        ],
    )


def vw_json(path: Path, table: list[dict[str, Any]]) -> None:
    jsonl(
        path,
        [
            {
                "Timestamp": row["at"],
                **_context(row),
                "_multi": [{"_tag": arm} for arm in ARMS],
                "_label": f"{ARMS.index(row['arm']) + 1}:{-row['reward']}:{row['propensity']}",
            }
            for row in table
        ],
    )


def vw_text(path: Path, table: list[dict[str, Any]]) -> None:
    blocks = []
    for row in table:
        lines = [f"shared |u age:{row['age']} {row['device']}"]
        for arm in ARMS:
            label = f"0:{-row['reward']}:{row['propensity']} " if arm == row["arm"] else ""
            lines.append(f"{label}'{arm} |a x")
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n")


def gittins(path: Path, table: list[dict[str, Any]]) -> None:
    decisions = [
        {
            "event": "decision",
            "context": _context(row),
            "candidates": [{"id": arm} for arm in ARMS],
            "record": {
                "decision_id": row["id"],
                "t": row["at"],
                "chosen": ARMS.index(row["arm"]),
                "propensity": row["propensity"],
            },
        }
        for row in table
    ]
    ends = [
        {"event": "resolution", "decision_id": row["id"], "kind": "learn", "reward": row["reward"]}
        for row in reversed(table)
    ]
    jsonl(path, decisions + ends)


def _context(row: dict[str, Any]) -> dict[str, Any]:
    return {"age": row["age"], "device": row["device"]}


FORMATS: dict[str, tuple[str, Callable[[Path, list[dict[str, Any]]], None]]] = {
    "csv": ("log.csv", csv),
    "parquet": ("log.parquet", parquet),
    "jsonl": ("log.jsonl", jsonl),
    "jsonl with contexts": ("nested.jsonl", nested),
    "dsjson": ("log.json", dsjson),
    "vw-json": ("vw.json", vw_json),
    "vw-text": ("log.dat", vw_text),
    "gittins": ("gittins.jsonl", gittins),
}
"""Every writer by the format that must be guessed (its first word), with the name of its file."""
