"""The page research/lab/mutants.md: a score for each module, and every survivor with its reason."""

from __future__ import annotations

import json
from pathlib import Path

PAGE = "research/lab/mutants.md"
REASONS = "research/benchmarks/mutants/reasons.json"
BEGIN, END = "<!-- made by `make mutants` -->", "<!-- end -->"


def write_page(rows: list[dict[str, str]], root: Path) -> float:
    """Print and write the score; returns it."""
    why_not = reasons(root)
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row["module"].removeprefix("src/tidepull/"), []).append(row)
    lines = ["| module | mutants | killed | survived |", "|---|---:|---:|---:|"]
    for module, mine in sorted(groups.items()):
        left = sum(row["outcome"] == "survived" for row in mine)
        lines.append(f"| `{module}` | {len(mine)} | {len(mine) - left} | {left} |")
    survivors = [row for row in rows if row["outcome"] == "survived"]
    score = 1 - len(survivors) / max(len(rows), 1)
    lines.append(
        f"| **all** | **{len(rows)}** | **{len(rows) - len(survivors)} ({score:.1%})** | "
        f"**{len(survivors)}** |"
    )
    print("\n".join(lines))
    lines += ["", "Survivors:", "", "| place | before | after | why |", "|---|---|---|---|"]
    for row in survivors:
        where = f"`{row['module'].removeprefix('src/tidepull/')}`:{row['line']}"
        why = why_not.get(row["place"], f"not looked at yet ({row['place']})")
        lines.append(f"| {where} | {_code(row['was'])} | {_code(row['now'])} | {why} |")
    path = root / PAGE
    text = path.read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)
    return score


def reasons(root: Path) -> dict[str, str]:
    """Why survivors survive, by place."""
    given: dict[str, str] = json.loads((root / REASONS).read_text())
    return given


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
