"""The map of the packages: `python -m manual.map` draws it from the layers that import-linter checks,
with both walks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs" / "figures" / "map.svg"
WIDTH, ROW, BOX = 880, 58, 36
SAYS = {
    "cli": "commands", "paper": "claims, tables, the bound", "reporting": "numbers, pages, pictures",
    "experiments": "loop, suites, store, runs", "agent": "decides and remembers", "service": "agents over HTTP",
    "logs": "read, diagnose, backtest", "integrations": "other libraries", "_internal": "threads, files, extras",
    "policies": "learners", "problems": "worlds", "tide": "the policy tide",
    "posteriors": "exact beliefs", "encoders": "networks", "registry": "ids", "protocols": "the seams",
    "types": "nouns", "errors": "sentences",
}  # fmt: skip
WALKS = {
    "#1f6fb2": {"cli": "1", "experiments": "2 6", "registry": "3", "problems": "4", "policies": "5",
                "reporting": "7 8"},
    "#b3541e": {"agent": "a b d", "policies": "c", "tide": "c", "posteriors": "c"},
}  # fmt: skip
"""A trial's steps in blue, a decision's in orange, as docs/architecture.md tells them."""


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(
        c
        for c in project["tool"]["importlinter"]["contracts"]
        if c["name"] == "Rooms point one way"
    )
    rows = [re.findall(r"tidepull\.(\w+)", layer) for layer in contract["layers"]]
    return [list(dict.fromkeys(row)) for row in rows if row != ["_internal"]]


def drawn(rows: list[list[str]]) -> str:
    """The map as SVG, in colours that can be read on white and on black."""
    height = ROW * len(rows) + 16
    shapes = "\n".join(shape for n, rooms in enumerate(rows) for shape in _row(rooms, 12 + n * ROW))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif">\n<title>The packages of tidepull</title>\n{STYLE}\n{shapes}\n</svg>\n'
    )


def _row(rooms: list[str], top: int) -> Iterator[str]:
    gap = 8
    width = min(190, (WIDTH - gap * (len(rooms) + 1)) / len(rooms))
    left = (WIDTH - len(rooms) * width - (len(rooms) - 1) * gap) / 2
    for n, room in enumerate(rooms):
        x = left + n * (width + gap)
        middle, says = x + width / 2, SAYS.get(room, "")
        yield f'<rect class="room" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BOX}" rx="6"/>'
        place = top + (15 if says else 23)
        yield f'<text class="name" x="{middle:.1f}" y="{place}">{room}</text>'
        if says:
            yield f'<text class="says" x="{middle:.1f}" y="{top + 29}">{says}</text>'
        yield from _steps(room, x + width, top)


def _steps(room: str, right: float, top: int) -> Iterator[str]:
    steps = [
        (colour, step) for colour, walk in WALKS.items() for step in walk.get(room, "").split()
    ]
    for n, (colour, step) in enumerate(reversed(steps)):
        x = right - 6 - n * 17
        yield f'<circle cx="{x:.1f}" cy="{top}" r="8" fill="{colour}"/>'
        yield f'<text class="step" x="{x:.1f}" y="{top + 4}">{step}</text>'


STYLE = """<style>
.room { fill: #eef3f8; stroke: #7f93a6; }
.name { font-size: 12px; font-weight: 600; fill: #1c2126; text-anchor: middle; }
.says { font-size: 10px; fill: #46525d; text-anchor: middle; }
.step { font-size: 10.5px; font-weight: 600; fill: #fff; text-anchor: middle; }
</style>"""


if __name__ == "__main__":
    FIGURE.write_text(drawn(layers()))
