"""The page: each paper's table with the published rows, the paper's method here, and ours.

`published.toml` has what the papers publish and what differs from them here.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.reporting.frames import Frame, Group
from tidepull.reporting.stats import mean_interval
from tidepull.reporting.tables import provenance

FOLDER = Path(__file__).parent
PAGE = FOLDER / "README.md"
OURS = ("tide", "rnlps", "specialist", "random")
Paper = Mapping[str, Any]


def page(frame: Frame) -> str:
    """The whole text."""
    content = tomllib.loads((FOLDER / "published.toml").read_text())
    gaps = len(frame.gaps.missing) + len(frame.gaps.failed)
    missing = [f"**{gaps:,} trials of the suites are not played yet.**"] if gaps else []
    parts = [content["introduction"], *missing, *(section(one, frame) for one in content["papers"])]
    lines = [*provenance(frame, names=False), f"Version of `tide`: {tide_versions(frame)}"]
    end = "## Where it was played\n\n" + "\n".join(f"- {said}" for said in lines)
    behind = "## Where `tide` is behind a paper's method\n\n" + "\n".join(
        ahead(content["papers"], frame)
    )
    return "\n\n".join(["# Other papers' tables", *parts, behind, end]) + "\n"


def ahead(papers: list[Paper], frame: Frame) -> Iterator[str]:
    """Worlds in which a paper's method has less regret, beyond noise: the 95% interval of the
    paired difference lies above 0."""
    yield "| world | method | its regret | `tide`'s | difference, 95% |\n|---|---|---:|---:|---:|"
    methods = {suite: paper["methods"] for paper in papers for suite in paper["suites"]}
    for study in frame.studies:
        own = study.group("tide")
        if own is None:
            continue
        for name in methods.get(study.suite, []):
            group = study.group(name)
            theirs = dict(zip(group.worlds, group.regrets, strict=True)) if group else {}
            pairs = np.array(
                [
                    (regret, theirs[world])
                    for world, regret in zip(own.worlds, own.regrets, strict=True)
                    if world in theirs
                ]
            )
            low, high = mean_interval(pairs[:, 0] - pairs[:, 1]) if len(pairs) > 1 else (0.0, 0.0)
            if low > 0:
                mine, other = pairs.mean(axis=0)
                yield f"| {study.problem} | `{name}` | {other:.1f} | {mine:.1f} | {low:.1f} to {high:.1f} |"


def tide_versions(frame: Frame) -> str:
    """Of its registry entry, as the trials say."""
    rows = (row for study in frame.studies for group in study.groups for row in group.rows)
    found = {json.loads(row.code).get("policy_version", 1) for row in rows if row.policy == "tide"}
    return ", ".join(map(str, sorted(found))) or "not played"


def section(paper: Paper, frame: Frame) -> str:
    """One paper."""
    cells = {
        (group.name, study.problem): shown(group, study.horizon, paper)
        for study in frame.studies
        if study.suite in paper["suites"]
        for group in study.groups
    }
    problems = [problem for problem, _ in paper["columns"]]
    rows = [[f"published: {name}", *row] for name, *row in paper.get("published", [])]
    for name in (*paper["methods"], *OURS):
        played = [cells.get((name, problem), "") for problem in problems]
        if any(played):
            rows.append([f"`{name}`", *played])
    remarks = "\n".join(f"- {said}" for said in paper["differs"])
    return f"## {paper['title']}\n\n" + "\n".join(table(paper, rows)) + f"\n\n{remarks}"


def table(paper: Paper, rows: list[list[str]]) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| | " + " | ".join(heading for _, heading in paper["columns"]) + " |"
    yield "|---|" + "---:|" * len(paper["columns"])
    for row in rows:
        yield "| " + " | ".join(cell or "–" for cell in row) + " |"


def shown(group: Group, horizon: int, paper: Paper) -> str:
    """Mean ± deviation (trials); a single trial has no deviation."""
    per_round, decimals = paper.get("per_round", False), paper.get("decimals", 0)
    values = group.regrets / (horizon if per_round else 1)
    spread = f" ± {values.std(ddof=1):.{decimals}f}" if len(values) > 1 else ""
    said = f"{values.mean():.{decimals}f}{spread} ({len(values)})"
    return said.replace("0.", ".") if per_round else said
